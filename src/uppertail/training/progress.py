"""What training reports while it goes on, what a callback can answer, and the line that a notebook shows."""

import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator

PAUSE = 0.2  # the fewest seconds between two lines


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is, after each chunk. Measurements are means over seeds; NaN where there is nothing to measure.

    Args:
        episodes: finished episodes of each seed.
        solved: number of seeds solved so far.
        success_rate: share of successes among each seed's last 100 episodes, averaged over seeds; NaN where success is
            not defined.
        fraction: how much of its limit the slowest seed has used, from 0 to 1.
        env_steps: environment steps of all seeds together.
        steps_per_second: environment steps per second of all seeds together.
        loss: mean loss of the chunk's updates, over the iterations that seeds began before their limit.
        gradient_norm: mean norm of the gradients, over the same updates.
        outside: share of the updates' targets whose mean lies outside of the support.
        exploratory: share of the chunk's actions that were not greedy.
        mean_return: mean undiscounted return of the last 100 episodes of each seed.
        mean_length: their mean length.
        start_mean: mean of the return distribution where a run starts, of the action for which it is highest.
        start_std: its standard deviation.
        compilations: programs that this process compiled for the run so far.
        step: environment steps of each seed.
        chunk_steps: how many of them this chunk made; 0 if an environment failed before the first.

    Examples:
        >>> import uppertail as ut
        >>> small = ut.Settings(seeds=2, episodes=256, hidden_layers=1, width=16)
        >>> seen = []
        >>> def keep(progress: ut.Progress) -> None:
        ...     seen.append(progress.fraction)
        >>> result = ut.train(ut.Toy(), settings=small, on_chunk=keep)
        >>> seen[-1]
        1.0
    """

    episodes: list[int]
    solved: int
    success_rate: float
    fraction: float
    env_steps: int
    steps_per_second: float
    loss: float
    gradient_norm: float
    outside: float
    exploratory: float
    mean_return: float
    mean_length: float
    start_mean: float
    start_std: float
    compilations: int
    step: int
    chunk_steps: int

    @property
    def text(self) -> str:
        """How far the run is and how well it does: its successes if they are defined, else its returns."""
        least = min(self.episodes)
        if math.isfinite(self.success_rate):
            doing = f"{self.solved}/{len(self.episodes)} solved, {self.success_rate:.0%} success"
        else:
            doing = f"return {self.mean_return:.4g}" if math.isfinite(self.mean_return) else "no episode yet"
        return f"{doing}, {least} episode{'s'[: least != 1]}, {self.steps_per_second / 1000:.1f}k/s"


@dataclasses.dataclass(frozen=True)
class Stop:
    """A callback returns it to stop a run; after any other value, the run continues.

    Args:
        reason: why, for the run's record.

    Examples:
        >>> import uppertail as ut
        >>> small = ut.Settings(seeds=2, episodes=100_000, hidden_layers=1, width=16)
        >>> result = ut.train(ut.Toy(), settings=small, on_chunk=lambda progress: ut.Stop("seen enough"))
        >>> result.record.summary()["stopped"]
        'seen enough'
    """

    reason: str


def is_notebook() -> bool:
    """Whether this process is a notebook's kernel; it imports nothing to find out."""
    return "ipykernel" in sys.modules and sys.modules["IPython"].get_ipython() is not None


@contextlib.contextmanager
def updating_line() -> Iterator[Callable[[Progress], None]]:
    """Shows that a run compiles; yields the callback that shows its progress instead, and does nothing elsewhere."""
    if not is_notebook():
        yield lambda progress: None
        return
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    line = display({"text/plain": "compiling"}, raw=True, display_id=True)
    last, shown = "", time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last, shown
        last = f"{progress.fraction:4.0%}  {progress.text}"
        if time.monotonic() >= shown + PAUSE:
            line.update({"text/plain": last}, raw=True)
            shown = time.monotonic()

    try:
        yield show
    finally:
        line.update({"text/plain": last}, raw=True)
