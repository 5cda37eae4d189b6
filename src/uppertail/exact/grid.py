"""Distributional dynamic programming on a grid, for states that the policy can come back to.

Every state has its own uniform grid over the returns that are possible from it. It starts with all mass at the mean of
its return, which a linear system gives, and is swept K times: V(s) <- projection of the mixture of R + discount V(S').

**The error.** The projection splits an atom x between its two neighbours on the grid so that the mean is kept. It is
the same as adding noise with mean 0 given all that came before, and variance (x - below)(above - x) <= d^2 / 4, where
d is the state's spacing. To start at the mean replaces the return left after K steps, Z(S_K), by its mean, which is a
deviation with mean 0 given the path, too. Take both returns on the same path: their difference is a sum of such terms,
discounted, any two of which are uncorrelated. So its second moment D is the sum of theirs:

    D_0 = variance + d^2 / 4,    D_{k+1} = d^2 / 4 + discount^2 P D_k,    W1 <= E|difference| <= sqrt(D_K)

with P the probabilities of going on. With one spacing d everywhere this is at most d / (2 sqrt(1 - discount^2)) plus
what discount^K leaves of the standard deviation, and it holds with discount 1 where episodes end.

**Returns without bound.** With discount 1 a loop that pays has no highest return. There the grid ends 20 standard
deviations from the mean; what a sweep moves back to the end is measured and added: C_{k+1} = moved + discount P C_k.
"""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from uppertail.exact.discrete import NOTHING, ExactReturn, Points, merge, split
from uppertail.exact.markov import MarkovReward

Open = Int[np.ndarray, " open"]  # the states that are not enumerated
Edges = Float[np.ndarray, "edges 3"]  # from, to, reward
TARGET = 0.9  # share of the tolerance that the sweeps may use; the rest is for the last projection, in `exact_returns`
TOLERANCE = 1e-3
TAIL = 20.0
MAX_ENTRIES, MAX_SWEEPS = 8_000_000, 100_000  # of the backup's sparse matrix
MAX_WORK = 10_000_000_000  # entries times sweeps: about a minute


@dataclasses.dataclass(frozen=True, eq=False)
class _Grids:
    """One uniform grid per state, all of the same size."""

    low: Float[np.ndarray, " states"]
    spacing: Float[np.ndarray, " states"]
    size: int

    @property
    def points(self) -> Float[np.ndarray, "states size"]:
        return self.low[:, None] + self.spacing[:, None] * np.arange(self.size)

    def project(self, state: Any, returns: Any) -> tuple[Any, Any, Any]:
        """Index of the neighbour below among all grids' points, share of the one above, distance from the grid."""
        low, spacing = self.low[state], self.spacing[state]
        within = np.clip(returns, low, low + spacing * (self.size - 1))
        index, share = split((within - low) / np.where(spacing > 0, spacing, 1.0), self.size)
        return state * self.size + index, share, np.abs(returns - within)

    def scatter(self, state: Any, returns: Points, weights: Points) -> tuple[Any, Float[np.ndarray, " states"]]:
        """The mass that weighted returns of states put on all grids' points, and how far each state's is moved."""
        index, share, distance = self.project(state, returns)
        states, total = len(self.low), len(self.low) * self.size
        mass = np.bincount(index, weights * (1 - share), total) + np.bincount(index + 1, weights * share, total)
        return mass, np.bincount(state, weights * distance, states)


def grid_returns(
    process: MarkovReward, known: dict[int, ExactReturn], tolerance: float | None = None
) -> dict[int, ExactReturn]:
    """The returns of all states that are not yet known, each with its error.

    Args:
        process: the MDP under a policy that has a return.
        known: states whose return was enumerated.
        tolerance: largest Wasserstein-1 error wanted; None: 0.001 of the range of returns.
    """
    open_states = np.array([s for s in range(len(process.policy)) if s not in known])
    mean, variance = (moment[open_states] for moment in process.moments())
    tails = TAIL * np.sqrt(variance)
    low, high = (bound[open_states] for bound in process.bounds())
    low, high = np.where(np.isinf(low), mean - tails, low), np.where(np.isinf(high), mean + tails, high)
    scale = max(np.max(high) - np.min(low), 1e-6 * np.max(np.abs(mean)), 1e-300)
    transitions = process.transitions[np.ix_(open_states, open_states)]
    second = process.discount**2 * transitions  # what a sweep does to second moments

    aim = (TARGET * (tolerance or TOLERANCE * scale)) ** 2 / 2  # one half for projections, one for the start
    left, sweeps = variance, 0
    while np.max(left) > aim and sweeps < MAX_SWEEPS:
        left, sweeps = second @ left, sweeps + 1
    noise = np.linalg.solve(np.eye(len(second)) - second, (high - low) ** 2 / 4)  # of a grid of two points
    edges, shares = _edges(process, open_states)
    affordable = min(MAX_ENTRIES, MAX_WORK / max(sweeps, 1)) / (2 * len(edges))
    size = 1 + int(min(np.ceil(np.sqrt(np.max(noise) / aim)) + 1, max(affordable, 10)))

    grids = _Grids(low, (high - low) / (size - 1), size)
    backup, moved = _operator(process, grids, edges, shares)
    arrived, moved_known = _from_known(process, grids, open_states, known)
    probability, _ = grids.scatter(np.arange(len(mean)), mean, np.ones(len(mean)))  # all mass of each at its mean
    half_square = grids.spacing**2 / 4
    deviation, displaced = variance + half_square, np.zeros(len(open_states))
    for _ in range(sweeps):
        displaced = moved @ probability + moved_known + process.discount * (transitions @ displaced)
        deviation = half_square + second @ deviation
        probability = backup @ probability + arrived
    errors = np.sqrt(deviation) + displaced
    rows = probability.reshape(len(open_states), size)
    rows = rows / rows.sum(axis=1, keepdims=True)
    found = map(merge, grids.points, rows, errors.tolist())
    return dict(zip(open_states.tolist(), found, strict=True))


def _edges(process: MarkovReward, open_states: Open) -> tuple[Edges, Float[np.ndarray, " edges"]]:
    """Each way (from, to, reward) between open states, counted within them, and its probability."""
    place = np.full(len(process.policy), -1)
    place[open_states] = np.arange(open_states.size)
    states, actions, outcomes = np.nonzero((process.weight > 0) & process.goes_on)
    after = process.next_state[states, actions, outcomes]
    inside = (place[states] >= 0) & (place[after] >= 0)
    where = (states[inside], actions[inside], outcomes[inside])
    ways = np.stack([place[states[inside]], place[after[inside]], process.reward[where]], axis=1)
    edges, group = np.unique(ways, axis=0, return_inverse=True)
    return edges, np.bincount(group.ravel(), process.weight[where], len(edges))


def _operator(
    process: MarkovReward, grids: _Grids, edges: Edges, shares: Float[np.ndarray, " edges"]
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """The projected backup between open states, and how far each atom that leaves its grid is moved back."""
    start, end = edges[:, :1].astype(np.int64), edges[:, 1].astype(np.int64)
    index, share, distance = grids.project(start, edges[:, 2:] + process.discount * grids.points[end])
    column, weight = end[:, None] * grids.size + np.arange(grids.size), shares[:, None]
    states, total = len(grids.low), len(grids.low) * grids.size
    entries, rows = np.stack([weight * (1 - share), weight * share]), np.stack([index, index + 1])
    backup = entries.ravel(), (rows.ravel(), np.stack([column, column]).ravel())
    far = np.nonzero(distance)
    moved = (weight * distance)[far], (start[far[0], 0], column[far])
    return scipy.sparse.csr_array(backup, shape=(total, total)), scipy.sparse.csr_array(moved, shape=(states, total))


def _from_known(
    process: MarkovReward, grids: _Grids, open_states: Open, known: dict[int, ExactReturn]
) -> tuple[Points, Float[np.ndarray, " open"]]:
    """What each sweep receives from ends and from states already known, and how far it is moved."""
    places, returns, weights = [np.zeros(1, np.int64)], [grids.low[:1]], [np.zeros(1)]  # nothing, if there is no other
    for place, action, outcome in np.argwhere(process.weight[open_states] > 0).tolist():
        where = (open_states[place], action, outcome)
        value = known.get(int(process.next_state[where])) if process.goes_on[where] else NOTHING
        if value is not None:
            places.append(np.full(value.atoms.size, place))
            returns.append(process.reward[where] + process.discount * value.atoms)
            weights.append(process.weight[where] * value.probabilities)
    return grids.scatter(*map(np.concatenate, (places, returns, weights)))
