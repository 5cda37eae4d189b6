"""Which network bootstraps: against plain recursions, in an update and in a run, and through a checkpoint."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import uppertail as ut
from uppertail.agent import Agent
from uppertail.distributions import PointMass
from uppertail.encodings import OneHot, Vector
from uppertail.environments import Toy
from uppertail.errors import InputError
from uppertail.learners import Gradients
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import Network, PerAction
from uppertail.parts import PARTS
from uppertail.policies import Greedy
from uppertail.replay import Sample, Uniform
from uppertail.targets import Online, Periodic, RunningMean, Target
from uppertail.training import checkpoint
from uppertail.training.compiled import CompiledRun
from uppertail.training.loop import Loop
from uppertail.types import POLICY_CHOICE, Transition

EVERY = [kind() for kind in PARTS["target"].classes.values()]
TARGETS = [*EVERY, RunningMean(0.75), Periodic(2)]
INF = float("inf")


def learner_of(target: Target) -> GradientLearner:
    gradients = Gradients(PerAction(4, 1), Uniform(), target, optax.sgd(0.1), 4, 2, 4, 8)
    return GradientLearner(Agent(PointMass(), Greedy(), OneHot(3), 0.5), gradients)


def networks(count: int) -> list[Any]:
    """Networks of random weights, whose observed bounds are infinite in the first two and then widen."""
    encoding, draws = Vector((-INF,), (INF,)), np.random.default_rng(0)
    begun = PerAction(3, 1).init(jax.random.key(0), encoding, 2, 2)
    sequence = []
    for step in range(count):
        network: Any = jax.tree.map(lambda leaf: jnp.asarray(draws.normal(size=leaf.shape), jnp.float32), begun)
        bounds = (
            begun.encoder if step < 2 else begun.encoder.__class__(jnp.array([-1.0 * step]), jnp.array([2.0 * step]))
        )
        sequence.append(dataclasses.replace(network, encoder=bounds))
    return sequence


@pytest.mark.parametrize("which", ["network", "acting"])
@pytest.mark.parametrize("decay", [0.0, 0.75, 0.99])
def test_a_running_mean_is_the_recursion_in_numpy(decay: float, which: str) -> None:
    """What was observed has no mean: the target sees observations as the network that learns does."""
    target = RunningMean(decay) if which == "network" else RunningMean(acting_decay=decay)
    first, *later = networks(6)
    state, means = target.init(first), [np.asarray(leaf, np.float64) for leaf in first.weights]
    for online in later:
        state = target.after_rollout(target.after_update(state, online), online)
        means = [decay * mean + (1 - decay) * np.asarray(new) for mean, new in zip(means, online.weights, strict=True)]
        ours = getattr(target, which)(state, later[-1])
        for weights, expected in zip(ours.weights, means, strict=True):
            np.testing.assert_allclose(weights, expected, rtol=1e-5)
        if which == "acting" and decay == 0:
            assert [leaf.tolist() for leaf in ours.weights] == [leaf.tolist() for leaf in online.weights]
        seeing = target.network(state, later[-1])  # before an update, too
        assert [leaf.tolist() for leaf in seeing.weights] == [leaf.tolist() for leaf in state.network.weights]
        assert [leaf.tolist() for leaf in seeing.encoder] == [leaf.tolist() for leaf in later[-1].encoder]
        assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(seeing)])).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed 0 returns")
@pytest.mark.parametrize(
    ("target", "evaluate_every"),
    [(RunningMean(1 - 1e-9), 30), (Online(), None), pytest.param(RunningMean(1 - 1e-9), None, marks=pytest.mark.slow)],
)
def test_what_plays_is_the_running_mean_and_else_the_network_that_learns(
    target: Target, evaluate_every: int | None
) -> None:
    """A mean that hardly moves still gives the first outputs, which are 0, while the network that acts has learned."""
    settings = ut.Settings(
        seeds=1, steps=60, batch_size=4, replay_size=64, updates_per_rollout=2, evaluate_every=evaluate_every
    )
    builder = ut.Gym("CartPole-v1", returns=(0.0, 100.0), left_out=(), action_repeat=3, stack=1)
    record = "distributions" if evaluate_every else None
    network: Any = ut.train(builder, target=target, settings=settings, record=record).networks.regressor()
    largest = float(jnp.abs(network.heads).max())
    assert largest < 1e-6 if isinstance(target, RunningMean) else largest > 1e-3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed 0 returns")
@pytest.mark.parametrize(
    "builder",
    [ut.Gym("CartPole-v1", returns=(0.0, 100.0), left_out=(), action_repeat=1, stack=1), ut.Chain(length=6)],
    ids=["host", "compiled"],
)
def test_a_mean_that_never_moves_acts_as_a_network_that_does_not_learn(builder: Any) -> None:
    def episodes(acting_decay: float, learning_rate: float) -> list[float]:
        target, learner = RunningMean(0.9, acting_decay), ut.GradientDescent()
        settings = ut.Settings(
            seeds=1, steps=150, episodes=10**6, rollout_steps=1, updates_per_rollout=2, batch_size=4, replay_size=512,
            learning_rate=learning_rate,
        )  # fmt: skip
        record = ut.train(builder, target=target, learner=learner, settings=settings).record
        return record.episodes[0].lengths.tolist()

    still = episodes(1 - 1e-9, 1e-2)
    assert still == episodes(0.0, 1e-30)
    assert still != episodes(0.0, 1e-2)


def test_a_running_mean_refuses_a_network_whose_observations_it_would_average() -> None:
    class Counting(Network):
        count: Any

        def outputs(self, observation: Any) -> Any:
            return self.count

        def observe(self, observations: Any) -> Any:
            return Counting(self.count + len(observations))

    with pytest.raises(InputError, match=r"Counting keeps statistics of its observations.* give it the method with_"):
        RunningMean().init(Counting(jnp.zeros(())))


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_periodic_copy_is_made_anew_every_few_rollouts(every: int) -> None:
    target, (first, *later) = Periodic(every), networks(8)
    state, expected = target.init(first), first
    for rollouts, online in enumerate(later, start=1):
        state = target.after_update(state, networks(1)[0])  # updates alone change nothing
        state = target.after_rollout(state, online)
        expected = online if rollouts % every == 0 else expected
        jax.tree.map(np.testing.assert_array_equal, target.network(state, online), expected)


def test_online_is_the_network_that_learns() -> None:
    first, second = networks(2)
    assert Online().init(first) == ()
    assert Online().network((), second) is second


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_it_begins_as_the_network_that_learns_and_shares_no_array_with_it(target: Target) -> None:
    (online,) = networks(1)
    state = target.init(online)
    for ours, theirs in zip(jax.tree.leaves(target.network(state, online)), jax.tree.leaves(online), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    own, others = ({leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(each)} for each in (state, online))
    assert not own & others


def test_the_bootstrap_of_an_update_is_the_targets_and_the_prediction_the_online_networks() -> None:
    """Squared distance by hand: 1/2 (r + discount * target's value at (s', a') - online value at (s, a))^2."""
    learner = learner_of(Periodic(100))
    agent, first = learner.agent, jnp.zeros(1, jnp.int32)
    state, other = (learner.init(jax.random.key(seed), first, 2) for seed in range(2))
    state = state._replace(memory=state.memory._replace(target=other.memory.target))
    fields = jnp.array([0, 2]), jnp.array([1, 0]), jnp.array([0.5, -1.0]), jnp.array([False, False]), jnp.array([1, 1])
    transitions = Transition(*fields, jnp.array([0, POLICY_CHOICE]))
    batch = Sample(transitions, jnp.zeros(0, jnp.int32), jnp.ones(2))  # both are fresh
    after, metrics = jax.jit(learner.update)(state, jax.random.key(0), batch)
    value, targets = (
        np.asarray(jax.vmap(lambda s, n=network: agent.returns(n, s).mean)(jnp.arange(3)), np.float64)
        for network in (state.network, other.network)
    )
    expected = [
        0.5 * (0.5 + 0.5 * targets[1, 0] - value[0, 1]) ** 2,
        0.5 * (-1.0 + 0.5 * targets[1].max() - value[2, 0]) ** 2,
    ]
    np.testing.assert_allclose(metrics.loss, np.mean(expected), rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, after.memory.target.network, other.network)
    assert any((ours != was).any() for ours, was in zip(after.network.weights, state.network.weights, strict=True))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_run_moves_its_target_and_a_checkpoint_holds_it(target: Target) -> None:
    """Three rollouts of two updates; then through named arrays and back, bit for bit."""
    loop = Loop(learner_of(target), rollout_steps=4)
    run, key, environment = CompiledRun(loop), jax.random.key(0), Toy().build(jax.random.key(0))
    states = [run.init(key, environment)]
    iterate = jax.jit(lambda state: run.iterate(key, environment, state)[0])
    for _ in range(3):
        states.append(iterate(states[-1]))
    online = [np.asarray(state.learned.network.weights[0]) for state in states]
    bootstrapping = [
        np.asarray(target.network(state.learned.memory.target, state.learned.network).weights[0]) for state in states
    ]
    if isinstance(target, Periodic):
        for number, ours in enumerate(bootstrapping):
            np.testing.assert_array_equal(ours, online[number - number % target.every])
    elif isinstance(target, RunningMean):
        moved = [np.abs(ours - now).max() for ours, now in zip(bootstrapping[1:], online[1:], strict=True)]
        assert min(moved) > 0
        assert not any((after == before).all() for before, after in itertools.pairwise(bootstrapping))
    else:
        np.testing.assert_array_equal(bootstrapping, online)
    arrays = checkpoint.to_named(states[-1].learned)
    assert any(name.startswith("memory/target/") for name in arrays) == (not isinstance(target, Online))
    restored = checkpoint.from_named(jax.eval_shape(lambda: states[-1].learned), arrays)
    jax.tree.map(np.testing.assert_array_equal, restored, states[-1].learned)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: RunningMean(1.0), r"decay is 1.0: use a number in \[0, 1\)"),
        (lambda: RunningMean(-0.1), "decay is -0.1"),
        (lambda: RunningMean(acting_decay=1.0), r"acting_decay is 1.0: use a number in \[0, 1\), for example 0.9"),
        (lambda: RunningMean(float("nan")), "decay is nan"),
        (lambda: Periodic(0), "every is 0: use a whole number of rollouts, 1 or more"),
        (lambda: Periodic(True), "every is True"),
    ],
)
def test_bad_settings_are_sentences(build: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build()
