"""How long an action lasts: until what it controls has moved, unless each step is a decision."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.defaults.regression import LEAST_FREE, MOST_JUDGED, SIGNIFICANT, effects, left_of, pieces, standardized
from uppertail.environments import Steps

UNDONE = 0.1  # of a change, at most, is left where it is undone, and in as few steps of a switch more may be left
OFTEN = 5  # times, at least, that an action followed another one
MOVED, LONGEST = 0.95, 4  # standard deviations by which an action may change what it controls; its longest, in steps
STOPPED = 0.3  # the same, at most, where what it controls stops at once: places between are then never reached
STAYS = 0.1  # share of its variance, at most, that the step before tells of a number that is drawn anew
CLEAR = 5.0  # standard errors of what such a number decides, and of what an action pays
FORESEEN = 200  # steps, at most, over which the effect of an action is followed
CONSTANT = 1e-9  # share of the largest variance below which numbers do not vary in a direction


class Pace(NamedTuple):
    """How many steps an action needs to make a difference."""

    usual: int  # to move what it controls far enough
    steps: int  # the same; 1 where another action undoes each move, and so many would pass places by


def pace(steps: Steps, left_out: tuple[int, ...] = ()) -> Pace:
    """How many steps move what actions control by about `MOVED` standard deviations, at most `LONGEST`.

    Where another action undoes each, and they would move it by more than `STOPPED`, it is one step.

    If steps change little, the actions of one state differ by less than the error of a fit, and values have to pass
    through many states. What no action changes, such as noise, clocks and constants of an episode, does not count: the
    numbers are whitened, so that their units and directions do not matter, and the next ones are regressed on them, for
    each action. What is left of the difference between actions gives V, the covariance of all effects within an episode
    (the Gramian of controllability); the root mean square change in each principal direction of V is weighted by its
    variance. The change in the last step of an episode does not count, since a crash is no difference between actions.
    1 if actions make no difference that can be seen.
    """
    numbers, change, action = _whitened(steps, left_out)
    inputs, actions = np.column_stack([np.ones(len(numbers)), numbers]), np.unique(action)
    count = len(actions) * inputs.shape[1]
    least = min((np.sum(action == each) for each in actions), default=0)
    if numbers.shape[1] == 0 or len(actions) < 2 or least - inputs.shape[1] < LEAST_FREE:
        return Pace(1, 1)
    weights = np.array([np.linalg.lstsq(inputs[action == each], change[action == each])[0] for each in actions])
    errors = np.concatenate(
        [change[action == a] - inputs[action == a] @ w for a, w in zip(actions, weights, strict=True)]
    )
    noise, axes = np.linalg.eigh(errors.T @ errors / (len(errors) - count))
    weights, change = weights @ axes, change @ axes  # errors are independent there: noise is a number of its own
    shares = np.array([np.mean(action == each) for each in actions])
    mean = np.tensordot(shares, weights, 1)
    effect = np.einsum("a,aij,aik->jk", shares, weights - mean, weights - mean)
    terms = count - inputs.shape[1]
    by_chance = np.maximum(noise, np.finfo(np.float32).eps ** 2) * terms / len(errors)
    is_clear = np.diag(effect) > by_chance * (1 + SIGNIFICANT * math.sqrt(2 / terms))
    effect = effect * np.outer(is_clear, is_clear) - np.diag(by_chance * is_clear)
    dynamics, total = np.eye(len(noise)) + (axes.T @ mean[1:]).T, np.zeros_like(effect)
    for _ in range(min(FORESEEN, len(numbers) // max(len(steps.ends), 1))):
        total, effect = total + effect, dynamics @ effect @ dynamics.T
    variance, directions = np.linalg.eigh(total)
    variance = np.clip(variance, 0.0, 1.0)  # no more than there is
    within = np.delete(change, steps.ends, axis=0)
    if not variance.any() or not len(within):
        return Pace(1, 1)
    moved = float(variance @ np.sqrt(np.mean((within @ directions) ** 2, axis=0)) / variance.sum())
    usual = max(1, round(MOVED / max(moved, MOVED / LONGEST)))
    return Pace(usual, 1 if usual * moved > STOPPED and has_step_back(steps, left_out) else usual)


def has_switch(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether an action that is taken twice in a row undoes what it did to a number, as a switch of a lamp does."""
    change, action, goes_on = _changes(steps, left_out)
    twice = goes_on & (action[:-1] == action[1:])
    for each in np.unique(action):
        first = np.flatnonzero(twice & (action[:-1] == each))
        moves = change[first] != 0
        undone = moves & (np.abs(change[first] + change[first + 1]) <= UNDONE * np.abs(change[first]))
        count = moves.sum(axis=0)
        if np.any((count >= LEAST_FREE) & (2 * count >= len(first)) & (undone.sum(axis=0) >= (1 - UNDONE) * count)):
            return True
    return False


def decides_anew(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether numbers that are drawn anew in each step decide what an action pays, ends, or changes.

    A number is drawn anew if regression on the step before tells at most `STAYS` of its variance. It decides if what
    linear regression leaves of a goal is correlated with the action times the number, its square, or its product with
    another number. Draws are independent, so each step is one.
    """
    numbers, change = standardized(steps, left_out)
    taken, count = np.unique(steps.action, return_counts=True)
    if len(taken) < 2 or count.min() < LEAST_FREE or not 0 < numbers.shape[1] <= MOST_JUDGED:
        return False
    actions = np.asarray(steps.action)[:, None] == taken
    inputs = np.hstack([actions, numbers])
    goes_on = np.setdiff1d(np.arange(len(numbers) - 1), steps.ends)
    if len(goes_on) - inputs.shape[1] < LEAST_FREE:
        return False
    following = numbers[goes_on + 1] - numbers[goes_on + 1].mean(axis=0)
    left = following - inputs[goes_on] @ np.linalg.lstsq(inputs[goes_on], following)[0]
    fresh = np.flatnonzero((left**2).sum(axis=0) >= (1 - STAYS) * (following**2).sum(axis=0))
    goals = np.column_stack([steps.reward, steps.terminated, np.delete(change, fresh, axis=1)]).astype(np.float64)
    left, acted = left_of(goals, inputs), actions - actions.mean(axis=0)

    def decides(place: int) -> bool:
        causes = np.hstack([numbers[:, [place]], numbers * numbers[:, [place]]])
        terms = ((causes - causes.mean(axis=0)) * each[:, None] for each in acted.T)
        return any(np.any((term.T @ left) ** 2 > CLEAR**2 * (term**2).T @ left**2) for term in terms)

    return any(map(decides, fresh.tolist()))


def turns(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether what an action pays more than others, or that it ends an episode, turns around before `LONGEST` steps.

    Where all are allowed, a random policy draws each action by itself, so the mean of (indicator of an action less its
    share) x reward is what the action pays, and the mean of the product with the same of a later step is above 0 where
    both are of one sign. It turns around if one of these means is clearly below 0. Linear regression on the numbers
    takes from the reward what no action changes. What is paid at an end does not count, since no step follows it.
    """
    numbers, _ = standardized(steps, left_out)
    actions = np.asarray(steps.action)[:, None] == np.unique(steps.action)
    inputs = np.column_stack([np.ones(len(numbers)), numbers])
    left = left_of(np.column_stack([steps.reward, steps.terminated]).astype(np.float64), inputs)
    left[:, 0] *= ~np.asarray(steps.terminated)
    pays = ((actions - actions.mean(axis=0))[:, :, None] * left[:, None]).reshape(len(left), -1)
    episode = np.searchsorted(steps.begins, np.arange(len(pays)), side="right")
    for later in range(1, LONGEST):
        both = (pays[later:] * pays[:-later])[episode[later:] == episode[:-later]]
        if np.any(both.sum(axis=0) < -CLEAR * np.sqrt(np.sum(both**2, axis=0))):
            return True
    return False


def has_step_back(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether another action undoes all that an action did, for each action that moves anything: nothing is carried on.

    Half of the cases are enough, since a wall is in the way of others. What no action is seen to move does not
    count, such as the cars of a road, or a clock.
    """
    change, action, goes_on = _changes(steps, left_out)
    change = change[:, _moved_by_actions(steps, left_out)]
    if not goes_on.any() or not change.size:
        return False
    moved, left = np.linalg.norm(change[:-1], axis=1), np.linalg.norm(change[:-1] + change[1:], axis=1)
    first, second = action[:-1], action[1:]
    typical = {each: float(moved[goes_on & (first == each)].mean()) for each in np.unique(first[goes_on])}
    least = UNDONE * max(typical.values())
    movers = {each for each, size in typical.items() if size > least}
    rows = np.flatnonzero(goes_on & (moved > least) & (first != second))
    pairs, pair = np.unique(np.stack([first[rows], second[rows]]), axis=1, return_inverse=True)
    count, undone = np.bincount(pair.ravel()), np.bincount(pair.ravel(), left[rows] <= UNDONE * moved[rows])
    return bool(movers) and movers <= {*pairs[0, (count >= OFTEN) & (2 * undone >= count)]}


def _moved_by_actions(steps: Steps, left_out: tuple[int, ...]) -> Bool[np.ndarray, " numbers"]:
    """Which of the numbers that vary actions move, or are moved by such numbers, as a place is by a speed.

    An action moves a number if it tells of its change, alone or times a number: clearly, since actions are drawn by
    themselves, so that each step is a draw. All are taken to be moved where they are too many to tell.
    """
    numbers, change = standardized(steps, left_out)
    width = numbers.shape[1]
    if width > MOST_JUDGED:
        return np.ones(width, bool)
    actions, one = np.asarray(steps.action)[:, None] == np.unique(steps.action), np.ones((len(numbers), 1))
    known = np.hstack([one, numbers])
    left, moved = left_of(change, known), np.zeros(width, bool)
    for acted in (actions - actions.mean(axis=0)).T:
        terms = acted[:, None] * known
        moved |= np.any((terms.T @ left) ** 2 > CLEAR**2 * (terms**2).T @ left**2, axis=0)
    of_own = [left_of(change[:, [place]], np.hstack([actions, numbers[:, [place]]])) for place in range(width)]
    left, fresh = np.hstack([*of_own, one[:, :0]]), moved
    while fresh.any():
        found = ~moved & effects(numbers[:, fresh], one, left, pieces(steps))
        moved, fresh = moved | found, found
    return moved


def _changes(
    steps: Steps, left_out: tuple[int, ...]
) -> tuple[Float[np.ndarray, "steps numbers"], Int[np.ndarray, " steps"], Bool[np.ndarray, " earlier"]]:
    """How each step changed the numbers that vary, in standard deviations; its action; whether its episode goes on."""
    _, change = standardized(steps, left_out)
    goes_on = np.ones(max(len(change) - 1, 0), bool)
    goes_on[steps.ends[steps.ends < len(goes_on)]] = False
    return change, np.asarray(steps.action), goes_on


def _whitened(steps: Steps, left_out: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of mean 0, variance 1 and no correlation in place of the observations, their changes, and the actions."""
    numbers, change = standardized(steps, left_out)
    if not numbers.shape[1]:
        return numbers, change, np.asarray(steps.action)
    variance, directions = np.linalg.eigh(numbers.T @ numbers / len(numbers))
    white = (directions / np.sqrt(np.maximum(variance, CONSTANT)))[:, variance > CONSTANT * variance[-1]]
    return numbers @ white, change @ white, np.asarray(steps.action)
