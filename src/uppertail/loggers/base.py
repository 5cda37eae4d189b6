"""The contract of a logger, the names of the numbers that all loggers write, and the log that every run has."""

import abc
import contextlib
import errno
import itertools
import json
import math
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any, final

from uppertail.errors import InputError
from uppertail.records import write_errors
from uppertail.schema import require_type
from uppertail.training.ledger import Progress


def metrics(progress: Progress) -> dict[str, float]:
    """The numbers of a chunk by their names; docs/logs.md says what each means."""
    return {
        "return/mean": progress.mean_return,
        "episode/length": progress.mean_length,
        "episode/count": sum(progress.episodes) / len(progress.episodes),
        "success/rate": progress.success_rate,
        "success/solved_seeds": progress.solved,
        "learning/loss": progress.loss,
        "learning/gradient_norm": progress.gradient_norm,
        "learning/sweeps": progress.sweeps,
        "learning/targets_outside_support": progress.outside,
        "exploration/share": progress.exploratory,
        "start/mean": progress.start_mean,
        "start/std": progress.start_std,
        "time/steps_per_second": progress.steps_per_second,
        "time/compilations": progress.compilations,
        **({"return/greedy": progress.greedy_return} if math.isfinite(progress.greedy_return) else {}),
    }


class Logger(contextlib.AbstractContextManager["Logger"]):
    """Records the numbers of a run after each chunk: `ut.train(..., on_chunk=logger)`.

    Steps are environment steps of each seed.

    Examples:
        >>> from uppertail.loggers import Logger
        >>> class Printed(Logger):
        ...     def begin(self, step):
        ...         print(f"from step {step}")
        ...
        ...     def write(self, step, numbers):
        ...         print(step, numbers["return/mean"])
        ...
        ...     def close(self):
        ...         print("over")
        >>> with Printed() as log:  # `ut.train(..., on_chunk=log)` goes here
        ...     log.begin(0)
        ...     log.write(16, {"return/mean": 0.5})
        from step 0
        16 0.5
        over
    """

    _step: int | None = None

    @abc.abstractmethod
    def begin(self, step: int) -> None:
        """Opens the log at a step: 0, or that of a checkpoint. Drop what the log has of later steps."""

    @abc.abstractmethod
    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Writes down the numbers of one chunk, which `metrics` names; some may be NaN. The chunk ends at `step`."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the log, also one that never began."""

    @final
    def __call__(self, progress: Progress) -> None:
        """Writes down a chunk, unless no step was made in it."""
        if progress.chunk_steps == 0:
            return
        before = progress.step - progress.chunk_steps
        if before != self._step:
            self.begin(before)
        self.write(progress.step, metrics(progress))
        self._step = progress.step

    @final
    def __exit__(self, *error: Any) -> None:
        self._step = None
        self.close()


@final
class JSONL(Logger):
    """Lines like `{"step": 1024, "return/mean": 0.5, ...}`, each written without a delay; NaN is null.

    InputError if the file at this path cannot be read, or holds something else than a log.
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
            raise InputError(
                f"{self.path} is not a log (it holds {line[:40]!r}): move it away, or choose another file."
            ) from error

    def _explain_errors(self) -> contextlib.AbstractContextManager[None]:
        return write_errors(f"The log {self.path}", "make room, or choose another place")
