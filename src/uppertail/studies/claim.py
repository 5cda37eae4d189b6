"""A claim: a file with which one process says that it works on a cell.

The claims of a cell are numbered. A process claims a cell by making the file of the next number (O_EXCL: of several
processes, on one machine or on many that share the folder, one succeeds). No claim is ever taken back: if a process or
machine died, the next claim follows its own. So claims are also the log of who began what, and how it ended.

While the owner works, it holds a lock on the file, which ends with its process, and touches the file every few seconds.
On the owner's machine the lock shows whether it lives. On other machines, which may not see the lock, the touches do:
if none has come for two minutes, by the clock of the process that waits, the owner is dead.
"""

import contextlib
import dataclasses
import datetime
import errno
import json
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

from uppertail.locks import hold

BEAT = 10.0
"""Seconds between two signs of life."""

Outcome = Literal["done", "failed", "released"]
"""How a claim ends; a released cell waits for the next claim."""


def machine() -> str:
    """The running system: processes with the same answer see each other's locks."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


def end_process(path: Path) -> None:
    """Ends this process at once: another took it for dead, and works on its cell."""
    sys.stderr.write(f"uppertail: The claim {path.name} was taken for dead, and another process goes on with it.\n")
    sys.stderr.flush()
    os._exit(1)


@dataclasses.dataclass(frozen=True, eq=False)
class Claim:
    """This process's claim of a cell, until it ends the claim or dies.

    Args:
        path: the claim's file.
        descriptor: the open and locked file.
        over: set when the claim has ended.
    """

    path: Path
    descriptor: int
    over: threading.Event

    @classmethod
    def make(cls, path: Path, after: Path, beat: float = BEAT, lost: Callable[[Path], object] = end_process) -> Self:
        """Makes the file of a claim.

        Args:
            path: its name.
            after: the name of the claim that would follow it.
            beat: seconds between two signs of life.
            lost: called if there is such a claim, because this process gave no sign of life for too long.

        Raises:
            FileExistsError: another process made it first.
            OSError: it cannot be written.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            hold(descriptor)
            _write(descriptor, {"host": platform.node(), "machine": machine(), "pid": os.getpid(), "began": _now()})
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()  # no other process takes over a claim so soon
            os.close(descriptor)
            raise
        claim = cls(path, descriptor, threading.Event())
        threading.Thread(target=claim._live, args=(after, beat, lost), daemon=True).start()
        return claim

    def end(self, outcome: Outcome, **details: Any) -> None:
        """Writes how it ended, and releases the lock.

        Raises:
            OSError: it cannot be written; others will think that this process died.
        """
        self.over.set()
        try:
            _write(self.descriptor, {"outcome": outcome, "ended": _now(), **details})
        finally:
            os.close(self.descriptor)

    def _live(self, after: Path, beat: float, lost: Callable[[Path], object]) -> None:
        while not self.over.wait(beat):
            with contextlib.suppress(OSError):  # a shared folder may be out of reach for a moment
                if after.exists() and not self.over.is_set():
                    lost(self.path)
                os.utime(self.path)


def lines(content: bytes) -> list[dict[str, Any]]:
    """The complete lines of a claim: how it began, and how it ended if it has."""
    whole = [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
    try:
        return [dict(json.loads(line)) for line in whole]
    except (ValueError, TypeError):  # a machine lost its power while it wrote
        return []


def _write(descriptor: int, line: dict[str, Any]) -> None:
    content = json.dumps(line).encode() + b"\n"
    if os.write(descriptor, content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)  # other machines see it now


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
