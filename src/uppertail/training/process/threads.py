"""How many threads XLA has on a CPU, and in which of them programs run. XLA reads these settings once, as JAX starts.

XLA shares the operations of a program among its threads. Those of a single seed are mostly too small for that: handing
them over takes longer than computing them (docs/decisions/0010).
"""

import os

import jax
import threadpoolctl


def cores() -> int:
    """How many of the machine's cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit(seeds: int) -> None:
    """Limits XLA to as many threads as seeds or cores, whichever are fewer; the variable PJRT_NPROC wins, if set.

    It is a setting of the process, so it is for programs that run these seeds and no others.
    """
    os.environ.setdefault("PJRT_NPROC", str(min(seeds, cores())))


def one_for_linear_algebra() -> threadpoolctl.threadpool_limits:
    """Keeps LAPACK to one thread as long as the context lasts.

    Its threads wait for each other by spinning: on a busy machine a factorization of 300 x 300 numbers then takes 100
    times as long.
    """
    return threadpoolctl.threadpool_limits(1, "blas")


def run_inline() -> None:
    """Makes programs run in the thread that calls them, for processes whose many programs take microseconds.

    It does nothing once JAX has started; before that, it holds for the whole process.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
