"""Starts the worker processes of this machine, watches them, and replaces one that is killed."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from uppertail.errors import InputError

SETTINGS = {
    "PJRT_NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""A cell uses one thread, so that as many cells as cores run side by side; several share an accelerator."""

ENDED, REFUSED = 0, 2
"""Exit codes of workers that are not replaced."""
IN_VAIN = 3
"""If this many in a row end without having claimed a cell, no other is started."""


def end_with_parent() -> None:
    """Makes this process end when its parent does, in any way: the parent holds the other end of its input."""

    def watch() -> None:
        while os.read(0, 1):  # not through Python's own file, which would be closed while this waits
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Crew:
    """Worker processes.

    Args:
        command: the command of a worker, which calls `end_with_parent`.
        count: how many.
    """

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._command, self._in_vain = command, 0
        self._workers = [self._begin() for _ in range(count)]

    def run(self, claimed: Callable[[int], bool], show: Callable[[], object], poll: float = 0.2) -> None:
        """Waits until all have ended; one that is killed is replaced.

        Args:
            claimed: whether the process of this number has claimed a cell.
            show: called at every look.
            poll: seconds between two calls.

        Raises:
            InputError: a worker cannot do its work.
            KeyboardInterrupt: after Ctrl-C, when all have saved what they could.
        """
        try:
            while self._workers:
                show()
                time.sleep(poll)
                self._workers = [worker for each in self._workers if (worker := self._replace_if_killed(each, claimed))]
        except KeyboardInterrupt:
            for worker in self._workers:
                worker.send_signal(signal.SIGINT)
            for worker in self._workers:
                worker.wait()
            raise
        finally:
            for worker in self._workers:
                _let_go(worker)
                worker.wait()
        show()

    def _begin(self) -> "subprocess.Popen[bytes]":
        # in a group of its own, so that Ctrl-C reaches it once, through its parent
        environment = {**SETTINGS, **os.environ}
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environment, process_group=0)

    def _replace_if_killed(
        self, worker: "subprocess.Popen[bytes]", claimed: Callable[[int], bool]
    ) -> "subprocess.Popen[bytes] | None":
        """The worker if it still works, its successor if it was killed, None if it has ended."""
        code = worker.poll()
        if code is None:
            return worker
        _let_go(worker)
        if code == ENDED:
            return None
        self._in_vain = 0 if claimed(worker.pid) else self._in_vain + 1
        if code == REFUSED or self._in_vain == IN_VAIN:
            raise InputError(
                f"A worker ended with exit code {code}, so the study stops, and what is done is kept: "
                "fix the error above, then call the same command again."
            )
        return self._begin()


def _let_go(worker: "subprocess.Popen[bytes]") -> None:
    assert worker.stdin is not None
    with contextlib.suppress(OSError):
        worker.stdin.close()
