"""Results of episodes that were played with learned networks, without further learning."""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from uppertail.analysis.statistics import mean_interval


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The episodes of all seeds.

    Args:
        seeds: the seeds of the run.
        returns: undiscounted return of each episode.
        lengths: environment steps of each episode.
        success_return: return from which an episode counts as a success; infinite where success is not defined.
    """

    seeds: list[int]
    returns: Float[np.ndarray, "seeds episodes"]
    lengths: Int[np.ndarray, "seeds episodes"]
    success_return: float

    @property
    def mean_returns(self) -> list[float]:
        """Mean return of each seed."""
        return self.returns.mean(axis=1, dtype=np.float64).tolist()

    @property
    def mean_lengths(self) -> list[float]:
        """Mean length of each seed."""
        return self.lengths.mean(axis=1, dtype=np.float64).tolist()

    @property
    def success_rates(self) -> list[float] | None:
        """Share of successes of each seed; None where success is not defined."""
        if not math.isfinite(self.success_return):
            return None
        return (self.returns >= self.success_return).mean(axis=1).tolist()

    @property
    def interval(self) -> list[float]:
        """Mean return over seeds, and the lower and upper end of its 95% bootstrap interval."""
        return mean_interval(self.mean_returns)

    def document(self) -> dict[str, Any]:
        """The numbers, for a JSON file."""
        mean, low, high = self.interval
        rates = self.success_rates
        return {
            "episodes": self.returns.shape[1],
            "mean_return": mean,
            "interval": [low, high],
            "mean_length": float(np.mean(self.mean_lengths)),
            "success_return": self.success_return if rates else None,
            "success_rate": float(np.mean(rates)) if rates else None,
            "seeds": [
                {
                    "seed": seed,
                    "mean_return": self.mean_returns[row],
                    "mean_length": self.mean_lengths[row],
                    "success_rate": rates[row] if rates else None,
                    "returns": self.returns[row].tolist(),
                    "lengths": self.lengths[row].tolist(),
                }
                for row, seed in enumerate(self.seeds)
            ],
        }
