"""What the host keeps of a run: the episodes of each seed, and whether, why and after what time it is over."""

import time
from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Bool, Float

from uppertail.agent import Metrics
from uppertail.records import Episodes
from uppertail.training.compiled import StepRecord
from uppertail.training.results import Progress
from uppertail.training.settings import Settings

COUNT = "count"
COLUMNS = ("returns", "lengths", "end_steps")
"""The arrays that the episodes of all seeds are saved as: how many each seed has, and their columns end to end."""


class Stopwatch:
    """Seconds of a run, those before it was resumed included: of all of it, of compilation, of the compiled loop."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0

    @property
    def wall(self) -> float:
        """Seconds of the whole run until now."""
        return self.before + time.perf_counter() - self.started

    def state(self) -> dict[str, float]:
        """What a resumed run adds its own times to."""
        return {"wall": self.wall, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        """Adds the times of a run that is resumed."""
        self.before += state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]


class Ledger:
    """The host's account of a run, kept after each compiled chunk.

    Args:
        settings: the run's limits and seeds.
        success_return: return from which an episode counts as a success.
    """

    def __init__(self, settings: Settings, success_return: float) -> None:
        self.settings, self.success_return = settings, success_return
        self.seconds = Stopwatch()
        self.episodes = [Episodes.none() for _ in range(settings.seeds)]
        self.step = 0
        self.diverged: tuple[int, int] | None = None
        self.stopped: str | None = None

    @property
    def finished(self) -> Bool[np.ndarray, " seeds"]:
        """Which seeds have reached a limit."""
        out_of_steps = self.settings.steps is not None and self.step >= self.settings.steps
        return np.array([out_of_steps or self._complete(seed) for seed in self.episodes])

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return bool(self.finished.all()) or self.diverged is not None or self.stopped is not None

    @property
    def env_steps(self) -> list[int]:
        """Environment steps of each seed within its limits."""
        return list(map(self._steps_of, self.episodes))

    def extend(self, records: StepRecord, metrics: Metrics) -> Progress:
        """Adds what a chunk of the seeds' runs did, with leading axes [seeds, iterations, steps or updates]."""
        running = ~self.finished
        self.diverged = self._first_divergence(np.asarray(metrics.loss), running)
        flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(leaf.shape[0], -1), records)
        for row in np.flatnonzero(running):
            grown = self.episodes[row].extended(flat.ended[row], flat.ret[row], flat.length[row], self.step + 1)
            self.episodes[row] = grown.until(self.settings.episodes, self.settings.steps)
        self.step += flat.ended.shape[1]
        means = jax.tree.map(lambda leaf: float(np.mean(np.asarray(leaf)[running], dtype=np.float64)), metrics)
        return self._progress(means.loss, means.gradient_norm)

    def arrays(self) -> dict[str, np.ndarray]:
        """The episodes, as a checkpoint holds them."""
        columns = {name: np.concatenate([getattr(seed, name) for seed in self.episodes]) for name in COLUMNS}
        return {COUNT: np.array([seed.returns.size for seed in self.episodes]), **columns}

    def restore(
        self, arrays: Mapping[str, np.ndarray], step: int, stopped: str | None, seconds: Mapping[str, float]
    ) -> None:
        """Goes back to what a checkpoint holds."""
        ends = np.cumsum(arrays[COUNT])[:-1]
        columns = [np.split(arrays[name], ends) for name in COLUMNS]
        self.episodes = [Episodes(*seed) for seed in zip(*columns, strict=True)]
        self.step, self.stopped = step, stopped
        self.seconds.add(seconds)

    def _complete(self, seed: Episodes) -> bool:
        return seed.returns.size >= self.settings.episodes

    def _steps_of(self, seed: Episodes) -> int:
        if self._complete(seed):
            return int(seed.end_steps[-1])
        return self.step if self.settings.steps is None else min(self.step, self.settings.steps)

    def _first_divergence(
        self, losses: Float[np.ndarray, "seeds iterations updates"], running: Bool[np.ndarray, " seeds"]
    ) -> tuple[int, int] | None:
        """Seed and environment step of the first loss that is not finite, among the seeds still running."""
        bad = ~np.isfinite(losses).all(axis=-1) & running[:, None]
        if not bad.any():
            return None
        iteration, row = np.argwhere(bad.T)[0]
        return self.settings.seed + int(row), self.step + int(iteration + 1) * self.settings.rollout_steps

    def _progress(self, loss: float, gradient_norm: float) -> Progress:
        steps = sum(self.env_steps)
        fractions = [seed.returns.size / self.settings.episodes for seed in self.episodes]
        by_steps = 0.0 if self.settings.steps is None else self.step / self.settings.steps
        rates = [seed.final_success_rate(self.success_return) or 0.0 for seed in self.episodes]
        return Progress(
            episodes=[seed.returns.size for seed in self.episodes],
            solved=sum(seed.solved(self.success_return) is not None for seed in self.episodes),
            success_rate=float(np.mean(rates)),
            fraction=min(1.0, max(min(fractions), by_steps)),
            env_steps=steps,
            steps_per_second=steps / max(self.seconds.training, 1e-9),
            loss=loss,
            gradient_norm=gradient_norm,
        )
