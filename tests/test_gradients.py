"""The gradient that lets each network see only its own rows, against the one that lets it see all."""

from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from uppertail import gradients
from uppertail.agent import take
from uppertail.distributions import Gaussian
from uppertail.encodings import Encoding, Image, OneHot
from uppertail.networks import PerActionNetwork

STATES = 6


def network_of(num_actions: int, bias: bool) -> PerActionNetwork:
    return PerActionNetwork.init(jax.random.key(3), (STATES, 9, 7, 2), num_actions, bias)


def loss(encoding: Encoding, network: PerActionNetwork, action: Any, row: Any) -> Any:
    observation, target = row
    z = jax.vmap(Gaussian(scale=1.0).from_outputs)(network(encoding, observation))
    return Gaussian(scale=1.0).loss(Gaussian(scale=1.0).from_outputs(target), take(z, action))


def both(encoding: Encoding, network: PerActionNetwork, actions: Any, rows: Any) -> tuple[Any, Any]:
    of_row = jax.tree_util.Partial(loss, encoding)
    return gradients.mean_loss(of_row, network, actions, rows), gradients._of_all(of_row, network, actions, rows)


def assert_close(found: Any, expected: Any) -> None:
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, other, rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("bias", [False, True])
@settings(max_examples=25)
@given(
    st.integers(1, 5).flatmap(lambda count: st.lists(st.integers(0, count - 1), min_size=20, max_size=20)),
    st.integers(0, 2**31 - 1),
)
def test_it_is_the_gradient_whatever_actions_were_taken(bias: bool, actions: list[int], seed: int) -> None:
    """All of one action, none of another, and everything between: a batch that no piece divides."""
    network, (left, right) = network_of(5, bias), jax.random.split(jax.random.key(seed))
    rows = jax.random.randint(left, (20,), 0, STATES), jax.random.normal(right, (20, 2))
    found, expected = jax.jit(both, static_argnums=0)(OneHot(STATES), network, jnp.array(actions), rows)
    assert_close(found, expected)
    idle = [action for action in range(5) if action not in actions]
    assert all(np.all(np.asarray(leaf)[idle] == 0) for leaf in found[1].weights)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
def test_a_large_batch_has_larger_steps_and_no_more_branches(share: float) -> None:
    size, network = 100, network_of(2, False)
    draw, left, right = jax.random.split(jax.random.key(0), 3)
    actions = jax.random.bernoulli(draw, share, (size,)).astype(jnp.int32)
    rows = jax.random.randint(left, (size,), 0, STATES), jax.random.normal(right, (size, 2))
    program = jax.jit(both, static_argnums=0).lower(OneHot(STATES), network, actions, rows)
    assert program.as_text().count("}, {") == 7  # no row at all, 16, 32, 48, 64, 80, 96 and 100 of them
    assert_close(*program.compile()(network, actions, rows))


def test_what_all_actions_share_gets_the_gradient_of_all() -> None:
    """The kernels of an image's encoder belong to no action."""
    encoding = Image(16, 16, 1)
    encoder = encoding.init(jax.random.key(0))
    network = PerActionNetwork.init(jax.random.key(1), (encoding.num_features, 8, 2), 3, True, encoder)
    images = jax.random.uniform(jax.random.key(2), (16, 16, 16, 1))
    rows = images, jax.random.normal(jax.random.key(3), (16, 2))
    found, expected = both(encoding, network, jnp.arange(16) % 3, rows)
    assert_close(found, expected)
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(found[1].encoder)) > 1e-6


def test_batched_over_seeds_it_is_the_same() -> None:
    """There every network sees every row: a branch would be computed for all of them."""
    networks = jax.vmap(lambda key: PerActionNetwork.init(key, (STATES, 8, 2), 2, False))(
        jax.random.split(jax.random.key(0), 3)
    )
    actions = jax.random.randint(jax.random.key(1), (3, 16), 0, 2)
    rows = jax.random.randint(jax.random.key(2), (16,), 0, STATES), jax.random.normal(jax.random.key(3), (16, 2))
    batched = jax.vmap(lambda network, actions: both(OneHot(STATES), network, actions, rows))
    assert_close(*batched(networks, actions))
    program = jax.jit(batched).lower(networks, actions).as_text()
    assert "stablehlo.case" not in program


def test_a_network_sees_no_more_rows_than_it_must() -> None:
    """Twelve rows of 32: the largest product of the branch that is taken has 16."""
    of_row = jax.tree_util.Partial(loss, OneHot(STATES))
    rows = jnp.zeros(32, int), jnp.zeros((32, 2))
    program = jax.jit(lambda *each: gradients.mean_loss(of_row, *each)).lower(
        network_of(2, False), jnp.zeros(32, int), rows
    )
    text = program.as_text()
    assert "stablehlo.case" in text
    for length in (8, 16, 24, 32):
        assert f"tensor<{length}x" in text


def test_no_row_meets_the_network_of_another_action() -> None:
    """A loss that is finite for a row's own action alone: masked or not, another's would make the gradient NaN."""

    def of_row(network: PerActionNetwork, action: Any, row: Any) -> Any:
        output = network(OneHot(STATES), jnp.zeros((), int))[action, 0]
        return jnp.sqrt(output * row)  # the sign of the row is that of its action's output

    signs, network = jnp.array([1.0, -1.0]), network_of(2, False)
    outputs = network(OneHot(STATES), jnp.zeros((), int))[:, 0]
    turned = network.weights[-1] * (signs * jnp.sign(outputs))[:, None, None]
    network = PerActionNetwork((*network.weights[:-1], turned), ())
    actions = jnp.arange(20) % 2
    found, expected = (
        each(of_row, network, actions, signs[actions]) for each in (gradients.mean_loss, gradients._of_all)
    )
    assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])).all()
    assert_close(found, expected)
