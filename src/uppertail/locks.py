"""Locks, so that one process at a time works in a folder."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from uppertail.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks: there nothing keeps two processes apart
    fcntl = None

LOCK = ".lock"
"""The file in a locked folder. The operating system releases its lock when the process ends, however it ends."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks an existing folder for this process; does nothing on a filesystem without locks.

    Raises:
        InputError: another process has it.
    """
    path = folder / LOCK
    try:
        descriptor = _acquire(path)
    except BlockingIOError as error:
        raise InputError(
            f"The folder {folder} is in use by another process: wait until that has ended, or use another folder."
        ) from error
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be written ({error.strerror}): make it writable.") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a folder that cannot be written any more
            path.unlink(missing_ok=True)  # while the lock is held, so that it is this process's file
        os.close(descriptor)


def hold(descriptor: int) -> None:
    """Locks an open file for as long as this process has it open; does nothing where there are no such locks."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def held(path: Path) -> bool | None:
    """Whether a process of this machine has locked a file; None where that cannot be known.

    Raises:
        OSError: the file cannot be opened.
    """
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that two that ask do not collide
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def _acquire(path: Path) -> int:
    """Opens and locks the file of this name; again, if the process that had it before has removed it meanwhile."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor)
            if _has_its_name(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _has_its_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a filesystem without locks
        return
