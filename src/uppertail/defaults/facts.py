"""Facts: what steps of a random policy show of an environment, measured once."""

import functools
import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from uppertail.defaults.left_out import idle_numbers, irrelevant_numbers, telling_together, tells_what_is_paid
from uppertail.defaults.limits import clocks, counters, only_at_the_limit, paid_at_the_limit, timers
from uppertail.defaults.pace import Pace, decides_anew, has_switch, pace, turns
from uppertail.defaults.past import Told, told_by_past, told_by_step_before
from uppertail.defaults.regression import MOST_JUDGED, without
from uppertail.defaults.repeats import (
    REPEATED,
    Chance,
    chance,
    names_tell_more,
    numbers_tell_more,
    outcomes,
    repeating,
    rounded,
    roundings,
)
from uppertail.encodings import Numbers, States
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
from uppertail.environments.spaces import Origins
from uppertail.types import ReturnRange

KnownRange = Callable[[float], ReturnRange | None]


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
        self._rounding: tuple[float, ...] = ()  # where steps are known otherwise, they hold integers

    def of(self, builder: EnvironmentBuilder) -> "Facts":
        """The facts of the same environment with other settings; measured again if its steps show or last more.

        Steps that showed integers are read anew where these become numbers.
        """
        longer = builder.repeats != self.builder.repeats
        if not longer and _shown(builder) == _shown(self.builder):
            return self
        if self._changed is None:
            self._changed = Facts(builder, self.observed and not longer, self.known, say=self._say)
            if not longer and _shown(builder)[::2] == _shown(self.builder)[::2]:
                vars(self._changed)["steps"] = self._steps_by_integer
        return self._changed.of(builder)

    @functools.cached_property
    def steps(self) -> Steps:
        """Steps of a random policy, in which numbers that differ by rounding alone are equal."""
        steps = random_steps(self.builder, self.observed, self._say)
        here, after = np.asarray(steps.observation), np.asarray(steps.next_observation)
        self._rounding = roundings(here) if here.ndim == 2 else ()
        here, after = (rounded(each, self._rounding) for each in (here, after))
        return steps._replace(observation=here, next_observation=after)

    @property
    def rounding(self) -> tuple[float, ...]:
        """To multiples of what each number is rounded, where values differ by rounding alone; 0: it stays."""
        _ = self.steps
        return self._rounding

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each number of the observations, from the keys of a Dict; empty: they have none."""
        builder = self.builder
        names = builder.interface.reading.names if isinstance(builder, GymnasiumBuilder) else ()
        return names if np.shape(self.steps.observation)[1:] == (len(names),) else ()  # those of a stack are more

    @property
    def steps_so_far(self) -> Steps | None:
        """The same; None: no rule asked for them."""
        return vars(self).get("steps")

    def clocks(self, left_out: tuple[int, ...] = ()) -> Int[np.ndarray, " numbers"]:
        """The numbers that show when time runs out."""
        return clocks(self.steps, left_out)

    @functools.cached_property
    def time(self) -> Int[np.ndarray, " numbers"]:
        """The numbers that count steps, where a wrapper of the user's shows the time; none: no wrapper does."""
        builder = self.builder
        is_shown = isinstance(builder, GymnasiumBuilder) and not builder.compiles and builder.inspected.shows_time
        return counters(self.steps) if is_shown else np.zeros(0, np.int64)

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
        return self._steps_by_integer if self.sizes else self.steps

    @property
    def _steps_by_integer(self) -> Steps:
        assert isinstance(self.builder, GymnasiumBuilder)
        seen = self.steps.observation, self.steps.next_observation
        here, after = map(self.builder.interface.reading.integers, seen)
        return self.steps._replace(observation=here, next_observation=after)

    def shows_the_limit(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether observations show when time runs out: by a number or, where they repeat, as a whole."""
        shown = np.setdiff1d(self.time, left_out).size or clocks(self.steps_by_integer, left_out).size
        return bool(shown) or only_at_the_limit(self.steps, left_out)

    def counts_steps(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether observations count the steps of an episode; a random policy need not come to a limit."""
        return bool(timers(self.steps, left_out).size)

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
        noise, judged = tuple(self.irrelevant.tolist()), None
        if np.shape(self.steps.observation)[1] - len(noise) > MOST_JUDGED:
            judged = self.hiding_repeats(noise)
        found = functools.reduce(np.intersect1d, (idle_numbers(steps, noise, judged) for steps in self.by_number))
        if judged is not None and len(found) < len(judged):
            return found[:0]  # what is left would not repeat
        found = self._telling_nothing(found)
        if found.size and not tells_what_is_paid(self.steps, (*noise, *found.tolist())):
            return found[:0]
        return found

    def _telling_nothing(self, numbers: Int[np.ndarray, " candidates"]) -> Int[np.ndarray, " left_out"]:
        """Those of the numbers that tell nothing together with another one either."""
        return functools.reduce(np.setdiff1d, (telling_together(each, numbers) for each in self.by_number), numbers)

    def repeating(self, left_out: tuple[int, ...] = ()) -> float:
        """The share of the distinct observations that come again, without the numbers that are left out."""
        return repeating(without(self.steps.observation, left_out))

    def shows_names(self, values: int) -> bool:
        """Whether numbers stand in grids of integers, such as kinds of tiles, each of them below so many values.

        Others have to be as few by what the environment declares, since more than a random policy saw may come.
        """
        builder, seen = self.builder, np.asarray(self.steps.observation)
        if not isinstance(builder, GymnasiumBuilder) or builder.compiles or seen.ndim != 2:
            return False
        grids, space = builder.inspected.observed.grids, builder.observations
        if not grids or not isinstance(space, Numbers) or builder.stack not in (None, 1):
            return False
        high, is_name = np.array(space.high), (seen >= 0) & (seen < values) & (seen == np.floor(seen))
        few = bool((np.delete(high, grids) < values).all() and (high[list(grids)] > 1).any())
        return few and min(space.low) >= 0 and bool(is_name.all())

    def layouts_differ(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether the world is another one in each episode: episodes begin differently, and actions lead elsewhere."""
        begins = without(self.steps.observation, left_out)[self.steps.begins]
        return len(np.unique(begins, axis=0)) > 1 and outcomes(self.steps, left_out).are_by_episode

    @functools.cached_property
    def far_from_0(self) -> tuple[tuple[int, float], ...]:
        """The numbers that are farther from 0 than they are from each other, and a middle of each, in few digits."""
        builder, seen = self.builder, np.asarray(self.steps.observation, np.float64)
        parts = builder.interface.reading.parts if isinstance(builder, GymnasiumBuilder) else ()
        is_number = [part.is_continuous and not part.sizes for part in parts for _ in part.low]
        if seen.ndim != 2 or seen.shape[1] != len(is_number):
            return ()
        width, found = np.ptp(seen, axis=0), list[tuple[int, float]]()
        for place in np.flatnonzero(is_number & (width > 0) & (np.abs(seen).min(axis=0) > width)).tolist():
            step = 10.0 ** np.floor(np.log10(width[place]))
            found.append((place, float(np.round(np.median(seen[:, place]) / step) * step)))
        return (*found,)

    def most_values(self, left_out: tuple[int, ...] = ()) -> int:
        """How many values the number has that has most of them, without the numbers that are left out."""
        return max(len(np.unique(number)) for number in without(self.steps.observation, left_out).T)

    def numbers_tell_more(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether outcomes are left to chance, and numbers tell more of what is paid soon than equal observations."""
        return self.chance(left_out).different > 0 and numbers_tell_more(self.steps, left_out)

    def names_tell_more(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether outcomes are left to chance, and names tell more of what is paid next than equal observations."""
        return outcomes(self.steps, left_out).are_by_chance and names_tell_more(self.steps, left_out)

    def hiding_repeats(self, left_out: tuple[int, ...]) -> Int[np.ndarray, " found"]:
        """The few numbers that do not repeat, if observations do without them; none: there are no such numbers.

        They change in most steps: a constant of an episode may be a goal, which is hard to tell among many numbers.
        """
        here, after = np.asarray(self.steps.observation), np.asarray(self.steps.next_observation)
        changing = np.setdiff1d(np.flatnonzero(np.mean(here != after, axis=0) > 1 / 2), left_out)
        found = [number for number in changing.tolist() if repeating(here[:, number]) < REPEATED]
        hide = 0 < len(found) <= MOST_JUDGED and self.repeating((*left_out, *found)) >= REPEATED
        return np.array(found if hide else [], np.int64)

    def pace(self, left_out: tuple[int, ...] = ()) -> Pace:
        """How many steps an action needs to make a difference: the median over numbers of an action.

        Of several numbers, each may be taken back, but the others go on: nothing is a step back there.
        """
        found = zip(*(pace(steps, left_out) for steps in self.by_number), strict=True)
        usual, steps = (round(np.median(each)) for each in found)
        return Pace(usual, steps if len(self.by_number) == 1 else usual)

    def has_switch(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether an action undoes what it did when it is taken again."""
        return any(has_switch(steps, left_out) for steps in self.by_number)

    def decides_anew(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether numbers that are drawn anew in each step decide between actions."""
        return any(decides_anew(steps, left_out) for steps in self.by_number)

    def turns(self, left_out: tuple[int, ...] = ()) -> bool:
        """Whether what an action pays turns around within a few steps."""
        return any(turns(steps, left_out) for steps in self.by_number)

    @property
    def by_number(self) -> list[Steps]:
        """The steps or, for each number of which actions have many combinations, the steps as if it were the action."""
        listed = self.builder.actions if isinstance(self.builder, PackageBuilder) else None
        if listed is None or listed.sizes is None:
            return [self.steps]
        return [self.steps._replace(action=each) for each in np.unravel_index(self.steps.action, listed.sizes)]

    @functools.cached_property
    def told_by_step_before(self) -> float:
        """The share of a number's change that the step before tells, where the last one hides what moves it; or 0."""
        numbers = np.ndim(self.steps.observation) == 2
        return max(map(told_by_step_before, self.by_number)) if numbers else 0.0

    @functools.cached_property
    def told_by(self) -> Told | None:
        """The part of the past that tells most of the rewards; None: no part tells enough."""
        steps, noise = self.steps, tuple(self.irrelevant.tolist()) if np.ndim(self.steps.observation) == 2 else ()
        here, after = (without(each, noise) for each in (steps.observation, steps.next_observation))
        return told_by_past(steps._replace(observation=here, next_observation=after))

    @property
    def has_contexts(self) -> bool:
        """Whether one of the integers that make up a state stays the same in each episode, and differs between."""
        steps = self.steps_by_integer
        here, after = np.asarray(steps.observation), np.asarray(steps.next_observation)
        return bool(np.any((here == after).all(axis=0) & (np.ptp(here, axis=0) > 0)))

    def chance(self, left_out: tuple[int, ...] = ()) -> Chance:
        """What followed where the same action was taken in the same observation again."""
        table = self._table()
        steps = self.steps if table is None else table_steps(table)
        if self.builder.repeats > 1:  # a limit cuts actions short
            steps = Steps(*(np.asarray(each)[~np.asarray(steps.truncated)] for each in steps))
        return chance(steps, left_out)


def _shown(builder: EnvironmentBuilder) -> tuple[int | str | None, bool, Origins]:
    """What of the past is shown, whether integers are numbers, and what is subtracted."""
    origins = builder.interface.reading.origins if isinstance(builder, GymnasiumBuilder) else ()
    return getattr(builder, "stack", None), getattr(builder, "encoding", None) == "numbers", origins
