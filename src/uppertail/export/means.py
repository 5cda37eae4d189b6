"""The mean returns of a family of distributions, as array operations."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions import Categorical, GaussianMixture, Quantile
from uppertail.errors import InputError
from uppertail.export.observations import NEEDED


def expected(family: Any, outputs: Any) -> Any:
    """The mean return [actions, n, 1]: linear in the outputs, or the mean of weighted points."""
    mean = jax.vmap(lambda each: family.mean(family.from_outputs(each)))
    zero = mean(jnp.zeros((1, family.num_outputs)))
    slopes = (mean(jnp.eye(family.num_outputs)) - zero)[:, None]
    draws = np.random.default_rng(0).normal(size=(100, family.num_outputs))
    if np.allclose(mean(draws), (draws @ slopes)[:, 0] + zero, rtol=1e-4, atol=1e-4 * float(np.abs(slopes).max())):
        return outputs @ slopes + zero
    scores, points, count = points_of(family, outputs)
    weights = np.exp(scores - scores.highest())
    return (weights * points).total(count) / weights.total(count)


@functools.singledispatch
def lowest(family: Any, critics: list[Any]) -> Any:
    """The mean return [actions, n, 1] of the lowest of several critics, by their outputs; by default the lowest."""

    def of_two(*outputs: Any) -> Any:
        both = [*map(family.from_outputs, outputs)]
        return family.mean(family.lower(*both)) - jnp.minimum(*map(family.mean, both))

    draws = np.random.default_rng(0).normal(size=(2, 100, family.num_outputs))
    if not np.allclose(jax.vmap(of_two)(*draws), 0.0, atol=1e-4 * float(family.unit)):
        raise InputError(f"The lower of two {type(family).__name__} returns cannot be exported: {NEEDED}.")
    return functools.reduce(np.minimum, (expected(family, outputs) for outputs in critics))


@lowest.register
def _(family: Quantile, critics: list[Any]) -> Any:
    lower = functools.reduce(np.minimum, ((outputs + family.begin).ascending(family.quantiles) for outputs in critics))
    return lower.total(family.quantiles) * (family.unit / family.quantiles)


@functools.singledispatch
def points_of(family: Any, _outputs: Any) -> tuple[Any, Any, int]:
    """The scores of a family's bins or components, their returns, and how many there are."""
    raise InputError(
        f"The mean of {type(family).__name__} is not linear in a network's outputs, so it has no export: "
        "use ut.load(DIR).act."
    )


@points_of.register
def _(family: Categorical, outputs: Any) -> tuple[Any, Any, int]:
    return outputs, family.centers, family.bins


@points_of.register
def _(family: GaussianMixture, outputs: Any) -> tuple[Any, Any, int]:
    count, pick = family.components, np.eye(family.num_outputs)
    means = outputs @ pick[:, count : 2 * count] + np.linspace(-family.spread, family.spread, count)
    return outputs @ pick[:, :count], means * family.unit, count
