"""Runs the exact twin for several seeds, until each has had its first success."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.distributions import Gaussian, ReturnDistribution
from uppertail.environments import EnvironmentBuilder, builder_of
from uppertail.errors import InputError
from uppertail.policies import UCB, ExplorationPolicy
from uppertail.records import Episodes
from uppertail.records.described import describe
from uppertail.schema import require_type
from uppertail.training.process.jax_settings import require_working
from uppertail.training.seeds import seed_keys
from uppertail.twin.environments import of_seed, require_success, returns_of, tables_of
from uppertail.twin.order import backward_order
from uppertail.twin.result import TwinResult
from uppertail.twin.tables import Layers, TabularAgent

CHUNK = 32
"""Episodes between two looks at whether a seed is done."""


def twin(
    environment: EnvironmentBuilder | object,
    distribution: ReturnDistribution[Any] | None = None,
    policy: ExplorationPolicy | None = None,
    *,
    seeds: int = 10,
    seed: int = 0,
    discount: float = 0.999,
    episodes: int = 10_000,
    after: int = 0,
) -> TwinResult:
    """The same method with tables instead of networks: what its idea is worth when nothing is lost in learning.

    Args:
        environment: a builder such as Chain or DeepSea, or a Gymnasium environment that shows its table.
        distribution: the family of return distributions; Gaussian if left out.
        policy: the exploration policy; UCB if left out.
        seeds: number of runs, at least 1, each in the environment that `train` builds for its seed.
        seed: the base seed; run k uses seed + k.
        discount: discount per step, in [0, 1].
        episodes: a run ends after this many episodes, at least 1.
        after: episodes that a run goes on for after its first success; 0: it ends there.

    Raises:
        InputError: an argument is not valid, or the environment has no table, or one that cannot be replayed.
    """
    require_working()
    begin = time.perf_counter()
    _require_fitting(seeds=seeds, seed=seed, discount=discount, episodes=episodes, after=after)
    builder = builder_of(environment)
    keys = jax.jit(jax.vmap(seed_keys))(jnp.arange(seed, seed + seeds, dtype=jnp.int32))
    mdps = tables_of(builder, keys.environment)
    require_success(builder)
    family = (distribution or Gaussian()).fit(returns_of(builder, mdps, discount))
    orders = [backward_order(of_seed(mdps, run)) for run in range(seeds)]
    agent = TabularAgent(family, policy or UCB(), discount, max(order.sweeps for order in orders))
    init, chunk = jax.jit(agent.init), jax.jit(agent.episodes, static_argnums=(4,))
    played = []
    for run, order in enumerate(orders):
        mdp, layers = of_seed(mdps, run), Layers(order.layers, order.layer_of)
        tables, seen, end = init(mdp), Episodes.none(), episodes
        while seen.returns.size < end:
            tables, returns, lengths = chunk(keys.run[run], mdp, layers, tables, CHUNK)
            seen = seen.extended(np.ones(CHUNK, bool), np.asarray(returns), np.asarray(lengths), 1)
            first = seen.first_success(builder.success_return)
            end = episodes if first is None else min(episodes, first + after)
        played.append(Episodes(seen.returns[:end], seen.lengths[:end], np.cumsum(seen.lengths[:end])))
    return TwinResult(
        describe(builder),
        describe(family),
        describe(agent.policy),
        discount,
        list(range(seed, seed + seeds)),
        builder.success_return,
        builder.floor_episodes,
        played,
        time.perf_counter() - begin,
    )


def _require_fitting(**numbers: Any) -> None:
    """Checks the numbers of a request.

    Raises:
        InputError: one of them is not valid.
    """
    for name, least in (("seeds", 1), ("seed", 0), ("episodes", 1), ("after", 0)):
        require_type(name, numbers[name], int)
        if numbers[name] < least:
            raise InputError(f"{name} is {numbers[name]}: use {least} or more.")
    if numbers["seed"] + numbers["seeds"] > 2**31:
        raise InputError(f"seed is {numbers['seed']}: with {numbers['seeds']} seeds, use one that stays below 2^31.")
    require_type("discount", numbers["discount"], float)
    if not 0 <= numbers["discount"] <= 1:
        raise InputError(f"discount is {numbers['discount']}: use a number in [0, 1].")
