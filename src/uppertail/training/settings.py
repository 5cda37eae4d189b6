"""How a run is trained: how long, on how much data, with how many seeds. Imports nothing heavy."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from uppertail.errors import Explained, InputError, nearest, printable
from uppertail.parts import ABSENT, ELSEWHERE, PARTS
from uppertail.schema import MOST_INT, settle

CHECKS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    *((name, lambda value: value >= 1, "use 1 or more") for name in ("seeds", "num_envs")),
    *(
        (name, lambda value: value is None or value >= 1, "use 1 or more, or leave it out")
        for name in (
            "episodes",
            "steps",
            "evaluate_every",
            "rollout_steps",
            "updates_per_rollout",
        )
    ),
    *(
        (name, lambda value: value is None or value > 0, "use a number above 0")
        for name in ("learning_rate", "gradient_clip", "adam_epsilon")
    ),
    ("seeds", lambda value: value <= 2**16, f"use {2**16} at most"),  # more would fill any memory before a run begins
    ("seed", lambda value: value >= 0, "use 0 or more"),
    ("discount", lambda value: value is None or 0 <= value <= 1, "use a number in [0, 1]; the paper uses 0.995"),
    *(
        (name, lambda value: value is None or value >= 0, "use 0 or more")
        for name in ("learning_rate_end", "learning_rate_decay")
    ),
    (
        "adam_betas",
        lambda value: value is None or 0 <= min(value) <= max(value) < 1,
        "use two numbers in [0, 1), such as 0.9 and 0.999",
    ),
    ("batch_size", lambda value: value is None or value >= 2, "use 2 or more: fresh data and replay"),
    ("loss_samples", lambda value: value >= 0, "use 0, the closed form, or more"),
)
"""For each setting, what has to hold, and the remedy if it does not."""


OF_EVERY_RUN = (
    *("seeds", "seed", "episodes", "steps", "until", "evaluate_every"),
    *("num_envs", "discount", "rollout_steps"),
)
"""The settings that mean something to every learner; the others belong to gradient descent."""

USUAL_EPISODES = 1000  # of a run without any limit


def most_episodes(episodes: int | None, steps: int | None) -> int:
    """The limit of episodes of a run with these settings; without one, the most that a run can count."""
    return episodes or (MOST_INT if steps else USUAL_EPISODES)


class OfSettings(Explained):
    """Other libraries call many settings otherwise, and parts are none."""

    def hint(cls, name: str, known: Sequence[str]) -> str:
        shown = {part: f"{part}, an argument of `ut.train`" for part in PARTS} | {each: each for each in known}
        there = {each: shown[option] for each, option in ELSEWHERE.items() if option in shown}
        parts = {each: shown[option.split()[0]] for each, option in ELSEWHERE.items() if option.split()[0] in PARTS}
        shown = parts | there | shown
        return ABSENT.get(name) or nearest(name, shown, 1, shown=shown) or " `help(ut.Settings)` lists them."


@dataclasses.dataclass(frozen=True)
class Settings(metaclass=OfSettings):
    """Settings of a training run.

    Args:
        seeds: number of independent runs, each with its own environment, network and randomness.
        seed: the base seed; run k uses seed + k.
        episodes: a run ends after this many episodes; null: 1,000, or no limit where `steps` is given.
        steps: a run ends after this many environment steps, if that comes first; null: no limit.
        until: end the run early, at the end of a chunk, once every seed is solved (`solved`), or has had a mean return
            of at least NUMBER over 50 episodes in a row (`return=NUMBER`); null: run to the limits.
        evaluate_every: environment steps between evaluations by 20 greedy episodes, rounded up to whole chunks; what is
            kept of each seed is its best network, not its last; null: no evaluations, and the last.
        num_envs: environments of each seed side by side, where Python steps them; 1 where they are compiled.
        discount: discount per environment step, in [0, 1]; null: 0.995, or down to 0.99 where numbers stay numbers and
            actions make a difference sooner than in four steps (docs/defaults.md).
        learning_rate: step size of Adam, above 0; null: 5e-4 for Imitation, 3e-4 for images without PixelCounts, 5e-3
            for one-hot states, 1e-3 else.
        learning_rate_end: step size at the end of `steps`, to which it decays linearly; null: it is constant.
        learning_rate_decay: without learning_rate_end, the step size falls as 1 / sqrt(1 + updates / this), so that a
            run keeps what it has solved; 0: it is constant; null: 300 for one-hot states, else 0.
        gradient_clip: largest size of any one entry of the gradient, above 0.
        adam_betas: Adam's decay rates of the mean of the gradient and of its square, each in [0, 1). With a first
            rate of 0 a weight stops moving once its data have left the batch (docs/decisions/0011). null: 0.9 and 0.999
            for images, Imitation, and beside KernelCounts and PixelCounts, 0 and 0.99 for one-hot states, 0 and 0.9
            else.
        adam_epsilon: what Adam adds to the root of the mean square, above 0: gradients below it move the weights in
            proportion to their size, so small errors vanish (docs/decisions/0013). null: 1e-8 for images,
            Imitation, and beside KernelCounts and PixelCounts, 1e-6 for one-hot states, 1e-4 else.
        batch_size: transitions per update: at most half are fresh data, the rest are replayed; null: 32, 64 for one-hot
            states and beside PixelCounts, 128 beside KernelCounts, or 256 for Imitation.
        replay_size: transitions that the replay buffer holds; null: 50,000, or 10,000 for Imitation.
        rollout_steps: actions between updates, taken with a fixed policy; null: 4 for tables, images and
            one-hot states, 128 for Imitation, 1 beside KernelCounts, 16 else.
        updates_per_rollout: updates after each rollout; null: 10 for Imitation, 8 for each action beside KernelCounts
            and PixelCounts (fewer if images are larger than 24 x 24), 1 for other images, 2 for one-hot states, 4
            else.
        on_policy: which data keep the next action that was taken: fresh (the paper's), all or none; the others have
            theirs chosen by the policy when they are learned from.
        replay_start: transitions stored before replay is used; until then all data are fresh. The released code: 5,000.
        loss_samples: draws per transition of the sample-based negative log-likelihood; 0: the family's own closed form,
            whose settings (beta, distance) are for it alone.

    Examples:
        >>> import uppertail as ut
        >>> ut.Settings(seeds=3, episodes=500).seeds
        3
        >>> ut.Settings(discount=1.5)
        Traceback (most recent call last):
        uppertail.errors.InputError: discount is 1.5: use a number in [0, 1]; the paper uses 0.995.
    """

    seeds: int = 5
    seed: int = 0
    episodes: int | None = None
    steps: int | None = None
    until: str | None = None
    evaluate_every: int | None = None
    num_envs: int = 1
    discount: float | None = None
    learning_rate: float | None = None
    learning_rate_end: float | None = None
    learning_rate_decay: int | None = None
    gradient_clip: float = 1.0
    adam_betas: tuple[float, float] | None = None
    adam_epsilon: float | None = None
    batch_size: int | None = None
    replay_size: int | None = None
    rollout_steps: int | None = None
    updates_per_rollout: int | None = None
    on_policy: Literal["fresh", "all", "none"] = "none"
    replay_start: int = 0
    loss_samples: int = 0

    def __post_init__(self) -> None:
        settle(self)
        for name, holds, remedy in CHECKS:
            self._require(holds(getattr(self, name)), name, remedy)
        self._require(
            self.seed + self.seeds <= 2**31, "seed", f"with {self.seeds} seeds, use {2**31 - self.seeds} at most"
        )
        goal = self.until in (None, "solved") or self.until_return is not None
        self._require(goal, "until", "use solved, or return=NUMBER, for example return=-110")
        falls = self.learning_rate_end is not None
        after = "say after how many steps it is reached, with --steps"
        self._require(not falls or self.steps is not None, "learning_rate_end", after)
        steps = self.rollout_steps or self.num_envs
        divisor = next(n for n in range(min(self.num_envs, steps), 0, -1) if steps % n == 0)
        remedy = f"use a divisor of rollout_steps ({steps}), such as {divisor}"
        self._require(steps % self.num_envs == 0, "num_envs", remedy)
        self._require(self.replay_start >= 0, "replay_start", "use 0 or more")
        if self.replay_size is not None:
            needed, room = self.rollout_steps or 1, f"the {self.replay_size} transitions that the replay buffer holds"
            self._require(self.replay_size >= needed, "replay_size", f"use at least the {needed} steps of a rollout")
            self._require(self.replay_start <= self.replay_size, "replay_start", f"use 0 or more, at most {room}")

    def _require(self, holds: bool, name: str, remedy: str) -> None:
        if not holds:
            value = getattr(self, name)
            text = printable(str(list(value) if isinstance(value, tuple) else value))
            raise InputError(f"{name} is {text}: {remedy}.")

    @property
    def most_episodes(self) -> int:
        """The limit of episodes; without one, the most that a run can count."""
        return most_episodes(self.episodes, self.steps)

    @property
    def until_return(self) -> float | None:
        """The mean return that `until` asks for; None if it asks for none."""
        name, _, text = (self.until or "").partition("=")
        try:
            number = float(text) if name == "return" else math.nan
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    @property
    def discount_per_step(self) -> float:
        """`discount`, which a rule has filled in where it was open."""
        if self.discount is None:
            raise InputError("discount depends on the environment, which no run has seen yet: give it a number.")
        return self.discount

    @property
    def steps_per_rollout(self) -> int:
        """Actions between updates: `rollout_steps`, which the learner has filled in where it was open."""
        if self.rollout_steps is None:
            raise InputError("rollout_steps depends on the learner, which no run has chosen yet: give it a number.")
        return self.rollout_steps
