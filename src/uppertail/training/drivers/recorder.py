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


@dataclasses.dataclass
class Recorder:
    """Records return distributions, or nothing; a driver calls it between rollouts."""

    records: bool
    groups: Groups
    environments: PyTree
    first: Array  # the first observation of each seed's run
    pairs: int  # all seeds' actions in one state
    plane: Plane | None
    iteration: int = 0  # rollouts before the next chunk

    def __post_init__(self) -> None:
        self._due = moments() if self.records else []
        self._taken: dict[int, dict[int, PyTree]] = {}

    def use(self, loop: Loop, template: RunState, seconds: Stopwatch) -> None:
        """Compiles what is recorded of states of these shapes; again if the distribution is fitted anew."""
        if not self.records:
            return
        table = isinstance(self.environments, FiniteMDP)
        self.rollout_steps, capture = loop.rollout_steps, Capture.of(loop, table, self.pairs, self.plane)
        self._probes = self.groups.split((self.environments if table else None, self.first))
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
            self.take(place, run, iteration, always=self.records)

    def distributions(self, builder: EnvironmentBuilder, env_steps: list[int]) -> Distributions | None:
        """All recorded distributions, from the environment steps of each seed within its limits; None: it took none."""
        if not self._taken:
            return None
        size, iterations = self.rollout_steps, sorted(self._taken)
        rows = [self.groups.join([part for _, part in sorted(self._taken[each].items())]) for each in iterations]
        arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        ends = size * -(-np.asarray(env_steps) // size)
        arrays["step"] = np.minimum(size * np.asarray(iterations)[:, None], ends)
        if self.plane:
            arrays[PLANE + "numbers"] = np.array(self.plane.numbers)
        return with_environment(Distributions.of_arrays(arrays), self.environments, builder)

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
        for path, array in arrays.items() if self.records else ():
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
