"""The return distributions of observations, as a user reads them: NumPy arrays, one entry per action."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from uppertail.agent import Agent
from uppertail.distributions import ReturnDistribution
from uppertail.errors import InputError
from uppertail.types import PyTree

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that are given if none are asked for."""

HALVINGS = 50
"""How often a quantile's bracket is halved: beyond what a float32 tells apart."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ActionReturns:
    """The return distribution of each action, of one observation or of a batch.

    The distribution of an ensemble is the mixture over its members.

    Args:
        mean: mean return, [actions] or [batch, actions].
        std: its standard deviation, of the same shape.
        probabilities: with Categorical, the probability of each bin, the last axis; else None.
        bins: with Categorical, the return at the centre of each bin; else None.
        parameters: the family's own parameters by name, [actions, ...] or [members, actions, ...], a batch before it.

    Examples:
        >>> import uppertail as ut
        >>> result = ut.train(ut.Toy(), ut.Categorical(bins=7), settings=ut.Settings(seeds=1, episodes=64))
        >>> z: ut.ActionReturns = result.distribution(0)
        >>> z.mean.shape, z.probabilities.shape, z.quantiles([0.1, 0.9]).shape, z.greedy
        ((2,), (2, 7), (2, 2), 0)
    """

    mean: Float[np.ndarray, "*batch actions"]
    std: Float[np.ndarray, "*batch actions"]
    probabilities: Float[np.ndarray, "*batch actions bins"] | None
    bins: Float[np.ndarray, " bins"] | None
    parameters: dict[str, np.ndarray]
    _quantiles: Callable[[Float[Array, " levels"]], Array]

    @classmethod
    def of(cls, agent: Agent, z: PyTree, mean: np.ndarray, std: np.ndarray, quantiles: Callable[..., Array]) -> Self:
        """What a user reads of the distributions `z`, whose axes are [members, actions], a batch before them."""
        members, bins = mean.ndim - 1, getattr(agent.family, "centres", None)
        arrays = {name: np.asarray(value) for name, value in z._asdict().items()}
        return cls(
            mean,
            std,
            None if bins is None else np.exp(arrays["log_probabilities"]).mean(axis=members),
            bins,
            arrays if agent.members else {name: array.squeeze(members) for name, array in arrays.items()},
            lambda levels: quantiles(z, levels),
        )

    @property
    def greedy(self) -> int | Int[np.ndarray, " batch"]:
        """The action with the highest mean, counted from 0."""
        best = self.mean.argmax(axis=-1)
        return int(best) if best.ndim == 0 else best

    def quantiles(self, levels: Sequence[float] = LEVELS) -> np.ndarray:
        """The returns below which these shares of each distribution lie, [actions, levels] after a batch.

        Args:
            levels: the shares, each above 0 and below 1.

        Raises:
            InputError: a level is not such a share.
        """
        asked = np.asarray(levels, np.float32)
        if asked.ndim != 1 or not ((asked > 0) & (asked < 1)).all():
            raise InputError(f"levels is {levels}: give a list of numbers between 0 and 1, for example [0.05, 0.95].")
        return np.asarray(self._quantiles(jnp.asarray(asked)))

    def __repr__(self) -> str:
        if self.mean.ndim > 1:
            return f"ActionReturns of {len(self.mean)} observations and {self.mean.shape[1]} actions"
        rows = np.column_stack([self.mean, self.std, self.quantiles([0.05, 0.5, 0.95])])
        lines = [f"{action:6}{''.join(f'{number:10.4g}' for number in row)}" for action, row in enumerate(rows)]
        return "\n".join(["action" + "".join(f"{name:>10}" for name in ("mean", "std", "5%", "50%", "95%")), *lines])


def quantiles(family: ReturnDistribution[Any], z: PyTree, levels: Float[Array, " levels"]) -> Array:
    """Quantiles [actions, levels] of the mixtures over members of `z` [members, actions], by bisection."""

    def quantile(z: PyTree, level: Float[Array, ""]) -> Float[Array, ""]:
        def halved(_: Any, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket
            middle = 0.5 * (low + high)
            enough = jnp.mean(jax.vmap(family.cdf, in_axes=(0, None))(z, middle)) >= level
            return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

        mean, std = jax.vmap(family.mean)(z), jax.vmap(family.std)(z)
        centre = jnp.mean(mean)
        # A family may print a variance for its standard deviation (`Categorical.printed_std`): the root covers both.
        wide = jnp.max(jnp.maximum(std, jnp.sqrt(std))) + jnp.max(jnp.abs(mean - centre))
        reach = 1.01 * wide * jnp.sqrt(jnp.maximum(level, 1.0 - level) / jnp.minimum(level, 1.0 - level))  # Cantelli
        return jax.lax.fori_loop(0, HALVINGS, halved, (centre - reach, centre + reach))[1]

    return jax.vmap(jax.vmap(quantile, in_axes=(None, 0)), in_axes=(1, None))(z, levels)
