"""DeepSea (Osband et al. 2020, bsuite): the field's standard task for deep exploration."""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.environments.base import StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError

ROUNDING = 0.999  # share of the treasure's return that counts as one: float32 adds up the costs
MOVE_COST = 0.01  # what moving right all the way costs
MOST_ROWS = 46_340  # the most rows whose cells can be counted in 32 bits


@dataclasses.dataclass(frozen=True)
class DeepSea(StateBuilder):
    """A diver on a grid of size x size cells sinks one row per step, and moves one column to the left or to the right.

    Which action moves right is drawn at random for each cell and seed. Each move to the right costs 0.01 / size;
    moving right in the last column pays the treasure, a reward of 1, and only a diver who has always moved right gets
    there. An episode starts in the first column and terminates after `size` steps. State: size * row + column.

    As in bsuite 0.3.6, with one difference: bsuite pays the reward in every row of the last column. No episode can be
    there before the last row, so only that row pays here; otherwise the range of returns would be too wide.

    No agent first succeeds before episode size / 2 + 1 on average: on each cell of the diagonal, its first guess is
    wrong with probability 1/2, and costs the episode. One that remembers its guesses reaches this bound.

    Args:
        size: rows and columns N, at least 1; bsuite's sweep has 10 to 50.
        stochastic: bsuite's stochastic version: a move to the right fails with probability 1 / size (its cost is paid),
            and the rewards of the last row's first and last cell have noise of standard deviation 1. So no return says
            whether the treasure was found, and no episode counts as a success.

    Examples:
        >>> table = ut.DeepSea(size=5).build(jax.random.key(0))
        >>> table.num_actions
        2
    """

    size: int = 10
    stochastic: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1:
            raise InputError(f"size is {self.size}, but a DeepSea needs at least 1 row; bsuite's sizes are 10 to 50.")
        if self.size > MOST_ROWS:
            raise InputError(f"size is {self.size}: use {MOST_ROWS} at most; bsuite's sizes are 10 to 50.")

    @property
    def success_return(self) -> float:
        """The return of the best policy, which an episode reaches exactly if the treasure was found."""
        return math.inf if self.stochastic else ROUNDING * (1 - MOVE_COST)

    @property
    def floor_episodes(self) -> float | None:
        return None if self.stochastic else self.size / 2 + 1

    @property
    def rows(self) -> int:
        return self.size

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        size, states = self.size, self.size**2
        right = jax.random.bernoulli(key, 0.5, (states,)).astype(jnp.int32)
        moves_right = jnp.arange(2)[None, :] == right[:, None]
        row, column = (index[:, None] for index in jnp.divmod(jnp.arange(states), size))
        last_row, last_column = row == size - 1, column == size - 1
        treasure = (moves_right & last_row & last_column).astype(jnp.float32)
        reward = treasure - moves_right.astype(jnp.float32) * (MOVE_COST / size)
        moved = jnp.clip(jnp.where(moves_right, column + 1, column - 1), 0, size - 1)
        columns, probability = moved[..., None], jnp.ones((states, 2, 1))
        if self.stochastic:
            fails = moves_right.astype(jnp.float32) / size
            columns = jnp.stack([moved, jnp.where(moves_right, column, moved)], axis=-1)
            probability = jnp.stack([1 - fails, fails], axis=-1)
        shape = columns.shape
        noisy = (last_row & ((column == 0) | last_column))[..., None]
        return FiniteMDP(
            next_state=size * jnp.minimum(row + 1, size - 1)[..., None] + columns,
            reward=jnp.broadcast_to(reward[..., None], shape),
            terminated=jnp.broadcast_to(last_row[..., None], shape),
            probability=probability,
            time_limit=size,
            reward_std=jnp.broadcast_to(noisy.astype(jnp.float32), shape) if self.stochastic else None,
        )
