"""One seed of a run that recorded: its table, its greedy path, and the states that are shown."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.environments import FiniteMDP
from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.records import Distributions, RunFolder
from uppertail.training.checkpoint import to_named
from uppertail.types import PyTree

SHOWN = 8  # how many states are shown with their distributions, unless the user names some
OPTIMISM = 2.0  # standard deviations from the mean to the upper bound: the middle of UCB's range

OfActions = Float[np.ndarray, "moments states actions"]


def kind_of(part: str, described: Mapping[str, Any]) -> Any:
    """The built-in class of a part; None if it is another one."""
    return PARTS[part].classes.get(described["name"])


def built_in(part: str, described: Mapping[str, Any]) -> Any:
    """A part with its settings, as a summary has them; None if its class is not built in, or refuses them."""
    try:
        return kind_of(part, described)(**{name: each for name, each in described.items() if name != "name"})
    except (InputError, TypeError, ValueError):
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class Seed:
    """One seed of a run that recorded."""

    recorded: Distributions  # the records of all seeds
    row: int  # which of the seeds
    family: Any  # the return distributions; None if their class is not built in
    policy: Any  # the exploration policy; None likewise
    discount: float  # per step

    @classmethod
    def of(cls, run: RunFolder, recorded: Distributions, row: int) -> Self:
        """A seed of a run."""
        summary = run.summary
        family = built_in("distribution", summary["distribution"])
        shapes = {name: array.shape[5:] for name, array in recorded.parameters.items()}
        if family is not None and shapes != {name: leaf.shape for name, leaf in to_named(family.terminal()).items()}:
            family = None  # what was recorded is not of this family
        return cls(recorded, row, family, built_in("policy", summary["policy"]), float(summary["settings"]["discount"]))

    @functools.cached_property
    def table(self) -> FiniteMDP | None:
        """Its environment's table; None if it has none."""
        arrays = {name: jnp.asarray(array[self.row]) for name, array in self.recorded.table.items()}
        return FiniteMDP(**arrays, time_limit=1) if arrays else None

    @functools.cached_property
    def allowed(self) -> Bool[np.ndarray, "moments states actions"] | None:
        """Which actions are allowed; None: all are, or it is not known."""
        if self.recorded.allowed is not None:
            return self.recorded.allowed[:, self.row]
        mask = self.recorded.table.get("action_mask")
        return None if mask is None else mask[self.row][np.maximum(self.recorded.states[:, self.row], 0)]

    def _of_allowed(self, numbers: OfActions) -> OfActions:
        return numbers if self.allowed is None else np.where(self.allowed, numbers, -np.inf)

    @functools.cached_property
    def mean(self) -> OfActions:
        """Mean of each action's return, over all members; - infinity where it is not allowed."""
        return self._of_allowed(self.recorded.mean[:, self.row])

    @functools.cached_property
    def std(self) -> OfActions:
        """Its standard deviation, that of the mixture over members; - infinity where it is not allowed."""
        return self._of_allowed(self.recorded.std[:, self.row])

    @functools.cached_property
    def upper(self) -> OfActions:
        """Its upper bound."""
        return self.mean + OPTIMISM * self.std

    @functools.cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray] | None:
        """How often each action was taken and how many steps ago last (-1: never), [moments, states, actions] both."""
        visits, last = self.recorded.visits, self.recorded.last
        if visits is None or last is None:
            return None
        ages = self.recorded.step[:, :, None, None] - last
        return visits[:, self.row], np.where(last > 0, ages, -1)[:, self.row]

    def at(self, moment: int) -> dict[int, int]:
        """The place of each state that was recorded at a moment, by the state."""
        states = self.recorded.states[moment, self.row].tolist()
        return {state: place for place, state in enumerate(states) if state >= 0}

    def start(self, moment: int) -> int:
        """The state in which an episode begins, if that is known and recorded; else the first recorded one."""
        at, path = self.at(moment), self.recorded.path
        known = 0 if self.table is None else int(self.table.start_state[0])
        start = known if path is None else int(path[self.row, 0])
        return start if start in at else next(iter(at), 0)

    def path(self, moment: int = -1) -> list[int]:
        """The states along the greedy path at a moment, as far as they were recorded; likeliest outcomes count."""
        at, state, path = self.at(moment), self.start(moment), list[int]()
        if self.recorded.path is not None:
            return [state for state in dict.fromkeys(self.recorded.path[self.row].tolist()) if state in at] or [state]
        best = self.mean[moment].argmax(axis=1)
        while state in at and state not in path:
            path.append(state)
            if self.table is None:
                break
            action = best[at[state]]
            where = (state, action, int(np.argmax(self.table.probability[state, action])))
            if bool(self.table.terminated[where]):
                break
            state = int(self.table.next_state[where])
        return path

    def choose_states(self, asked: list[int]) -> list[int]:
        """The states whose distributions are shown: those asked for, else some along the path, else often visited."""
        if asked:
            return asked
        path = self.path()
        states = [path[place] for place in np.unique(np.linspace(0, len(path) - 1, SHOWN).round().astype(int))]
        if self.data is not None:
            counts = self.data[0][-1].sum(axis=1)
            order = self.recorded.states[-1, self.row][np.argsort(-counts, kind="stable")]
            states += [int(each) for each in order[: (counts > 0).sum()] if each >= 0 and each not in path]
        along = {state: place for place, state in enumerate(path)}
        return sorted(dict.fromkeys(states[:SHOWN]), key=lambda state: (along.get(state, len(path)), state))

    @property
    def columns(self) -> int:
        """In how many columns the states of a picture lie."""
        count, rows = self.recorded.states.shape[2] if self.table is None else self.table.num_states, self.recorded.rows
        return -(-count // rows) if rows > 1 else min(count, 25)

    def state_name(self, state: int) -> str:
        """What a state is called: as the environment says, or by its place."""
        if names := self.recorded.names.get("states"):
            return names[state]
        if not self.recorded.of_states:
            return "first observation"
        if self.recorded.rows > 1:
            return f"row {state // self.columns}, col {state % self.columns}"
        return f"state {state}"

    def places(self, states: list[int]) -> Int[np.ndarray, "moments states"]:
        """The position of each state among those recorded at each moment; -1: it is not there."""
        each = [self.at(moment) for moment in range(len(self.recorded.step))]
        return np.array([[at.get(state, -1) for state in states] for at in each], int).reshape(len(each), len(states))

    def parameters(self, where: Any) -> PyTree:
        """The family's parameters where an index of moments and states points; their last axes stay."""
        one, arrays = self.family.terminal(), self.recorded.parameters
        leaves = [jnp.asarray(arrays[name][:, self.row][where], leaf.dtype) for name, leaf in to_named(one).items()]
        return jax.tree.unflatten(jax.tree.structure(one), leaves)
