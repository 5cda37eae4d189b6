"""Imitation of the best episodes: which are kept, against a list in Python; the softmax; one-hots; and learning."""

import math
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import uppertail as ut
from uppertail.distributions.point_mass import PointMassReturn
from uppertail.encodings.categories import Categories
from uppertail.encodings.vector import Vector
from uppertail.errors import InputError
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


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize(("capacity", "rollout", "novelty"), [(60, 7, 0.1), (60, 16, 0.5), (100, 33, 0.0)])
def test_the_best_half_of_the_rows_are_those_of_the_best_episodes(
    capacity: int, rollout: int, novelty: float, terminates: bool
) -> None:
    """After each rollout the kept transitions are those of a sorted list of all episodes that have ended."""
    part, episodes = ut.BestEpisodes(novelty), episodes_of(capacity, 60, 12)
    whole = as_transitions(episodes, terminates)
    state: Any = part.init(capacity, jax.tree.map(lambda leaf: leaf[0], whole))
    ends = np.cumsum([len(steps) for steps in episodes])
    for begin in range(0, len(whole.action) - rollout, rollout):
        state = ADD(part, state, jax.tree.map(lambda leaf, b=begin: leaf[b : b + rollout], whole))
        ended = [steps for steps, end in zip(episodes, ends, strict=True) if end <= begin + rollout]
        rows = np.asarray(state.score)
        assert np.isposinf(rows).sum() == begin + rollout - (ends[len(ended) - 1] if ended else 0)
        expected = sorted((score(steps, novelty) for steps in ended for _ in steps), reverse=True)[: capacity // 2]
        finished = np.sort(rows[np.isfinite(rows)])[::-1][: capacity // 2]
        np.testing.assert_allclose(finished, expected, rtol=1e-5)
        for action, reached in zip(np.asarray(state.transitions.action), rows, strict=True):
            if np.isfinite(reached):
                assert reached == pytest.approx(score(episodes[action], novelty), rel=1e-5)


def test_draws_are_of_the_best_half_and_uniform() -> None:
    part, episodes = ut.BestEpisodes(), [[(0, 0, 0.0)] * 4, [(0, 1, 1.0), (1, 1, 0.0), (2, 1, 0.0)], [(0, 2, 0.5)]]
    whole = as_transitions(episodes, terminates=True)
    state = part.add(part.init(8, jax.tree.map(lambda leaf: leaf[0], whole)), whole)
    drawn = part.sample(state, jax.random.key(0), 4_000)
    counts = Counter(np.asarray(drawn.transitions.action).tolist())
    assert set(counts) == {1, 2}  # four rows: the three of the best episode, and the one of the next
    assert scipy.stats.binomtest(counts[1], 4_000, 0.75).pvalue > 1e-4
    assert (drawn.weights == 1).all()
    assert np.unique(drawn.transitions.observation[drawn.transitions.action == 1]).tolist() == [0, 1, 2]


def test_nothing_is_learned_before_an_episode_has_ended() -> None:
    part, whole = ut.BestEpisodes(), as_transitions([[(0, 0, 1.0)] * 9], terminates=True)
    begun = jax.tree.map(lambda leaf: leaf[:8], whole)
    state = part.add(part.init(20, jax.tree.map(lambda leaf: leaf[0], whole)), begun)
    assert (part.sample(state, jax.random.key(0), 5).weights == 0).all()


def test_an_episode_longer_than_its_room_ends_like_others() -> None:
    """It loses transitions, and the next episode is scored as ever."""
    long, short = [(0, 0, 0.25)] * 50, [(1, 1, 1.0)] * 3
    part, whole = ut.BestEpisodes(), as_transitions([long, short], terminates=True)
    state: Any = part.init(20, jax.tree.map(lambda leaf: leaf[0], whole))
    for begin in range(0, 53, 5):
        state = ADD(part, state, jax.tree.map(lambda leaf, b=begin: leaf[b : b + 5], whole))
    rows, actions = np.asarray(state.score), np.asarray(state.transitions.action)
    np.testing.assert_allclose(rows[actions == 1], score(short, 0.1), rtol=1e-6)
    assert (actions == 1).sum() == 3
    assert np.isfinite(rows).all()


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
    for observation, first, second in (([2, 1, 5, 0], 2, 0), ([7, 0, 5, -3], 2, 0), ([1, 1, 0, 1], 1, 1)):
        features = encoding.features((), jnp.array(observation, jnp.float32))
        expected = [observation[1], *np.eye(3)[first], *np.eye(3)[second]]
        np.testing.assert_array_equal(features, expected)


PARTS: dict[str, Any] = {"distribution": ut.PointMass(), "policy": ut.Softmax(), "learner": ut.Imitation()}


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
        ({"settings": ut.Settings(num_envs=2)}, "num_envs is 2, but BestEpisodes needs episodes one after another"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ut.train(ut.Gym("CartPole-v1"), **{**PARTS, **changes})


@pytest.mark.parametrize(
    "make", [lambda: ut.BestEpisodes(-1.0), lambda: ut.Softmax(temperature=0.0), lambda: ut.Softmax(power=-1.0)]
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match="use"):
        make()
