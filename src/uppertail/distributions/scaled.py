"""Families whose parameters are numbers times a scale: how much return one unit of a network's output stands for."""

import dataclasses
import math
from typing import Any, Self

from jaxtyping import Array, Float

from uppertail.distributions.base import Params, ReturnDistribution
from uppertail.errors import InputError
from uppertail.types import ReturnRange


class Scaled(ReturnDistribution[Params]):
    """A family with a setting `scale`; None: the range of the environment's returns, which `fit` fills in."""

    scale: float | None

    @property
    def unit(self) -> Float[Array, ""] | float:
        """Returns per unit of output: the scale, or 1 as long as it is open."""
        return 1.0 if self.scale is None else self.scale

    def fit(self, returns: ReturnRange) -> Self:
        if self.scale is not None:
            return self
        family: Any = self  # a dataclass, as every family is
        return dataclasses.replace(family, scale=range_of(returns))

    def require_scale(self) -> None:
        """Checks that the scale can be multiplied with.

        Raises:
            InputError: it is not a finite number above 0.
        """
        if self.scale is not None and not 0 < self.scale < math.inf:
            raise InputError(
                f"scale is {self.scale}, but it must be finite and above 0: leave it out for the range of the returns."
            )


def range_of(returns: ReturnRange) -> float:
    """How far apart the highest and the lowest return lie, or 1 where they are the same; in units of return."""
    return (returns.high - returns.low) or 1.0
