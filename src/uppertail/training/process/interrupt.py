"""Ctrl-C that waits for the chunk in progress, so that what has been learned is kept."""

import contextlib
import dataclasses
import signal
import threading
import types
from collections.abc import Iterator


@contextlib.contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Yields an event that Ctrl-C sets, instead of raising KeyboardInterrupt.

    Where one is within another, Ctrl-C sets both: whoever waits outside knows of it, too. Outside the main thread,
    where no signal arrives, the event is never set.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    previous = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, _Ask(asked, previous if isinstance(previous, _Ask) else None))
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)


@dataclasses.dataclass(frozen=True)
class _Ask:
    """A signal handler that sets an event, and those of the handlers around it."""

    event: threading.Event
    outer: "_Ask | None"

    def __call__(self, signal_number: int, frame: types.FrameType | None) -> None:
        self.event.set()
        if self.outer is not None:
            self.outer(signal_number, frame)
