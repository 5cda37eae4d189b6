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
import time
from collections.abc import Iterator
from typing import Any

import jax

from uppertail.errors import InputError, message_of
from uppertail.training.birth import birth

SMALLER = (
    "use fewer --seeds, a smaller --network.width, --replay_size or --env.hash_size, or, where there are very many "
    "states, --env.encoding hashed or scalar"
)
"""The remedy if the state of all seeds does not fit into memory."""

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__]
"""Ctrl-C, what schedulers, containers and `timeout` send before they kill, and the end of a terminal or connection."""

PLAY_SECONDS = 3.0
"""For so long after a signal greedy episodes are still played: containers are killed after ten seconds."""

AT_ONCE_SECONDS = 1.0
"""From so long after a signal on, Ctrl-C ends the process at once; earlier, `timeout` or a parent sent one twice."""


def hardware() -> dict[str, Any]:
    """This process's machine, the versions of packages, and the commit and tree of a source checkout."""
    return {
        "device": jax.devices()[0].device_kind,
        "cpu_cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("uppertail", "jax", "numpy")},
        **birth(),
    }


def cores() -> int:
    """How many of the machine's cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_threads(seeds: int) -> None:
    """Limits this process's XLA to as many threads as seeds or cores, whichever are fewer, unless PJRT_NPROC is set."""
    os.environ.setdefault("PJRT_NPROC", str(min(seeds, cores())))


def require_device() -> None:
    """Refuses to train where JAX finds no device."""
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


class OutOfTimeError(Exception):
    """Greedy episodes were not played to their end, because a signal asked the run to stop."""


class StopRequest(threading.Event):
    """Set when a signal, whose number it keeps, asks the run to stop."""

    signal_number: int = signal.SIGINT
    _when: float = 0.0

    def ask(self, signal_number: int, _: object = None) -> None:
        """Handles a signal; KeyboardInterrupt if it is another Ctrl-C."""
        if not self.is_set():
            self.signal_number, self._when = signal_number, time.monotonic()
            self.set()
        elif signal_number == signal.SIGINT and self._since > AT_ONCE_SECONDS:
            raise KeyboardInterrupt

    def require_time(self) -> None:
        """Raises OutOfTimeError if a signal came a while ago."""
        if self.is_set() and self._since > PLAY_SECONDS:
            raise OutOfTimeError

    @property
    def _since(self) -> float:
        return time.monotonic() - self._when

    @property
    def exit_code(self) -> int:
        """The exit code by a shell's convention: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + self.signal_number


_active: list[StopRequest] = []


@contextlib.contextmanager
def interruptible() -> Iterator[StopRequest]:
    """Yields an event that Ctrl-C, SIGTERM and SIGHUP set, instead of KeyboardInterrupt and the end of the process.

    All that are nested share one; a thread gets one that is never set. A program's own handlers of SIGTERM and SIGHUP
    stay, as does `nohup`, which ignores SIGHUP. Another Ctrl-C, a second later, is a KeyboardInterrupt again.
    """
    in_thread = threading.current_thread() is not threading.main_thread()
    asked = _active[0] if _active and not in_thread else StopRequest()
    if _active or in_thread:
        yield asked
        return

    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in previous.items():
        if number == signal.SIGINT or handler is signal.SIG_DFL:
            signal.signal(number, asked.ask)
    _active.append(asked)
    try:
        yield asked
    finally:
        _active.clear()
        for number, handler in previous.items():
            signal.signal(number, handler)
