"""The process that a run lives in: its machine, threads, memory and signals, and what JAX has to be set to.

XLA has a pool of threads on a CPU, and reads its settings once, as JAX starts. It shares the operations of a program
among its threads. Those of a single seed are mostly too small for that: handing them over takes longer than computing
them (docs/decisions/0010).
"""

import contextlib
import importlib.metadata
import os
import platform
import signal
import threading
from collections.abc import Iterator
from typing import Any

import jax
import threadpoolctl

from uppertail.errors import InputError, message_of

SMALLER = (
    "use fewer seeds, a smaller width, replay_size or --env.hash_size, or, where there are very many states, "
    "--env.encoding scalar"
)
"""The remedy if the state of all seeds does not fit into memory."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and the signal that schedulers, containers and `timeout` send before they kill."""


def hardware() -> dict[str, Any]:
    """This process's machine, and the versions of packages."""
    return {
        "device": jax.devices()[0].device_kind,
        "cpu_cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("uppertail", "jax", "numpy")},
    }


def cores() -> int:
    """How many of the machine's cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_threads(seeds: int) -> None:
    """Limits this process's XLA to as many threads as seeds or cores, whichever are fewer, unless PJRT_NPROC is set."""
    os.environ.setdefault("PJRT_NPROC", str(min(seeds, cores())))


def run_inline() -> None:
    """Makes programs run in the thread that calls them, if JAX has not started: for many programs of microseconds."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def one_thread_for_linear_algebra() -> threadpoolctl.threadpool_limits:
    """Keeps LAPACK to one thread: its threads wait by spinning, which takes 100 times as long on a busy machine."""
    return threadpoolctl.threadpool_limits(1, "blas")


def in_32_bits() -> contextlib.AbstractContextManager[None]:
    """A context in which JAX's numbers have 32 bits, as all results of this project do, despite `jax_enable_x64`."""
    return jax.enable_x64(False)


def require_working_jax() -> None:
    """Refuses to train where JAX is told not to compile, or finds no device."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue] - made when JAX is imported
        raise InputError("JAX is told not to compile (JAX_DISABLE_JIT), but a run is a compiled program: unset it.")
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # an unknown platform, or one without a device here
        why = f" ({message_of(error)})" if message_of(error) else ""
        raise InputError(f"JAX finds no device{why}: unset JAX_PLATFORMS, or set it to cpu.") from error


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Turns JAX's errors of missing memory into a sentence."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not any(sign in str(error) for sign in ("RESOURCE_EXHAUSTED", "Out of memory")):
            raise
        raise InputError(f"The networks and replay buffers of all seeds do not fit into memory: {SMALLER}.") from error


class StopRequest(threading.Event):
    """Set when a signal, whose number it keeps, asks the run to stop."""

    signal_number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """The exit code by a shell's convention: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.signal_number


_stoppable: list[StopRequest] = []


def _ask_to_stop(signal_number: int, _: object) -> None:
    for request in _stoppable:
        request.signal_number = signal_number
        request.set()


@contextlib.contextmanager
def interruptible() -> Iterator[StopRequest]:
    """Yields an event that Ctrl-C and SIGTERM set, instead of KeyboardInterrupt and the end of the process.

    A signal sets the events of all that are nested; a thread gets none. A program's own handler of SIGTERM stays.
    """
    asked = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in previous.items():
        if number == signal.SIGINT or handler in (signal.SIG_DFL, _ask_to_stop):
            signal.signal(number, _ask_to_stop)
    _stoppable.append(asked)
    try:
        yield asked
    finally:
        _stoppable.remove(asked)
        for number, handler in previous.items():
            signal.signal(number, handler)
