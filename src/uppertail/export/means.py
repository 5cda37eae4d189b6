"""The mean returns of a family of distributions, as array operations."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions import Categorical, GaussianMixture
from uppertail.errors import InputError


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
def points_of(family: Any, _outputs: Any) -> tuple[Any, Any, int]:
    """The scores of a family's bins or components, their returns, and how many there are."""
    raise InputError(f"The mean of {type(family).__name__} is not linear in a network's outputs, so it has no export.")


@points_of.register
def _(family: Categorical, outputs: Any) -> tuple[Any, Any, int]:
    return outputs, family.centers, family.bins


@points_of.register
def _(family: GaussianMixture, outputs: Any) -> tuple[Any, Any, int]:
    count, pick = family.components, np.eye(family.num_outputs)
    means = outputs @ pick[:, count : 2 * count] + np.linspace(-family.spread, family.spread, count)
    return outputs @ pick[:, :count], means * family.unit, count
