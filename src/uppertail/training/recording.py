"""Records return distributions while a run trains: what is recorded, and at moments that lie ever further apart."""

import dataclasses
import itertools
import math
from collections.abc import Collection
from typing import Self, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from uppertail.agent import Agent
from uppertail.distributions import spread
from uppertail.encodings import Numbers, ObservationSpace
from uppertail.encodings.hashed import HashedNumbers
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.errors import InputError
from uppertail.masks import masked
from uppertail.networks import EncodedNetwork, Network
from uppertail.records.record import OF_TABLE, PLANE, Distributions
from uppertail.training.along import FAMILY, Along, given, numbers_of, packed, unpacked, with_numbers
from uppertail.training.driver import Driver, State
from uppertail.training.loop import Loop, RunState
from uppertail.training.programs import Programs
from uppertail.types import PyTree

MOMENTS = 100  # the most moments of a run: enough for 300 million rollouts
NUMBERS = 10_000_000  # the most numbers, of four bytes each, that a recording holds
SIDE = 30  # the most cells of a plane in each direction


@dataclasses.dataclass(frozen=True)
class Plane:
    """Cells over two numbers of a vector; the other numbers stay as in the run's first observation.

    A number goes from its declared lower bound to the upper one; where it has none, over what was seen so far.
    """

    numbers: tuple[int, int]
    low: tuple[float, float]  # declared bounds; infinite: none
    high: tuple[float, float]
    side: int  # cells in each direction

    @classmethod
    def of(
        cls, observations: ObservationSpace, over: tuple[int, int] | None, seeds: int, left_out: Collection[int] = ()
    ) -> Self | None:
        """The plane over two numbers, or the first two that count; None where observations are no vectors of two such.

        It refuses numbers that an observation does not have.
        """
        count = len(observations.low) if isinstance(observations, Numbers) else 0
        usual = [number for number in range(count) if number not in left_out]
        if over is None and len(usual) < 2:
            return None
        first, second = over or usual[:2]
        if not (isinstance(observations, Numbers) and first != second and {first, second} <= set(range(count))):
            remedy = f"use two different numbers from 0 to {count - 1}" if count > 1 else "leave it out"
            raise InputError(f"record_over is {[first, second]}, but an observation has {count} numbers: {remedy}.")
        low, high = ((bounds[first], bounds[second]) for bounds in (observations.low, observations.high))
        return cls((first, second), low, high, min(SIDE, max(1, math.isqrt(NUMBERS // (2 * MOMENTS * seeds)))))

    def of_network(self, agent: Agent, network: Network, first: Float[Array, " numbers"]) -> dict[str, Array]:
        """The arrays to record for one seed, given the first observation of its run."""
        where, bounds = np.array(self.numbers), np.array([self.low, self.high], np.float32)
        seen = network.seen_bounds() if isinstance(network, EncodedNetwork) else None
        if seen is not None:
            declared = np.broadcast_to(np.isfinite(bounds).all(axis=0), bounds.shape)
            bounds = jnp.where(declared, bounds, jnp.stack(seen)[:, where])
        area = jnp.asarray(bounds.T)
        shares = (jnp.arange(self.side, dtype=jnp.float32) + 0.5) / self.side
        ways = area[:, :1] + (area[:, 1:] - area[:, :1]) * shares[None]
        second, along = (each.ravel() for each in jnp.meshgrid(ways[1], ways[0], indexing="ij"))
        cells = jnp.broadcast_to(first, (self.side**2, *first.shape))
        cells = cells.at[:, self.numbers[0]].set(along).at[:, self.numbers[1]].set(second)
        z = jax.vmap(agent.returns_by_member, in_axes=(None, 0))(network, cells)
        spreads = jax.vmap(lambda each: spread(agent.family, each))(z)
        best = jnp.argmax(spreads.mean, axis=1)[:, None]
        found = {"std": spreads.total, "evidence": jax.vmap(network.evidence)(cells)}
        of_best = {name: jnp.take_along_axis(each, best, axis=1) for name, each in found.items() if each is not None}
        return {"area": area, **{name: each.reshape(self.side, self.side) for name, each in of_best.items()}}


@dataclasses.dataclass(frozen=True)
class Capture:
    """Records all states of a table, as many along the greedy path as there is room for, or the first observation."""

    loop: Loop
    table: bool  # whether the environment is a table
    all_states: bool  # whether all states are recorded
    count: int  # how many states are recorded
    plane: Plane | None = None  # over which width and evidence are recorded

    def of_seed(self, probe: tuple[PyTree, Array], run: RunState) -> dict[str, Array]:
        """The arrays to record for one seed, whose environment, if it is a table, and first observation are given."""
        loop, network = self.loop, self.loop.result(run)
        found = self.of_network(probe, network)
        found["episode"] = run.episodes if loop.episodes is None else jnp.minimum(run.episodes, loop.episodes)
        if loop.counted and (self.all_states or self.table):
            states = jnp.maximum(found["states"], 0)
            found |= {"visits": run.visit_counts.visits[states], "last": run.visit_counts.last[states]}
        if self.plane:
            plane = self.plane.of_network(loop.agent, network, probe[1])
            found |= {PLANE + name: array for name, array in plane.items()}
        return found

    def of_network(self, probe: tuple[PyTree, Array], network: Network) -> dict[str, Array]:
        """States, and the return distributions of their actions."""
        agent, (environment, first) = self.loop.agent, probe
        states = self._states(environment, network)
        observations = jnp.maximum(states, 0) if self.all_states or self.table else first[None]
        return {"states": states, **given(agent, network, observations)}

    def _states(self, environment: PyTree, network: Network) -> Int[Array, " states"]:
        """The states to record; beyond the end of a greedy path, -1."""
        if not self.table or self.all_states:
            return jnp.arange(self.count, dtype=jnp.int32)
        agent = self.loop.agent

        def step(state: Array, _: None) -> tuple[Array, Array]:
            z = agent.returns_by_member(network, jnp.maximum(state, 0))
            mean = spread(agent.family, z).mean
            action = jnp.argmax(masked(mean, environment.allowed(jnp.maximum(state, 0))))
            where = (state, action, jnp.argmax(environment.probability[state, action]))
            over = (state < 0) | environment.terminated[where]
            return jnp.where(over, -1, environment.next_state[where]), state

        return jax.lax.scan(step, environment.start_state[0], length=self.count)[1]


NETWORK = "network"  # the array of a moment with its packed networks
MOST_BYTES = 2**25  # of the packed networks of all moments; beyond it, none are kept
GROWTH = 1.2  # the number of rollouts grows by this factor from one moment to the next, or by one where that is more
MOST_ENTRIES = 2_000_000  # the most outcomes of all seeds' tables that are recorded


def moments() -> list[int]:
    """The numbers of rollouts after which there is a moment, beside the beginning and the end."""
    powers = (round(GROWTH**exponent) for exponent in itertools.count())
    return list(itertools.islice((value for value, _ in itertools.groupby(powers)), MOMENTS - 2))


class Recorder:
    """Records the return distributions of all seeds at the moments of a run, between its rollouts."""

    def __init__(
        self, driver: Driver, seeds: int, over: tuple[int, int] | None, left_out: Collection[int] = ()
    ) -> None:
        self.groups, self.environments = driver.groups, driver.environments
        self.pairs, self.plane = seeds * driver.num_actions, Plane.of(driver.observations, over, seeds, left_out)
        self._table = isinstance(driver.environments, FiniteMDP)
        self._probes = driver.groups.split((driver.environments if self._table else None, driver.first))
        self._due, self._taken = moments(), dict[int, dict[str, np.ndarray]]()
        self._asked, self._has_room = over is not None, True

    def use(self, loop: Loop, programs: Programs, repeats: int) -> None:
        """Takes the loop whose states are recorded, as many as there is room for; again if it is made anew."""
        self.rollout_steps, members = repeats * loop.rollout_steps, loop.agent.members or 1
        most = max(1, NUMBERS // (MOMENTS * self.pairs * (members * loop.agent.family.num_outputs + 4)))
        states = loop.counted[0] if loop.counted else 1
        all_states = loop.counted is not None and states <= most
        count = min(most, states) if all_states or self._table else 1
        if isinstance(loop.agent.encoding, HashedNumbers) and not self._asked:  # nearness means nothing there
            self.plane = None
        self._loop, self._all_states = loop, all_states
        self._networks = [programs.compiled_later(Loop.result, loop) for _ in self.groups]
        capture = Capture(loop, self._table, all_states, count, self.plane)
        self._programs = [programs.compiled_later(Capture.of_seed, capture) for _ in self.groups]

    def pieces(self, iteration: int, count: int) -> list[int]:
        """The lengths of pieces of `count` rollouts after the first ones, so that each moment is the end of one."""
        edges = [iteration, *(each for each in self._due if iteration < each < iteration + count), iteration + count]
        return np.diff(edges).tolist()

    def take(self, state: State, iteration: int, always: bool = False) -> None:
        """Records all seeds, always or if there is a moment after so many rollouts."""
        if always or iteration in self._due:
            groups = zip(self._programs, self._probes, state, strict=True)
            found = [
                jax.tree.map(np.asarray, program(probe, self._loop.without_data(run))) for program, probe, run in groups
            ]
            self._taken[iteration] = self.groups.join(found)
            self._keep(state, iteration)

    def _keep(self, state: State, iteration: int) -> None:
        """Keeps the networks of a moment, for observations that are known at the end only, if there is room."""
        if self.environments is not None or self._all_states or not self._has_room:
            return
        results = [jax.tree.map(np.asarray, program(run)) for program, run in zip(self._networks, state, strict=True)]
        self._taken[iteration] |= {NETWORK: packed(self.groups.join(results)), **numbers_of(self._loop.agent.family)}
        self._has_room = sum(each[NETWORK].nbytes for each in self._taken.values()) <= MOST_BYTES
        if not self._has_room:
            for each in self._taken.values():
                each.pop(NETWORK, None)

    def distributions(
        self, builder: EnvironmentBuilder, env_steps: list[int], networks: Network, along: Along | None
    ) -> Distributions | None:
        """All recorded distributions, from the environment steps of each seed within its limits; None: it took none.

        `networks` are those that are kept, and `along` is their greedy path; None: it is not known.
        """
        if not self._taken:
            return None
        size, iterations, names = self.rollout_steps, sorted(self._taken), None
        moments = [self._taken[each] for each in iterations]
        kept = [name for name in moments[0] if name != NETWORK and not name.startswith(FAMILY)]
        arrays = {name: np.stack([each[name] for each in moments]) for name in kept}
        if along is not None and self._all_states:
            known = dict(zip(along.observations.tolist(), along.names, strict=True))
            arrays["path"] = np.where(along.path < 0, -1, along.observations[along.path])
            names = tuple(
                along.of_state(state) or known.get(state, f"state {state}")
                for state in range(arrays["states"].shape[2])
            )
        elif along is not None and NETWORK in moments[0]:
            agents = [with_numbers(self._loop.agent, each) for each in moments]
            found = [
                along.given_by(agent, unpacked(networks, each[NETWORK]))
                for agent, each in zip(agents, moments, strict=True)
            ]
            arrays |= {name: np.stack([each[name] for each in found]) for name in found[0]}
            arrays["states"] = np.broadcast_to(np.arange(len(along.names)), arrays["mean"].shape[:3])
            arrays["path"], names = along.path, along.names
            if along.masks is not None:
                arrays["allowed"] = np.broadcast_to(along.masks, arrays["mean"].shape)
        ends = size * -(-np.asarray(env_steps) // size)
        if "last" in arrays:
            arrays["last"] = builder.repeats * arrays["last"]
        arrays["step"] = np.minimum(size * np.asarray(iterations)[:, None], ends)
        if self.plane:
            arrays[PLANE + "numbers"] = np.array(self.plane.numbers)
        recorded = with_environment(Distributions.of_arrays(arrays), self.environments, builder)
        return dataclasses.replace(recorded, names=recorded.names | ({"states": names} if names else {}))

    def saved(self) -> dict[str, np.ndarray]:
        """Arrays that a checkpoint must hold to go on with the recording."""
        return {f"{at}/{name}": array for at, arrays in self._taken.items() for name, array in arrays.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._taken = {}
        for path, array in arrays.items():
            moment, name = path.split("/", 1)
            self._taken.setdefault(int(moment), {})[name] = array
        self._has_room = all(NETWORK in each for each in self._taken.values())


def with_environment(recorded: Distributions, environments: PyTree, builder: EnvironmentBuilder) -> Distributions:
    """A recording with the names that pictures need, and with the environments if they are small tables."""
    counts = {"actions": recorded.mean.shape[3], "states": recorded.states.shape[2] if recorded.of_states else 0}
    names = {name: each for name, each in builder.names.items() if counts.get(name, len(each)) == len(each)}
    recorded = dataclasses.replace(recorded, names=names)
    if not fits_table(environments):
        return recorded
    arrays = {name: getattr(environments, name) for name in OF_TABLE}
    table = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    return dataclasses.replace(recorded, table=table, rows=builder.rows)


def fits_table(environments: PyTree) -> TypeGuard[FiniteMDP]:
    """Whether these are tables that a recording has room for."""
    return isinstance(environments, FiniteMDP) and environments.next_state.size <= MOST_ENTRIES
