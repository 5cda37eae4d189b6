"""Linear regression on numbers of observations, and whether what it leaves depends on something else."""

import itertools

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from uppertail.environments import Steps

SIGNIFICANT = 3.0  # standard errors, or standard deviations above the mean of a chi-squared sum
LEAST_FREE = 50  # transitions of each action that its regression leaves free
MOST_JUDGED = 32  # numbers; of more none is judged, since time grows with the square
FEW, PIECES = 10, 30  # episodes, of which few stand for all; so many pieces take their place
ROUNDING = 1e-6  # share of the largest value below which what a regression leaves is rounding


def left_of(goals: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """What linear regression on the inputs leaves of goals; 0 where it is rounding."""
    left = goals - inputs @ np.linalg.lstsq(inputs, goals)[0]
    return np.where(np.abs(left).max(axis=0) > ROUNDING * np.abs(goals).max(axis=0), left, 0.0)


def effects(
    causes: Float[np.ndarray, "steps causes"],
    contexts: Float[np.ndarray, "steps contexts"],
    left: Float[np.ndarray, "steps goals"],
    begins: Int[np.ndarray, " episodes"],
    clear: float = SIGNIFICANT,
) -> Bool[np.ndarray, " goals"]:
    """Whether any cause, in any context, has an effect on what is left of each goal.

    It has one if the sum of cause x context x goal is beyond `clear` standard errors. Steps of an episode are no
    independent draws, so the error is taken from the sums of whole episodes.
    """
    found = np.zeros(left.shape[1], bool)
    for cause, context in itertools.product(causes.T, contexts.T):
        sums = np.add.reduceat((cause * context)[:, None] * left, begins)
        found |= sums.sum(axis=0) ** 2 > clear**2 * (sums**2).sum(axis=0)
    return found


def pieces(steps: Steps) -> Int[np.ndarray, " pieces"]:
    """Where episodes begin, and, of few long episodes, where equal parts of all steps do: independent draws."""
    begins, count = steps.begins, len(steps.reward)
    if len(begins) >= FEW:
        return begins
    return np.union1d(begins, np.arange(0, count, max(count // PIECES, 1)))


def standardized(steps: Steps, left_out: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of mean 0 and variance 1 in place of the observations that vary, and their changes."""
    here, after = (without(each, left_out).astype(np.float64) for each in (steps.observation, steps.next_observation))
    spread = here.std(axis=0)
    varies = spread > 0
    return (here - here.mean(axis=0))[:, varies] / spread[varies], (after - here)[:, varies] / spread[varies]


def without(observations: Array | np.ndarray, left_out: tuple[int, ...]) -> np.ndarray:
    """Observations without the numbers that are left out; a hash is no numbers."""
    whole = np.asarray(observations)
    return np.delete(whole, left_out, axis=1) if left_out and whole.ndim > 1 else whole
