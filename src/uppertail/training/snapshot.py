"""What a recording holds beside what is recorded during a run: the environment's table, and a run's end alone."""

import dataclasses
from typing import TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions.members import spread
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.networks import Network
from uppertail.records.distributions import OUTCOMES, STARTS, Distributions
from uppertail.training.run import Run
from uppertail.types import PyTree

MOST_ENTRIES = 2_000_000
"""The most outcomes of all seeds' tables that are recorded."""


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
    if not _fits(environments):
        return recorded
    arrays = {name: getattr(environments, name) for name in (*OUTCOMES, *STARTS)}
    table = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    return dataclasses.replace(recorded, table=table, rows=builder.rows)


def at_the_end(run: Run, networks: Network, episodes: list[int], steps: int) -> Distributions:
    """The distributions of a run that recorded none, as its networks give them: one moment.

    Args:
        run: the run, built again.
        networks: the networks of all seeds.
        episodes: finished episodes of each seed.
        steps: environment steps of each seed.
    """
    agent, tables, seeds = run.loop.agent, run.world.environments, run.settings.seeds
    if _fits(tables):
        observations = jnp.broadcast_to(jnp.arange(tables.num_states, dtype=jnp.int32), (seeds, tables.num_states))
    else:
        observations = run.world.start_observations()[:, None]
    capture = jax.vmap(jax.vmap(agent.returns_by_member, in_axes=(None, 0)))
    z = jax.jit(capture)(networks, observations)
    spreads = jax.jit(jax.vmap(jax.vmap(lambda each: spread(agent.family, each))))(z)
    leaves, _ = jax.tree_util.tree_flatten_with_path(z)
    states = np.arange(observations.shape[1], dtype=np.int32)
    recorded = Distributions(
        step=np.full((1, seeds), steps),
        episode=np.array([episodes]),
        states=np.broadcast_to(states, (1, seeds, states.size)),
        mean=np.asarray(spreads.mean)[None],
        std=np.asarray(spreads.total)[None],
        parameters={jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(x)[None] for path, x in leaves},
    )
    return with_environment(recorded, tables, run.builder)


def _fits(environments: PyTree) -> TypeGuard[FiniteMDP]:
    """Whether these are tables that a recording has room for."""
    return isinstance(environments, FiniteMDP) and environments.next_state.size <= MOST_ENTRIES
