"""The scale of a family: how much return one unit of the network's output stands for."""

import math

from uppertail.errors import InputError
from uppertail.types import ReturnRange


def range_of(returns: ReturnRange) -> float:
    """How far apart the highest and the lowest return lie, or 1 where they are the same; in units of return."""
    return (returns.high - returns.low) or 1.0


def require_scale(scale: float | None) -> None:
    """Checks that a scale can be multiplied with.

    Raises:
        InputError: the scale is not a finite number above 0.
    """
    if scale is not None and not 0 < scale < math.inf:
        raise InputError(
            f"scale is {scale}, but it must be finite and above 0: leave it out for the range of the returns."
        )
