"""The contract of a logger, and the names of the numbers that all loggers write."""

import abc
from collections.abc import Mapping
from typing import Any, Self, final

from uppertail.training.progress import Progress


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
        "learning/targets_outside_support": progress.outside,
        "exploration/share": progress.exploratory,
        "start/mean": progress.start_mean,
        "start/std": progress.start_std,
        "time/steps_per_second": progress.steps_per_second,
        "time/compilations": progress.compilations,
    }


class Logger(abc.ABC):
    """Writes down one run's numbers, chunk after chunk: `ut.train(..., on_chunk=logger)`.

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
        """Opens the log just before the first chunk's numbers are written.

        Args:
            step: where the run was before that chunk: 0, or the step of the checkpoint that it goes on from. Later
                steps that the log holds, from a process that was killed, must be dropped.
        """

    @abc.abstractmethod
    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Writes down the numbers of one chunk; some may be NaN.

        Args:
            step: where the run is after the chunk.
            numbers: what `metrics` names.
        """

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
    def __enter__(self) -> Self:
        return self

    @final
    def __exit__(self, *error: Any) -> None:
        self._step = None
        self.close()
