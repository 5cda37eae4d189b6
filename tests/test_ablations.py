"""Ablations of evidence, in experiments/tasks, by hand: where shares count, what is learned from, and what is paid."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import uppertail as ut
from experiments.tasks.ablations import Bootstrapped, EpsilonUCB, InActing, InBootstrap, NoCounts
from experiments.tasks.distillation import CLIP, Distillation, DistillationBonus, Sums
from uppertail.agent import Agent
from uppertail.distributions.gaussian import GaussianReturn
from uppertail.encodings import Vector
from uppertail.encodings.standardized import Standardized
from uppertail.learners import Gradients
from uppertail.networks import Network, NetworkBuilder, Twin
from uppertail.replay import Sample, Uniform
from uppertail.targets import Online
from uppertail.training.method import Method, resolved
from uppertail.types import POLICY_CHOICE, Rescaling, Transition

INF = float("inf")
ENCODING = Standardized(Vector((-INF,), (INF,)))
AHEAD = 0.1 / (1.1 + np.exp(-4)), 0.1 / (0.1 + np.exp(-4) + np.exp(-16))  # u at 1 and at 3, after pairs at -1 and 1


class Constant(Network):
    """The same outputs everywhere."""

    values: jax.Array

    def outputs(self, observation: jax.Array) -> jax.Array:
        return self.values


class AlwaysTwo(NetworkBuilder):
    """Values of 2, for a family that starts at 5."""

    def init(self, key: Any, encoding: Any, num_actions: int, num_outputs: int) -> Network:
        return Constant(jnp.full((num_actions, num_outputs), -3.0))


def moved(states: list[float], nexts: list[float]) -> Transition:
    """Transitions by one action, without reward."""
    count = len(states)
    no, nothing, none = jnp.zeros(count, bool), jnp.zeros(count), jnp.zeros(count, jnp.int32)
    places, following = (jnp.array(each)[:, None] for each in (states, nexts))
    return Transition(places, none, nothing, no, following, jnp.full(count, POLICY_CHOICE))


def learner_of(evidence: ut.EvidenceBuilder, builder: ut.LearnerBuilder) -> Any:
    gradients = Gradients(AlwaysTwo(), Uniform(), Online(), optax.sgd(0.1), 1, 1, 4, 8, evidence=evidence)
    return builder.build(Agent(ut.PointMass(scale=1.0, start=5.0), ut.Greedy(), ENCODING, 0.5), gradients)


# Evidence in one place


@pytest.mark.parametrize(
    ("evidence", "acting", "ahead"),
    [
        (InActing(reach=1.0), AHEAD, (0.0, 0.0)),
        (InBootstrap(reach=1.0), (0.0, 0.0), AHEAD),
        (ut.KernelCounts(reach=1.0), AHEAD, AHEAD),
    ],
    ids=["acting", "bootstrap", "both"],
)
def test_what_is_left_of_the_start_counts_in_acting_in_targets_or_in_both(
    evidence: ut.EvidenceBuilder, acting: tuple[float, float], ahead: tuple[float, float]
) -> None:
    """The start is 5, the network says 2, and half of what follows is the target."""
    learner = learner_of(evidence, ut.GradientDescent())
    state = learner.init(jax.random.key(0), jnp.array([[-1.0]]), 1)
    seen = moved([-1.0, 1.0], [1.0, 3.0])
    state = state._replace(network=state.network.experience(seen))
    for place, share in zip((1.0, 3.0), acting, strict=True):
        z = learner.agent.returns(state.network, jnp.array([place]))
        assert float(z.mean[0]) == pytest.approx(2.0 + 3.0 * share, rel=1e-5)
    _, metrics = learner.update(state, jax.random.key(1), Sample(seen, jnp.arange(2), jnp.ones(2)))
    targets = np.array([0.5 * (2.0 + 3.0 * share) for share in ahead])
    assert float(metrics.loss[()]) == pytest.approx(float(np.mean(0.5 * (targets - 2.0) ** 2)), rel=1e-5)


def test_an_upper_bound_with_some_actions_at_random() -> None:
    z = GaussianReturn(mean=jnp.array([[1.0, 0.0]]), std=jnp.array([[0.0, 2.0]]))
    decision, keys = ut.Decision(ut.Gaussian(), z), jax.random.split(jax.random.key(0), 1000)

    def chosen(epsilon: float) -> float:
        return float(jnp.mean(jax.vmap(lambda key: EpsilonUCB(epsilon).select(key, decision))(keys)))

    assert chosen(0.0) == 1.0 and EpsilonUCB().optimism == ut.UCB().optimism
    assert [chosen(0.5), chosen(1.0)] == pytest.approx([0.75, 0.5], abs=0.04)


# A bonus by the errors of a predictor


def test_the_novelty_of_a_place_is_the_error_there_of_a_network_that_learns_another() -> None:
    distilled: Any = Distillation().init(jax.random.key(0), ENCODING, 2, 8)
    distilled = distilled.observe(moved([-1.0, 1.0], [0.0, 0.0]))  # of mean 0 and standard deviation 1
    places = np.array([[0.5], [2.0], [9.0]])

    def by_hand(weights: Any) -> np.ndarray:
        first, second, last = (np.asarray(each, np.float64) for each in weights)
        values = np.hstack([np.minimum(places, CLIP), np.ones((3, 1))])
        return np.maximum(np.maximum(values @ first, 0) @ second, 0) @ last

    errors = np.mean((by_hand(distilled.predictor) - by_hand(distilled.random)) ** 2, axis=1)
    np.testing.assert_allclose(distilled.errors(jnp.asarray(places, jnp.float32)), errors, rtol=1e-4)
    trained = jax.lax.fori_loop(0, 60, lambda _, each: each.trained(jnp.array([[2.0]])), distilled)
    assert float(trained.errors(jnp.array([[2.0]]))[0]) < 0.7 * errors[1]
    for got, before in zip(trained.random, distilled.random, strict=True):
        assert (got == before).all()
    assert trained.share(jnp.array([2.0])).tolist() == [0.0, 0.0]  # nobody acts on it


def test_errors_are_in_units_of_their_discounted_sums() -> None:
    sums = Sums(jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))
    once = sums.after(jnp.array(2.0), jnp.array(0.5))
    twice = once.after(jnp.array(3.0), jnp.array(0.5))
    assert float(once.size) == 2.0
    assert float(twice.size) == pytest.approx(np.sqrt((2.0**2 + 4.0**2) / 2))


def test_transitions_are_paid_the_novelty_of_where_they_lead_before_it_is_learned() -> None:
    learner = learner_of(Distillation(), DistillationBonus(bonus=0.3))
    state, rewards, current, squares = learner.init(jax.random.key(0), jnp.array([[-1.0]]), 1), list[float](), 0.0, 0.0
    for step, (place, following) in enumerate([(-1.0, 1.0), (1.0, 2.0), (2.0, -1.0), (-1.0, 3.0)]):
        fresh = moved([place], [following])
        error = float(state.network.unknown.errors(fresh.next_observation)[0])
        current = 0.5 * current + error
        squares += current**2
        rewards.append(1.0 + 0.3 * error / np.sqrt(squares / (step + 1)))
        paid = fresh._replace(reward=jnp.ones(1))
        state, _ = jax.jit(learner.learn)(jax.random.key(step), state, paid, jnp.array(step))
    stored = learner.gradients.replay.sample(state.memory.buffer, jax.random.key(9), 200).transitions.reward
    assert rewards[0] == pytest.approx(1.3)
    np.testing.assert_allclose(np.unique(np.asarray(stored).round(5)), sorted(rewards), atol=2e-5)
    assert int(state.network.unknown.optimizer[0].count) == 4  # a step of the predictor for each update
    assert learner.agent.bounds is None


# Bootstrapped DQN


def test_without_counts_all_else_is_as_beside_them() -> None:
    settings, vector = ut.Settings(), ENCODING.vector
    with_counts = resolved(Method(learner=ut.GradientDescent(), network=Twin()), settings, vector)
    without = Method(learner=ut.GradientDescent(), network=Bootstrapped(), evidence=NoCounts())
    method, steps = resolved(without, settings, vector)
    assert steps == with_counts[1] and (method.target, method.replay) == (with_counts[0].target, with_counts[0].replay)
    assert method.encoding(vector) == with_counts[0].encoding(vector) == ENCODING
    assert NoCounts().init(jax.random.key(0), ENCODING, 2, 8) is None


def test_heads_have_priors_of_their_own_on_one_network_of_the_default_layers() -> None:
    network = Bootstrapped().init(jax.random.key(0), ENCODING, 3, 1)
    network = network.observe(jnp.array([[-1.0], [1.0]]))
    outputs = network.outputs(jnp.array([0.7]))
    assert outputs.shape == (10, 3, 1) and np.unique(outputs).size == 30
    default = Twin(critics=1).init(jax.random.key(0), ENCODING, 3, 1)
    assert [each.shape for each in network.encoder.weights] == [each.shape[1:] for each in default.weights]
    bare = dataclasses.replace(network, prior=jax.tree.map(jnp.zeros_like, network.prior))
    assert (bare.outputs(jnp.array([0.7])) != outputs).all()


def test_what_heads_learned_keeps_its_value_as_the_range_grows_and_priors_grow_with_it() -> None:
    place = jnp.array([0.7])
    network = Bootstrapped().init(jax.random.key(0), ENCODING, 3, 1).observe(jnp.array([[-1.0], [1.0]]))
    network = dataclasses.replace(network, learned=jax.tree.map(lambda each: each + 0.1, network.learned))
    both = network.outputs(place)
    learned = dataclasses.replace(network, prior_scale=0.0).outputs(place)
    rescaled = network.rescaled(Rescaling(jnp.array([0.25]), jnp.array([0.5])))
    np.testing.assert_allclose(rescaled.outputs(place), 0.25 * learned + 0.5 + (both - learned), rtol=1e-5, atol=1e-5)
