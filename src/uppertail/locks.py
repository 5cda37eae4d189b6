"""Locks, so that one process at a time works in a folder."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from uppertail.errors import InputError

LOCK = ".lock"
"""The file in a locked folder. The operating system releases its lock when the process ends, however it ends."""
PATIENCE = 0.2
"""Seconds until a folder counts as in use: a process that has just ended may be removing its lock."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks an existing folder for this process.

    Raises:
        InputError: another process has it, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=PATIENCE)
    try:
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"The folder {folder} is in use by another process: wait until that has ended, or use another folder."
        ) from error
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be written ({error.strerror}): make it writable.") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a folder that cannot be written any more
            (folder / LOCK).unlink(missing_ok=True)  # while the lock is held, so that it is this process's file
        lock.release()
