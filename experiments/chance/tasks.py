"""The tasks: tables whose outcomes or rewards are left to chance."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import uppertail as ut
from experiments.chance.colosseum import COMMUNICATING, ERGODIC, average_reward
from experiments.tasks.horizon import best_return, greedy_policy, mean_return
from uppertail.environments.base import Environment, StateBuilder
from uppertail.exact import optimal_policy

MOST_SWEEPS = 500  # time limits above it are evaluated by powers of a matrix
LONG = 50_000  # above it, the best return of a task that never ends is that of its mean rewards in the long run


@dataclasses.dataclass(frozen=True)
class Jackpot(StateBuilder):
    """One step, two arms: the first always pays `sure`, the second 1 with probability `chance`."""

    sure: float = 0.04
    chance: float = 0.1

    def build(self, key: Any) -> ut.FiniteMDP:
        return ut.FiniteMDP(
            next_state=jnp.zeros((1, 2, 2), int),
            reward=jnp.array([[[self.sure, self.sure], [0.0, 1.0]]]),
            terminated=jnp.ones((1, 2, 2), bool),
            probability=jnp.array([[[1.0, 0.0], [1 - self.chance, self.chance]]]),
            time_limit=1,
        )


@dataclasses.dataclass(frozen=True)
class Door(StateBuilder):
    """Before a door that opens with probability `chance`; behind it waits a reward of 1, on the side of `sure`.

    In state 0, action 0 ends the episode and pays `sure`; action 1 tries the door, which leads to state 1 or ends the
    episode with nothing. In state 1, action 1 ends the episode and pays 1, action 0 ends it with nothing.
    """

    sure: float = 0.04
    chance: float = 0.1

    def build(self, key: Any) -> ut.FiniteMDP:
        return ut.FiniteMDP(
            next_state=jnp.array([[[0, 0], [0, 1]], [[1, 1], [1, 1]]]),
            reward=jnp.array([[[self.sure, self.sure], [0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]]),
            terminated=jnp.array([[[True, True], [True, False]], [[True, True], [True, True]]]),
            probability=jnp.array([[[1.0, 0.0], [1 - self.chance, self.chance]], [[1.0, 0.0], [1.0, 0.0]]]),
            time_limit=2,
        )


class Unranged(Environment):
    """A table that does not say in which range its returns lie, as most environments of users."""

    table: ut.FiniteMDP

    @property
    def observations(self) -> ut.ObservationSpace:
        return self.table.observations

    @property
    def num_actions(self) -> int:
        return self.table.num_actions

    def reset(self, key: Any) -> Any:
        return self.table.reset(key)

    def step(self, key: Any, state: Any, action: Any) -> Any:
        return self.table.step(key, state, action)


@dataclasses.dataclass(frozen=True)
class Measured(StateBuilder):
    """An environment whose range of returns is not known, so that a random policy measures it before the run."""

    of: StateBuilder = dataclasses.field(default_factory=ut.RiverSwim)

    def build(self, key: Any) -> Unranged:
        return Unranged(self.of.build(key))


class Task(NamedTuple):
    """What is learned.

    Args:
        environment: where.
        steps: environment steps of each seed.
        margin: how far below the best stationary policy of exact values a good policy may be, in units of return; None:
            5% below the best.
        measured: whether our learners measure the range of returns, instead of being told.
    """

    environment: StateBuilder
    steps: int
    margin: float | None = None
    measured: bool = False


TASKS: dict[str, Task] = {
    "jackpot": Task(Jackpot(), 400),
    "door": Task(Door(), 1_600),
    "river_swim": Task(ut.RiverSwim(), 5_000),
    "river_swim_20": Task(ut.RiverSwim(length=20, time_limit=20_000), 20_000),
    "river_swim_measured": Task(ut.RiverSwim(), 5_000, measured=True),
    "six_arms": Task(ut.SixArms(), 5_000),
    "six_arms_measured": Task(ut.SixArms(), 5_000, measured=True),
    "risky_arm": Task(ut.RiskyArm(), 16_384),
    "noisy_chain_20": Task(ut.Chain(20, slip=0.05, reward_std=0.5), 16_384),
    "deep_sea_10": Task(ut.DeepSea(10, stochastic=True), 16_384),
    "deep_sea_20": Task(ut.DeepSea(20, stochastic=True), 65_536),
    "deep_sea_30": Task(ut.DeepSea(30, stochastic=True), 131_072),
    "lake_8x8": Task(ut.FrozenLake(map_name="8x8", is_slippery=True), 65_536, margin=0.02),
    "long_lake_8x8": Task(ut.FrozenLake(map_name="8x8", is_slippery=True), 524_288, margin=0.02),
    **{f"ergodic_{number}": Task(each, each.time_limit) for number, each in enumerate(ERGODIC)},
    **{f"communicating_{number}": Task(each, each.time_limit) for number, each in enumerate(COMMUNICATING)},
}
"""A continuing task is one episode as long as the run; its return is the sum of all rewards. The last ones are
Colosseum's."""


class Judge:
    """What policies of one table are worth, by exact dynamic programming.

    Args:
        mdp: the table.
        margin: as a task has it.
        discount: of the policy that the margin is measured from.
    """

    def __init__(self, mdp: ut.FiniteMDP, margin: float | None, discount: float) -> None:
        self.mdp, self.rates = mdp, None
        if not np.any(mdp.terminated):  # the lowest and highest mean reward per step in the long run
            self.rates = average_reward(mdp, -1.0), average_reward(mdp)
        long = self.rates is not None and mdp.time_limit > LONG
        self.best = self.rates[1] * mdp.time_limit if self.rates and long else best_return(mdp)
        mark = None if margin is None else self.mean_return(optimal_policy(mdp, discount)) - margin
        self.mark = 0.95 * self.best if mark is None else mark

    def worth(self, q: Float[np.ndarray, "states actions"]) -> float:
        """The mean return of an episode of the policy that is greedy for these values."""
        return self.mean_return(greedy_policy(q))

    def mean_return(self, policy: Float[np.ndarray, "states actions"]) -> float:
        """The mean return of an episode within the time limit."""
        if self.mdp.time_limit <= MOST_SWEEPS:
            return mean_return(self.mdp, policy)
        chance, reward = self._dense
        states = len(chance)
        once = np.eye(states + 1)  # one step: the state's value is its reward and that of the next state
        once[:states, :states] = np.einsum("sa,sat->st", policy, chance)
        once[:states, states] = np.sum(policy * reward, axis=1)
        value = np.linalg.matrix_power(once, self.mdp.time_limit)[:states, states]
        return float(np.asarray(self.mdp.start_probability, np.float64) @ value[np.asarray(self.mdp.start_state)])

    @functools.cached_property
    def _dense(self) -> tuple[np.ndarray, np.ndarray]:
        """P[s, a, s'] of steps that do not end the episode, and R[s, a]."""
        mdp, (states, actions, _) = self.mdp, np.shape(self.mdp.next_state)
        weight = np.asarray(mdp.probability, np.float64)
        weight = weight / weight.sum(axis=2, keepdims=True)
        chance, at = np.zeros((states, actions, states)), np.ogrid[:states, :actions, :1][:2]
        np.add.at(chance, (*at, np.asarray(mdp.next_state)), np.where(mdp.terminated, 0.0, weight))
        return chance, np.sum(weight * np.asarray(mdp.reward, np.float64), axis=2)


def tables(task: Task, seeds: list[int], keys_of: Callable[[int], Any]) -> list[ut.FiniteMDP]:
    """The table of each seed, its arrays NumPy's."""
    return [jax.device_get(task.environment.build(keys_of(seed).environment)) for seed in seeds]
