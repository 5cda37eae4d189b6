"""What a run expects where it starts."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uppertail.agent import Agent
from uppertail.networks import Network
from uppertail.training.ledger import StartReturn
from uppertail.training.programs import Stopwatch


def start_moments(
    agent: Agent, template: Network, observations: Array, seconds: Stopwatch
) -> Callable[[Network], StartReturn]:
    """Compiles mean and sd of the return at the start state, of the action with the highest mean, for each seed.

    Args:
        agent: the algorithm.
        template: shapes and types of the networks of all seeds.
        observations: where each seed's run starts.
        seconds: told how long it compiles.
    """
    program = seconds.compiled(_moments, agent.family, template, observations)
    return lambda networks: StartReturn(*map(np.asarray, program(networks, observations)))


def _moments(family: Any, networks: Network, observations: Array) -> tuple[Array, Array]:
    def moments(network: Network, observation: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
        z = network.returns(family, observation)
        mean, std = (jnp.mean(jax.vmap(jax.vmap(each))(z), axis=0) for each in (family.mean, family.std))
        return mean[jnp.argmax(mean)], std[jnp.argmax(mean)]

    return jax.vmap(moments)(networks, observations)
