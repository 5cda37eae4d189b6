"""What the past tells beside the last observation: of rewards, and of what moves numbers."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from uppertail.defaults.regression import LEAST_FREE, MOST_JUDGED, ROUNDING, standardized
from uppertail.environments import Steps

TOLD, SAME = 0.5, 0.05  # share of rewards that the past must tell; shares that are as good
CLEAR, SHUFFLES, LONGEST_STACK = 5.0, 100, 4  # standard deviations beyond shuffled rewards; observations
UNSEEN, NEARLY = 0.1, 0.9  # share of a change that the last step hides; share of it that the step before must tell
MOST_INPUTS = 300  # of a regression with squares and products; of more, it has none, or is not asked


class Told(NamedTuple):
    """What the past tells of rewards beside the last observation and the action."""

    stack: int | Literal["first"]  # which part of the past: so many observations, or the first of the episode
    share: float  # of what varies in rewards of equal observations and actions


def told_by_past(steps: Steps) -> Told | None:
    """The part of the past that tells most of the rewards of equal observations and actions; None: none tells enough.

    Each pair of an observation and an action counts once for each episode, where it came last. The share that a part of
    the past tells is that of the squared deviations of rewards from the mean of their pair, less what it would be if
    the rewards of a pair were shuffled (a permutation test), so that a past that never repeats tells nothing.
    """
    rows = [*zip((each.tobytes() for each in np.asarray(steps.observation)), steps.action.tolist(), strict=True)]
    begins = steps.begins
    begin = begins[np.searchsorted(begins, np.arange(len(rows)), side="right") - 1]
    kept = np.array([*{each: number for number, each in enumerate(zip(begin, rows, strict=True))}.values()])
    pair, reward = _numbered(rows[number] for number in kept), np.asarray(steps.reward, float)[kept]
    episode = np.searchsorted(begins, begin[kept])
    left = reward - (np.bincount(pair, reward) / np.bincount(pair))[pair]
    if not np.any(np.abs(left) > ROUNDING * np.abs(reward).max()):
        return None
    told = [Told("first", _told(left, pair, episode, (rows[begin[number]][0] for number in kept)))]
    for stack in range(2, LONGEST_STACK + 1):
        past = (tuple(rows[max(begin[number], number - stack + 1) : number]) for number in kept)
        told.append(Told(stack, _told(left, pair, episode, past)))
    best = max(each.share for each in told)
    return next(each for each in told if each.share >= best - SAME) if best >= TOLD else None


def told_by_step_before(steps: Steps) -> float:
    """The largest share of a number's change that the last step hides and the step before tells; 0: there is none.

    Regression on an observation, its squares and products, for each action, leaves something of a change. If that is at
    least `UNSEEN` of its variance, and the step before tells at least `NEARLY` of it, what moves the number is not
    shown, as a speed is not where only places are. Where all is shown, the step before makes up for what regression
    misses, but not for nearly all of it. Where a wall stops what moves, it does: so cosines of random sums of the
    numbers, which take many a shape, must not tell it either.
    """
    numbers, change = standardized(steps, ())
    goes_on, width = np.setdiff1d(np.arange(len(numbers)), steps.begins), numbers.shape[1]
    if not 0 < width <= MOST_JUDGED or not goes_on.size:
        return 0.0
    goals = change[goes_on] - change[goes_on].mean(axis=0)
    goals = goals[:, np.abs(goals).max(axis=0) > ROUNDING]
    taken = np.unique(steps.action)
    if len(taken) * (width + 1) > MOST_INPUTS:
        return 0.0
    actions = (np.asarray(steps.action)[:, None] == taken).astype(np.float64)
    products = np.hstack([numbers[:, [each]] * numbers[:, each:] for each in range(width)])
    of_all, of_each = [products], numbers
    if len(taken) * width * (width + 3) // 2 <= MOST_INPUTS:
        of_all, of_each = [], np.hstack([numbers, products])
    known = np.hstack([actions, *of_all, *(actions[:, [each]] * of_each for each in range(len(taken)))])[goes_on]
    before = np.hstack([numbers[goes_on - 1], actions[goes_on - 1]])
    if not goals.shape[1] or len(known) - known.shape[1] - before.shape[1] < LEAST_FREE:
        return 0.0
    if share := _hidden(goals, known, before):
        random, count = np.random.default_rng(0), MOST_INPUTS // len(taken)
        waves = np.cos(numbers @ random.normal(size=(width, count)) + random.uniform(0, 2 * np.pi, count))
        bent = [actions[goes_on][:, [each]] * waves[goes_on] for each in range(len(taken))]
        return min(share, _hidden(goals, np.hstack([known, *bent]), before))
    return 0.0


def _hidden(
    goals: Float[np.ndarray, "steps goals"],
    known: Float[np.ndarray, "steps inputs"],
    before: Float[np.ndarray, "steps numbers"],
) -> float:
    """The largest share of a goal that regression on what is known leaves, and the step before tells; 0: none."""
    left, least = (
        np.sum((goals - each @ np.linalg.lstsq(each, goals)[0]) ** 2, axis=0) / max(len(goals) - each.shape[1], 1)
        for each in (known, np.hstack([known, before]))
    )
    hidden = left / np.mean(goals**2, axis=0)
    return float(np.max(hidden * (hidden >= UNSEEN) * (least <= (1 - NEARLY) * left)))


def _told(
    left: Float[np.ndarray, " rows"],
    pair: Int[np.ndarray, " rows"],
    episode: Int[np.ndarray, " rows"],
    past: Iterable[Any],
) -> float:
    """The share of the squares of what is left that the past tells; 0 if chance may have told as much.

    Each shuffle has one order of episodes for all pairs, since chance may pay a whole episode more than others.
    """
    group, random, by_chance = _numbered(zip(pair.tolist(), past, strict=True)), np.random.default_rng(0), list[float]()
    order, shuffled = np.argsort(pair, kind="stable"), np.empty_like(left)

    def told(left: Float[np.ndarray, " rows"]) -> float:
        return float(np.sum(np.bincount(group, left) ** 2 / np.bincount(group)))

    for _ in range(SHUFFLES):
        shuffled[order] = left[np.lexsort((random.random(len(left))[episode], pair))]
        by_chance.append(told(shuffled))
    more = told(left) - np.mean(by_chance)
    return float(more / (np.sum(left**2) - np.mean(by_chance))) if more > CLEAR * np.std(by_chance) else 0.0


def _numbered(values: Iterable[Any]) -> Int[np.ndarray, " values"]:
    """Numbers from 0 in place of values: equal ones for equal values."""
    numbers = dict[Any, int]()
    return np.array([numbers.setdefault(value, len(numbers)) for value in values])
