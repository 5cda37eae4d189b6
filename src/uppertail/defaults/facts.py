"""Facts: what steps of a random policy show of an environment, measured once."""

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from uppertail.defaults.together import telling_together
from uppertail.encodings import States
from uppertail.environments import (
    WIDER,
    EnvironmentBuilder,
    FiniteMDP,
    GymnasiumBuilder,
    PackageBuilder,
    Say,
    Steps,
    measured_range,
    random_steps,
    table_steps,
)
from uppertail.types import ReturnRange

RIDGE, FLOOR = 0.1, 1e-4  # of the regression on numbers from 0 to 1, and of its variance, in units of each goal
USUAL = 0.9  # share of the steps in which a number is as it usually is
TAIL = 30  # how many times as large as it usually is the scale of a number may be
LEAST_FREE, LARGEST_ERROR = 50, 0.35  # transitions of each action that its regression leaves free; standard error
SIGNIFICANT = 3.0  # standard deviations above the mean of a chi-squared sum

IDLE_EPISODES = 30  # episodes, at least, over which a number and what is paid have to vary before it may be idle
MOST_JUDGED = 32  # numbers; beyond it none is judged idle, since time grows with the square
ROUNDING = 1e-6  # share of the largest value below which what a regression leaves is rounding

TOLD, SAME = 0.5, 0.05  # share of rewards that the past must tell; shares that are as good
CLEAR, SHUFFLES, LONGEST_STACK = 5.0, 100, 4  # standard deviations beyond shuffled rewards; observations
LEAST_CUT, BY_CHANCE = 5, 1e-3  # episodes that a time limit cut short; the chance of what is taken for a rule
STANDS_STILL = 0.1  # share of the steps in which a rounded clock may show its end before time runs out
UNDONE = 0.1  # of a change, at most, is left where it is undone, and in as few steps of a switch more may be left
OFTEN = 5  # times, at least, that an action followed another one
MOVED, LONGEST = 0.95, 4  # standard deviations by which an action may change what it controls; its longest, in steps
STOPPED = 0.3  # the same, at most, where what it controls stops at once: places between are then never reached
FORESEEN = 200  # steps, at most, over which the effect of an action is followed
CONSTANT = 1e-9  # share of the largest variance below which numbers do not vary in a direction

KnownRange = Callable[[float], ReturnRange | None]


class Chance(NamedTuple):
    """What followed where the same action was taken in the same observation again."""

    repeated: int  # pairs of an observation and an action that came at least twice
    different: int  # of them, those that led elsewhere, paid otherwise, or ended otherwise


class Told(NamedTuple):
    """What the past tells of rewards beside the last observation and the action."""

    stack: int | Literal["first"]  # which part of the past: so many observations, or the first of the episode
    share: float  # of what varies in rewards of equal observations and actions


class Pace(NamedTuple):
    """How many steps an action needs to make a difference."""

    usual: int  # to move what it controls far enough
    steps: int  # the same; 1 where another action undoes each move, and so many would pass places by


class Facts:
    """What steps of a random policy show. Nothing is measured before a rule asks for it, and nothing twice.

    Args:
        builder: the environment's.
        observed: whether rules may ask for observations; else none are kept.
        known: the range of returns with a discount per step that the user gives or the environments name; None: they do
            not.
        table: the environment's table; None: it has none.
        say: called with a line if the steps take long.
    """

    def __init__(
        self,
        builder: EnvironmentBuilder,
        observed: bool = True,
        known: KnownRange = lambda discount: None,
        table: Callable[[], FiniteMDP | None] = lambda: None,
        say: Say = warnings.warn,
    ) -> None:
        self.builder, self.observed = builder, observed
        self.known, self._table, self._say = known, table, say
        self._changed: Facts | None = None

    def of(self, builder: EnvironmentBuilder) -> "Facts":
        """The facts of the same environment with other settings; measured again if its steps show or last more."""
        longer = builder.repeats != self.builder.repeats
        if not longer and _stack(builder) == _stack(self.builder):
            return self
        if self._changed is None:
            self._changed = Facts(builder, self.observed and not longer, self.known, say=self._say)
        return self._changed.of(builder)

    @functools.cached_property
    def steps(self) -> Steps:
        """Steps of a random policy."""
        return random_steps(self.builder, self.observed, self._say)

    @property
    def steps_so_far(self) -> Steps | None:
        """The same; None: no rule asked for them."""
        return vars(self).get("steps")

    def clocks(self, left_out: tuple[int, ...] = ()) -> Int[np.ndarray, " numbers"]:
        """The numbers that show when time runs out."""
        return clocks(self.steps, left_out)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each of the integers has that make up a state; none: a state is not made of integers."""
        builder = self.builder
        if not isinstance(builder, GymnasiumBuilder) or not isinstance(builder.observations, States):
            return ()
        return tuple(size for part in builder.interface.reading.parts for size in part.sizes)

    @property
    def steps_by_integer(self) -> Steps:
        """The steps, with the integers that make up a state in place of its number."""
        if not (sizes := self.sizes):
            return self.steps
        seen = self.steps.observation, self.steps.next_observation
        here, after = (np.stack(np.unravel_index(each, sizes), axis=1) for each in seen)
        return self.steps._replace(observation=here, next_observation=after)

    def shows_the_limit(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether observations show when time runs out: by a number or, where they repeat, as a whole."""
        return bool(clocks(self.steps_by_integer, left_out).size) or only_at_the_limit(self.steps)

    @property
    def is_paid_at_the_limit(self) -> bool:
        """Whether a random policy was paid where time ran out, far beyond what it was paid elsewhere."""
        return paid_at_the_limit(self.steps)

    def range(self, discount: float, wider: float = WIDER) -> ReturnRange:
        """The range of returns with this discount per step: known, or else measured, and so many widths wider."""
        return self.known(discount) or measured_range(self.builder, self.steps, discount**self.builder.repeats, wider)

    @functools.cached_property
    def irrelevant(self) -> Int[np.ndarray, " numbers"]:
        """The numbers that tell nothing of what comes next."""
        return self._telling_nothing(functools.reduce(np.intersect1d, map(irrelevant_numbers, self.by_number)))

    @functools.cached_property
    def idle(self) -> Int[np.ndarray, " numbers"]:
        """The numbers that change, or stay, by themselves and touch nothing else."""
        noise = tuple(self.irrelevant.tolist())
        found = functools.reduce(np.intersect1d, (idle_numbers(steps, noise) for steps in self.by_number))
        return self._telling_nothing(found)

    def _telling_nothing(self, numbers: Int[np.ndarray, " candidates"]) -> Int[np.ndarray, " left_out"]:
        """Those of the numbers that tell nothing together with another one either."""
        return functools.reduce(np.setdiff1d, (telling_together(each, numbers) for each in self.by_number), numbers)

    def repeating(self, left_out: tuple[int, ...] = ()) -> float:
        """The share of the distinct observations that come again, without the numbers that are left out."""
        return repeating(_without(self.steps.observation, left_out))

    def pace(self, left_out: tuple[int, ...] = ()) -> Pace:
        """How many steps an action needs to make a difference: the median over numbers of an action."""
        found = zip(*(pace(steps, left_out) for steps in self.by_number), strict=True)
        return Pace(*(round(np.median(each)) for each in found))

    def has_switch(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether an action undoes what it did when it is taken again."""
        return any(has_switch(steps, left_out) for steps in self.by_number)

    @property
    def by_number(self) -> list[Steps]:
        """The steps or, for each number of which actions have many combinations, the steps as if it were the action."""
        listed = self.builder.actions if isinstance(self.builder, PackageBuilder) else None
        if listed is None or listed.sizes is None:
            return [self.steps]
        return [self.steps._replace(action=each) for each in np.unravel_index(self.steps.action, listed.sizes)]

    @functools.cached_property
    def told_by(self) -> Told | None:
        """The part of the past that tells most of the rewards; None: no part tells enough."""
        return told_by_past(self.steps)

    @property
    def has_contexts(self) -> bool:
        """Whether one of the integers that make up a state stays the same in each episode, and differs between."""
        here, after = np.asarray(self.steps_by_integer.observation), np.asarray(self.steps_by_integer.next_observation)
        return bool(np.any((here == after).all(axis=0) & (np.ptp(here, axis=0) > 0)))

    def chance(self, left_out: tuple[int, ...] = ()) -> Chance:
        """What followed where the same action was taken in the same observation again."""
        table = self._table()
        steps = self.steps if table is None else table_steps(table)
        if self.builder.repeats > 1:  # a limit cuts actions short
            steps = Steps(*(np.asarray(each)[~np.asarray(steps.truncated)] for each in steps))
        return chance(steps, left_out)


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


def idle_numbers(steps: Steps, left_out: tuple[int, ...] = ()) -> Int[np.ndarray, " left_out"]:
    """The places of numbers that nothing moves, and that move neither reward, nor termination, nor another number kept.

    Constants of an episode and slow noise are of this kind: they only predict themselves. So effects are judged on the
    change in a step. All that actions move is kept, all that follows from it, and all that has an effect on what is
    kept or paid. A goal has one, since it is paid by the distance to it.

    There are none if nothing could be seen: if reward and termination follow from the action alone, or vary in too few
    episodes. Nor are there if all numbers would be left out.
    """
    here, after = (_without(each, left_out).astype(np.float64) for each in (steps.observation, steps.next_observation))
    spread = here.std(axis=0)
    spread[spread == 0] = 1.0
    numbers, change = (here - here.mean(axis=0)) / spread, (after - here) / spread
    begins = steps.begins
    actions = np.asarray(steps.action)[:, None] == np.unique(steps.action)
    reward, ends = np.asarray(steps.reward, np.float64)[:, None], (steps.terminated | steps.truncated)[:, None]
    acted = np.hstack([actions, actions * ends])
    ended = _left(np.asarray(steps.terminated, np.float64)[:, None], actions)
    paid = np.hstack([_left(np.hstack([reward, reward * ends]), acted), ended])
    paid = paid[:, paid.any(axis=0)]
    is_seen = paid.shape[1] > 0 and _varying(paid, begins).min() >= IDLE_EPISODES
    if not is_seen or numbers.shape[1] > MOST_JUDGED:
        return np.zeros(0, np.int64)
    one, acted = np.ones((len(here), 1)), actions - actions.mean(axis=0)
    kept = (_varying(numbers, begins) < IDLE_EPISODES) | [tail_of(number).is_heavy for number in here.T]
    kept |= _effects(acted, np.hstack([one, numbers]), _left(change, np.hstack([one, numbers])), begins)
    fresh, contexts = kept, np.hstack([one, acted, numbers[:, kept]])
    while contexts.size:
        known = np.hstack([actions, numbers[:, kept]])
        left, moved = _left(paid, known), _left(change[:, fresh], known)
        found = np.zeros_like(kept)
        for place in np.flatnonzero(~kept):
            own = numbers[:, [place]]
            causes, itself = np.hstack([own, own**2 - 1]), _left(change[:, [place]], np.hstack([actions, own]))
            found[place] = (
                _effects(causes, contexts, left, begins).any()
                or _effects(causes, np.hstack([one, acted]), moved, begins).any()
                or _effects(numbers[:, fresh], one, itself, begins).any()
            )
        kept, fresh, contexts = kept | found, found, numbers[:, found]
    return np.delete(np.arange(len(kept) + len(left_out)), left_out)[~kept & kept.any()]


def repeating(observations: Shaped[np.ndarray, "steps *numbers"]) -> float:
    """The share of the distinct observations of the first half that come again in the second.

    Distinct ones, because one that begins each episode comes often, and says nothing of all others.
    """
    first, later = ({row.tobytes() for row in half} for half in np.array_split(observations, 2))
    return len(first & later) / max(len(first), 1)


def chance(steps: Steps, left_out: tuple[int, ...] = ()) -> Chance:
    """How many pairs of observation and action came again, and how many of them led to different outcomes.

    An outcome is the reward, whether the episode terminates and, if not, the next observation. A time limit is none of
    the outcome, but what is paid there is.
    """
    here, after = (_without(each, left_out) for each in (steps.observation, steps.next_observation))
    outcomes: dict[tuple[bytes, int], list[tuple[float, bytes]]] = {}
    for number in range(len(here)):
        following = b"" if steps.terminated[number] else b"." + after[number].tobytes()
        pair = here[number].tobytes(), int(steps.action[number])
        outcomes.setdefault(pair, []).append((float(steps.reward[number]), following))
    again = [found for found in outcomes.values() if len(found) > 1]
    return Chance(len(again), sum(len(set(found)) > 1 for found in again))


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


def only_at_the_limit(steps: Steps) -> bool:
    """Whether what is observed where time runs out, and comes again there, is observed nowhere else."""
    late, here, after = np.asarray(steps.truncated), np.asarray(steps.observation), np.asarray(steps.next_observation)
    if here.ndim != 1 or late.sum() < LEAST_CUT:
        return False
    shown = np.unique(after[late])
    return bool(2 * len(shown) <= late.sum()) and not np.isin(here, shown).any()


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


def has_step_back(steps: Steps, left_out: tuple[int, ...] = ()) -> bool:
    """Whether another action undoes all that an action did, for each action that moves anything: nothing is carried on.

    Half of the cases are enough, since a wall is in the way of others. What numbers change by in the mean does not
    count: a clock goes on.
    """
    change, action, goes_on = _changes(steps, left_out)
    if not goes_on.any():
        return False
    change = change - change[:-1][goes_on].mean(axis=0)
    moved, left = np.linalg.norm(change[:-1], axis=1), np.linalg.norm(change[:-1] + change[1:], axis=1)
    first, second = action[:-1], action[1:]
    typical = {each: float(np.median(moved[goes_on & (first == each)])) for each in np.unique(first[goes_on])}
    least = UNDONE * max(typical.values())
    movers = {each for each, size in typical.items() if size > least}
    rows = np.flatnonzero(goes_on & (moved > least) & (first != second))
    pairs, pair = np.unique(np.stack([first[rows], second[rows]]), axis=1, return_inverse=True)
    count, undone = np.bincount(pair.ravel()), np.bincount(pair.ravel(), left[rows] <= UNDONE * moved[rows])
    return bool(movers) and movers <= {*pairs[0, (count >= OFTEN) & (2 * undone >= count)]}


def _changes(
    steps: Steps, left_out: tuple[int, ...]
) -> tuple[Float[np.ndarray, "steps numbers"], Int[np.ndarray, " steps"], Bool[np.ndarray, " earlier"]]:
    """How each step changed the numbers that vary, in standard deviations; its action; whether its episode goes on."""
    _, change = _standardized(steps, left_out)
    goes_on = np.ones(max(len(change) - 1, 0), bool)
    goes_on[steps.ends[steps.ends < len(goes_on)]] = False
    return change, np.asarray(steps.action), goes_on


def _standardized(steps: Steps, left_out: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of mean 0 and variance 1 in place of the observations that vary, and their changes."""
    here, after = (_without(each, left_out).astype(np.float64) for each in (steps.observation, steps.next_observation))
    spread = here.std(axis=0)
    varies = spread > 0
    return (here - here.mean(axis=0))[:, varies] / spread[varies], (after - here)[:, varies] / spread[varies]


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


def _effects(
    causes: Float[np.ndarray, "steps causes"],
    contexts: Float[np.ndarray, "steps contexts"],
    left: Float[np.ndarray, "steps goals"],
    begins: Int[np.ndarray, " episodes"],
) -> Bool[np.ndarray, " goals"]:
    """Whether any cause, in any context, has an effect on what is left of each goal.

    It has one if the sum of cause x context x goal is beyond `SIGNIFICANT` standard errors. Steps of an episode are no
    independent draws, so the error is taken from the sums of whole episodes.
    """
    found = np.zeros(left.shape[1], bool)
    for cause, context in itertools.product(causes.T, contexts.T):
        sums = np.add.reduceat((cause * context)[:, None] * left, begins)
        found |= sums.sum(axis=0) ** 2 > SIGNIFICANT**2 * (sums**2).sum(axis=0)
    return found


def _left(goals: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """What linear regression on the inputs leaves of goals; 0 where it is rounding."""
    left = goals - inputs @ np.linalg.lstsq(inputs, goals)[0]
    return np.where(np.abs(left).max(axis=0) > ROUNDING * np.abs(goals).max(axis=0), left, 0.0)


def _varying(values: np.ndarray, begins: np.ndarray) -> Float[np.ndarray, " numbers"]:
    """In how many episodes values differ from 0: in all if their root mean squares are equal, in 1 if one has all."""
    means = np.add.reduceat(values**2, begins) / np.diff(np.append(begins, len(values)))[:, None]
    return np.sqrt(means).sum(axis=0) ** 2 / np.maximum(means.sum(axis=0), np.finfo(float).tiny)


def _whitened(steps: Steps, left_out: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of mean 0, variance 1 and no correlation in place of the observations, their changes, and the actions."""
    numbers, change = _standardized(steps, left_out)
    if not numbers.shape[1]:
        return numbers, change, np.asarray(steps.action)
    variance, directions = np.linalg.eigh(numbers.T @ numbers / len(numbers))
    white = (directions / np.sqrt(np.maximum(variance, CONSTANT)))[:, variance > CONSTANT * variance[-1]]
    return numbers @ white, change @ white, np.asarray(steps.action)


def _stack(builder: EnvironmentBuilder) -> int | str | None:
    """What of the past is shown."""
    return getattr(builder, "stack", None)


def _without(observations: Array | np.ndarray, left_out: tuple[int, ...]) -> np.ndarray:
    """Observations without the numbers that are left out; a hash is no numbers."""
    whole = np.asarray(observations)
    return np.delete(whole, left_out, axis=1) if left_out and whole.ndim > 1 else whole
