"""A return distribution of finitely many atoms, with a bound on its own error."""

import dataclasses

import numpy as np
import scipy.stats
from jaxtyping import Float, Int

ROUNDING = 1e-12  # atoms closer than this share of the largest are one return, summed in another order


@dataclasses.dataclass(frozen=True, eq=False)
class ExactReturn:
    """The distribution of a return: increasing atoms with their probabilities, and how far it can be from the truth.

    `error` bounds the Wasserstein-1 distance to the true distribution; 0 where it was enumerated, up to rounding.
    """

    atoms: Float[np.ndarray, " atoms"]
    probabilities: Float[np.ndarray, " atoms"]
    error: float = 0.0

    def __post_init__(self) -> None:
        for name in ("atoms", "probabilities"):
            fixed = np.array(getattr(self, name))
            fixed.setflags(write=False)
            object.__setattr__(self, name, fixed)

    @property
    def mean(self) -> float:
        """The expected return, the Q-value."""
        return float(self.probabilities @ self.atoms)

    @property
    def std(self) -> float:
        """The standard deviation of the return."""
        return float(np.sqrt(self.probabilities @ (self.atoms - self.mean) ** 2))

    def cdf(self, returns: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        """P(Z <= z) at each of the returns."""
        below = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        return np.minimum(below[np.searchsorted(self.atoms, returns, side="right")], 1.0)

    def quantile(self, levels: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        """The smallest atom z with P(Z <= z) >= level, for each level in [0, 1]."""
        index = np.searchsorted(np.cumsum(self.probabilities), np.asarray(levels) - ROUNDING, side="left")
        return self.atoms[np.minimum(index, self.atoms.size - 1)]

    def wasserstein(
        self, values: Float[np.ndarray, " values"], weights: Float[np.ndarray, " values"] | None = None
    ) -> float:
        """Wasserstein-1 distance, the integral of |F - G|, to weighted atoms, or to samples where weights is None."""
        return float(scipy.stats.wasserstein_distance(self.atoms, values, self.probabilities, weights))

    def cramer(
        self, values: Float[np.ndarray, " values"], weights: Float[np.ndarray, " values"] | None = None
    ) -> float:
        """Cramér distance, the square root of the integral of (F - G)^2, to weighted atoms or to samples."""
        return float(scipy.stats.energy_distance(self.atoms, values, self.probabilities, weights) / np.sqrt(2.0))

    def coarsened(self, spacing: float) -> "ExactReturn":
        """The distribution on a uniform grid of about this spacing, with the same mean, where that takes fewer atoms.

        Each atom is split between its two neighbours on the grid, see `split`. One that lies a share f of the spacing
        d above a neighbour moves by 2 f (1 - f) d <= d / 2 on average, and this is what the error grows by.
        """
        low, high = self.atoms[0], self.atoms[-1]
        if not spacing > 0 or (high - low) / spacing + 2 >= self.atoms.size:
            return self
        grid = np.linspace(low, high, int(np.ceil((high - low) / spacing)) + 1)
        index, share = split((self.atoms - low) / (grid[1] - grid[0]), grid.size)
        probabilities = np.bincount(index, self.probabilities * (1 - share), grid.size)
        probabilities += np.bincount(index + 1, self.probabilities * share, grid.size)
        return merge(grid, probabilities, self.error + float(grid[1] - grid[0]) / 2)


NOTHING = ExactReturn(np.zeros(1), np.ones(1))  # the return of an episode that is over


def merge(
    atoms: Float[np.ndarray, " parts"], probabilities: Float[np.ndarray, " parts"], error: float = 0.0
) -> ExactReturn:
    """The distribution of weighted atoms in any order, equal ones added up and impossible ones left out."""
    possible = probabilities > 0
    atoms, probabilities = atoms[possible], probabilities[possible]
    order = np.argsort(atoms, kind="stable")
    atoms, probabilities = atoms[order], probabilities[order]
    new = np.diff(atoms, prepend=-np.inf) > ROUNDING * np.max(np.abs(atoms))
    return ExactReturn(atoms[new], np.add.reduceat(probabilities, np.flatnonzero(new)), error)


def split(
    position: Float[np.ndarray, " points"], size: int
) -> tuple[Int[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """The mean-preserving projection: positions on 0, 1, ..., size - 1 to the neighbour below and the share above.

    The same triangular kernel as the Categorical projection of the paper's appendix. An atom on a grid point, up to
    rounding, is not split.
    """
    nearest = np.round(position)
    position = np.clip(np.where(np.abs(position - nearest) < 1e-9, nearest, position), 0.0, size - 1)
    index = np.minimum(position.astype(np.int64), size - 2)
    return index, position - index
