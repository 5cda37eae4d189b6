"""The result of the exact twin."""

import dataclasses
from typing import Any

import numpy as np

from uppertail.records import Episodes, median_episode
from uppertail.training.process.hardware import hardware


@dataclasses.dataclass(frozen=True)
class TwinResult:
    """The episodes of the twin, and its settings.

    Args:
        environment: class name and settings of the environment.
        distribution: class name and settings of the return distribution, as fitted to the environment.
        policy: class name and settings of the exploration policy.
        discount: discount per step.
        seeds: the seeds.
        success_return: return from which an episode counts as a success.
        floor_episodes: episode in which an agent of perfect memory first succeeds, on average; None where not known.
        episodes: the episodes of each seed.
        seconds: time of the whole run, compilation included.
    """

    environment: dict[str, Any]
    distribution: dict[str, Any]
    policy: dict[str, Any]
    discount: float
    seeds: list[int]
    success_return: float
    floor_episodes: float | None
    episodes: list[Episodes]
    seconds: float

    @property
    def first_success_episode(self) -> list[int | None]:
        """For each seed, the first episode that succeeds; None where there is none."""
        return [seed.first_success(self.success_return) for seed in self.episodes]

    @property
    def median(self) -> float | None:
        """Median over seeds of the first success; None where it is never."""
        return median_episode(self.first_success_episode)

    @property
    def median_over_floor(self) -> float | None:
        """The median as a multiple of the floor; None where there is no floor, or no median."""
        return None if self.median is None or self.floor_episodes is None else self.median / self.floor_episodes

    @property
    def success_rate_after(self) -> list[float | None]:
        """For each seed, the share of the episodes after its first success that succeed; None where there are none."""
        pairs = zip(self.episodes, self.first_success_episode, strict=True)
        later = [seed.returns[first:] if first else seed.returns[:0] for seed, first in pairs]
        return [float(np.mean(each >= self.success_return)) if each.size else None for each in later]

    def document(self) -> dict[str, Any]:
        """All of it except the episodes' returns, for JSON."""
        return {
            "env": self.environment,
            "distribution": self.distribution,
            "policy": self.policy,
            "discount": self.discount,
            "seeds": self.seeds,
            "episodes": [seed.returns.size for seed in self.episodes],
            "first_success_episode": self.first_success_episode,
            "median_first_success": self.median,
            "floor_episodes": self.floor_episodes,
            "median_over_floor": self.median_over_floor,
            "success_rate_after": self.success_rate_after,
            "seconds": round(self.seconds, 2),
            "hardware": hardware(),
        }
