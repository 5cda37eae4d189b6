"""Actions as one list: those of a Discrete space as they are, levels of a Box, and all combinations of several."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from uppertail.environments.spaces import UNBOUNDED, is_a
from uppertail.errors import InputError

LEVELS = 3  # of each number of a Box, if none are given
MORE_LEVELS = 5  # that a note suggests
MOST_ACTIONS = 64  # each is learned as an action of its own
MOST_COMBINED = 1_024  # each has the mean of what is learned for its numbers
WRAP = "wrap the environment (--env.wrappers) so that each action is one of a list"


class Actions(NamedTuple):
    """How actions are numbered, from 0.

    Args:
        size: how many there are.
        first: the environment's own number of the first.
        own: [size, ...], what the environment takes for each; None: a whole number, counted from `first`.
        note: how numbers were cut into levels where none were given; None: they were not.
        sizes: how many values each number of an action has, if what is learned for these is combined, since there are
            too many actions to learn each by itself; None: there are not.
    """

    size: int
    first: int = 0
    own: np.ndarray | None = None
    note: str | None = None
    sizes: tuple[int, ...] | None = None

    def equal(self, other: "Actions") -> bool:
        """Whether an environment takes the same for each number."""
        own = [np.arange(each.size) if each.own is None else each.own for each in (self, other)]
        return np.array_equal(own[0], own[1]) and (self.first, self.sizes) == (other.first, other.sizes)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What pictures call those that are more than a whole number."""
        if self.own is None:
            return {}
        return {"actions": tuple(", ".join(f"{each:g}" for each in np.ravel(action)) for action in self.own)}

    @property
    def of_values(self) -> np.ndarray | None:
        """[size, integers], where a mask of each value of each integer has the values of each action.

        None: an action is not several integers.
        """
        if self.own is None or self.own.dtype.kind == "f":
            return None
        values = [len(np.unique(integer)) for integer in self.own.reshape(self.size, -1).T]
        of_action = np.unravel_index(np.arange(self.size), values)
        return np.stack(of_action, axis=-1) + np.cumsum([0, *values[:-1]])

    def taken(self, number: Any, xp: Any = np) -> Any:
        """What the environment takes for one number or an array of them, in a copy; `xp`: as for `read_space`."""
        return number + self.first if self.own is None else xp.array(xp.asarray(self.own)[number])


def by_action(mask: np.ndarray, of_values: np.ndarray | None) -> np.ndarray:
    """[..., actions], which are allowed, of a mask [..., values] of each value of each integer of an action.

    An action is allowed if its values are. What is no such mask is left as it is.
    """
    if of_values is None or mask.shape[-1:] != (of_values.max() + 1,):
        return mask
    return np.all(mask[..., of_values], axis=-1)


def list_actions(space: Any, levels: int | None = None) -> Actions:
    """The actions of a space as one list; in that of combinations the last number changes fastest.

    Args:
        space: of Gymnasium or gymnax.
        levels: into how many levels each number of a Box is cut, both ends among them; None: 3.

    Raises:
        InputError: there is no such list, it is longer than 1,024, or levels are given for what has none.
    """
    if not is_a(space, "Discrete", "Box", "MultiDiscrete", "MultiBinary"):
        raise InputError(f"The action space {space} is neither a list, nor a Box, nor several integers: {WRAP}.")
    if levels is not None and not is_a(space, "Box"):
        raise InputError(f"levels is {levels}, but only a Box is cut into levels, not {space}: leave it out.")
    if levels is not None and not 2 <= levels <= MOST_ACTIONS:
        raise InputError(f"levels is {levels}: use 2, which are both ends, to {MOST_ACTIONS}, or leave it out.")
    if is_a(space, "Discrete"):
        return Actions(int(space.n), int(getattr(space, "start", 0)))
    values = values_of(space, levels or LEVELS)
    if (count := _count(values)) > MOST_COMBINED:
        shown = f"{count:,}" if count < 10**9 else f"about 10^{math.log10(count):.0f}"
        cut = f", each cut into {levels or LEVELS} levels" if is_a(space, "Box") else ""
        raise InputError(
            f"The action space {space} has {len(values)} numbers{cut}, which would make {shown} actions, more than "
            f"{MOST_COMBINED:,}: {_remedy(space, levels or LEVELS)}."
        )
    own = np.array([*itertools.product(*values)], space.dtype).reshape(count, *space.shape)
    sizes = tuple(map(len, values)) if count > MOST_ACTIONS else None
    return Actions(count, own=own, note=_note(space, values) if levels is None else None, sizes=sizes)


def values_of(space: Any, levels: int = LEVELS) -> list[Sequence[Any]]:
    """The values of each number of an action."""
    if is_a(space, "MultiBinary"):
        return [range(2)] * math.prod(space.shape)
    if is_a(space, "MultiDiscrete"):
        start = np.broadcast_to(getattr(space, "start", 0), space.shape)
        ends = start.ravel(), (start + space.nvec).ravel()
        return [*map(range, *(each.tolist() for each in ends))]
    low, high = (np.ravel(np.broadcast_to(bound, space.shape)).astype(np.float64) for bound in (space.low, space.high))
    if not (np.abs([low, high]) < UNBOUNDED).all():
        raise InputError(
            f"The action space {space} has no bounds to put levels between: give it some in the environment, or by a "
            "wrapper of your own (--env.wrappers) that declares a Box with bounds."
        )
    cut, kind = np.linspace(low, high, levels).T, np.dtype(space.dtype)
    return [np.unique((each if kind.kind == "f" else each.round()).astype(kind)).tolist() for each in cut]


def _count(values: list[Sequence[Any]]) -> int:
    return math.prod(map(len, values))


def _remedy(space: Any, levels: int) -> str:
    """Fewer levels, where there may be some."""
    fewer = range(levels - 1, 1, -1) if is_a(space, "Box") else ()
    fitting = next((each for each in fewer if _count(values_of(space, each)) <= MOST_COMBINED), None)
    return WRAP if fitting is None else f"use --env.levels {fitting}, or {WRAP}"


def _note(space: Any, values: list[Sequence[Any]]) -> str | None:
    """How numbers were cut; None if they have no more values."""
    more = _count(values_of(space, MORE_LEVELS))
    if more == _count(values):
        return None
    ends, most = {(each[0], each[-1]) for each in values}, max(map(len, values))
    where = "[{:g}, {:g}]".format(*ends.pop()) if len(ends) == 1 else "their bounds"
    several = f"{len(values)} numbers in {where}, each cut into {most} levels, which makes {_count(values)} actions"
    what = f"a number in {where}, cut into {most} levels" if len(values) == 1 else several
    remedy = f"--env.levels {MORE_LEVELS} for more" if more <= MOST_ACTIONS else "--env.levels"
    return f"An action is {what} ({remedy})."
