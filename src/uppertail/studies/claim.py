"""A claim: one process says, in a file that only it can make, that it works on a cell.

The claims of a cell are numbered. To claim it is to make the file of the next number (O_EXCL: of several processes, on
one machine or on many that share the folder, one succeeds), and no claim is ever taken back: one that was left by a
process or machine that died is followed by the next. So they are also the log of who began what, and how it ended.

While it works, the owner holds a lock on the file, which dies with its process, and touches it every few seconds. On
the owner's machine the lock says whether it lives. Elsewhere, where a lock may not reach, the touches do: one that has
not come for two minutes, by the clock of whoever waits, means that it is dead.
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
"""How a claim ends; a released cell waits for whoever claims it next."""


def machine() -> str:
    """The running system: processes with the same answer see each other's locks."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


def end_process(path: Path) -> None:
    """Ends this process at once: it was taken for dead, and another works on its cell."""
    sys.stderr.write(f"uppertail: The claim {path.name} was taken for dead, and another process goes on with it.\n")
    sys.stderr.flush()
    os._exit(1)


@dataclasses.dataclass(frozen=True, eq=False)
class Claim:
    """A cell that is this process's, until it ends the claim or dies.

    Args:
        path: the claim's file.
        descriptor: the same, open and locked.
        over: set when it has ended.
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
            lost: called if there is such a claim, since this process gave no sign of life for so long.

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
                path.unlink()  # nobody takes a claim without a word for dead so soon
            os.close(descriptor)
            raise
        claim = cls(path, descriptor, threading.Event())
        threading.Thread(target=claim._live, args=(after, beat, lost), daemon=True).start()
        return claim

    def end(self, outcome: Outcome, **details: Any) -> None:
        """Says how it ended, and lets go of the cell.

        Raises:
            OSError: that cannot be written, so that it looks as if this process had died.
        """
        self.over.set()
        try:
            _write(self.descriptor, {"outcome": outcome, "ended": _now(), **details})
        finally:
            os.close(self.descriptor)

    def _live(self, after: Path, beat: float, lost: Callable[[Path], object]) -> None:
        while not self.over.wait(beat):
            with contextlib.suppress(OSError):  # a shared folder that cannot be reached for a moment
                if after.exists() and not self.over.is_set():
                    lost(self.path)
                os.utime(self.path)


def lines(content: bytes) -> list[dict[str, Any]]:
    """The whole lines of a claim: how it began, and how it ended if it has."""
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
