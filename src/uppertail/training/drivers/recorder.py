"""Records return distributions while a run trains: at moments that lie ever further apart, in states of a table."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from uppertail.encodings import States
from uppertail.environments import FiniteMDP
from uppertail.networks import Network
from uppertail.records.distributions import PLANE, Distributions
from uppertail.training.drivers.groups import Group, Groups, over_seeds
from uppertail.training.drivers.plane import Plane
from uppertail.training.loop import Loop, RunState
from uppertail.training.programs import Stopwatch
from uppertail.types import PyTree

GROWTH = 1.2
"""The number of rollouts grows by this factor from one moment to the next, or by one where that is more."""

MOMENTS = 100
"""The most moments of a run: enough for 300 million rollouts."""

NUMBERS = 10_000_000
"""The most numbers, of four bytes each, that a recording holds."""


def moments() -> list[int]:
    """The numbers of rollouts after which there is a moment, beside the beginning and the end."""
    powers = (round(GROWTH**exponent) for exponent in itertools.count())
    return list(itertools.islice((value for value, _ in itertools.groupby(powers)), MOMENTS - 2))


@dataclasses.dataclass(frozen=True)
class Capture:
    """What is recorded of each seed at one moment.

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
    plane: Plane | None

    def of_seeds(self, probes: tuple[PyTree, Array], runs: RunState) -> dict[str, Array]:
        """The arrays to record for several seeds."""
        return over_seeds(self.of_seed, probes, runs)

    def of_seed(self, probe: tuple[PyTree, Array], run: RunState) -> dict[str, Array]:
        """The arrays to record for one seed."""
        agent, (environment, first), network = self.loop.agent, probe, self.loop.result(run)
        states = self._states(environment, network)
        observations = jnp.maximum(states, 0) if self.all_states or self.table else first[None]
        z = jax.vmap(agent.returns_by_member, in_axes=(None, 0))(network, observations)
        mean, std = (jax.vmap(jax.vmap(jax.vmap(each)))(z) for each in (agent.family.mean, agent.family.std))
        leaves, _ = jax.tree_util.tree_flatten_with_path(z)
        found = {
            "episode": run.episodes if self.loop.episodes is None else jnp.minimum(run.episodes, self.loop.episodes),
            "states": states,
            "mean": jnp.mean(mean, axis=1),
            "std": jnp.sqrt(jnp.mean(std**2, axis=1) + jnp.var(mean, axis=1)),
            **{f"z/{jax.tree_util.keystr(path, simple=True, separator='/')}": leaf for path, leaf in leaves},
        }
        if self.loop.counted and (self.all_states or self.table):
            found |= {"visits": run.seen.visits[observations], "last": run.seen.last[observations]}
        if self.plane:
            found |= {PLANE + name: array for name, array in self.plane.capture(agent, network, first).items()}
        return found

    def _states(self, environment: PyTree, network: Network) -> Int[Array, " states"]:
        if not self.table or self.all_states:
            return jnp.arange(self.count, dtype=jnp.int32)

        def step(state: Array, _: None) -> tuple[Array, Array]:
            z = self.loop.agent.returns_by_member(network, jnp.maximum(state, 0))
            action = jnp.argmax(jnp.mean(jax.vmap(jax.vmap(self.loop.agent.family.mean))(z), axis=0))
            where = (state, action, jnp.argmax(environment.probability[state, action]))
            over = (state < 0) | environment.terminated[where]
            return jnp.where(over, -1, environment.next_state[where]), state

        return jax.lax.scan(step, environment.start_state[0], length=self.count)[1]


class Recorder:
    """Records return distributions; a driver calls it between rollouts.

    It records all states if there are not too many, else those along the greedy path of a table, or without a table the
    run's first observation; and a plane, if there is one.

    Args:
        loop: what a run does with its steps.
        groups: the run's groups of seeds.
        template: shapes and types of the state of all seeds.
        environments: compiled environments of all seeds; None if there are none.
        first: the first observation of each seed's run.
        num_actions: number of discrete actions.
        seconds: the stopwatch of the run.
        plane: two numbers of a vector, over which width and evidence are recorded; None: no vectors are observed.
    """

    def __init__(
        self,
        loop: Loop,
        groups: Groups,
        template: RunState,
        environments: PyTree,
        first: Array,
        num_actions: int,
        seconds: Stopwatch,
        plane: Plane | None = None,
    ) -> None:
        self.loop, self.groups, self.plane = loop, groups, plane
        table = isinstance(environments, FiniteMDP)
        parts = max(1, loop.agent.members or 1) * loop.agent.family.num_outputs + 4
        most = max(1, NUMBERS // (MOMENTS * first.shape[0] * num_actions * parts))
        states = loop.counted[0] if loop.counted else 1
        all_states = loop.counted is not None and states <= most
        count = states if all_states else min(most, states) if table else 1
        capture = Capture(loop, table, all_states, count, plane)
        self.iteration = 0
        self._due = moments()
        self._taken: dict[int, dict[int, PyTree]] = {}
        self._probes = self.groups.split((environments if table else None, first))

        def compiled(group: Group, probe: PyTree) -> Any:
            run = group.part_of(_without_data(template))
            return seconds.compiled(Capture.of_seeds, capture, probe, run)

        self._programs = groups.programs(compiled, self._probes)

    def pieces(self, iterations: int) -> list[int]:
        """The lengths of a chunk's pieces, so that each of its moments is the end of a piece."""
        end = self.iteration + iterations
        edges = [self.iteration, *(each for each in self._due if self.iteration < each < end), end]
        return np.diff(edges).tolist()

    def take(self, place: int, run: RunState, iteration: int) -> None:
        """Records one group, if this is a moment.

        Args:
            place: which of the groups.
            run: its state.
            iteration: how many rollouts there were.
        """
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
        """All recorded distributions.

        Args:
            env_steps: environment steps of each seed within its limits.
        """
        size = self.loop.rollout_steps
        places, iterations = range(len(self.groups.groups)), sorted(self._taken)
        rows = [_end_to_end([self._taken[each][place] for place in places]) for each in iterations]
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


def table_shape(observations: object, num_actions: int) -> tuple[int, int] | None:
    """The shape of a table of states and actions; None if observations are not states."""
    return (observations.count, num_actions) if isinstance(observations, States) else None


def _end_to_end(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
