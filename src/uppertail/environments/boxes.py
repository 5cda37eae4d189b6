"""Boxes of numbers with bounds, as environments of other packages declare them."""

import numpy as np
from jaxtyping import Float

from uppertail.encodings import Numbers, Pixels

UNBOUNDED = 1e10
"""A declared bound of this size or more counts as none."""

IMAGE_SIDE = 8
"""An array of numbers with two or three axes is an image if it has as many rows and columns."""


def image_of(low: Float[np.ndarray, "..."], high: Float[np.ndarray, "..."]) -> Pixels | None:
    """A bounded array as an image: two axes, or three of which the last or the first is that of channels.

    Args:
        low: the lower bound of each number; it has the array's shape.
        high: the upper bound of each number.
    """
    if low.ndim not in (2, 3) or not np.isfinite(low).all() or not np.isfinite(high).all():
        return None
    shape = low.shape if low.ndim == 3 else (*low.shape, 1)
    first = low.ndim == 3 and shape[0] < min(shape[1:])
    channels, height, width = shape if first else (shape[2], shape[0], shape[1])
    if min(height, width) < IMAGE_SIDE:
        return None
    peak = float(max(np.abs(low).max(), np.abs(high).max())) or 1.0
    return Pixels(int(height), int(width), int(channels), first, peak)


def numbers_of(low: Float[np.ndarray, " numbers"], high: Float[np.ndarray, " numbers"], continuous: bool) -> Numbers:
    """A vector, with those of its declared bounds that are bounds."""
    bounded = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED)
    low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    return Numbers(tuple(low.tolist()), tuple(high.tolist()), continuous)
