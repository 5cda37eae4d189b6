"""Facts: what steps of a random policy show of an environment, measured once."""

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from uppertail.defaults.left_out import idle_numbers, irrelevant_numbers, telling_together
from uppertail.defaults.pace import Pace, decides_anew, has_switch, pace
from uppertail.defaults.regression import ROUNDING, without
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

TOLD, SAME = 0.5, 0.05  # share of rewards that the past must tell; shares that are as good
CLEAR, SHUFFLES, LONGEST_STACK = 5.0, 100, 4  # standard deviations beyond shuffled rewards; observations
LEAST_CUT, BY_CHANCE = 5, 1e-3  # episodes that a time limit cut short; the chance of what is taken for a rule
STANDS_STILL = 0.1  # share of the steps in which a rounded clock may show its end before time runs out

KnownRange = Callable[[float], ReturnRange | None]


class Chance(NamedTuple):
    """What followed where the same action was taken in the same observation again."""

    repeated: int  # pairs of an observation and an action that came at least twice
    different: int  # of them, those that led elsewhere, paid otherwise, or ended otherwise


class Told(NamedTuple):
    """What the past tells of rewards beside the last observation and the action."""

    stack: int | Literal["first"]  # which part of the past: so many observations, or the first of the episode
    share: float  # of what varies in rewards of equal observations and actions


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
        return bool(clocks(self.steps_by_integer, left_out).size) or only_at_the_limit(self.steps, left_out)

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
        return repeating(without(self.steps.observation, left_out))

    def pace(self, left_out: tuple[int, ...] = ()) -> Pace:
        """How many steps an action needs to make a difference: the median over numbers of an action."""
        found = zip(*(pace(steps, left_out) for steps in self.by_number), strict=True)
        return Pace(*(round(np.median(each)) for each in found))

    def has_switch(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether an action undoes what it did when it is taken again."""
        return any(has_switch(steps, left_out) for steps in self.by_number)

    def decides_anew(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether numbers that are drawn anew in each step decide between actions."""
        return any(decides_anew(steps, left_out) for steps in self.by_number)

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
    here, after = (without(each, left_out) for each in (steps.observation, steps.next_observation))
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


def _stack(builder: EnvironmentBuilder) -> int | str | None:
    """What of the past is shown."""
    return getattr(builder, "stack", None)
