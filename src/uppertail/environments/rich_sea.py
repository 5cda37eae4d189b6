"""DeepSea, seen through random bits: observations hardly ever come twice."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.environments.deep_sea import DeepSea
from uppertail.environments.rich_chain import RichMDP
from uppertail.environments.vectors import VectorBuilder
from uppertail.errors import InputError
from uppertail.schema import settle

MOST_BITS = 1_024
"""More bits would leave no memory for anything else."""


@dataclasses.dataclass(frozen=True)
class RichSea(VectorBuilder):
    """DeepSea whose observation is the row and the column, each one-hot, and random bits that mean nothing.

    Episodes, rewards and successes are those of `DeepSea`.

    Args:
        size: rows and columns, at least 1.
        bits: how many bits are drawn anew at each time step, from 0 to 1,024; 0: observations repeat.

    Examples:
        >>> import jax
        >>> import uppertail as ut
        >>> world = ut.RichSea(size=5, bits=2).build(jax.random.key(0))
        >>> world.reset(jax.random.key(1))[1].observation[:-2].tolist()  # row 0, column 0
        [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """

    size: int = 10
    bits: int = 8

    def __post_init__(self) -> None:
        settle(self)
        self._sea()
        if not 0 <= self.bits <= MOST_BITS:
            raise InputError(f"bits is {self.bits}: use 0 to {MOST_BITS} random bits.")

    @property
    def success_return(self) -> float:
        return self._sea().success_return

    @property
    def floor_episodes(self) -> float | None:
        return self._sea().floor_episodes

    def build(self, key: PRNGKeyArray) -> RichMDP:
        row, column = jnp.divmod(jnp.arange(self.size**2), self.size)
        codes = jnp.concatenate([jax.nn.one_hot(each, self.size) for each in (row, column)], axis=1)
        return RichMDP(self._sea().build(key), codes, bits=self.bits)

    def _sea(self) -> DeepSea:
        """The DeepSea behind it."""
        return DeepSea(self.size)
