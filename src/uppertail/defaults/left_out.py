"""Which numbers are left out of observations: what tells nothing, or moves by itself and moves nothing else."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.defaults.regression import (
    LEAST_FREE,
    ROUNDING,
    SIGNIFICANT,
    effects,
    left_of,
    pieces,
    without,
)
from uppertail.environments import Steps

RIDGE, FLOOR = 0.1, 1e-4  # of the regression on numbers from 0 to 1, and of its variance, in units of each goal
USUAL = 0.9  # share of the steps in which a number is as it usually is
TAIL = 30  # how many times as large as it usually is the scale of a number may be
LARGEST_ERROR = 0.35  # standard error
IDLE_EPISODES = 30  # episodes, at least, over which a number and what is paid have to vary before it may be idle
CLEAR, SHUFFLES = 10.0, 30  # standard deviations beyond shuffled episodes: effects have over 100, noise up to 5
LEAST = 50  # steps of an action whose regression is asked; of fewer, chance tells as much
BINS = 32  # parts of the values of a number of which there are more than twice as many
WORK = 1.2e10  # multiplications of all shuffles, which bound the steps of many numbers
NEAREST, LEAST_TOLD = 3, 0.25  # steps with nearly the same numbers, and what they tell of what is paid, at least
MOST_NEAR = 2_000  # steps of an action, at most, among which these are sought
SHOWS = 12.5  # what decides four fifths of a goal is 10 deviations beyond chance in so many roots of twice the terms


def irrelevant_numbers(steps: Steps) -> Int[np.ndarray, " left_out"]:
    """The places of numbers that tell nothing of the next observation, the reward, or whether the episode terminates.

    For each action, ridge regression predicts all of these from the observation. A number is irrelevant if its
    weights, divided by their standard errors, are no larger than chance makes them, and if none of these errors is so
    large that an effect would have been missed. A number that keeps its value predicts itself, so it is relevant here;
    `idle_numbers` judges it. There are none if all numbers would be irrelevant, since a run needs at least one.
    """
    here, after = np.asarray(steps.observation, np.float64), np.asarray(steps.next_observation, np.float64)
    low, high = np.minimum(here.min(axis=0), after.min(axis=0)), np.maximum(here.max(axis=0), after.max(axis=0))
    inputs = (here - low) / np.where(high > low, high - low, 1.0)
    goals = np.column_stack([after, steps.reward, steps.terminated]).astype(np.float64)
    spread = goals.std(axis=0)
    goals = goals[:, spread > 0] / spread[spread > 0]
    effect, unclear = np.zeros(inputs.shape[1]), np.zeros(inputs.shape[1], bool)
    actions = np.unique(steps.action)
    for action in actions:
        own = np.asarray(steps.action) == action
        x, y = (each[own] - each[own].mean(axis=0) for each in (inputs, goals))
        varies = np.ptp(x, axis=0) > 0
        unclear |= ~varies
        x = x[:, varies]
        if len(x) - x.shape[1] < LEAST_FREE:
            return np.zeros(0, np.int64)
        gram = x.T @ x
        inverse = np.linalg.inv(gram + RIDGE * np.eye(x.shape[1]))
        weights = inverse @ x.T @ y
        noise = np.sum((y - x @ weights) ** 2, axis=0) / (len(x) - 1 - np.sum(inverse * gram)) + FLOOR
        variance = np.diag(inverse @ gram @ inverse)[:, None] * noise
        effect[varies] += np.sum(weights**2 / variance, axis=1)
        unclear[varies] |= np.sqrt(variance.max(axis=1, initial=0.0)) > LARGEST_ERROR
    unclear |= [tail_of(number).is_heavy for number in here.T]  # in units of what is rare, all else looks the same
    terms = len(actions) * goals.shape[1]
    irrelevant = ~unclear & (effect < terms + SIGNIFICANT * math.sqrt(2 * terms))
    return np.flatnonzero(irrelevant & ~irrelevant.all())


class Tail(NamedTuple):
    """How far a number is from its median: usually, by the root of the mean square, and at most."""

    usual: float
    scale: float
    most: float

    @property
    def is_heavy(self) -> bool:
        """Whether it is rarely so large that, in units of its scale, it hardly varies in all other steps."""
        return 0 < TAIL * self.usual < self.scale


def tail_of(number: Float[np.ndarray, " steps"]) -> Tail:
    """How far a number that was seen so is from its median."""
    away = np.abs(number.astype(np.float64) - np.median(number))
    return Tail(float(np.quantile(away, USUAL)), float(np.sqrt(np.mean(away**2))), float(away.max()))


def idle_numbers(
    steps: Steps, left_out: tuple[int, ...] = (), judged: Int[np.ndarray, " judged"] | None = None
) -> Int[np.ndarray, " left_out"]:
    """The places of numbers that nothing moves, and that move neither reward, nor termination, nor another number kept.

    Constants of an episode and slow noise are of this kind: they only predict themselves. So effects are judged on the
    change in a step. All that actions move is kept, all that follows from it, and all that has an effect on what is
    kept or paid. A goal has one, since it is paid by the distance to it.

    There are none if nothing could be seen: if reward and termination follow from the action alone, or vary in too few
    episodes. Nor are there if all numbers would be left out. All are judged, or those that are given: then effects have
    to be clearer, since so many other numbers are asked for them.
    """
    if judged is not None and not judged.size:
        return judged
    here, after = (without(each, left_out).astype(np.float64) for each in (steps.observation, steps.next_observation))
    spread = here.std(axis=0)
    spread[spread == 0] = 1.0
    numbers, change = (here - here.mean(axis=0)) / spread, (after - here) / spread
    begins = steps.begins
    actions = np.asarray(steps.action)[:, None] == np.unique(steps.action)
    reward, ends = np.asarray(steps.reward, np.float64)[:, None], (steps.terminated | steps.truncated)[:, None]
    acted = np.hstack([actions, actions * ends])
    ended = left_of(np.asarray(steps.terminated, np.float64)[:, None], actions)
    paid = np.hstack([left_of(np.hstack([reward, reward * ends]), acted), ended])
    paid = paid[:, paid.any(axis=0)]
    is_seen = paid.shape[1] > 0 and _varying(paid, begins).min() >= IDLE_EPISODES
    if not is_seen or len(here) - numbers.shape[1] < LEAST_FREE:
        return np.zeros(0, np.int64)
    clear = SIGNIFICANT if judged is None else math.sqrt(SIGNIFICANT**2 + 2 * math.log(numbers.shape[1]))
    one, acted = np.ones((len(here), 1)), actions - actions.mean(axis=0)
    kept = (_varying(numbers, begins) < IDLE_EPISODES) | [tail_of(number).is_heavy for number in here.T]
    places = np.delete(np.arange(len(kept) + len(left_out)), left_out)
    kept |= False if judged is None else ~np.isin(places, judged)
    asked, known = np.flatnonzero(~kept), np.hstack([one, numbers])
    kept[asked] = effects(acted, known, left_of(change[:, asked], known), begins, clear)
    fresh, contexts = kept, np.hstack([one, acted, numbers[:, kept]])
    while contexts.size:
        known = np.hstack([actions, numbers[:, kept]])
        left, moved = left_of(paid, known), left_of(change[:, fresh], known)
        found = np.zeros_like(kept)
        for place in np.flatnonzero(~kept):
            own = numbers[:, [place]]
            causes, itself = np.hstack([own, own**2 - 1]), left_of(change[:, [place]], np.hstack([actions, own]))
            found[place] = (
                effects(causes, contexts, left, begins, clear).any()
                or effects(causes, np.hstack([one, acted]), moved, begins, clear).any()
                or effects(numbers[:, fresh], one, itself, begins, clear).any()
            )
        kept, fresh, contexts = kept | found, found, numbers[:, found]
    return places[~kept & kept.any()]


def telling_together(steps: Steps, numbers: Int[np.ndarray, " candidates"]) -> Int[np.ndarray, " telling"]:
    """Those of some numbers whose value, whose square, or whose product with another number tells of what follows.

    What follows is the reward, whether the episode terminates, and how numbers change that are no candidates. For each
    action, linear regression on all numbers leaves something of it; what counts is the sum of squared correlations
    between that and the products, and each value or, where there are many, each of `BINS` parts of them. Had the number
    nothing to do with it, as much would be found with the number's values of other episodes, which are put in place of
    its own in `SHUFFLES` orders; of few long episodes, those of other pieces. Where numbers are so many that it would
    take too long to tell, all do.
    """
    if not numbers.size:
        return numbers
    count, width = np.shape(steps.observation)
    terms, taken = (width + BINS) * (width - numbers.size + 2), len(np.unique(steps.action))
    most = int(WORK / (SHUFFLES * numbers.size * terms))
    is_enough = most >= max(taken * (width + LEAST_FREE), SHOWS * math.sqrt(2 * terms * taken))
    if most < count and not is_enough:
        return numbers
    steps = Steps(*(np.asarray(each)[:most] for each in steps))
    here, after = (np.asarray(each, np.float64) for each in (steps.observation, steps.next_observation))
    begins = pieces(steps)
    spread = here.std(axis=0)
    spread[spread == 0] = 1.0
    inputs = (here - here.mean(axis=0)) / spread
    changes = np.delete((after - here) / spread, numbers, axis=1)
    goals = np.column_stack([changes, steps.reward, steps.terminated]).astype(np.float64)
    goals -= goals.mean(axis=0)
    actions = [rows for each in np.unique(steps.action) if len(rows := np.flatnonzero(steps.action == each)) >= LEAST]
    left = [left_of(goals[rows], np.column_stack([np.ones(len(rows)), inputs[rows]])) for rows in actions]
    left = [each / np.maximum(np.linalg.norm(each, axis=0), np.finfo(float).tiny) for each in left]
    of_actions = [(rows, inputs[rows], inputs[rows] ** 2, rest) for rows, rest in zip(actions, left, strict=True)]

    def told(number: int, values: Float[np.ndarray, " steps"], classes: Float[np.ndarray, "steps classes"]) -> float:
        """The squared correlations, by sums of products, since what is left has a mean of 0."""
        found = 0.0
        for rows, own, squares, rest in of_actions:
            value, part = values[rows], classes[rows]
            square, counts = value**2, part.sum(axis=0)
            with_rest, sums, sums_of_squares = own.T @ (value[:, None] * rest), own.T @ value, squares.T @ square
            with_rest[number], sums[number], sums_of_squares[number] = square @ rest, square.sum(), square @ square
            sums_of_squares, sums = np.append(sums_of_squares, counts), np.append(sums, counts)
            around = sums_of_squares - sums**2 / len(rows)
            varies = around > ROUNDING * sums_of_squares
            found += float(np.sum(np.vstack([with_rest, part.T @ rest])[varies] ** 2 / around[varies, None]))
        return found

    orders = [_from_others(begins, len(here), seed) for seed in range(SHUFFLES)]
    telling = list[int]()
    for number in numbers.tolist():
        values, classes = inputs[:, number], _classes(inputs[:, number])
        by_chance = np.array([told(number, values[order], classes[order]) for order in orders])
        likely = (1 + ROUNDING) * by_chance.mean()  # a clock has the values of other episodes
        if told(number, values, classes) > likely + CLEAR * by_chance.std():
            telling.append(number)
    return np.array(telling, numbers.dtype)


def tells_what_is_paid(steps: Steps, left_out: tuple[int, ...]) -> bool:
    """Whether what is kept tells what is paid on the way, what is paid at an end, and where episodes terminate.

    The mean of the nearest steps of other episodes has to leave a quarter less of each than the mean of all does: of
    steps with the same action, or of all those whose action is too rare. What never varies counts as told. What is
    left open may follow from a number that is left out, so rarely that nothing else shows it: whether a ball is caught
    in the last step, by its place and the paddle's.
    """
    numbers = without(steps.observation, left_out).astype(np.float64)
    varies = np.ptp(numbers, axis=0) > 0
    numbers = (numbers - numbers.mean(axis=0))[:, varies] / numbers.std(axis=0)[varies]
    terminated, reward = np.asarray(steps.terminated, np.float64), np.asarray(steps.reward, np.float64)
    ends, every = np.asarray(steps.terminated | steps.truncated), np.ones(len(numbers), bool)
    episode = np.searchsorted(steps.begins, np.arange(len(numbers)), side="right")

    def left_by_nearest(goal: Float[np.ndarray, " rows"], rows: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " two"]:
        near, of = numbers[rows], episode[rows]
        away = np.sum(near**2, axis=1) - 2.0 * near @ near.T  # but for a constant of each row
        away[of[:, None] == of] = np.inf
        nearest = np.argpartition(away, NEAREST, axis=1)[:, :NEAREST]
        return np.array([np.sum((goal - goal[nearest].mean(axis=1)) ** 2), np.sum((goal - goal.mean()) ** 2)])

    def is_told(goal: Float[np.ndarray, " steps"], where: Bool[np.ndarray, " steps"]) -> bool:
        if not where.any() or np.ptp(goal[where]) <= ROUNDING * np.abs(goal[where]).max():
            return True
        _, action, count = np.unique(np.asarray(steps.action)[where], return_inverse=True, return_counts=True)
        alike = np.where(count < LEAST, -1, np.arange(len(count)))[action.ravel()]
        groups = [np.flatnonzero(where)[alike == each][:MOST_NEAR] for each in np.unique(alike)]
        left = [left_by_nearest(goal[rows], rows) for rows in groups if len(set(episode[rows])) > NEAREST]
        by_nearest, by_mean = np.sum(left, axis=0) if left else (1.0, 1.0)
        return bool(by_nearest <= (1.0 - LEAST_TOLD) * by_mean)

    return is_told(reward, ~ends) and is_told(reward, ends) and is_told(terminated, every)


def _classes(values: Float[np.ndarray, " steps"]) -> Float[np.ndarray, "steps classes"]:
    """The one-hot of each value or, where there are many, of the part of equally many steps that it belongs to."""
    found, index = np.unique(values, return_inverse=True)
    if len(found) > 2 * BINS:
        index = np.searchsorted(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]), values)
    return np.eye(index.max() + 1)[index]


def _from_others(begins: Int[np.ndarray, " episodes"], count: int, seed: int) -> Int[np.ndarray, " steps"]:
    """For each step, one of another episode; an episode that is shorter is gone through again."""
    lengths = np.diff(np.append(begins, count))
    order = np.random.default_rng(seed).permutation(len(begins))
    place = np.arange(count) - np.repeat(begins, lengths)
    return np.repeat(begins[order], lengths) + place % np.repeat(lengths[order], lengths)


def _varying(values: np.ndarray, begins: np.ndarray) -> Float[np.ndarray, " numbers"]:
    """In how many episodes values differ from 0: in all if their root mean squares are equal, in 1 if one has all."""
    means = np.add.reduceat(values**2, begins) / np.diff(np.append(begins, len(values)))[:, None]
    return np.sqrt(means).sum(axis=0) ** 2 / np.maximum(means.sum(axis=0), np.finfo(float).tiny)
