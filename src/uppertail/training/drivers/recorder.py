"""Records return distributions while a run trains: at moments that lie ever further apart, in states of a table."""

import dataclasses
import itertools
from typing import Self, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from uppertail.distributions.members import spread
from uppertail.encodings import States
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.networks import Network
from uppertail.records.distributions import OUTCOMES, PLANE, STARTS, Distributions
from uppertail.training.drivers.plane import Plane
from uppertail.training.groups import Groups
from uppertail.training.loop import Loop, RunState
from uppertail.training.programs import Stopwatch
from uppertail.types import PyTree

GROWTH = 1.2
"""The number of rollouts grows by this factor from one moment to the next, or by one where that is more."""

MOMENTS = 100
"""The most moments of a run: enough for 300 million rollouts."""

NUMBERS = 10_000_000
"""The most numbers, of four bytes each, that a recording holds."""


MOST_ENTRIES = 2_000_000
"""The most outcomes of all seeds' tables that are recorded."""


def moments() -> list[int]:
    """The numbers of rollouts after which there is a moment, beside the beginning and the end."""
    powers = (round(GROWTH**exponent) for exponent in itertools.count())
    return list(itertools.islice((value for value, _ in itertools.groupby(powers)), MOMENTS - 2))


@dataclasses.dataclass(frozen=True)
class Capture:
    """What is recorded of each seed at one moment: all states of a table, or those along the greedy path, or the start.

    Args:
        loop: what a run does with its steps.
        table: whether the environment is a table.
        all_states: whether all states are recorded.
        count: how many states are recorded.
        plane: two numbers of a vector, over which width and evidence are recorded; None: no vectors are observed.
    """

    loop: Loop
    table: bool
    all_states: bool
    count: int
    plane: Plane | None = None

    @classmethod
    def of(cls, loop: Loop, table: bool, pairs: int, plane: Plane | None) -> Self:
        """What there is room for, where `pairs` is the number of all seeds' actions in one state."""
        parts = max(1, loop.agent.members or 1) * loop.agent.family.num_outputs + 4
        most = max(1, NUMBERS // (MOMENTS * pairs * parts))
        states = loop.counted[0] if loop.counted else 1
        all_states = loop.counted is not None and states <= most
        return cls(loop, table, all_states, states if all_states else min(most, states) if table else 1, plane)

    def of_seed(self, probe: tuple[PyTree, Array], run: RunState) -> dict[str, Array]:
        """The arrays to record for one seed, whose environment, if it is a table, and first observation are given."""
        loop, network = self.loop, self.loop.result(run)
        found = self.of_network(probe, network)
        found["episode"] = run.episodes if loop.episodes is None else jnp.minimum(run.episodes, loop.episodes)
        if loop.counted and (self.all_states or self.table):
            states = jnp.maximum(found["states"], 0)
            found |= {"visits": run.visit_counts.visits[states], "last": run.visit_counts.last[states]}
        if self.plane:
            plane = self.plane.capture(loop.agent, network, probe[1])
            found |= {PLANE + name: array for name, array in plane.items()}
        return found

    def of_network(self, probe: tuple[PyTree, Array], network: Network) -> dict[str, Array]:
        """States, and the return distributions of their actions."""
        agent, (environment, first) = self.loop.agent, probe
        states = self._states(environment, network)
        observations = jnp.maximum(states, 0) if self.all_states or self.table else first[None]
        z = jax.vmap(agent.returns_by_member, in_axes=(None, 0))(network, observations)
        spreads = jax.vmap(lambda each: spread(agent.family, each))(z)
        leaves, _ = jax.tree_util.tree_flatten_with_path(z)
        parameters = {f"z/{jax.tree_util.keystr(path, simple=True, separator='/')}": leaf for path, leaf in leaves}
        return {"states": states, "mean": spreads.mean, "std": spreads.total, **parameters}

    def _states(self, environment: PyTree, network: Network) -> Int[Array, " states"]:
        if not self.table or self.all_states:
            return jnp.arange(self.count, dtype=jnp.int32)
        agent = self.loop.agent

        def step(state: Array, _: None) -> tuple[Array, Array]:
            z = agent.returns_by_member(network, jnp.maximum(state, 0))
            action = jnp.argmax(spread(agent.family, z).mean)
            where = (state, action, jnp.argmax(environment.probability[state, action]))
            over = (state < 0) | environment.terminated[where]
            return jnp.where(over, -1, environment.next_state[where]), state

        return jax.lax.scan(step, environment.start_state[0], length=self.count)[1]


class Recorder:
    """Records return distributions; a driver calls it between rollouts.

    Args:
        groups: the run's groups of seeds.
        environments: compiled environments of all seeds; None if there are none.
        first: the first observation of each seed's run.
        seconds: the stopwatch of the run.

    Attributes:
        iteration: rollouts before the next chunk.
    """

    def __init__(self, groups: Groups, environments: PyTree, first: Array, seconds: Stopwatch) -> None:
        self.groups, self.seconds, self.iteration = groups, seconds, 0
        self._due = moments()
        self._taken: dict[int, dict[int, PyTree]] = {}
        self._probes = groups.split((environments if isinstance(environments, FiniteMDP) else None, first))

    def use(self, capture: Capture, template: RunState) -> None:
        """Takes what to record, of states of these shapes; again if the distribution is fitted anew."""
        self.capture = capture
        self._programs = [
            self.seconds.compiled(Capture.of_seed, capture, probe, group.part_of(_without_data(template)))
            for group, probe in zip(self.groups, self._probes, strict=True)
        ]

    def pieces(self, iterations: int) -> list[int]:
        """The lengths of a chunk's pieces, so that each of its moments is the end of a piece."""
        end = self.iteration + iterations
        edges = [self.iteration, *(each for each in self._due if self.iteration < each < end), end]
        return np.diff(edges).tolist()

    def take(self, place: int, run: RunState, iteration: int) -> None:
        """Records the group at this place, if there is a moment after so many rollouts."""
        if iteration in self._due:
            self._take(place, run, iteration)

    def take_all(self, state: list[RunState]) -> None:
        """Records all groups where the run is now: at its beginning and its end."""
        for place, run in enumerate(state):
            self._take(place, run, self.iteration)

    def _take(self, place: int, run: RunState, iteration: int) -> None:
        found = self._programs[place](self._probes[place], _without_data(run))
        self._taken.setdefault(iteration, {})[place] = jax.tree.map(np.asarray, found)

    def distributions(self, env_steps: list[int]) -> Distributions:
        """All recorded distributions, from the environment steps of each seed within its limits."""
        size, plane = self.capture.loop.rollout_steps, self.capture.plane
        places, iterations = range(len(self.groups.groups)), sorted(self._taken)
        rows = [self.groups.join([self._taken[each][place] for place in places]) for each in iterations]
        arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        ends = size * -(-np.asarray(env_steps) // size)
        arrays["step"] = np.minimum(size * np.asarray(iterations)[:, None], ends)
        if plane:
            arrays[PLANE + "numbers"] = np.array(plane.numbers)
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


def table_shape(observations: object, num_actions: int) -> tuple[int, int] | None:
    """The shape of a table of states and actions; None if observations are not states."""
    return (observations.count, num_actions) if isinstance(observations, States) else None


def with_environment(recorded: Distributions, environments: PyTree, builder: EnvironmentBuilder) -> Distributions:
    """A recording with the names that pictures need, and the tables, if there are some that are not too large.

    Args:
        recorded: what was recorded.
        environments: the compiled environments of all seeds; None where Python makes the steps.
        builder: built them.
    """
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
