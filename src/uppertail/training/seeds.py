"""The keys of a seed: all randomness of its run comes from them."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Int, PRNGKeyArray


class SeedKeys(NamedTuple):
    """One key to build the environment, one for the run, one for its evaluation."""

    environment: PRNGKeyArray
    run: PRNGKeyArray
    evaluation: PRNGKeyArray


def seed_keys(seed: int | Int[Array, ""]) -> SeedKeys:
    """The keys of one seed."""
    environment, run, evaluation = jax.random.split(jax.random.key(seed), 3)
    return SeedKeys(environment, run, evaluation)


all_seed_keys = jax.jit(jax.vmap(seed_keys))
"""The keys of several seeds, every array with a leading axis of seeds."""
