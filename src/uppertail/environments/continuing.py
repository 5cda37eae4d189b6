"""Continuing tasks with chance: RiverSwim and SixArms (Strehl and Littman 2008), the field's tests of exploration."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from uppertail.environments.base import StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError

STEPS = 5_000  # of the paper's runs
FORWARD, BACK, LAST_STAYS = 0.3, 0.1, 0.3  # chances of a swim upstream; and of staying at the upper end
ENTERS = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01)  # chance that an arm is entered
PAYS = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)  # what each step in it pays
LEAVES = 4  # the only action that leaves the first arm; each other arm is left by all actions but its own


@dataclasses.dataclass(frozen=True)
class RiverSwim(StateBuilder):
    """A swimmer in a river of `length` states: downstream is certain and pays little, upstream is hard and pays much.

    Action 0 swims down one state; in state 0 it stays and pays `small`. Action 1 swims up with probability 0.3, stays
    with 0.6 and is carried down with 0.1; in state 0 it stays with 0.7. In the last state it stays with 0.3, which pays
    `large`, and is carried down with 0.7. A run begins in state 1 or 2. From Strehl and Littman (2008), "An analysis of
    model-based interval estimation for Markov decision processes", JCSS 74. (Osband et al. 2013 and Colosseum use other
    probabilities.)

    The task never ends. It is truncated after `time_limit` steps, by default those of the paper's runs, so a run of
    5,000 steps is one episode, whose return is the sum of all its rewards.

    Args:
        length: number of states, at least 3; the paper has 6.
        time_limit: steps after which the episode is truncated, at least 1.
        small: what action 0 pays in state 0.
        large: what staying in the last state pays.

    Examples:
        >>> table = ut.RiverSwim().build(jax.random.key(0))
        >>> table.next_state[2, 1].tolist(), [round(float(chance), 2) for chance in table.probability[2, 1]]
        ([1, 2, 3], [0.1, 0.6, 0.3])
    """

    length: int = 6
    time_limit: int = STEPS
    small: float = 5.0
    large: float = 10_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 3:
            raise InputError(f"length is {self.length}, but a river starts in state 1 or 2: use 3 or more.")
        _require_steps(self.time_limit)
        for name in ("small", "large"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number; the paper has 5 and 10,000.")

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        state, last = np.arange(self.length), self.length - 1
        moves = np.clip(state[:, None] + np.arange(-1, 2), 0, last)  # down, stay, up
        chance = np.tile([[1.0, 0.0, 0.0], [BACK, 1 - BACK - FORWARD, FORWARD]], (self.length, 1, 1))
        chance[0] = [[0.0, 1.0, 0.0], [0.0, 1 - FORWARD, FORWARD]]
        chance[last, 1] = [1 - LAST_STAYS, LAST_STAYS, 0.0]
        reward = np.zeros(chance.shape)
        reward[0, 0, 1], reward[last, 1, 1] = self.small, self.large
        next_state = np.broadcast_to(moves[:, None], chance.shape)
        return _continuing(next_state, reward, chance, self.time_limit, [1, 2])


@dataclasses.dataclass(frozen=True)
class SixArms(StateBuilder):
    """Six arms around state 0: the rarer an arm lets you in, the more each step in it pays.

    In state 0, action k enters arm k (state k + 1) with probability 1, 0.15, 0.1, 0.05, 0.03 or 0.01, and else stays.
    In an arm each step that stays pays 50, 133, 300, 800, 1,660 or 6,000. The first arm is left by action 4 alone; in
    each other arm only the action that led there stays, and all others lead back to state 0. Nothing else pays. From
    Strehl and Littman (2008), "An analysis of model-based interval estimation for Markov decision processes", JCSS 74.

    The task never ends. It is truncated after `time_limit` steps, by default those of the paper's runs, so a run of
    5,000 steps is one episode, whose return is the sum of all its rewards.

    Args:
        time_limit: steps after which the episode is truncated, at least 1.
        scale: factor on all rewards, above 0; the paper has 1.

    Examples:
        >>> table = ut.SixArms().build(jax.random.key(0))
        >>> table.num_states, table.next_state[0, 5].tolist(), float(table.reward[6, 5, 1])
        (7, [0, 6], 6000.0)
    """

    time_limit: int = STEPS
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_steps(self.time_limit)
        if not 0 < self.scale < math.inf:
            raise InputError(f"scale is {self.scale}: use a finite number above 0; the paper has 1.")

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        action = np.arange(len(PAYS))
        stays = action[:, None] == action
        stays[0] = action != LEAVES
        enters = np.stack([1 - np.array(ENTERS), ENTERS], axis=-1)
        chance = np.concatenate([enters[None], np.stack([~stays, stays], axis=-1)])  # back to state 0, or the arm
        next_state = np.zeros(chance.shape, int)
        next_state[0, :, 1], next_state[1:, :, 1] = action + 1, action[:, None] + 1
        reward = np.zeros(chance.shape)
        reward[1:, :, 1] = self.scale * np.array(PAYS)[:, None] * stays
        return _continuing(next_state, reward, chance, self.time_limit, [0])


def _require_steps(time_limit: int) -> None:
    if time_limit < 1:
        raise InputError(f"time_limit is {time_limit}, but an episode has at least 1 step; the paper has {STEPS:,}.")


def _continuing(
    next_state: np.ndarray, reward: np.ndarray, probability: np.ndarray, time_limit: int, starts: list[int]
) -> FiniteMDP:
    """A table without an end, which starts in each of the starts equally often."""
    return FiniteMDP(
        next_state=jnp.asarray(next_state, jnp.int32),
        reward=jnp.asarray(reward, jnp.float32),
        terminated=jnp.zeros(next_state.shape, bool),
        probability=jnp.asarray(probability, jnp.float32),
        time_limit=time_limit,
        start_state=jnp.array(starts, jnp.int32),
        start_probability=jnp.full(len(starts), 1 / len(starts)),
    )
