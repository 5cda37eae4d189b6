"""Imitation of the best episodes: which are kept, against a list in Python; the softmax; one-hots; and learning."""

import math
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
import scipy.stats

import uppertail as ut
from uppertail.agent import Agent
from uppertail.distributions.point_mass import PointMassReturn
from uppertail.encodings import OneHot
from uppertail.encodings.categories import Categories
from uppertail.encodings.vector import Vector
from uppertail.errors import InputError
from uppertail.learners import Gradients
from uppertail.learners.imitation import ImitationLearner
from uppertail.training.method import Method, resolved
from uppertail.types import POLICY_CHOICE, Transition

ADD = jax.jit(ut.BestEpisodes.add, static_argnums=0)


def episodes_of(seed: int, count: int, longest: int) -> list[list[tuple[int, int, float]]]:
    """Random episodes: steps of an observation, an action that is the number of the episode, and a reward."""
    draws = np.random.default_rng(seed)
    return [
        [(int(draws.integers(4)), number, float(draws.choice([0, 0, 0.25]))) for _ in range(draws.integers(1, longest))]
        for number in range(count)
    ]


def as_transitions(episodes: list[list[tuple[int, int, float]]], terminates: bool) -> Transition:
    """The steps of all episodes in a row; their ends terminate, or are cut short."""
    rows = [
        (seen, action, reward, terminates and last, 0, POLICY_CHOICE if last else 0)
        for steps in episodes
        for place, (seen, action, reward) in enumerate(steps)
        for last in [place == len(steps) - 1]
    ]
    kinds = np.int32, np.int32, np.float32, bool, np.int32, np.int32
    columns = zip(zip(*rows, strict=True), kinds, strict=True)
    return Transition(*(jnp.asarray(np.array(column, kind)) for column, kind in columns))


def score(steps: list[tuple[int, int, float]], novelty: float) -> float:
    return sum(reward for _, _, reward in steps) + novelty * len({seen for seen, _, _ in steps}) / len(steps)


def weights(scores: list[float], power: float) -> np.ndarray:
    """How often each of these rows is drawn."""
    each = np.array(scores)
    span = np.ptp(each)
    return ((each - each.min()) / span if span else np.ones(len(each))) ** power


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize(
    ("capacity", "rollout", "novelty", "power"), [(60, 7, 0.1, 2.0), (60, 16, 0.5, 0.0), (100, 33, 0.0, 1.0)]
)
def test_rows_are_drawn_by_the_scores_of_their_episodes(
    capacity: int, rollout: int, novelty: float, power: float, terminates: bool
) -> None:
    """After each rollout, the weight of each kept transition against a list of all episodes that have ended."""
    part, episodes = ut.BestEpisodes(novelty, power), episodes_of(capacity, 60, 12)
    whole = as_transitions(episodes, terminates)
    state: Any = part.init(capacity, jax.tree.map(lambda leaf: leaf[0], whole))
    number = np.repeat(np.arange(60), [len(steps) for steps in episodes])
    ends = np.cumsum([len(steps) for steps in episodes])
    for begin in range(0, len(number) - rollout, rollout):
        state = ADD(part, state, jax.tree.map(lambda leaf, b=begin: leaf[b : b + rollout], whole))
        made = begin + rollout
        kept = [step for step in range(max(0, made - capacity), made) if ends[number[step]] <= made]
        expected = np.zeros(capacity)
        if kept:
            expected[np.array(kept) % capacity] = weights([score(episodes[number[s]], novelty) for s in kept], power)
        np.testing.assert_allclose(np.diff(state.sums, prepend=0.0), expected, atol=1e-4)


def test_draws_follow_the_weights() -> None:
    """Of scores 0.025, 1.1 and 0.6 the first is never drawn, and the others by the square of the differences."""
    part, episodes = ut.BestEpisodes(), [[(0, 0, 0.0)] * 4, [(0, 1, 1.0), (1, 1, 0.0), (2, 1, 0.0)], [(0, 2, 0.5)]]
    whole = as_transitions(episodes, terminates=True)
    state = part.add(part.init(9, jax.tree.map(lambda leaf: leaf[0], whole)), whole)
    drawn = part.sample(state, jax.random.key(0), 20_000)
    counts = np.bincount(drawn.transitions.action, minlength=3)
    expected = np.array([0.0, 3.0, (0.575 / 1.075) ** 2])
    assert counts[0] == 0
    assert scipy.stats.chisquare(counts[1:], expected[1:] / expected.sum() * 20_000).pvalue > 1e-4
    assert (drawn.weights == 1).all()
    assert np.unique(drawn.transitions.observation[drawn.transitions.action == 1]).tolist() == [0, 1, 2]


def test_nothing_is_learned_before_an_episode_has_ended() -> None:
    part, whole = ut.BestEpisodes(), as_transitions([[(0, 0, 1.0)] * 9], terminates=True)
    begun = jax.tree.map(lambda leaf: leaf[:8], whole)
    state = part.add(part.init(20, jax.tree.map(lambda leaf: leaf[0], whole)), begun)
    assert (part.sample(state, jax.random.key(0), 5).weights == 0).all()


def test_the_score_of_an_episode_longer_than_the_buffer_counts_what_was_lost() -> None:
    long, good = [(0, 0, -1.0)] * 50, [(1, 1, 0.5)] * 5
    part, whole = ut.BestEpisodes(), as_transitions([long, good], terminates=True)
    state: Any = part.init(15, jax.tree.map(lambda leaf: leaf[0], whole))
    for begin in range(0, 55, 5):
        state = ADD(part, state, jax.tree.map(lambda leaf, b=begin: leaf[b : b + 5], whole))
    for number, steps in enumerate((long, good)):
        rows = np.asarray(state.score)[np.asarray(state.ring.transitions.action) == number]
        np.testing.assert_allclose(rows, score(steps, 0.1), rtol=1e-6)


def decision(means: list[float], observation: int = 7) -> ut.Decision:
    z = PointMassReturn(jnp.asarray([means]))
    return ut.Decision(ut.PointMass(scale=2.0), z, observation=jnp.array(observation))


@pytest.mark.parametrize(("temperature", "power"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.0)])
def test_softmax_against_scipy(temperature: float, power: float) -> None:
    """Probabilities, and how often each action is drawn, with visits of this observation only."""
    policy, key, means = ut.Softmax(temperature, power), jax.random.key(0), [0.3, -1.0, 2.0]
    now = policy.begun(key, decision(means))
    for action, observation in ((2, 7), (2, 7), (0, 7), (1, 8)):
        elsewhere = decision(means, observation).with_memory(now.memory)
        now = now.with_memory(policy.advance(key, elsewhere, jnp.array(action)))
    visits = np.array([1, 0, 2])
    expected = scipy.special.softmax(np.array(means) / 2.0 / temperature) / (1.0 + visits) ** power
    expected /= expected.sum()
    np.testing.assert_allclose(jnp.exp(policy.log_probabilities(now)), expected, rtol=1e-5)
    chosen = jax.vmap(policy.select, in_axes=(0, None))(jax.random.split(key, 20_000), now)
    assert scipy.stats.chisquare(np.bincount(chosen, minlength=3), expected * 20_000).pvalue > 1e-4


def test_whole_numbers_become_one_hots_and_binary_ones_stay() -> None:
    vector = Vector(low=(0.0, 0.0, 0.0, -math.inf), high=(255.0, 1.0, 255.0, math.inf), left_out=(2,))
    encoding = Categories(vector, values=3)
    assert encoding.num_features == 7
    for observation, first, second in (([2, 1, 5, 0], 2, 0), ([7, 0, 5, 0], 2, 0), ([1, 1, 0, 1], 1, 1)):
        features = encoding.features((), jnp.array(observation, jnp.float32))
        expected = [observation[1], *np.eye(3)[first], *np.eye(3)[second]]
        np.testing.assert_array_equal(features, expected)


ENSEMBLE = ut.Ensemble(members=2, width=8)


def learner_of(network: ut.NetworkBuilder, members: int | None = None) -> ImitationLearner:
    """With steps of 0.5 along the gradient, and a buffer of eight rows."""
    agent = Agent(ut.PointMass(scale=2.0), ut.Softmax(temperature=0.5), OneHot(4), 0.9, members)
    return ut.Imitation().build(agent, Gradients(network, ut.BestEpisodes(), ut.Online(), optax.sgd(0.5), 4, 1, 16, 8))


def test_a_step_follows_the_gradient_of_the_best_episode_alone() -> None:
    """Against the gradient of - log softmax(2 * outputs), for one observation and action; nothing before an end."""
    learner = learner_of(ut.PerAction(width=8, bias=True))
    good, bad = [(0, 1, 1.0)] * 6, [(1, 0, 0.0)] * 2
    steps, key = as_transitions([good, bad], terminates=True), jax.random.key(0)
    batches = [jax.tree.map(lambda leaf, b=begin: leaf[b : b + 4], steps) for begin in (0, 4)]
    state = learner.init(key, jnp.zeros(1, jnp.int32), 3)
    begun, _ = learner.learn(key, state, batches[0], jnp.array(0))
    jax.tree.map(np.testing.assert_array_equal, begun.network, state.network)

    def minus_log_probability(network: Any) -> Any:
        return -jax.nn.log_softmax(2.0 * network.outputs(jnp.array(0))[:, 0])[1]

    gradient = jax.grad(minus_log_probability)(state.network)
    learned, metrics = learner.learn(key, begun, batches[1], jnp.array(1))
    expected = jax.tree.map(lambda weight, slope: weight - 0.5 * slope, state.network, gradient)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), learned.network, expected)
    np.testing.assert_allclose(metrics.loss, [minus_log_probability(state.network)], rtol=1e-5)


def test_each_member_imitates_by_itself_and_they_act_by_their_mean() -> None:
    learner, step = learner_of(ENSEMBLE, members=2), as_transitions([[(3, 1, 1.0)]], terminates=True)
    step = jax.tree.map(lambda leaf: leaf[0], step)
    network = learner.init(jax.random.key(1), jnp.zeros(1, jnp.int32), 3).network
    logits = 2.0 * np.asarray(network.outputs(jnp.array(3)))[..., 0]  # members, actions
    losses, _ = learner.loss(network, network, jax.random.split(jax.random.key(0)), step)
    np.testing.assert_allclose(losses, -scipy.special.log_softmax(logits, axis=1)[:, 1], rtol=1e-5)
    both = ut.Decision(learner.agent.family, learner.agent.returns_by_member(network, jnp.array(3)))
    policy: Any = learner.agent.policy
    np.testing.assert_allclose(
        policy.log_probabilities(both), scipy.special.log_softmax(logits.mean(axis=0)), rtol=1e-5
    )


PARTS: dict[str, Any] = {"distribution": ut.PointMass(), "policy": ut.Softmax(), "learner": ut.Imitation()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, (64, "mlp", True)),
        (ut.PerAction(width=32), (32, "mlp", True)),
        (ut.PerAction(torso_widths=(7,), bias=False), (64, "mlp", False)),
    ],
)
def test_what_is_open_is_filled_in(given: Any, expected: tuple[int, str, bool]) -> None:
    method, filled = resolved(Method.of(**PARTS, network=given), ut.Settings(), OneHot(4))
    network: Any = method.network
    assert (network.width, network.torso, network.bias) == expected
    assert (filled.rollout_steps, filled.updates_per_rollout, filled.batch_size) == (128, 10, 256)
    assert (filled.replay_size, filled.learning_rate, filled.adam_betas) == (10_000, 5e-4, (0.9, 0.999))
    assert (type(method.replay), method.policy) == (ut.BestEpisodes, ut.Softmax())


@pytest.mark.slow
def test_it_learns_a_chain_of_six_and_keeps_to_it() -> None:
    """Random actions reach the end once in 64 episodes."""
    settings = ut.Settings(seeds=3, episodes=6_000, replay_size=500)
    record = ut.train(ut.Chain(length=6), settings=settings, **PARTS).record
    assert min(float(np.mean(seed.returns[-500:])) for seed in record.episodes) > 0.9
    assert list(record.greedy_returns) == [1.0] * 3


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"policy": ut.UCB()}, "Imitation learns the preferences of a softmax, not of UCB: use --policy Softmax"),
        ({"distribution": ut.Gaussian()}, "Imitation learns one number for each action, no Gaussian"),
        ({"target": ut.Periodic(every=10)}, "target means nothing to Imitation: leave it out"),
        ({"settings": ut.Settings(loss_samples=2)}, "loss_samples means nothing to Imitation: leave it out"),
        ({"settings": ut.Settings(replay_start=9)}, "replay_start means nothing to Imitation: leave it out"),
        ({"replay": ut.Uniform()}, "Imitation learns from whole episodes, not from Uniform: use --replay BestEpisodes"),
        (
            {"settings": ut.Settings(num_envs=2)},
            "There are 2 environments for each seed, but this replay buffer needs whole episodes",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ut.train(ut.Gym("CartPole-v1"), **{**PARTS, **changes})


def test_a_vector_environment_with_several_is_refused() -> None:
    with pytest.raises(InputError, match="There are 2 environments for each seed"):
        ut.train(lambda: gymnasium.make_vec("CartPole-v1", num_envs=2), **PARTS)


def test_numbers_that_are_no_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"below 0 or without bounds at \[0, 1, 2, 3\], and features is one_hot"):
        ut.train(ut.Gym("CartPole-v1", features="one_hot"), **PARTS)


def test_an_observation_of_another_shape_is_refused() -> None:
    encoding = Categories(Vector(low=(0.0,) * 8, high=(255.0,) * 8), values=3)
    with pytest.raises(InputError, match=r"observation has the shape \(3,\): give one of shape \(8,\)"):
        encoding.features((), jnp.zeros(3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ut.BestEpisodes(-1.0),
        lambda: ut.BestEpisodes(power=-1.0),
        lambda: ut.Softmax(temperature=0.0),
        lambda: ut.Softmax(temperature=1e-40),
        lambda: ut.Softmax(power=-1.0),
        lambda: ut.Softmax(power=1e38),
    ],
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match="use"):
        make()
