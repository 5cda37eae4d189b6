"""How a network's first layer starts, and how much faster than the others it learns."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from uppertail.agent import Agent
from uppertail.distributions import Gaussian
from uppertail.encodings import OneHot
from uppertail.errors import InputError
from uppertail.networks import PerAction, PerActionNetwork
from uppertail.policies import UCB
from uppertail.targets import Online
from uppertail.types import POLICY_CHOICE, Transition

STATES, ACTIONS = 6, 2
BATCH = Transition(
    jnp.array([2]), jnp.array([1]), jnp.array([5.0]), jnp.array([True]), jnp.array([0]), jnp.array([POLICY_CHOICE])
)
"""One transition: from state 2, by action 1, to the end."""


@functools.cache
def learned(network: PerAction, updates: int) -> tuple[np.ndarray, np.ndarray, PerActionNetwork, PerActionNetwork]:
    """Outputs [states, actions, outputs] before and after it has learned of one transition, and the networks."""
    family = Gaussian(scale=1.0, distance="wasserstein")
    agent = Agent(family, UCB(), network, Online(), OneHot(STATES), 0.9, optax.sgd(0.01))
    begun = jax.jit(functools.partial(agent.init, num_actions=ACTIONS))(jax.random.key(0))
    update = jax.jit(lambda state, key: agent.update(state, key, BATCH, jnp.ones(1))[0])
    state = begun
    for key in jax.random.split(jax.random.key(3), updates):
        state = update(state, key)
    said = jax.jit(jax.vmap(lambda network, s: network.outputs(s), in_axes=(None, 0)))
    before, after = (np.asarray(said(each.network, jnp.arange(STATES))) for each in (begun, state))
    return before, after, begun.network, state.network


def test_with_the_first_layer_at_zero_what_was_never_seen_stays_as_it_began() -> None:
    before, after, *_ = learned(PerAction(4, 2, input_init="zero", input_gain=1.0), 10)
    assert (before == 0).all()
    assert (after[2, 1] != 0).all()
    assert (np.delete(after.reshape(-1, 2), 2 * ACTIONS + 1, axis=0) == 0).all()
    before, after, *_ = learned(PerAction(4, 2, input_init="glorot", input_gain=1.0), 10)
    assert (before != 0).all()
    assert (np.delete(after, 2, axis=0)[:, 1] != np.delete(before, 2, axis=0)[:, 1]).any()  # later layers are shared


def test_the_gain_changes_no_output_and_the_first_layers_step_alone() -> None:
    """Under gradient descent by its square: the gradient is larger by it, and what a step does to the outputs, too."""
    plain, gain = (learned(PerAction(4, 2, input_init="glorot", input_gain=g), 1) for g in (1.0, 3.0))
    np.testing.assert_allclose(gain[0], plain[0], rtol=1e-5)
    (_, _, begun, after), (_, _, begun_gain, after_gain) = plain, gain
    step = np.asarray(after.weights[0] - begun.weights[0])[1, 2]
    assert np.abs(step).max() > 1e-4
    first = 3.0 * np.asarray(after_gain.weights[0] - begun_gain.weights[0])[1, 2]
    np.testing.assert_allclose(first, 9 * step, rtol=1e-3, atol=1e-6)
    for layer in (1, 2):
        np.testing.assert_allclose(after_gain.weights[layer], after.weights[layer], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"input_init": "zero", "output_init": "zero"}, "nothing would ever be learned"),
        ({"input_init": "zero", "activation": "relu"}, "relu"),
        ({"input_init": "zero", "normalization": "rms"}, "normalization rms"),
        ({"input_gain": 0.0}, "input_gain is 0.0"),
        ({"input_gain": float("inf")}, "input_gain is inf"),
        ({"input_gain": float("nan")}, "input_gain is nan"),
    ],
    ids=str,
)
def test_a_start_from_which_nothing_is_learned_is_refused(settings: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        PerAction(**settings)
