"""Networks with members: ensembles and draws of weights, against float64 products, quadrature and linear algebra."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import uppertail as ut
from uppertail.contrib.draws import VariationalNetwork
from uppertail.defaults import Entry, Plan
from uppertail.encodings.base import OneHot, Scalar
from uppertail.learners.gradient_descent import ONE_HOT_STEPS
from uppertail.networks.base import Network
from uppertail.networks.ensemble import EnsembleNetwork
from uppertail.training.method import Method, optimizer_of
from uppertail.training.run import Run

STATES, ACTIONS, OUTPUTS = 4, 2, 3
BUILDERS: dict[str, Any] = {
    "Ensemble": ut.Ensemble(width=4, hidden_layers=2, bias=True, members=3, prior="network", prior_scale=2.0),
    "Ensemble of tables": ut.Ensemble(width=4, hidden_layers=2, members=3, prior_scale=2.0),
    "Dropout": ut.Dropout(width=4, hidden_layers=2, members=3, rate=0.4),
    "Variational": ut.Variational(width=4, hidden_layers=1, bias=True, members=3),
}


@functools.cache
def network_of(builder: Any) -> Any:
    return jax.jit(lambda key: builder.init(key, OneHot(STATES), ACTIONS, OUTPUTS))(jax.random.key(0))


def outputs_of(network: Network) -> np.ndarray:
    """[states, members, actions, outputs]"""
    return np.asarray(jax.jit(lambda net: jax.vmap(net.outputs)(jnp.arange(STATES)))(network))


def layers(own: Any, *index: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The weights and biases at an index of their leading axes, in float64."""
    weights, biases = ([np.asarray(leaf[index], np.float64) for leaf in part] for part in own)
    return weights, biases


def hidden_units(weights: list[np.ndarray], biases: list[np.ndarray], state: int, masks: Any = None) -> np.ndarray:
    """The last hidden layer of a perceptron with ELU."""
    x = np.eye(STATES)[state]
    for layer, weight in enumerate(weights[:-1]):
        x = x @ weight + (biases[layer] if biases else 0.0)
        x = np.where(x > 0, x, np.expm1(np.minimum(x, 0))) * (masks[layer] if masks else 1.0)
    return x


def forward(weights: list[np.ndarray], biases: list[np.ndarray], state: int, masks: Any = None) -> np.ndarray:
    return hidden_units(weights, biases, state, masks) @ weights[-1] + (biases[-1] if biases else 0.0)


def pairs() -> Any:
    return np.ndindex(STATES, 3, ACTIONS)


# Ensemble


def test_a_member_is_its_perceptron_plus_its_prior() -> None:
    network: EnsembleNetwork = network_of(BUILDERS["Ensemble"])
    outputs = outputs_of(network)
    assert outputs.shape == (STATES, 3, ACTIONS, OUTPUTS)
    for s, k, a in pairs():
        expected = forward(*layers(network.learned, a, k), s) + 2.0 * forward(*layers(network.prior, a, k), s)
        np.testing.assert_allclose(outputs[s, k, a], expected, rtol=1e-4, atol=1e-5)
    assert (np.abs(np.diff(outputs, axis=1)) > 1e-4).mean() > 0.9


def test_without_a_scale_there_is_no_prior() -> None:
    plain: EnsembleNetwork = network_of(dataclasses.replace(BUILDERS["Ensemble"], prior_scale=0.0))
    np.testing.assert_allclose(outputs_of(plain)[1, 2, 0], forward(*layers(plain.learned, 0, 2), 1), rtol=1e-4)


@pytest.mark.slow
def test_priors_of_one_hot_states_are_tables_of_normal_numbers() -> None:
    builder = dataclasses.replace(BUILDERS["Ensemble"], prior="auto", bias=False)
    network = builder.init(jax.random.key(0), OneHot(500), ACTIONS, OUTPUTS)
    ((table,), _) = network.prior
    assert table.shape == (ACTIONS, 3, 500, OUTPUTS)
    assert scipy.stats.kstest(np.asarray(table).ravel(), "norm").pvalue > 1e-3
    alone = dataclasses.replace(network, learned=jax.tree.map(jnp.zeros_like, network.learned))
    np.testing.assert_allclose(alone.outputs(jnp.asarray(7)), 2 * np.swapaxes(table[:, :, 7], 0, 1), rtol=1e-6)
    network = builder.init(jax.random.key(0), Scalar(STATES), ACTIONS, OUTPUTS)
    assert len(network.prior[0]) == 3
    with pytest.raises(ut.InputError, match="prior is table, which has a number for each state, but observations are"):
        dataclasses.replace(builder, prior="table").init(jax.random.key(0), Scalar(STATES), ACTIONS, OUTPUTS)


def test_the_mask_has_the_share_that_was_asked_for() -> None:
    network: EnsembleNetwork = network_of(BUILDERS["Ensemble"])
    keys = jax.random.split(jax.random.key(1), 4000)
    masks = jax.vmap(dataclasses.replace(network, share=0.3).transition_extras)(keys)
    assert masks.shape == (4000, 3)
    low, high = scipy.stats.binom.interval(1 - 1e-6, 4000, 0.3)
    assert all(low <= count <= high for count in np.asarray(masks).sum(axis=0))
    np.testing.assert_array_equal(network.member_weights(jnp.array([True, False, True])), [1.0, 0.0, 1.0])


# Gradients


@pytest.mark.parametrize("name", BUILDERS)
def test_what_is_fixed_has_no_gradient(name: str) -> None:
    network = network_of(BUILDERS[name])
    actions, targets = jnp.array([0, 1, 1, 0, 1]), jnp.linspace(-1, 1, 5)

    def loss(network: Any, action: Any, row: Any) -> Any:
        state, target = row
        return jnp.sum(network.member_weights(jnp.ones(3, bool)) * (network.outputs(state)[:, action, 1] - target) ** 2)

    rows, weights = (jnp.array([0, 1, 2, 3, 0]), targets), jnp.array([1.0, 0.5, 2.0, 1.0, 1.0])
    network = network.observe(rows[0])

    def mean_loss(network: Any) -> Any:
        return jnp.mean(weights * jax.vmap(loss, in_axes=(None, 0, 0))(network, actions, rows)) + network.penalty()

    gradient = jax.jit(jax.grad(mean_loss))(network)
    fixed = {
        "Ensemble": ["prior"],
        "Ensemble of tables": ["prior"],
        "Dropout": ["masks"],
        "Variational": ["noise", "seen"],
    }
    for field in fixed[name]:
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(getattr(gradient, field)))
    learned = gradient.mean if name == "Variational" else gradient.learned
    assert all((leaf != 0).any() for leaf in jax.tree.leaves(learned))


# Dropout


def test_units_are_left_out_and_the_others_make_up_for_it() -> None:
    network = network_of(BUILDERS["Dropout"])
    outputs = outputs_of(network)
    for s, k, a in pairs():
        masks = [np.asarray(mask[a, k], np.float64) for mask in network.masks]
        expected = forward(*layers(network.learned, a), s, masks)
        np.testing.assert_allclose(outputs[s, k, a], expected, rtol=1e-4, atol=1e-5)


def test_masks_are_drawn_anew_for_each_key_by_the_rate() -> None:
    network = network_of(dataclasses.replace(BUILDERS["Dropout"], width=500))
    first, second = (network.resample_weights(jax.random.key(number)) for number in (1, 2))
    for drawn in (network, first, second):
        for mask in drawn.masks:
            np.testing.assert_allclose(np.unique(mask), [0.0, 1 / 0.6], rtol=1e-6)
            low, high = scipy.stats.binom.interval(1 - 1e-6, mask.size, 0.4)
            assert low <= (np.asarray(mask) == 0).sum() <= high
    assert (first.masks[0] != second.masks[0]).any() and (first.masks[0] != first.masks[1]).any()


# Variational


def test_a_draw_of_the_weights_is_mean_plus_std_times_noise() -> None:
    network: VariationalNetwork = network_of(BUILDERS["Variational"])
    outputs = outputs_of(network)
    softplus = lambda raw: np.log1p(np.exp(np.asarray(raw, np.float64)))  # noqa: E731
    for s, k, a in pairs():
        own: Any = jax.tree.map(
            lambda mean, raw, noise, a=a, k=k: np.asarray(mean[a], np.float64) + softplus(raw[a]) * noise[a, k],
            network.mean,
            network.raw_std,
            network.noise,
        )
        np.testing.assert_allclose(outputs[s, k, a], forward(own[0], own[1], s), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(softplus(network.raw_std[0][0]), 0.5 * np.sqrt(2 / (STATES + 4)), rtol=1e-5)


@pytest.mark.slow
def test_the_divergence_is_that_of_each_weight_by_quadrature() -> None:
    network: VariationalNetwork = network_of(ut.Variational(width=1, hidden_layers=1, members=2))
    total = 0.0
    for mean, raw, prior in zip(network.mean[0], network.raw_std[0], network.prior[0], strict=True):
        for m, r in zip(np.ravel(mean).astype(np.float64), np.ravel(raw).astype(np.float64), strict=True):
            q: Any = scipy.stats.norm(m, np.log1p(np.exp(r)))
            p: Any = scipy.stats.norm(0, prior)
            low, high = q.ppf([1e-12, 1 - 1e-12])
            total += scipy.integrate.quad(lambda w, q=q, p=p: q.pdf(w) * (q.logpdf(w) - p.logpdf(w)), low, high)[0]
    np.testing.assert_allclose(network.divergence(), total, rtol=1e-4)


@pytest.mark.slow
def test_the_divergence_counts_less_the_more_was_seen() -> None:
    network: VariationalNetwork = network_of(dataclasses.replace(BUILDERS["Variational"], kl=0.5))
    seen = network.observe(jnp.zeros(10, jnp.int32))
    total, gradient = jax.value_and_grad(lambda net: net.penalty())(seen)
    np.testing.assert_allclose(total, 0.5 * network.divergence() / 10, rtol=1e-5)
    mean, prior = np.asarray(network.mean[0][0], np.float64), network.prior[0][0]
    np.testing.assert_allclose(gradient.mean[0][0], 0.5 / 10 * mean / prior**2, rtol=1e-4)


@pytest.mark.slow
def test_other_signs_are_as_likely_and_do_not_correlate() -> None:
    network: VariationalNetwork = network_of(BUILDERS["Variational"])
    turned = [network.resample_weights(key).noise[0][0] for key in jax.random.split(jax.random.key(3), 400)]
    noise, draws = np.asarray(network.noise[0][0]), np.stack([np.asarray(each) for each in turned])
    np.testing.assert_array_equal(np.abs(draws), np.broadcast_to(np.abs(noise), draws.shape))
    signs = np.sign(draws * noise).reshape(400, -1)
    correlation = signs.T @ signs / 400
    assert np.abs(signs.mean(axis=0)).max() < 0.25
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.25


# All of them in a run

SHORT = ut.Settings(
    seeds=1, episodes=1000, steps=192, rollout_steps=8, replay_size=64, batch_size=16, updates_per_rollout=2
)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_a_run_learns_and_leaves_what_is_fixed_alone(name: str) -> None:
    """Draws that members act with stay bit for bit, though each update learns with others."""
    builder = dataclasses.replace(BUILDERS[name], hidden_layers=1, bias=False)
    run = Run(ut.Chain(3), Method(ut.PointMass(), ut.MemberThompson(), network=builder), SHORT)
    try:
        start = run.driver.start()
        before = jax.tree.map(np.array, run.driver.gather(start, lambda state: state.learned.network))
        after = run.driver.gather(run.driver.advance(start)[0], lambda state: state.learned.network)
    finally:
        run.close()
    fixed = {"Ensemble": "prior", "Ensemble of tables": "prior", "Dropout": "masks"}.get(name, "noise")
    jax.tree.map(np.testing.assert_array_equal, getattr(after, fixed), getattr(before, fixed))
    learned = "mean" if name == "Variational" else "learned"
    for now, was in zip(*(jax.tree.leaves(getattr(each, learned)) for each in (after, before)), strict=True):
        assert (now != was).any() and np.isfinite(now).all()


@pytest.mark.parametrize("network", [None, *BUILDERS.values()], ids=["none", *BUILDERS])
def test_networks_learn_states_by_the_same_settings(network: Any) -> None:
    """Those with members kept slower ones when counts got theirs (decision 29): no seed solved the Chain of 100."""
    policy = ut.MemberThompson() if network else ut.UCB()
    run = Run(ut.Chain(5), Method.of(policy=policy, network=network, learner=ut.GradientDescent()), ut.Settings())
    found = {name: getattr(run.settings, name) for name in ONE_HOT_STEPS}
    assert (run.settings.rollout_steps, found) == (4, ONE_HOT_STEPS)
    run.close()


@pytest.mark.slow
@pytest.mark.parametrize("builder", [ut.Ensemble(width=16, prior_scale=0.01, share=1.0), ut.Dropout()])
def test_members_solve_the_chain_of_50(builder: Any) -> None:
    settings = ut.Settings(seeds=2, seed=100, steps=8_192)
    result = ut.train(ut.Chain(50), settings=settings, policy=ut.MemberThompson(within=2.0), network=builder)
    assert result.record.greedy_returns == [1.0, 1.0]


@pytest.mark.parametrize("decay", [0, 50])
def test_a_plan_of_before_keeps_its_step_size(decay: int) -> None:
    """A constant step size is a setting of its own, and what a plan has is not chosen again."""
    given = Method.of(network=BUILDERS["Ensemble"], policy=ut.MemberThompson())
    run = Run(ut.Chain(5), given, ut.Settings(learning_rate_decay=decay))
    assert optimizer_of(run.settings).decay == decay
    assert (optimizer_of(run.settings).rate == run.settings.learning_rate) == (decay == 0)
    entries = {**run.plan.entries, "learning_rate_decay": Entry(None, "default")}
    again = Run(ut.Chain(5), given, ut.Settings(), before=Plan(entries))
    assert again.settings.learning_rate_decay is None and again.settings.batch_size == 64
    of_a_table = Run(ut.Chain(5), given, ut.Settings(), before=Plan({"learning_rate": Entry(None, "default")}))
    assert of_a_table.settings.learning_rate_decay == 300
    of_a_table.close()
    run.close()
    again.close()


# What cannot be


@pytest.mark.parametrize("builder", [ut.Ensemble, ut.Dropout, ut.Variational])
@pytest.mark.parametrize(
    ("members", "words"),
    [
        *((few, ", but members can differ only if there are 2: use a whole number, 2 or more") for few in (0, 1)),
        (True, ": use a whole number."),
    ],
)
def test_fewer_than_two_members_are_refused(builder: Any, members: Any, words: str) -> None:
    with pytest.raises(ut.InputError, match=f"members is {members}{words}"):
        builder(members=members)


@pytest.mark.parametrize(
    ("builder", "settings", "words"),
    [
        (ut.Dropout, {"rate": 1.0}, "rate is 1.0, but 0 leaves out nothing and 1 everything: use a number between"),
        (ut.Dropout, {"rate": 0.0}, "rate is 0.0, but 0 leaves out nothing"),
        (ut.Ensemble, {"share": 0.0}, "share is 0.0, but each member has to learn from some of the transitions"),
        (ut.Ensemble, {"prior_scale": -1.0}, "prior_scale is -1.0: use a finite number, 0 or more"),
        (ut.Ensemble, {"width": 0}, "width is 0: use a whole number, 1 or more"),
        (ut.Variational, {"kl": -0.5}, "kl is -0.5: use a finite number, 0 or more"),
    ],
)
def test_settings_that_cannot_be_are_sentences(builder: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ut.InputError, match=words):
        builder(**settings)


@pytest.mark.parametrize("policy", [ut.MemberThompson(), ut.DoubleUCB()], ids=lambda p: type(p).__name__)
def test_a_policy_that_needs_members_refuses_a_network_without(policy: Any) -> None:
    words = f"The policy {type(policy).__name__} needs a network with members, and this run has none"
    with pytest.raises(ut.InputError, match=words):
        ut.train(ut.Chain(3), ut.Gaussian(), policy, SHORT)
