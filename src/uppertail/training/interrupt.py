"""Ctrl-C that waits for the chunk in progress, so that what has been learned is kept."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Yields an event that Ctrl-C sets, instead of raising KeyboardInterrupt.

    Outside the main thread, where no signal arrives, the event is never set.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    previous = signal.getsignal(signal.SIGINT)

    signal.signal(signal.SIGINT, lambda signal_number, frame: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)
