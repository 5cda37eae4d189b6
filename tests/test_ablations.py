"""The parts that experiments/tasks/evidence.py compares evidence with: who hears of it, and what surprises."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import uppertail as ut
from experiments.tasks.bonus import Bonus
from experiments.tasks.bootstrapped import Bootstrapped, NoCounts
from experiments.tasks.distillation import Distillation, Distilled
from experiments.tasks.half_evidence import ActingAlone, TargetsAlone
from uppertail.agent import Agent
from uppertail.encodings import Vector
from uppertail.encodings.standardized import Standardized
from uppertail.learners import Gradients
from uppertail.networks import Twin
from uppertail.policies import EpsilonGreedy
from uppertail.replay import Uniform
from uppertail.targets import Online
from uppertail.training.method import Method, resolved
from uppertail.types import Rescaling, Transition
from worlds import transitions

ENCODING = Standardized(Vector((float("-inf"),) * 2, (float("inf"),) * 2))
SEEN = jnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])


def moves(places: Any) -> Transition:
    """Steps by action 0 that stay where they are."""
    return transitions(places, [0] * len(places), places)


@pytest.mark.parametrize(("builder", "acting", "targets"), [(ActingAlone(), 1, 0), (TargetsAlone(), 0, 1)])
def test_half_of_the_evidence_hears_the_counts_in_one_place_alone(builder: Any, acting: int, targets: int) -> None:
    whole: Any = ut.KernelCounts().init(jax.random.key(0), ENCODING, 2, 8).observe(moves(SEEN))
    half: Any = builder.init(jax.random.key(0), ENCODING, 2, 8).observe(moves(SEEN))
    share, rows = whole.share(SEEN[1]), jnp.arange(4)
    assert 0 < float(share[0]) < 0.1 < float(share[1]) == 1.0
    np.testing.assert_array_equal(half.share(SEEN[1]), acting * share)
    np.testing.assert_array_equal(half.kept(rows), whole.kept(rows))
    for kept in whole.kept(rows):
        np.testing.assert_array_equal(half.there(kept).share(SEEN[1]), targets * whole.there(kept).share(SEEN[1]))


def distilled() -> Distilled:
    return Distillation().init(jax.random.key(0), ENCODING, 2, 8)


def test_what_was_seen_often_surprises_less_than_what_was_not() -> None:
    after, observe = distilled(), jax.jit(lambda evidence: evidence.observe(moves(SEEN)))
    random = after.random
    for _ in range(200):
        after = observe(after)
    known, unknown = after.surprise(SEEN), after.surprise(-2.0 * SEEN[1:])
    assert float(jnp.max(known)) < 0.2 * float(jnp.min(unknown))
    assert all(map(np.array_equal, random, after.random))
    assert not after.share(SEEN[0]).any()


def test_surprise_is_in_units_of_the_last_errors() -> None:
    before = distilled()
    assert not before.surprise(SEEN).any()
    first = before.observe(moves(SEEN))
    second = first.observe(moves(SEEN))
    squares = [  # the scale of the numbers is known once they were seen
        np.square(np.asarray(after.errors(each.predicting, SEEN), np.float64))
        for each, after in ((before, first), (first, second))
    ]
    unit = np.sqrt((0.999 * squares[0].sum() + squares[1].sum()) / (0.999 * 4 + 4))
    np.testing.assert_allclose(second.surprise(SEEN), second.errors(second.predicting, SEEN) / unit, rtol=1e-5)


@pytest.mark.slow
def test_a_transition_is_paid_for_its_surprise_when_it_is_new() -> None:
    agent = Agent(ut.PointMass(scale=5.0), EpsilonGreedy(), ENCODING, 0.9)
    gradients = Gradients(Twin(width=4), Uniform(), Online(), optax.sgd(0.1), 1, 1, 4, 8, evidence=Distillation())
    learner = Bonus(bonus=0.5).build(agent, gradients)
    before = learner.init(jax.random.key(0), SEEN, 2)
    fresh = moves(SEEN[:1])
    seen = before._replace(network=before.network.experience(moves(SEEN)))
    after, _ = learner.learn(jax.random.key(1), seen, fresh, jnp.zeros((), int))
    stored = after.memory.buffer.transitions.reward[0]
    expected = 0.5 * 5.0 * 0.1 * seen.network.unknown.surprise(SEEN[:1])[0]
    assert float(expected) > 0
    np.testing.assert_allclose(stored, expected, rtol=1e-5)


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
    network = network.observe(SEEN)
    outputs = network.outputs(jnp.array([0.7, 0.2]))
    assert outputs.shape == (10, 3, 1) and np.unique(outputs).size == 30
    default = Twin(critics=1).init(jax.random.key(0), ENCODING, 3, 1)
    assert [each.shape for each in network.encoder.weights] == [each.shape[1:] for each in default.weights]
    bare = dataclasses.replace(network, prior=jax.tree.map(jnp.zeros_like, network.prior))
    assert (bare.outputs(jnp.array([0.7, 0.2])) != outputs).all()


def test_what_heads_learned_keeps_its_value_as_the_range_grows_and_priors_grow_with_it() -> None:
    place = jnp.array([0.7, 0.2])
    network = Bootstrapped().init(jax.random.key(0), ENCODING, 3, 1).observe(SEEN)
    network = dataclasses.replace(network, learned=jax.tree.map(lambda each: each + 0.1, network.learned))
    both = network.outputs(place)
    learned = dataclasses.replace(network, prior_scale=0.0).outputs(place)
    rescaled = network.rescaled(Rescaling(jnp.array([0.25]), jnp.array([0.5])))
    np.testing.assert_allclose(rescaled.outputs(place), 0.25 * learned + 0.5 + (both - learned), rtol=1e-5, atol=1e-5)
