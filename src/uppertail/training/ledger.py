"""The host's account of a run: the episodes of each seed, whether and why the run is over, and what it reports."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from uppertail.errors import InputError
from uppertail.learners import Metrics
from uppertail.records import FINAL_WINDOW, SOLVED_WINDOW, Episodes, Success, arrays_of
from uppertail.training.loop import StepRecord
from uppertail.training.programs import Programs
from uppertail.training.settings import Settings

Moments = tuple[Float[np.ndarray, " seeds"], Float[np.ndarray, " seeds"]]
ROOM = [field.name for field in dataclasses.fields(Episodes)]
TARGETS = "targets"  # the array of a checkpoint with `Ledger.updates` and `Ledger.outside`
LITTLE = 0.09  # share of the value of an episode that goes on; if less of it comes after its end, it is not counted
SEEN, GOING_ON = "seen", "going_on"  # those with `Ledger.seen`, and with `Ledger.going_on` and `Ledger.longest_cut`


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is, after each chunk. Measurements are means over seeds; NaN where there is nothing to measure.

    Args:
        episodes: finished episodes of each seed.
        solved: number of seeds solved so far.
        success_rate: share of successes at each seed's last 100 episodes, averaged over the seeds where it is known;
            NaN where success is not defined, or before the first judgment (with a threshold: after 100 episodes).
        fraction: how much of its limit the slowest seed has used, from 0 to 1.
        env_steps: environment steps of all seeds together.
        steps_per_second: environment steps per second of all seeds together.
        loss: mean loss of the chunk's updates, over the iterations that seeds began before their limit; of averages,
            how far the last sweep moved them, over the tolerance.
        gradient_norm: mean norm of the gradients, over the same updates; NaN for averages.
        sweeps: mean number of sweeps over all data, over the same updates; NaN for gradient descent.
        outside: share of the updates' targets whose mean lies outside of the support.
        exploratory: share of the chunk's actions that were not greedy.
        mean_return: mean undiscounted return of the last 100 episodes of each seed.
        mean_length: their mean length.
        start_mean: mean of the return distribution where a run starts, of the action for which it is highest.
        start_std: its standard deviation.
        compilations: programs that this process compiled for the run so far.
        step: environment steps of each seed.
        chunk_steps: how many of them this chunk made; 0 if an environment failed before the first.
        greedy_return: mean undiscounted return of greedy episodes after this chunk; NaN if there were none.

    Examples:
        >>> import uppertail as ut
        >>> small = ut.Settings(seeds=2, episodes=256)
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
    sweeps: float
    outside: float
    exploratory: float
    mean_return: float
    mean_length: float
    start_mean: float
    start_std: float
    compilations: int
    step: int
    chunk_steps: int
    greedy_return: float = math.nan

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
        >>> small = ut.Settings(seeds=2, episodes=100_000)
        >>> result = ut.train(ut.Toy(), settings=small, on_chunk=lambda progress: ut.Stop("seen enough"))
        >>> result.record.summary()["stopped"]
        'seen enough'
    """

    reason: str


class History:
    """The episodes of one seed, in arrays with room for more: to add some takes no longer when there are many."""

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        self._room = {name: getattr(episodes, name) for name in ROOM}

    def add(self, more: Episodes) -> None:
        count, after = self.episodes.returns.size, self.episodes.returns.size + more.returns.size
        for name, room in self._room.items():
            if after > room.size:
                room = np.empty(2 * after, room.dtype)  # noqa: PLW2901
                room[:count] = getattr(self.episodes, name)
                self._room[name] = room
            room[count:after] = getattr(more, name)
        self.episodes = Episodes(**{name: room[:after] for name, room in self._room.items()})


class Milestone:
    """The episode at which the mean return of the last ones of a seed is first at least this; looks at each once."""

    def __init__(self, seeds: int, mean_return: float, window: int) -> None:
        self.mean_return, self.window = mean_return, window
        self.at: list[int | None] = [None] * seeds
        self._seen = [0] * seeds

    def look(self, episodes: list[Episodes]) -> None:
        for row, each in enumerate(episodes):
            first = max(0, self._seen[row] - self.window + 1)
            self._seen[row] = each.returns.size
            later = Episodes(*(getattr(each, name)[first:] for name in ROOM))
            if self.at[row] is None and (found := later.reached(self.mean_return, self.window)) is not None:
                self.at[row] = first + found


class Ledger:
    """The host's account of a run, kept after each compiled chunk, in steps of the environment.

    A step of a rollout is an action, which is taken for `repeats` steps; an episode can end before the last of them.
    `steps_of` makes steps of the lengths of episodes that a run counts.
    """

    def __init__(
        self,
        settings: Settings,
        success: Success,
        programs: Programs | None = None,
        repeats: int = 1,
        steps_of: Callable[[np.ndarray], np.ndarray] = lambda lengths: lengths,
    ) -> None:
        if settings.until == "solved" and not success.is_defined:
            raise InputError(
                "until is solved, but this environment defines no success return: use return=NUMBER, the mean "
                "return to reach."
            )
        self.settings, self.success, self.programs = settings, success, programs or Programs()
        self.histories = [History(Episodes.none()) for _ in range(settings.seeds)]
        self.solved = Milestone(settings.seeds, success.solved_mark, success.window)
        goal = settings.until_return
        self.until = self.solved if goal is None else Milestone(settings.seeds, goal, SOLVED_WINDOW)
        self.step, self.repeats, self.steps_of = 0, repeats, steps_of
        self.diverged: dict[str, int] | None = None  # seed and environment step of the first loss that is not finite
        self.stopped: str | None = None
        self.failed: str | None = None
        self.updates = self.outside = 0.0  # updates that count, and the sum of their shares of targets outside
        self.seen = np.zeros(2)  # the least and the most that discounted rewards of an episode came to
        self.going_on = np.zeros(2)  # the same, had those that were cut short soon gone on as before
        self.longest_cut = 0  # actions of the longest episode that was cut short

    @property
    def episodes(self) -> list[Episodes]:
        """The finished episodes of each seed within its limits; `histories` also has those later in the last chunk."""
        limits = self.settings.most_episodes, self.settings.steps
        return [history.episodes.until(*limits) for history in self.histories]

    @property
    def outside_share(self) -> float:
        """Share of all targets whose mean the family cannot represent."""
        return self.outside / max(self.updates, 1.0)

    @property
    def iteration(self) -> int:
        """Rollouts of each seed until now."""
        return self.step // (self.repeats * self.settings.steps_per_rollout)

    @property
    def finished(self) -> Bool[np.ndarray, " seeds"]:
        steps, most = self.settings.steps, self.settings.most_episodes
        out_of_steps = steps is not None and self.step >= steps
        return np.array([out_of_steps or seed.returns.size >= most for seed in self.episodes])

    @property
    def over(self) -> bool:
        return bool(self.finished.all()) or any((self.diverged, self.stopped is not None, self.failed))

    @property
    def env_steps(self) -> list[int]:
        most, now = self.settings.most_episodes, min(self.step, self.settings.steps or self.step)
        return [int(seed.end_steps[-1]) if seed.returns.size >= most else now for seed in self.episodes]

    def extend(self, records: StepRecord, metrics: Metrics, at_start: Moments) -> Progress:
        """Adds the records of a chunk, with leading axes [seeds, iterations, steps or updates].

        `at_start` has mean and standard deviation of the return where each seed's run starts, by the greedy action.
        """
        running = ~self.finished
        ended, returns, lengths, earned, exploratory, _ = map(np.asarray, records)
        self.seen = _extremes(self.seen, earned[running])
        self.going_on = _extremes(self.going_on, self.seen, self._going_on(records)[running])
        counted = self._counted(ended)
        diverged = ~np.isfinite(np.asarray(metrics.loss)).all(axis=-1) & counted
        if diverged.any():
            iteration, row = np.argwhere(diverged.T)[0]  # the first one
            at = self.step + int(iteration + 1) * self.repeats * self.settings.steps_per_rollout
            self.diverged = {"seed": self.settings.seed + int(row), "step": at}
        for row in np.flatnonzero(running):
            of_seed = ended[row].ravel(), returns[row].ravel(), self.steps_of(lengths[row].ravel().astype(np.int64))
            self.histories[row].add(Episodes.none().extended(*of_seed, self.step + self.repeats, self.repeats))
        self.step += self.repeats * ended[0].size
        for milestone in {self.solved, self.until}:
            milestone.look(self.episodes)
        if self.settings.until is not None:
            done = np.array([episode is not None for episode in self.until.at])
            if done.any() and (done | self.finished).all():
                self.stopped = f"until {self.settings.until}"
        outside = np.asarray(metrics.outside)[counted]
        self.updates += outside.size
        self.outside += float(np.sum(outside, dtype=np.float64))
        return self._progress(metrics, exploratory, at_start, running, counted)

    def arrays(self) -> dict[str, np.ndarray]:
        """The episodes and targets, in the form of a checkpoint."""
        return {
            **arrays_of([history.episodes for history in self.histories]),
            TARGETS: np.array([self.updates, self.outside]),
            SEEN: self.seen,
            GOING_ON: np.append(self.going_on, self.longest_cut),
        }

    def restore(self, arrays: dict[str, np.ndarray], step: int, stopped: str | None, seconds: dict[str, float]) -> None:
        self.updates, self.outside = arrays[TARGETS].tolist()
        self.seen = arrays[SEEN]
        *going_on, longest = arrays.get(GOING_ON, np.append(self.seen, 0.0)).tolist()  # older checkpoints have none
        self.going_on, self.longest_cut = np.array(going_on), int(longest)
        self.histories = [*map(History, Episodes.of_arrays(arrays))]
        self.step, self.stopped = step, stopped
        self.programs.add(seconds)

    def _going_on(self, records: StepRecord) -> Float[np.ndarray, "seeds iterations steps"]:
        """What each episode that was cut short soon would have earned without an end, going on as before; 0 elsewhere.

        Its discounted rewards come again after so many actions, so they count 1 / (1 - discount^actions) times. Only
        the longest ones that were cut short count: others may have ended for another reason than a time limit.
        """
        cut, lasted = np.asarray(records.cut), np.asarray(records.lasted(self.repeats))
        if not cut.any() or (discount := self.settings.discount_per_step**self.repeats) >= 1:
            return np.zeros(cut.shape)
        self.longest_cut = max(self.longest_cut, int(lasted.max(where=cut, initial=0)))
        beyond = discount**lasted  # of the value of an episode that goes on, the share that comes after its end
        soon = cut & (lasted >= self.longest_cut) & (beyond > LITTLE)
        return np.where(soon, records.earned, 0.0) / (1.0 - np.where(soon, beyond, 0.0))

    def _counted(self, ended: Bool[np.ndarray, "seeds iterations steps"]) -> Bool[np.ndarray, "seeds iterations"]:
        """Which iterations each seed began before its limit; what a chunk does beyond it is no part of the run."""
        settings, (_, iterations, steps) = self.settings, ended.shape
        of_each = ended.sum(axis=2)
        here = np.array([[seed.returns.size] for seed in self.episodes])
        before = here + np.cumsum(of_each, axis=1) - of_each
        steps_before = self.step + self.repeats * steps * np.arange(iterations)
        return (before < settings.most_episodes) & (settings.steps is None or steps_before < settings.steps)

    def _progress(
        self, metrics: Metrics, exploratory: np.ndarray, at_start: Moments, running: np.ndarray, counted: np.ndarray
    ) -> Progress:
        """What a chunk reports: means over seeds that were running, and over their iterations that count."""
        steps, episodes = sum(self.env_steps), self.episodes
        counts = [seed.returns.size for seed in episodes]
        by_steps = 0.0 if self.settings.steps is None else self.step / self.settings.steps
        rates = [rate for seed in episodes if (rate := seed.final_success_rate(self.success)) is not None]
        begun = [seed for seed in episodes if seed.returns.size]
        return Progress(
            episodes=counts,
            solved=sum(episode is not None for episode in self.solved.at),
            success_rate=float(np.mean(rates)) if rates else math.nan,
            fraction=min(1.0, max(min(counts) / self.settings.most_episodes, by_steps)),
            env_steps=steps,
            steps_per_second=steps / max(self.programs.training, 1e-9),
            loss=_mean(metrics.loss, counted),
            gradient_norm=_mean(metrics.gradient_norm, counted),
            sweeps=_mean(metrics.sweeps, counted),
            outside=_mean(metrics.outside, counted),
            exploratory=_mean(exploratory, counted),
            mean_return=_over_seeds([seed.returns[-FINAL_WINDOW:] for seed in begun]),
            mean_length=_over_seeds([seed.lengths[-FINAL_WINDOW:] for seed in begun]),
            start_mean=_mean(at_start[0], running),
            start_std=_mean(at_start[1], running),
            compilations=self.programs.compilations,
            step=self.step,
            chunk_steps=self.repeats * exploratory.shape[1] * exploratory.shape[2],
        )


def _extremes(*values: Float[np.ndarray, "..."]) -> Float[np.ndarray, " two"]:
    """The least and the most of all."""
    return np.array([min(each.min(initial=0.0) for each in values), max(each.max(initial=0.0) for each in values)])


def _mean(values: Any, counted: np.ndarray) -> float:
    """Mean over the seeds, or their iterations, that count; NaN if there are none."""
    chosen = np.asarray(values)[counted]
    return float(np.mean(chosen, dtype=np.float64)) if chosen.size else math.nan


def _over_seeds(values: list[np.ndarray]) -> float:
    """Mean over seeds of each seed's mean; NaN if there is none."""
    return float(np.mean([np.mean(each, dtype=np.float64) for each in values])) if values else math.nan
