"""A return distribution of finitely many atoms, with a bound on its own error."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

Points = Float[np.ndarray, " points"]
ROUNDING = 1e-12  # atoms closer than this share of the largest are one return, summed in another order


@dataclasses.dataclass(frozen=True, eq=False)
class ExactReturn:
    """The distribution of a return: increasing atoms with their probabilities, and how far it can be from the truth.

    `error` bounds the Wasserstein-1 distance to the true distribution; 0 where it was enumerated, up to rounding.
    """

    atoms: Float[np.ndarray, " atoms"]
    probabilities: Float[np.ndarray, " atoms"]
    error: float = 0.0

    @property
    def mean(self) -> float:
        """The expected return, the Q-value."""
        return float(self.probabilities @ self.atoms)

    @property
    def std(self) -> float:
        """The standard deviation of the return."""
        return float(np.sqrt(self.probabilities @ (self.atoms - self.mean) ** 2))

    def wasserstein(self, values: Points, weights: Points | None = None) -> float:
        """Wasserstein-1 distance, the integral of |F - G|, to weighted atoms, or to samples where weights is None."""
        import scipy.stats  # imported late, as in `analysis.statistics`

        return float(scipy.stats.wasserstein_distance(self.atoms, values, self.probabilities, weights))

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


def merge(atoms: Points, probabilities: Points, error: float = 0.0) -> ExactReturn:
    """The distribution of weighted atoms in any order, equal ones added up and impossible ones left out."""
    possible = probabilities > 0
    atoms, probabilities = atoms[possible], probabilities[possible]
    order = np.argsort(atoms, kind="stable")
    atoms, probabilities = atoms[order], probabilities[order]
    new = np.diff(atoms, prepend=-np.inf) > ROUNDING * np.max(np.abs(atoms))
    return ExactReturn(atoms[new], np.add.reduceat(probabilities, np.flatnonzero(new)), error)


def split(
    position: Float[np.ndarray, "*points"], size: int
) -> tuple[Int[np.ndarray, "*points"], Float[np.ndarray, "*points"]]:
    """The mean-preserving projection: positions on 0, 1, ..., size - 1 to the neighbor below and the share above.

    It is that of Categorical (appendix). An atom on a grid point, up to rounding, is not split.
    """
    nearest = np.round(position)
    position = np.clip(np.where(np.abs(position - nearest) < 1e-9, nearest, position), 0.0, size - 1)
    index = np.minimum(position.astype(np.int64), size - 2)
    return index, position - index
