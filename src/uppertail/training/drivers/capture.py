"""What is recorded of each seed at one moment."""

import dataclasses
import math
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from uppertail.agent import Agent
from uppertail.distributions import spread
from uppertail.encodings import Numbers, ObservationSpace
from uppertail.errors import InputError
from uppertail.networks import EncodedNetwork, Network
from uppertail.records.distributions import PLANE
from uppertail.training.loop import Loop, RunState
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
    def of(cls, observations: ObservationSpace, over: tuple[int, int] | None, seeds: int) -> Self | None:
        """The plane over two numbers, or the first two; None where observations are no vectors of two numbers or more.

        It refuses numbers that an observation does not have.
        """
        count = len(observations.low) if isinstance(observations, Numbers) else 0
        if over is None and count < 2:
            return None
        first, second = over or (0, 1)
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
            plane = self.plane.of_network(loop.agent, network, probe[1])
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
        """The states to record; beyond the end of a greedy path, -1."""
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
