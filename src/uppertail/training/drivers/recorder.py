"""Records return distributions while a run trains: at moments that lie ever further apart."""

import dataclasses
import itertools
from typing import TypeGuard

import jax
import numpy as np
from jaxtyping import Array

from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.records.distributions import OUTCOMES, PLANE, STARTS, Distributions
from uppertail.training.drivers.capture import MOMENTS, Capture, Plane
from uppertail.training.ledger import Stopwatch
from uppertail.training.loop import Loop, RunState
from uppertail.training.programs import Groups
from uppertail.types import PyTree

GROWTH = 1.2  # the number of rollouts grows by this factor from one moment to the next, or by one where that is more
MOST_ENTRIES = 2_000_000  # the most outcomes of all seeds' tables that are recorded


def moments() -> list[int]:
    """The numbers of rollouts after which there is a moment, beside the beginning and the end."""
    powers = (round(GROWTH**exponent) for exponent in itertools.count())
    return list(itertools.islice((value for value, _ in itertools.groupby(powers)), MOMENTS - 2))


class Recorder:
    """Records return distributions; a driver calls it between rollouts. `pairs` counts all seeds' actions in one state.

    Attributes:
        iteration: rollouts before the next chunk.
    """

    def __init__(self, groups: Groups, environments: PyTree, first: Array, pairs: int, plane: Plane | None) -> None:
        self.groups, self.pairs, self.plane, self.iteration = groups, pairs, plane, 0
        self._table = isinstance(environments, FiniteMDP)
        self._probes = groups.split((environments if self._table else None, first))
        self._due = moments()
        self._taken: dict[int, dict[int, PyTree]] = {}

    def use(self, loop: Loop, template: RunState, seconds: Stopwatch) -> None:
        """Compiles what is recorded of states of these shapes; again if the distribution is fitted anew."""
        self.rollout_steps, capture = loop.rollout_steps, Capture.of(loop, self._table, self.pairs, self.plane)
        self._programs = [
            seconds.compiled(Capture.of_seed, capture, probe, group.part_of(_without_data(template)))
            for group, probe in zip(self.groups, self._probes, strict=True)
        ]

    def pieces(self, iterations: int) -> list[int]:
        """The lengths of a chunk's pieces, so that each of its moments is the end of a piece."""
        end = self.iteration + iterations
        edges = [self.iteration, *(each for each in self._due if self.iteration < each < end), end]
        return np.diff(edges).tolist()

    def take(self, place: int, run: RunState, iteration: int, always: bool = False) -> None:
        """Records the group at this place, always or if there is a moment after so many rollouts."""
        if always or iteration in self._due:
            found = self._programs[place](self._probes[place], _without_data(run))
            self._taken.setdefault(iteration, {})[place] = jax.tree.map(np.asarray, found)

    def take_all(self, state: list[RunState], iteration: int) -> None:
        """Records all groups after so many rollouts: at the run's beginning and its end."""
        for place, run in enumerate(state):
            self.take(place, run, iteration, always=True)

    def distributions(self, env_steps: list[int]) -> Distributions:
        """All recorded distributions, from the environment steps of each seed within its limits."""
        size, iterations = self.rollout_steps, sorted(self._taken)
        rows = [self.groups.join([part for _, part in sorted(self._taken[each].items())]) for each in iterations]
        arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        ends = size * -(-np.asarray(env_steps) // size)
        arrays["step"] = np.minimum(size * np.asarray(iterations)[:, None], ends)
        if self.plane:
            arrays[PLANE + "numbers"] = np.array(self.plane.numbers)
        return Distributions.of_arrays(arrays)

    def saved(self) -> dict[str, np.ndarray]:
        """Arrays that a checkpoint must hold to go on with the recording."""
        return {
            f"{iteration}/{place}/{name}": array
            for iteration, groups in self._taken.items()
            for place, arrays in groups.items()
            for name, array in arrays.items()
        }

    def restore(self, arrays: dict[str, np.ndarray], iteration: int) -> None:
        """Goes back to a checkpoint."""
        self.iteration, self._taken = iteration, {}
        for path, array in arrays.items():
            moment, place, name = path.split("/", 2)
            self._taken.setdefault(int(moment), {}).setdefault(int(place), {})[name] = array


def _without_data(run: RunState) -> RunState:
    """The part of a run's state that is recorded from."""
    return run._replace(learned=run.learned._replace(memory=()), episode=())


def with_environment(recorded: Distributions, environments: PyTree, builder: EnvironmentBuilder) -> Distributions:
    """A recording with the names that pictures need, and with the environments if they are small tables."""
    counts = {"actions": recorded.mean.shape[3], "states": recorded.states.shape[2] if recorded.of_states else 0}
    names = {name: each for name, each in builder.names.items() if counts.get(name, len(each)) == len(each)}
    recorded = dataclasses.replace(recorded, names=names)
    if not fits_table(environments):
        return recorded
    arrays = {name: getattr(environments, name) for name in (*OUTCOMES, *STARTS)}
    table = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    return dataclasses.replace(recorded, table=table, rows=builder.rows)


def fits_table(environments: PyTree) -> TypeGuard[FiniteMDP]:
    """Whether these are tables that a recording has room for."""
    return isinstance(environments, FiniteMDP) and environments.next_state.size <= MOST_ENTRIES
