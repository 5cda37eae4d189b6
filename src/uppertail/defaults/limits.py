"""Which numbers show when time runs out, and whether a random policy was paid there."""

import numpy as np
from jaxtyping import Int

from uppertail.defaults.regression import without
from uppertail.environments import Steps

LEAST_CUT, BY_CHANCE = 5, 1e-3  # episodes that a time limit cut short; the chance of what is taken for a rule
EVEN = 1e-3  # share of a step by which a counter may be rounded
STANDS_STILL = 0.1  # share of the steps in which a rounded clock may show its end before time runs out


def clocks(steps: Steps, left_out: tuple[int, ...] = ()) -> Int[np.ndarray, " numbers"]:
    """The places of numbers that show when time runs out.

    Such a number has one value after each step in which it ran out. No other step has it, but a few that go before:
    a rounded clock stands still at the end.
    """
    late, over = np.asarray(steps.truncated), np.asarray(steps.terminated)
    here, after = np.asarray(steps.observation), np.asarray(steps.next_observation)
    if here.ndim != 2 or late.sum() < LEAST_CUT or late.all():
        return np.zeros(0, np.int64)
    at_end = after == after[late][0]
    leads_on = np.vstack([at_end[1:], np.zeros((1, here.shape[1]), bool)])  # the last step of all has no next one
    strays = at_end & ~(late | over)[:, None] & ~leads_on
    strays[-1] = False
    early = np.mean(at_end & ~late[:, None], axis=0)
    found = at_end[late].all(axis=0) & ~strays.any(axis=0) & (early <= STANDS_STILL)
    return np.setdiff1d(np.flatnonzero(found), left_out)


def counters(steps: Steps) -> Int[np.ndarray, " numbers"]:
    """The places of numbers that begin alike in each episode and change by the same in each action but its last."""
    here, after = (np.asarray(each, np.float64) for each in (steps.observation, steps.next_observation))
    change = np.delete(after - here, steps.ends, axis=0)  # an end may cut an action short
    if here.ndim != 2 or not len(change):
        return np.zeros(0, np.int64)
    is_even = np.ptp(change, axis=0) <= EVEN * np.abs(change[0])
    return np.flatnonzero(is_even & (change[0] != 0) & (np.ptp(here[steps.begins], axis=0) == 0))


def timers(steps: Steps, left_out: tuple[int, ...] = ()) -> Int[np.ndarray, " numbers"]:
    """The places of counters but for those that differ where time ran out, if it did."""
    late, counting = np.asarray(steps.truncated), np.setdiff1d(counters(steps), left_out)
    at_end = np.asarray(steps.next_observation)[late][:, counting] if len(counting) else np.zeros((0, 0))
    return counting[(at_end == at_end[:1]).all(axis=0)]


def only_at_the_limit(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether what is observed where time runs out, and comes again there, is observed nowhere else."""
    late = np.asarray(steps.truncated)
    seen = without(steps.observation, left_out), without(steps.next_observation, left_out)[late]
    here, shown = ({row.tobytes() for row in each} for each in seen)
    return int(late.sum()) >= max(LEAST_CUT, 2 * len(shown)) and here.isdisjoint(shown)


def paid_at_the_limit(steps: Steps) -> bool:
    """Whether steps in which time ran out were paid far beyond all others, by more than these differ.

    Less of the usual reward, in an action that the limit cut short, is no payment. Rewards that come as often anywhere
    would fall on these steps alone with a chance of at most `BY_CHANCE`.
    """
    late, reward = np.asarray(steps.truncated), np.asarray(steps.reward)
    if late.all():
        return False
    usual = reward[~late]
    width = np.ptp(usual)
    low, high = min(0.0, usual.min()) - width, max(0.0, usual.max()) + width
    paid = np.sum((reward[late] < low) | (reward[late] > high))
    return bool(late.mean() ** paid <= BY_CHANCE)
