"""Lets a run finish its chunk after Ctrl-C or SIGTERM, so that what it has learned is kept."""

import contextlib
import dataclasses
import signal
import threading
import types
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and the signal that schedulers, containers and `timeout` send before they kill."""


class StopRequest(threading.Event):
    """Set when a signal asks the run to stop.

    Attributes:
        signal_number: the signal that asked.
    """

    signal_number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """The exit code by a shell's convention: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.signal_number


@contextlib.contextmanager
def interruptible() -> Iterator[StopRequest]:
    """Yields an event that Ctrl-C and SIGTERM set, instead of KeyboardInterrupt and the end of the process.

    If one is nested in another, a signal sets the events of both. Outside the main thread, where no signal arrives, the
    event is never set. A program's own handler of SIGTERM stays.
    """
    asked = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in previous.items():
        if number == signal.SIGINT or handler is signal.SIG_DFL or isinstance(handler, _StopHandler):
            signal.signal(number, _StopHandler(asked, handler if isinstance(handler, _StopHandler) else None))
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@dataclasses.dataclass(frozen=True)
class _StopHandler:
    """A signal handler that sets an event, and those of the handlers around it."""

    event: StopRequest
    outer: "_StopHandler | None"

    def __call__(self, signal_number: int, frame: types.FrameType | None) -> None:
        self.event.signal_number = signal_number
        self.event.set()
        if self.outer is not None:
            self.outer(signal_number, frame)
