"""The moment at which a page opens."""

import numpy as np

from uppertail.reports.seeds import Seed


def opening(seed: Seed, states: list[int]) -> int:
    """The moment at which actions in these states differ most: in width, times in width and mean.

    A narrow distribution then lies beside a wide one, or apart from it. Where widths never differ, it is the last one.
    """
    places = seed.places(states)
    at = (np.arange(len(places))[:, None], np.maximum(places, 0))
    usable = (places >= 0)[..., None] & np.isfinite(seed.mean[at]) & np.isfinite(seed.std[at])
    mean, std = (
        np.maximum(0, high - low)
        for each in (seed.mean[at], seed.std[at])
        for high in [each.max(axis=2, where=usable, initial=-np.inf)]
        for low in [each.min(axis=2, where=usable, initial=np.inf)]
    )
    apart = (std * np.hypot(mean, std)).sum(axis=1)
    return int(apart.argmax()) if apart.any() else len(apart) - 1
