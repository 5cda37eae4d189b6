"""The gradient that lets each network see only its own rows, against the one that lets it see all."""

import dataclasses
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from uppertail.agent import take
from uppertail.distributions import Gaussian
from uppertail.encodings import Image, OneHot
from uppertail.networks import PerActionNetwork, base

STATES = 6


def network_of(num_actions: int, bias: bool) -> PerActionNetwork:
    return PerActionNetwork.init(jax.random.key(3), OneHot(STATES), (STATES, 9, 7, 2), num_actions, bias)


def loss(network: PerActionNetwork, action: Any, row: Any) -> Any:
    observation, target = row
    z = jax.vmap(Gaussian(scale=1.0).from_outputs)(network.outputs(observation))
    return Gaussian(scale=1.0).loss(Gaussian(scale=1.0).from_outputs(target), take(z, action))


@jax.jit
def both(network: PerActionNetwork, actions: Any, rows: Any, weights: Any = None) -> tuple[Any, Any]:
    """The mean, the losses by row and the gradient: by action, and with every row through the whole network."""
    weights = jnp.ones(actions.shape[0]) if weights is None else weights
    whole = base.of_all_rows(network, loss, actions, rows, weights)
    return network.loss_and_gradient(loss, actions, rows, weights), whole


def assert_close(found: Any, expected: Any) -> None:
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, other, rtol=2e-5, atol=2e-7)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@settings(max_examples=25)
@given(
    st.integers(1, 5).flatmap(lambda count: st.lists(st.integers(0, count - 1), min_size=20, max_size=20)),
    st.integers(0, 2**31 - 1),
)
def test_it_is_the_gradient_whatever_actions_were_taken(bias: bool, actions: list[int], seed: int) -> None:
    """All of one action, none of another, and everything between: a batch that no piece divides."""
    network, (left, right, third) = network_of(5, bias), jax.random.split(jax.random.key(seed), 3)
    rows = jax.random.randint(left, (20,), 0, STATES), jax.random.normal(right, (20, 2))
    found, expected = both(network, jnp.array(actions), rows, jax.random.uniform(third, (20,)))
    assert_close(found, expected)
    idle = [action for action in range(5) if action not in actions]
    assert all(np.all(np.asarray(leaf)[idle] == 0) for leaf in found[2].weights)


@pytest.mark.slow
def test_the_mean_is_weighted_and_the_losses_by_row_are_not() -> None:
    """In the order of the rows, against the loss of each row alone."""
    network, actions = network_of(3, True), jnp.array([2, 0, 2, 2, 0, 2, 0, 2, 2, 2])
    observations, weights = jnp.arange(10) % STATES, jnp.linspace(0.0, 3.0, 10)
    targets = jax.random.normal(jax.random.key(1), (10, 2))
    alone = [float(loss(network, actions[row], (observations[row], targets[row]))) for row in range(10)]
    assert len(set(np.round(alone, 6))) == 10
    for found in both(network, actions, (observations, targets), weights):
        mean, by_row, _ = found
        np.testing.assert_allclose(by_row, alone, rtol=1e-5)
        np.testing.assert_allclose(mean, np.mean(np.asarray(weights, np.float64) * alone), rtol=1e-5)


@pytest.mark.slow
def test_a_row_of_weight_0_leaves_no_trace_in_the_gradient() -> None:
    network, actions = network_of(2, True), jnp.arange(12) % 2
    rows, other = (
        (jnp.arange(12) % STATES, jnp.ones((12, 2))),
        (jnp.arange(12) % STATES, jnp.ones((12, 2)).at[5].set(7.0)),
    )
    weights = jnp.ones(12).at[5].set(0.0)
    (_, losses, gradient), _ = both(network, actions, rows, weights)
    (_, others, changed), _ = both(network, actions, other, weights)
    assert losses[5] != others[5]
    jax.tree.map(np.testing.assert_array_equal, gradient, changed)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
def test_a_large_batch_has_larger_steps_and_no_more_branches(share: float) -> None:
    size, network = 100, network_of(2, False)
    draw, left, right = jax.random.split(jax.random.key(0), 3)
    actions = jax.random.bernoulli(draw, share, (size,)).astype(jnp.int32)
    rows = jax.random.randint(left, (size,), 0, STATES), jax.random.normal(right, (size, 2))
    program = both.lower(network, actions, rows)
    assert program.as_text().count("}, {") == 7  # no row at all, 16, 32, 48, 64, 80, 96 and 100 of them
    assert_close(*program.compile()(network, actions, rows))


@pytest.mark.slow
def test_what_all_actions_share_gets_the_gradient_of_all() -> None:
    """The kernels of an image's encoder belong to no action."""
    encoding = Image(16, 16, 1)
    encoder = encoding.init(jax.random.key(0))
    sizes = (encoding.num_features, 8, 2)
    network = PerActionNetwork.init(jax.random.key(1), encoding, sizes, 3, True, encoder)
    images = jax.random.uniform(jax.random.key(2), (16, 16, 16, 1))
    rows = images, jax.random.normal(jax.random.key(3), (16, 2))
    found, expected = both(network, jnp.arange(16) % 3, rows)
    assert_close(found, expected)
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(found[2].encoder)) > 1e-6


def test_batched_over_seeds_it_is_the_same() -> None:
    """There every network sees every row: a branch would be computed for all of them."""
    networks = jax.vmap(lambda key: PerActionNetwork.init(key, OneHot(STATES), (STATES, 8, 2), 2, False))(
        jax.random.split(jax.random.key(0), 3)
    )
    actions = jax.random.randint(jax.random.key(1), (3, 16), 0, 2)
    rows = jax.random.randint(jax.random.key(2), (16,), 0, STATES), jax.random.normal(jax.random.key(3), (16, 2))
    batched = jax.vmap(lambda network, actions: both(network, actions, rows))
    assert_close(*batched(networks, actions))
    program = jax.jit(batched).lower(networks, actions).as_text()
    assert "stablehlo.case" not in program


def test_a_network_sees_no_more_rows_than_it_must() -> None:
    """Twelve rows of 32: the largest product of the branch that is taken has 16."""
    rows = jnp.zeros(32, int), jnp.zeros((32, 2))
    program = jax.jit(lambda network, *each: network.loss_and_gradient(loss, *each)).lower(
        network_of(2, False), jnp.zeros(32, int), rows, jnp.ones(32)
    )
    text = program.as_text()
    assert "stablehlo.case" in text
    for length in (8, 16, 24, 32):
        assert f"tensor<{length}x" in text


@pytest.mark.slow
def test_no_row_meets_the_network_of_another_action() -> None:
    """A loss that is finite for a row's own action alone: masked or not, another's would make the gradient NaN."""

    def of_row(network: PerActionNetwork, action: Any, row: Any) -> Any:
        output = network.outputs(jnp.zeros((), int))[action, 0]
        return jnp.sqrt(output * row)  # the sign of the row is that of its action's output

    signs, network = jnp.array([1.0, -1.0]), network_of(2, False)
    outputs = network.outputs(jnp.zeros((), int))[:, 0]
    turned = network.weights[-1] * (signs * jnp.sign(outputs))[:, None, None]
    network = dataclasses.replace(network, weights=(*network.weights[:-1], turned))
    actions = jnp.arange(20) % 2
    found = network.loss_and_gradient(of_row, actions, signs[actions], jnp.ones(20))
    expected = base.of_all_rows(network, of_row, actions, signs[actions], jnp.ones(20))
    assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])).all()
    assert_close(found, expected)
