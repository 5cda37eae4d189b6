"""The tables that the twin replays: those of training with the same seeds."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from uppertail.environments import EnvironmentBuilder, FiniteMDP, HostBuilder, require_tables_fit
from uppertail.errors import InputError
from uppertail.types import ReturnRange


def tables_of(builder: EnvironmentBuilder, keys: Key[Array, " seeds"]) -> FiniteMDP:
    """The table of each seed, on the host: every array has a leading axis of seeds.

    Args:
        builder: builds them.
        keys: each seed's key of its environment.

    Raises:
        InputError: there is no table, or it cannot be replayed.
    """
    if isinstance(builder, HostBuilder) and not builder.compiles:
        raise InputError(
            f"The twin replays an environment's table, but {builder.label} is stepped in Python: use one that shows "
            "its table, such as Chain, DeepSea or FrozenLake."
        )
    require_tables_fit(builder, keys)
    mdps = jax.device_get(jax.jit(jax.vmap(builder.build))(keys))
    name = type(builder).__name__
    if not isinstance(mdps, FiniteMDP):
        raise InputError(
            f"The twin replays an environment's table, but {name} builds none: use one that does, such as Chain, "
            "DeepSea or FrozenLake."
        )
    if mdps.reward_std is not None:
        raise InputError(
            f"The twin replays what it has seen exactly, but the rewards of {name} are noisy: use --env.noise 0 for "
            "DeepSea, --env.reward_std 0 for Chain."
        )
    return mdps


def of_seed(mdps: FiniteMDP, row: int) -> FiniteMDP:
    """The table of one seed."""
    return jax.tree.map(lambda leaf: leaf[row], mdps)


def require_success(builder: EnvironmentBuilder) -> None:
    """Checks that success is defined.

    Raises:
        InputError: it is not.
    """
    if not math.isfinite(builder.success_return):
        raise InputError(
            f"{type(builder).__name__} does not say from which return on an episode is a success, so there is no "
            "first success: use --env.success, where there is such a setting, or another environment."
        )


def returns_of(builder: EnvironmentBuilder, mdps: FiniteMDP, discount: float) -> ReturnRange:
    """The range of returns that a run has to tell apart, of all seeds together, as training computes it."""
    if isinstance(builder, HostBuilder) and builder.known_returns is not None:
        return builder.known_returns

    def of_one(mdp: FiniteMDP) -> tuple[Array, Array]:
        return mdp.return_range(discount)

    low, high = jax.jit(jax.vmap(of_one))(mdps)
    return ReturnRange(float(jnp.min(low)), float(jnp.max(high)))
