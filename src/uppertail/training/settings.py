"""How a run is trained: how long, on how much data, with how many seeds. Imports nothing heavy."""

import dataclasses
import math
from typing import Literal

from uppertail.errors import InputError
from uppertail.schema import settle

OnPolicy = Literal["fresh", "all", "none"]
"""The names of `Settings.on_policy`."""

MOST = {"seeds": 2**16, "updates_per_rollout": 2**20, "loss_samples": 2**20}
"""The most of each: more would fill any memory, or take for ever, before a run begins."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a training run.

    Args:
        seeds: number of independent runs, each with its own environment, network and randomness.
        seed: the base seed; run k uses seed + k.
        episodes: a run ends after this many episodes.
        steps: a run ends after this many environment steps, if that comes first; null: no limit.
        until: a run ends earlier, at the end of a chunk, once every seed is done: solved (as `solved_episode` has it)
            or return=NUMBER (its mean return over 50 episodes in a row was at least that); null: it does not.
        num_envs: environments of each seed side by side, where Python steps them; 1 where they are compiled.
        discount: discount per step, in [0, 1].
        learning_rate: step size of Adam, above 0.
        learning_rate_end: step size at the end of `steps`, to which it falls linearly; null: it stays as it is.
        gradient_clip: largest size of any one entry of the gradient, above 0.
        adam_betas: Adam's decay rates of the mean of the gradient and of its square, each in [0, 1). Without a mean of
            the gradient nothing moves on after its data are gone (docs/decisions/0011).
        adam_epsilon: what Adam adds to the root of the mean square, above 0: gradients below it move the weights in
            proportion to their size, so errors vanish instead of wavering (docs/decisions/0013).
        width: units in each hidden layer, short for --network.width; null: as the network has it.
        hidden_layers: number of hidden layers, short for --network.hidden_layers; null: as the network has it.
        bias: whether the layers have biases, short for --network.bias; null: as the network has it.
        batch_size: transitions per update: half of it fresh data, the rest replay.
        replay_size: transitions that the replay buffer holds.
        rollout_steps: environment steps between updates, taken with a fixed policy; null: 4 for tables and 8 for
            vectors by least squares, 16 else.
        updates_per_rollout: updates after each rollout.
        on_policy: which data keep the next action that was taken: fresh (the paper's), all or none; the others have
            theirs chosen by the policy when they are learned from.
        replay_start: transitions stored before replay is used; until then all data are fresh. The released code: 5,000.
        loss_samples: draws per transition of the sample-based negative log-likelihood; 0: the family's own closed form,
            whose settings (beta, distance, printed_loss) are for it alone.

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
    episodes: int = 1000
    steps: int | None = None
    until: str | None = None
    num_envs: int = 1
    discount: float = 0.995
    learning_rate: float = 1e-3
    learning_rate_end: float | None = None
    gradient_clip: float = 1.0
    adam_betas: tuple[float, float] = (0.0, 0.9)
    adam_epsilon: float = 1e-4
    width: int | None = None
    hidden_layers: int | None = None
    bias: bool | None = None
    batch_size: int = 32
    replay_size: int = 50_000
    rollout_steps: int | None = None
    updates_per_rollout: int = 4
    on_policy: OnPolicy = "none"
    replay_start: int = 0
    loss_samples: int = 0

    def __post_init__(self) -> None:
        settle(self)
        for name in ("seeds", "episodes", "num_envs", "updates_per_rollout"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "use 1 or more")
        for name in ("width", "hidden_layers", "rollout_steps"):
            value = getattr(self, name)
            _require(value is None or value >= 1, name, value, "use 1 or more, or leave it out")
        _require(self.seed >= 0, "seed", self.seed, "use 0 or more")
        for name, most in MOST.items():
            _require(getattr(self, name) <= most, name, getattr(self, name), f"use {most} at most")
        _require(
            self.seed + self.seeds <= 2**31,
            "seed",
            self.seed,
            f"with {self.seeds} seeds, use {2**31 - self.seeds} at most",
        )
        _require(self.steps is None or self.steps >= 1, "steps", self.steps, "use 1 or more, or leave it out")
        _require(
            self.until in (None, "solved") or self.until_return is not None,
            "until",
            self.until,
            "use solved, or return=NUMBER, for example return=-110",
        )
        _require(
            self.rollout_steps is None or self.rollout_steps % self.num_envs == 0,
            "num_envs",
            self.num_envs,
            f"use a divisor of rollout_steps ({self.rollout_steps}), such as {self._largest_divisor()}",
        )
        _require(0 <= self.discount <= 1, "discount", self.discount, "use a number in [0, 1]; the paper uses 0.995")
        _require(self.learning_rate > 0, "learning_rate", self.learning_rate, "use a number above 0")
        if self.learning_rate_end is not None:
            end = self.learning_rate_end
            _require(end >= 0, "learning_rate_end", end, "use 0 or more")
            _require(
                self.steps is not None,
                "learning_rate_end",
                end,
                "say after how many steps it is reached, with --steps",
            )
        _require(self.gradient_clip > 0, "gradient_clip", self.gradient_clip, "use a number above 0")
        _require(
            all(0 <= beta < 1 for beta in self.adam_betas),
            "adam_betas",
            list(self.adam_betas),
            "use two numbers in [0, 1), such as 0.9 and 0.999",
        )
        _require(self.adam_epsilon > 0, "adam_epsilon", self.adam_epsilon, "use a number above 0")
        _require(self.batch_size >= 2, "batch_size", self.batch_size, "use 2 or more: fresh data and replay")
        _require(
            self.replay_size >= (self.rollout_steps or 1),
            "replay_size",
            self.replay_size,
            f"use at least the {self.rollout_steps} steps of a rollout",
        )
        _require(
            0 <= self.replay_start <= self.replay_size,
            "replay_start",
            self.replay_start,
            f"use 0 or more, at most the {self.replay_size} transitions that the replay buffer holds",
        )
        _require(self.loss_samples >= 0, "loss_samples", self.loss_samples, "use 0, the closed form, or more")

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
    def steps_per_rollout(self) -> int:
        """Environment steps between updates: `rollout_steps`, which the learner has filled in where it was open."""
        if self.rollout_steps is None:
            raise InputError("rollout_steps is open until a run has chosen its learner: give it a number.")
        return self.rollout_steps

    def _largest_divisor(self) -> int:
        """The largest number of environments up to what was asked for that divides a rollout."""
        steps = self.rollout_steps or 1
        return next(n for n in range(min(self.num_envs, steps), 0, -1) if steps % n == 0)


def _require(holds: bool, name: str, value: object, remedy: str) -> None:
    if not holds:
        raise InputError(f"{name} is {value}: {remedy}.")
