"""Which observations come again, what follows where they do, and whether near ones tell more of it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from uppertail.defaults.left_out import USUAL
from uppertail.defaults.regression import MOST_JUDGED, without
from uppertail.environments import Steps, discounted_returns

REPEATED = 0.4  # share of the distinct observations that must come again
SOON = 0.8  # the discount of what is paid soon
LEAST_PAID, LEAST_MORE = 0.1, 0.01  # shares of it that numbers have to tell, and to tell more than equal ones do
MOST_INPUTS = 1000  # names that are judged: one for each value of each number
SURE = 3.0  # standard deviations from which on a difference is no accident
EXACT = 16 * float(np.finfo(np.float32).eps)  # share of a number's size, up to which it differs by rounding alone
APART = 100.0  # times what differs by rounding, from which on values are others

Pair = tuple[bytes, int]
"""An observation and an action."""


class Chance(NamedTuple):
    """What followed where the same action was taken in the same observation again."""

    repeated: int  # pairs of an observation and an action that came at least twice
    different: int  # of them, those that led elsewhere, paid otherwise, or ended otherwise


def repeating(observations: Shaped[np.ndarray, "steps *numbers"]) -> float:
    """The share of the distinct observations of the first half that come again in the second.

    Distinct ones, because one that begins each episode comes often, and says nothing of all others.
    """
    first, later = ({row.tobytes() for row in half} for half in np.array_split(observations, 2))
    return len(first & later) / max(len(first), 1)


def numbers_tell_more(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether numbers tell more of what a random policy is paid soon than the same observation does.

    What is paid in the next few steps is predicted in each half of the episodes from the other half: by regression on
    the numbers, their squares and products, and by the mean that equal observations had, with one step of the mean of
    all beside them. The numbers have to tell more by a share of the variance, and a share of it at all.
    """
    seen = without(steps.observation, left_out).astype(np.float64)
    varies = np.ptp(seen, axis=0) > 0
    numbers = (seen - seen.mean(axis=0))[:, varies] / seen.std(axis=0)[varies]
    if not 0 < numbers.shape[1] <= MOST_JUDGED or len(steps.begins) < 2:
        return False
    if max(len(np.unique(number)) for number in numbers.T) <= 2:
        return False  # of two values none is nearer
    soon = np.concatenate([discounted_returns(rewards, SOON)[1:][::-1] for rewards in steps.episodes])
    first, second = np.triu_indices(numbers.shape[1])
    inputs = np.hstack([np.ones((len(soon), 1)), numbers, numbers[:, first] * numbers[:, second]])
    left = _squared_errors(soon, seen, inputs, _episode(steps) % 2 == 1)
    return bool(left[2] < min(left[1] - LEAST_MORE * left[0], (1.0 - LEAST_PAID) * left[0]))


def names_tell_more(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether the names in an observation tell more of what an action is paid next than the same observation does.

    What each action is paid is predicted in each half of the episodes from the other half: by regression on a one-hot
    of each number, and by the mean that the action had in equal observations, with one step of its mean in all beside
    them. The names have to tell more by a share of the variance.
    """
    seen, paid, action = without(steps.observation, left_out), np.asarray(steps.reward, np.float64), steps.action
    names = [(number, value) for number in seen.T for value in np.unique(number)[1:]]
    if not 0 < len(names) <= MOST_INPUTS or len(steps.begins) < 2:
        return False
    inputs = np.column_stack([np.ones(len(paid)), *(number == value for number, value in names)])
    odd, by_action = _episode(steps) % 2 == 1, (action == each for each in np.unique(action))
    left = np.sum([_squared_errors(paid[of], seen[of], inputs[of], odd[of]) for of in by_action], axis=0)
    return bool(left[2] < left[1] - LEAST_PAID * left[0])


def _episode(steps: Steps) -> Int[np.ndarray, " steps"]:
    """The number of the episode that each step belongs to, from 1 on."""
    return np.searchsorted(steps.begins, np.arange(len(steps.reward)), side="right")


def _squared_errors(
    paid: Float[np.ndarray, " steps"],
    seen: Shaped[np.ndarray, "steps numbers"],
    inputs: Float[np.ndarray, "steps inputs"],
    odd: Bool[np.ndarray, " steps"],
) -> Float[np.ndarray, "3"]:
    """Sums of squared errors in what is paid, where odd episodes predict the others, and the others the odd ones.

    The first is by the mean of all, the second by the mean of equal observations, with one step of the mean of all
    beside them, and the third by regression on the inputs.
    """
    _, state = np.unique(seen, axis=0, return_inverse=True)
    left = np.zeros(3)
    for known in (odd, ~odd):
        if not known.any():
            continue
        mean, gram = paid[known].mean(), inputs[known].T @ inputs[known]
        weights = np.linalg.solve(gram + np.eye(len(gram)), inputs[known].T @ (paid[known] - mean))
        visits, sums = (np.bincount(state[known], each, state.max() + 1) for each in (None, paid[known]))
        found = mean, ((sums + mean) / (visits + 1.0))[state[~known]], mean + inputs[~known] @ weights
        left += [np.sum((paid[~known] - each) ** 2) for each in found]
    return left


class Outcomes(NamedTuple):
    """How often an action was taken in an observation again, and how often it led elsewhere than the last time.

    Each has two places: within an episode, and in another one than the last time. Rewards do not count.
    """

    again: Int[np.ndarray, "2"]
    elsewhere: Int[np.ndarray, "2"]

    @property
    def are_by_chance(self) -> bool:
        """Whether what follows differs within an episode, too."""
        return bool(self.elsewhere[0] > 0)

    @property
    def are_by_episode(self) -> bool:
        """Whether it differs far more often between episodes: by so many standard deviations as are sure."""
        usual = (self.elsewhere[0] + 1) / (self.again[0] + 1)
        expected = usual * self.again[1]
        return bool(self.elsewhere[1] > expected + SURE * np.sqrt(expected * (1 - usual)))


def outcomes(steps: Steps, left_out: tuple[int, ...] = ()) -> Outcomes:
    """What followed equal actions in equal observations."""
    last: dict[Pair, tuple[int, bytes]] = {}
    again, elsewhere = np.zeros(2, int), np.zeros(2, int)
    for now, (pair, following) in zip(_episode(steps).tolist(), _followed(steps, left_out), strict=True):
        if pair in last:
            then, known = last[pair]
            again[int(then != now)] += 1
            elsewhere[int(then != now)] += known != following
        last[pair] = now, following
    return Outcomes(again, elsewhere)


def chance(steps: Steps, left_out: tuple[int, ...] = ()) -> Chance:
    """How many pairs of observation and action came again, and how many of them led to different outcomes.

    An outcome is the reward, whether the episode terminates and, if not, the next observation. A time limit is none of
    the outcome, but what is paid there is. Numbers that differ by rounding alone are equal.
    """
    numbers = dict[Pair, int]()
    pair = np.array([numbers.setdefault(each, len(numbers)) for each, _ in _followed(steps, left_out)])
    order, visits, goes_on = np.argsort(pair), np.bincount(pair), ~np.asarray(steps.terminated)[:, None]
    after = without(steps.next_observation, left_out).reshape(len(pair), -1)
    follows = np.column_stack([steps.reward, goes_on, np.where(goes_on, after, 0)])[order].astype(np.float64)
    highest, lowest = (of.reduceat(follows, np.cumsum(visits) - visits) for of in (np.maximum, np.minimum))
    is_whole = (follows == np.floor(follows)).all(axis=0)
    rounding = np.where(is_whole, 0.0, EXACT * np.abs(follows).max(axis=0))
    differs = (highest - lowest > rounding).any(axis=1)
    return Chance(int(np.sum(visits > 1)), int(np.sum(differs)))


def roundings(numbers: Shaped[np.ndarray, "steps numbers"]) -> tuple[float, ...]:
    """To multiples of what each number is rounded, so that values are equal that differ by rounding alone; 0: it stays.

    Sums of the same numbers in another order differ in their last digits: 0.1 + 0.2 - 0.3 is not 0. A number is
    rounded if some of its values are as near as that, and no two are farther from each other than that, but nearer than
    `APART` times as far. The multiple is a power of ten, so that numbers of few digits are not between two.
    """
    return tuple(map(_rounding, numbers.astype(np.float64).T)) if numbers.dtype.kind == "f" else ()


def rounded(numbers: Shaped[np.ndarray, "steps ..."], steps: tuple[float, ...]) -> Shaped[np.ndarray, "steps ..."]:
    """The numbers, each at the multiple of its step that is nearest; where that is 0, as they are."""
    if not any(steps):
        return numbers
    unit = np.array(steps)
    return np.where(unit > 0, np.round(numbers / np.where(unit > 0, unit, 1.0)) * unit, numbers).astype(numbers.dtype)


def _rounding(number: Float[np.ndarray, " steps"]) -> float:
    values = np.unique(number)
    apart, near = np.diff(values), EXACT * np.quantile(np.abs(number), USUAL)
    together = apart <= near
    if not together.any() or (apart[~together] < APART * near).any():
        return 0.0
    step = 10.0 ** math.ceil(math.log10(2 * near))
    is_kept = len(np.unique(np.round(values / step))) == 1 + np.sum(~together)
    return step if is_kept else 0.0


def _followed(steps: Steps, left_out: tuple[int, ...]) -> Iterator[tuple[Pair, bytes]]:
    """The observation and action of each step, and what followed: the next observation, or the end."""
    here, after = (without(each, left_out) for each in (steps.observation, steps.next_observation))
    for number, action in enumerate(np.asarray(steps.action).tolist()):
        yield (here[number].tobytes(), action), b"" if steps.terminated[number] else b"." + after[number].tobytes()
