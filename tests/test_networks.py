"""The per-action network against a float64 forward pass in NumPy, and what its parts share."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uppertail.distributions import Quantile
from uppertail.encodings import Encoding, OneHot, Scalar, Thermometer
from uppertail.errors import InputError
from uppertail.networks import NetworkBuilder, PerAction, PerActionNetwork
from uppertail.networks.layers import TINY, elu
from uppertail.parts import PARTS

STATES, ACTIONS, OUTPUTS = 6, 3, 2
FEATURES = {OneHot(STATES): np.eye(STATES), Thermometer(STATES): np.tri(STATES)}
FEATURES[Scalar(STATES)] = np.linspace(-1, 1, STATES)[:, None]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def network_of(encoding: Encoding, hidden: tuple[int, ...], bias: bool) -> PerActionNetwork:
    """A network far from its initialization: no bias is zero."""
    sizes = (encoding.num_features, *hidden, OUTPUTS)
    leaves, structure = jax.tree.flatten(PerActionNetwork.init(jax.random.key(0), encoding, sizes, ACTIONS, bias))
    keys = jax.random.split(jax.random.key(7), len(leaves))
    noise = [leaf + jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, noise)


@jax.jit
def outputs_of(network: PerActionNetwork) -> jax.Array:
    """The outputs in every state."""
    return jax.vmap(network.outputs)(jnp.arange(STATES))


def forward(network: PerActionNetwork, feature: np.ndarray, action: int) -> np.ndarray:
    """A multilayer perceptron with ELU between its layers, for one action."""
    x = feature.astype(np.float64)
    for layer, weight in enumerate(network.weights):
        if layer > 0:
            x = np.array([v if v > 0 else np.exp(v) - 1 for v in x])
        x = x @ np.asarray(weight[action], np.float64)
        if network.biases:
            x = x + np.asarray(network.biases[layer][action], np.float64)
    return x


@pytest.mark.slow
@pytest.mark.parametrize("encoding", FEATURES, ids=str)
@pytest.mark.parametrize("hidden", [(), (5,), (5, 4)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_are_those_of_a_perceptron_per_action(encoding: Encoding, hidden: tuple[int, ...], bias: bool) -> None:
    network = network_of(encoding, hidden, bias)
    assert len(network.weights) == len(hidden) + 1
    assert len(network.biases) == (len(hidden) + 1 if bias else 0)
    outputs = outputs_of(network)
    assert outputs.shape == (STATES, ACTIONS, OUTPUTS)
    for s in range(STATES):
        for a in range(ACTIONS):
            expected = forward(network, FEATURES[encoding][s], a)
            np.testing.assert_allclose(outputs[s, a], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_actions_share_nothing(bias: bool) -> None:
    network = network_of(OneHot(STATES), (5, 4), bias)
    changed = jax.tree.map(lambda leaf: leaf.at[1].add(1.0), network)
    before, after = np.asarray(outputs_of(network)), np.asarray(outputs_of(changed))
    np.testing.assert_array_equal(before[:, [0, 2]], after[:, [0, 2]])
    assert (before[:, 1] != after[:, 1]).all()


@functools.partial(jax.jit, static_argnums=1)
def gradient_at(network: PerActionNetwork, state: int) -> Any:
    return jax.grad(lambda net: jnp.sum(net.outputs(jnp.asarray(state)) ** 2))(network)


def test_one_hot_states_share_no_row_of_the_first_layer() -> None:
    gradient = gradient_at(network_of(OneHot(STATES), (5, 4), False), 2)
    touched = np.asarray(gradient.weights[0] != 0).any(axis=(0, 2))
    assert touched.tolist() == [s == 2 for s in range(STATES)]
    assert gradient.biases == ()


def test_thermometer_states_share_the_rows_below_them() -> None:
    gradient = gradient_at(network_of(Thermometer(STATES), (5, 4), False), 2)
    assert np.asarray(gradient.weights[0] != 0).any(axis=(0, 2)).tolist() == [s <= 2 for s in range(STATES)]


def test_biases_are_shared_by_all_states() -> None:
    gradient = gradient_at(network_of(OneHot(STATES), (5, 4), True), 2)
    assert all(np.asarray(bias != 0).any() for bias in gradient.biases)


def test_weights_start_glorot_uniform_for_each_action_and_biases_at_zero() -> None:
    """Within sqrt(6 / (inputs + outputs)) of 0, and filling that range; a leading axis of actions changes nothing."""
    sizes = (300, 40, 20)
    network = PerActionNetwork.init(jax.random.key(0), OneHot(300), sizes, 4, True)
    for weight, inputs, outputs in zip(network.weights, sizes[:-1], sizes[1:], strict=True):
        assert weight.shape == (4, inputs, outputs)
        bound = np.sqrt(6 / (inputs + outputs))
        for action in np.asarray(weight):
            assert np.abs(action).max() <= bound * (1 + 1e-6)
            assert np.abs(action).max() >= 0.98 * bound
            np.testing.assert_allclose(action.std(), bound / np.sqrt(3), rtol=0.05)
    assert all((np.asarray(bias) == 0).all() for bias in network.biases)
    first, second = network.weights[0][0], network.weights[0][1]
    assert (first != second).mean() > 0.99


def test_layers_and_keys_draw_their_own_weights() -> None:
    network = PerActionNetwork.init(jax.random.key(0), OneHot(5), (5, 5, 5), 2, False)
    other = PerActionNetwork.init(jax.random.key(1), OneHot(5), (5, 5, 5), 2, False)
    assert (network.weights[0] != network.weights[1]).all()
    assert (network.weights[0] != other.weights[0]).all()


@pytest.mark.parametrize("x", [-200.0, -20.0, -1.0, -1e-3, -1e-6, 0.0, 1e-6, 1.0, 200.0])
def test_elu(x: float) -> None:
    """Value and slope, and a slope of 1 at 0, where every unit of a network without biases starts for a zero input."""
    expected, slope = (x, 1.0) if x > 0 else (np.expm1(x), np.exp(x))
    value, gradient = jax.value_and_grad(lambda x: elu(x[None])[0])(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose([value, gradient], [expected, slope], rtol=1e-5, atol=1e-7)


# The settings of a network


BETWEEN = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "none": lambda x: x,
    "layer": lambda x: (x - x.mean()) / np.sqrt(x.var() + TINY),
    "rms": lambda x: x / np.sqrt(np.mean(x**2) + TINY),
}
"""Activations and normalizations in float64."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "normalization"),
    [("elu", "none"), ("relu", "none"), ("tanh", "none"), ("silu", "none"), ("elu", "layer"), ("relu", "rms")],
)
def test_hidden_units_are_normalized_then_activated(activation: Any, normalization: Any) -> None:
    builder = PerAction(7, 2, bias=True, activation=activation, normalization=normalization)
    begun = builder.init(jax.random.key(0), OneHot(STATES), ACTIONS, OUTPUTS)
    network = jax.tree.map(lambda leaf: leaf + 0.3 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), begun)
    outputs = outputs_of(network)
    for s in range(STATES):
        for a in range(ACTIONS):
            x = np.eye(STATES)[s]
            for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
                x = x if layer == 0 else BETWEEN[activation](BETWEEN[normalization](x))
                x = x @ np.asarray(weight[a], np.float64) + np.asarray(bias[a], np.float64)
            np.testing.assert_allclose(outputs[s, a], x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalization", ["layer", "rms"])
def test_a_normalization_has_a_finite_gradient_where_all_units_are_equal(normalization: Any) -> None:
    network = PerAction(4, 2, normalization=normalization).init(jax.random.key(0), OneHot(STATES), ACTIONS, OUTPUTS)
    flat = jax.tree.map(jnp.zeros_like, network)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient_at(flat, 2)))


def test_the_builder_gives_the_network_of_its_settings() -> None:
    """The weights that the sizes ask for, from the key itself; biases where asked for; the encoding's own encoder."""
    network = PerAction(5, 3, bias=True).init(jax.random.key(4), OneHot(STATES), ACTIONS, OUTPUTS)
    expected = PerActionNetwork.init(jax.random.key(4), OneHot(STATES), (STATES, 5, 5, 5, OUTPUTS), ACTIONS, True)
    jax.tree.map(np.testing.assert_array_equal, network, expected)
    assert PerAction(5).init(jax.random.key(4), OneHot(STATES), ACTIONS, OUTPUTS).biases == ()
    assert (PerAction().width, PerAction().hidden_layers, PerAction().members, network.members) == (64, 1, None, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"width": 0}, "width is 0: use a whole number, 1 or more"),
        ({"hidden_layers": 0}, "hidden_layers is 0: use a whole number, 1 or more"),
        ({"width": True}, "width is True: use a whole number"),
        ({"width": 2**31}, r"width is 2147483648: use a whole number.* below 2\^31"),
    ],
)
def test_bad_sizes_are_sentences(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        PerAction(**settings)


@pytest.mark.parametrize("name", ["activation", "normalization"])
def test_bad_names_are_sentences(name: str) -> None:
    """The runtime checker would refuse them first: a user's call has none."""
    network = PerAction()
    object.__setattr__(network, name, "gelu?")
    with pytest.raises(InputError, match=rf"{name} is .*gelu\?.*(elu|none)"):
        network.__post_init__()


# Laws of every built-in network

BUILT_IN = [kind() for name, kind in PARTS["network"].classes.items() if name != "Twin"]  # whose outputs begin at 0


@pytest.mark.parametrize("builder", BUILT_IN, ids=lambda builder: type(builder).__name__)
def test_every_network_gives_outputs_that_can_be_learned(builder: NetworkBuilder) -> None:
    """Of each member and action, from its key, for seeds side by side; a gradient moves what a state's outputs are."""
    init = jax.jit(lambda key: builder.init(key, OneHot(STATES), ACTIONS, OUTPUTS))
    network, other = init(jax.random.key(0)), init(jax.random.key(1))
    members = () if builder.members is None else (builder.members,)
    assert network.members == builder.members

    def outputs(network: Any) -> jax.Array:
        return jax.vmap(network.outputs)(jnp.arange(STATES))

    now, others = np.asarray(jax.jit(outputs)(network)), np.asarray(jax.jit(outputs)(other))
    assert now.shape == (STATES, *members, ACTIONS, OUTPUTS)
    assert np.isfinite(now).all() and (now != others).any()
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), network, other)
    np.testing.assert_allclose(jax.jit(jax.vmap(outputs))(both), [now, others], rtol=1e-5, atol=1e-6)
    returns = network.returns(Quantile(OUTPUTS), jnp.asarray(0)).quantiles
    assert returns.shape == (builder.members or 1, ACTIONS, OUTPUTS)
    gradient = jax.jit(jax.grad(lambda net: jnp.sum(net.outputs(jnp.asarray(2)) ** 2)))(network)
    stepped = jax.tree.map(lambda leaf, slope: leaf - 1e-3 * slope, network, gradient)
    assert np.sum(np.asarray(outputs(stepped))[2] ** 2) < np.sum(now[2] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILT_IN, ids=lambda builder: type(builder).__name__)
def test_what_a_network_says_of_its_learning_has_one_number_for_each_member(builder: NetworkBuilder) -> None:
    network = builder.init(jax.random.key(0), OneHot(STATES), ACTIONS, OUTPUTS).observe(jnp.zeros(1, jnp.int32))
    weights = network.member_weights(network.transition_extras(jax.random.key(1)))
    assert weights.shape == (builder.members or 1,) and (np.asarray(weights) >= 0).all()
    assert network.penalty().shape == () and np.isfinite(network.penalty())
    resampled = network.resample_weights(jax.random.key(2))
    assert jax.tree.structure(resampled) == jax.tree.structure(network)
