"""A log as one file of lines, one JSON object for each chunk."""

import contextlib
import errno
import itertools
import json
import math
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import final

from uppertail.errors import InputError
from uppertail.loggers.base import Logger
from uppertail.records import write_errors
from uppertail.schema import require_type


class NotALogError(InputError):
    """A file that holds something else than a log."""


@final
class JSONL(Logger):
    """Lines like `{"step": 1024, "return/mean": 0.5, ...}`, each written without a delay; NaN is null.

    Args:
        path: the file.

    Raises:
        NotALogError: the file holds something else than a log.
        InputError: it cannot be read.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(require_type("path", path, Path | str))
        self._file: FileIO | None = None
        self._length(math.inf)

    def begin(self, step: int) -> None:
        self.close()
        with self._explain_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = FileIO(self.path, "ab")
            self._file.truncate(self._length(step))

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        assert self._file is not None
        known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        line = json.dumps({"step": step, **known}).encode() + b"\n"
        with self._explain_errors():
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _length(self, step: float) -> int:
        """Length in bytes of the lines up to a step, without an incomplete one."""
        with self._explain_errors():
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        return sum(map(len, itertools.takewhile(lambda line: self._step_of(line) <= step, lines)))

    def _step_of(self, line: bytes) -> float:
        if not line.endswith(b"\n"):
            return math.inf  # its process was killed while it wrote
        try:
            return float(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise NotALogError(f"{self.path} is not a log (it holds {line[:40]!r}): choose another file.") from error

    def _explain_errors(self) -> contextlib.AbstractContextManager[None]:
        return write_errors(f"The log {self.path}", "make room, or choose another place")
