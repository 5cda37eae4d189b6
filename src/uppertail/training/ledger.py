"""The host's account of a run: the episodes of each seed, its seconds, and whether and why the run is over."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float

from uppertail.capacity import require_memory
from uppertail.errors import InputError
from uppertail.learners import Metrics
from uppertail.records import FINAL_WINDOW, Episodes, arrays_of
from uppertail.schema import MismatchError
from uppertail.training.checkpoint import Header
from uppertail.training.loop import StepRecord
from uppertail.training.programs import compile_program
from uppertail.training.progress import Progress
from uppertail.training.settings import Settings

TARGETS = "targets"  # the array of a checkpoint with the number of targets, and of those outside the support

LESS = "use fewer seeds, a smaller width, batch_size or rollout_steps, or fewer bins or components"
"""The remedy if a program needs too much memory."""


class Stopwatch:
    """Seconds of a run, including those before it was resumed: in total, for compilation, in the training loop.

    Attributes:
        compilations: programs that this process compiled for it; it shares the others with earlier runs.
    """

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0
        self.compilations = 0

    def state(self) -> dict[str, float]:
        """The times until now, to which a resumed run adds its own."""
        wall = self.before + time.perf_counter() - self.started
        return {"wall": wall, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        """Adds the times of a run that is resumed."""
        self.before += state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]

    def compiled(self, function: Callable[..., Any], parts: Any, *arguments: Any, **options: Any) -> Callable[..., Any]:
        """As `compile_program`, and counts the time; a program that needs more memory than there is is refused."""
        began = time.perf_counter()
        program = compile_program(function, parts, arguments, **options)
        self.compile += time.perf_counter() - began
        self.compilations += program.is_new
        if (needs := program.compiled.memory_analysis()) is not None:
            new = needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes
            require_memory(new, "A step of this run needs", LESS)
        return program.call

    def compiled_later(self, function: Callable[..., Any], parts: Any, **options: Any) -> Callable[..., Any]:
        """The same for the arguments of the first call."""
        program: Callable[..., Any] | None = None

        def call(*arguments: Any) -> Any:
            nonlocal program
            program = program or self.compiled(function, parts, *arguments, **options)
            return program(*arguments)

        return call

    @contextlib.contextmanager
    def in_loop(self) -> Iterator[None]:
        """Counts what happens within as time in the training loop, but for what compiles there."""
        began, compiled = time.perf_counter(), self.compile
        try:
            yield
        finally:
            self.training += time.perf_counter() - began - (self.compile - compiled)


class StartReturn(NamedTuple):
    """The return distribution where each seed's run starts, of the action with the highest mean."""

    mean: Float[np.ndarray, " seeds"]
    std: Float[np.ndarray, " seeds"]


class Ledger:
    """The host's account of a run, kept after each compiled chunk."""

    def __init__(self, settings: Settings, success_return: float) -> None:
        if settings.until == "solved" and not math.isfinite(success_return):
            raise InputError(
                "until is solved, but this environment defines no success return: use return=NUMBER, the mean "
                "return to reach."
            )
        self.settings, self.success_return = settings, success_return
        self.seconds = Stopwatch()
        self.seen = [Episodes.none() for _ in range(settings.seeds)]
        self.step = 0
        self.diverged: tuple[int, int] | None = None  # seed and environment step of the first loss that is not finite
        self.stopped: str | None = None
        self.failed: str | None = None
        self.targets = self.targets_outside = 0.0

    @property
    def episodes(self) -> list[Episodes]:
        """The finished episodes of each seed within its limits; `seen` also has those later in the last chunk."""
        return [seed.until(self.settings.episodes, self.settings.steps) for seed in self.seen]

    @property
    def outside_share(self) -> float:
        """Share of all targets whose mean the family cannot represent."""
        return self.targets_outside / max(self.targets, 1.0)

    @property
    def iteration(self) -> int:
        """Rollouts of each seed until now."""
        return self.step // self.settings.steps_per_rollout

    @property
    def finished(self) -> Bool[np.ndarray, " seeds"]:
        """Which seeds have reached a limit."""
        steps, most = self.settings.steps, self.settings.episodes
        out_of_steps = steps is not None and self.step >= steps
        return np.array([out_of_steps or seed.returns.size >= most for seed in self.episodes])

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return bool(self.finished.all()) or any((self.diverged, self.stopped is not None, self.failed))

    @property
    def env_steps(self) -> list[int]:
        """Environment steps of each seed within its limits."""
        most, now = self.settings.episodes, min(self.step, self.settings.steps or self.step)
        return [int(seed.end_steps[-1]) if seed.returns.size >= most else now for seed in self.episodes]

    def extend(self, records: StepRecord, metrics: Metrics, at_start: StartReturn) -> Progress:
        """Adds the records of a chunk, with leading axes [seeds, iterations, steps or updates]."""
        running = ~self.finished
        counted = self._counted(np.asarray(records.ended))
        diverged = ~np.isfinite(np.asarray(metrics.loss)).all(axis=-1) & counted
        if diverged.any():
            iteration, row = np.argwhere(diverged.T)[0]  # the first one
            at = self.step + int(iteration + 1) * self.settings.steps_per_rollout
            self.diverged = self.settings.seed + int(row), at
        flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(leaf.shape[0], -1), records)
        for row in np.flatnonzero(running):
            self.seen[row] = self.seen[row].extended(flat.ended[row], flat.ret[row], flat.length[row], self.step + 1)
        self.step += flat.ended.shape[1]
        if self.settings.until is not None:
            goal, success = self.settings.until_return, self.success_return
            reached = (each.solved(success) if goal is None else each.reached(goal) for each in self.episodes)
            done = np.array([episode is not None for episode in reached])
            if done.any() and (done | self.finished).all():
                self.stopped = f"until {self.settings.until}"
        outside = np.asarray(metrics.outside)[counted]
        self.targets += outside.size * self.settings.batch_size
        self.targets_outside += float(np.sum(outside, dtype=np.float64)) * self.settings.batch_size
        return self._progress(metrics, np.asarray(records.exploratory), at_start, running, counted)

    def arrays(self) -> dict[str, np.ndarray]:
        """The episodes and targets, in the form of a checkpoint."""
        return {**arrays_of(self.seen), TARGETS: np.array([self.targets, self.targets_outside])}

    def read(self, arrays: Mapping[str, np.ndarray]) -> list[Episodes]:
        """The episodes in such arrays; a MismatchError says what is wrong with those of other seeds or of no run."""
        targets = arrays.get(TARGETS, np.zeros(0))
        if targets.shape != (2,) or not np.isfinite(targets).all():
            raise MismatchError(f"its array {TARGETS} does not hold two numbers")
        episodes = Episodes.of_arrays({name: array for name, array in arrays.items() if name != TARGETS})
        if len(episodes) != self.settings.seeds:
            raise MismatchError(f"its episodes are not of {self.settings.seeds} seeds")
        return episodes

    def restore(self, arrays: Mapping[str, np.ndarray], header: Header) -> None:
        """Goes back to the account in a checkpoint."""
        self.seen, self.step, self.stopped = self.read(arrays), header.step, header.stopped
        self.targets, self.targets_outside = arrays[TARGETS].tolist()
        self.seconds.add(header.seconds)

    def _counted(self, ended: Bool[np.ndarray, "seeds iterations steps"]) -> Bool[np.ndarray, "seeds iterations"]:
        """Which iterations each seed began before its limit; what a chunk does beyond it is no part of the run."""
        settings, (_, iterations, steps) = self.settings, ended.shape
        here = np.array([seed.returns.size for seed in self.episodes])[:, None]
        of_each = ended.sum(axis=2)
        before = here + np.cumsum(of_each, axis=1) - of_each
        steps_before = self.step + steps * np.arange(iterations)
        return (before < settings.episodes) & (settings.steps is None or steps_before < settings.steps)

    def _progress(
        self,
        metrics: Metrics,
        exploratory: Bool[np.ndarray, "seeds iterations steps"],
        at_start: StartReturn,
        running: Bool[np.ndarray, " seeds"],
        counted: Bool[np.ndarray, "seeds iterations"],
    ) -> Progress:
        steps, episodes = sum(self.env_steps), self.episodes
        fraction = min(seed.returns.size for seed in episodes) / self.settings.episodes
        by_steps = 0.0 if self.settings.steps is None else self.step / self.settings.steps
        rates = [seed.final_success_rate(self.success_return) or 0.0 for seed in episodes]
        begun = [seed for seed in episodes if seed.returns.size]
        return Progress(
            episodes=[seed.returns.size for seed in episodes],
            solved=sum(seed.solved(self.success_return) is not None for seed in episodes),
            success_rate=float(np.mean(rates)) if math.isfinite(self.success_return) else math.nan,
            fraction=min(1.0, max(fraction, by_steps)),
            env_steps=steps,
            steps_per_second=steps / max(self.seconds.training, 1e-9),
            loss=_mean(metrics.loss, counted),
            gradient_norm=_mean(metrics.gradient_norm, counted),
            outside=_mean(metrics.outside, counted),
            exploratory=_mean(exploratory, counted),
            mean_return=_over_seeds([seed.returns[-FINAL_WINDOW:] for seed in begun]),
            mean_length=_over_seeds([seed.lengths[-FINAL_WINDOW:] for seed in begun]),
            start_mean=_mean(at_start.mean, running),
            start_std=_mean(at_start.std, running),
            compilations=self.seconds.compilations,
            step=self.step,
            chunk_steps=exploratory.shape[1] * exploratory.shape[2],
        )


def _mean(values: Any, counted: Bool[np.ndarray, " seeds"] | Bool[np.ndarray, "seeds iterations"]) -> float:
    """Mean over the seeds, or their iterations, that count; NaN if there are none."""
    chosen = np.asarray(values)[counted]
    return float(np.mean(chosen, dtype=np.float64)) if chosen.size else math.nan


def _over_seeds(values: list[np.ndarray]) -> float:
    """Mean over seeds of each seed's mean; NaN if there is none."""
    return float(np.mean([np.mean(each, dtype=np.float64) for each in values])) if values else math.nan
