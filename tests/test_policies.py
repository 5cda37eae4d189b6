"""Exploration policies: worked cases, and frequencies against their probabilities."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from jaxtyping import PRNGKeyArray

from uppertail.agent import Agent
from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass, ReturnDistribution
from uppertail.distributions.gaussian import GaussianReturn
from uppertail.distributions.point_mass import PointMassReturn
from uppertail.encodings import OneHot
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.parts import PARTS
from uppertail.policies import UCB, Decision, EpsilonGreedy, ExplorationPolicy, Greedy, Thompson
from uppertail.policies.base import highest
from uppertail.policies.episodic import PLACES, visit_place
from uppertail.training.loop import Actor

DECISIONS = 20_000


def gaussians(means: list[float], stds: list[float]) -> GaussianReturn:
    return GaussianReturn(jnp.array(means), jnp.array(stds))


@functools.partial(jax.jit, static_argnums=(0, 1))
def decisions(policy: ExplorationPolicy, family: ReturnDistribution[Any], z: Any) -> jax.Array:
    """Many decisions of a policy that keeps nothing, for a network that stands alone."""
    seen = alone(family, z)
    return jax.vmap(lambda key: policy.select(key, seen))(jax.random.split(jax.random.key(0), DECISIONS))


def alone(family: ReturnDistribution[Any], z: Any, memory: Any = ()) -> Decision:
    """What a policy sees of distributions [actions] by a network without members."""
    return Decision(family, jax.tree.map(lambda leaf: leaf[None], z), memory=memory)


def counts(policy: ExplorationPolicy, family: ReturnDistribution[Any], z: Any, num_actions: int) -> np.ndarray:
    """How often each action is chosen in many decisions."""
    return np.bincount(np.asarray(decisions(policy, family, z)), minlength=num_actions)


def assert_frequency(chosen: int, probability: float) -> None:
    """A count within what a binomial shows once in a million."""
    low, high = scipy.stats.binom.interval(1 - 1e-6, DECISIONS, probability)
    assert low <= chosen <= high, f"{chosen} of {DECISIONS} for a probability of {probability}"


def test_ucb_scores_by_hand() -> None:
    """mean + 2 std."""
    z = gaussians([0.0, 1.0, -1.0], [1.0, 0.25, 2.0])
    scores = UCB(2.0, 2.0).scores(jax.random.key(0), alone(Gaussian(), z))
    np.testing.assert_allclose(scores, [2.0, 1.5, 3.0], rtol=1e-6)
    assert (decisions(UCB(2.0, 2.0), Gaussian(), z) == 2).all()


def test_ucb_scores_of_a_categorical_by_hand() -> None:
    """Half on each of the centers 0.1 and 0.3 has standard deviation 0.1; all on 0.3 has none."""
    family = Categorical(7, -0.2, 1.2)
    outputs = jnp.full((2, 7), -jnp.inf).at[0, 1:3].set(0.0).at[1, 2].set(0.0)
    scores = UCB(2.0, 2.0).scores(jax.random.key(0), alone(family, jax.vmap(family.from_outputs)(outputs)))
    np.testing.assert_allclose(scores, [0.4, 0.3], atol=1e-6)


def test_ucb_draws_c_for_each_action_within_its_range() -> None:
    z = gaussians([0.0] * 500, [1.0] * 500)
    c = np.asarray(UCB(1.7, 2.3).scores(jax.random.key(0), alone(Gaussian(), z)))
    assert c.min() >= 1.7 and c.max() <= 2.3
    assert scipy.stats.kstest(c, scipy.stats.uniform(1.7, 0.6).cdf).pvalue > 1e-4


def test_ucb_frequencies() -> None:
    """Action 1 wins where c_1 of its own is large enough against c_0: P by quadrature."""
    z = gaussians([0.0, 0.3], [1.0, 0.9])
    probability, _ = scipy.integrate.quad(lambda c1: np.clip((0.3 + 0.9 * c1 - 1.7) / 0.6, 0, 1) / 0.6, 1.7, 2.3)
    assert 0.6 < probability < 0.9
    assert_frequency(counts(UCB(1.7, 2.3), Gaussian(), z, 2)[1], probability)


def test_visits_of_an_episode_narrow_the_spread_by_hand() -> None:
    """1 + 2 * 3 / (1 + n)^power; a backup has no visits, and the next episode begins without any."""
    key, z = jax.random.key(0), gaussians([1.0, 1.0], [3.0, 3.0])
    for power, expected in (
        (0.0, [7.0, 7.0, 7.0]),
        (0.5, [7.0, 1 + 6 / math.sqrt(2), 1 + 6 / math.sqrt(3)]),
        (1.0, [7.0, 4.0, 3.0]),
        (None, [7.0, 7.0, 7.0]),
    ):
        policy = UCB(power=power)
        here = policy.begun(key, dataclasses.replace(alone(Gaussian(), z), observation=jnp.array(7)))
        assert isinstance(here.memory, tuple) == (not power), "without a power no memory is kept"
        elsewhere = dataclasses.replace(here, observation=jnp.array(8))
        for score in expected:
            np.testing.assert_allclose(policy.scores(key, here), [7.0, score], rtol=1e-6)
            np.testing.assert_allclose(policy.scores(key, elsewhere.with_memory(here.memory)), [7.0, 7.0], rtol=1e-6)
            here = here.with_memory(policy.advance(key, here, jnp.array(1)))
        for other in (policy.begun(key, here), dataclasses.replace(here, observation=None)):
            np.testing.assert_allclose(policy.scores(key, other), [7.0, 7.0], rtol=1e-6)


def test_a_power_is_not_below_0() -> None:
    with pytest.raises(InputError, match=r"^power is -1\.0: use 0 or more"):
        UCB(power=-1.0)


def test_an_episodes_observations_rarely_meet_in_its_hash_table() -> None:
    """By chance 200 of them meet 5 times in 4,096 places: numbers, vectors of a few values, one-hots, images."""
    random = np.random.default_rng(0)
    hashes, vectors = random.integers(1, 2**31, 200), random.integers(3, size=(200, 147)).astype(np.float32)
    images = random.integers(9, size=(200, 5, 5, 3), dtype=np.uint8)
    for observations in (np.arange(200), hashes, vectors, np.eye(200, dtype=np.float32), images):
        places = np.asarray(jax.vmap(visit_place)(jnp.asarray(observations)))
        assert places.min() >= 0 and places.max() < PLACES
        assert len(set(places.tolist())) >= 180
    for place in (visit_place, jax.jit(visit_place)):
        assert place(jnp.array([0.0, 1.0])) == place(jnp.array([-0.0, 1.0]))


@pytest.mark.parametrize(
    ("means", "stds"), [([0.0, 0.5], [1.0, 1.0]), ([1.0, 0.0], [0.1, 2.0]), ([-3.0, -3.0], [0.5, 5.0])], ids=str
)
def test_thompson_frequencies(means: list[float], stds: list[float]) -> None:
    """P(Z_0 > Z_1) = Phi((m_0 - m_1) / sqrt(s_0^2 + s_1^2)): the draws are independent."""
    probability = scipy.stats.norm.cdf((means[0] - means[1]) / math.hypot(*stds))
    assert_frequency(counts(Thompson(), Gaussian(), gaussians(means, stds), 2)[0], float(probability))


def test_thompson_draws_actions_independently_of_a_mixture_and_a_categorical() -> None:
    """Equal distributions: every order is as likely as another, though some draws of a categorical tie."""
    for family in (GaussianMixture(), Categorical(7, -0.2, 1.2)):
        z = jax.vmap(family.from_outputs)(jnp.zeros((4, family.num_outputs)))
        for chosen in counts(Thompson(), family, z, 4):
            assert_frequency(chosen, 0.25)


@pytest.mark.parametrize("draws", [1, 2, 5])
def test_the_highest_of_several_draws(draws: int) -> None:
    """The highest of k independent draws has the distribution function of one, to the power k: the more, the higher."""
    z = gaussians([0.5] * 5000, [2.0] * 5000)
    scores = np.asarray(Thompson(draws).scores(jax.random.key(0), alone(Gaussian(), z)), np.float64)
    assert scipy.stats.kstest(scores, lambda x: scipy.stats.norm(0.5, 2.0).cdf(x) ** draws).pvalue > 1e-4


def test_thompson_frequencies_with_several_draws() -> None:
    """P(the highest of 4 of action 0 > the highest of 4 of action 1), by quadrature."""

    def highest_at(x: float) -> float:
        pdf, cdf = scipy.stats.norm.pdf, scipy.stats.norm.cdf
        return float(4 * pdf(x) * cdf(x) ** 3 * cdf(x, 0.5, 0.5) ** 4)

    probability, _ = scipy.integrate.quad(highest_at, -9, 9)
    assert 0.4 < probability < 0.6
    assert_frequency(counts(Thompson(4), Gaussian(), gaussians([0.0, 0.5], [1.0, 0.5]), 2)[0], probability)


def test_one_draw_is_the_draw_of_each_actions_key() -> None:
    z, key = gaussians([0.0, 1.0, -1.0], [1.0, 0.25, 2.0]), jax.random.key(3)
    expected = [
        Gaussian().sample(k, jax.tree.map(lambda leaf, a=action: leaf[a], z))
        for action, k in enumerate(jax.random.split(key, 3))
    ]
    np.testing.assert_array_equal(Thompson().scores(key, alone(Gaussian(), z)), jnp.stack(expected))


def test_greedy_takes_the_highest_mean() -> None:
    z = gaussians([0.0, 0.2, 0.1], [9.0, 1e-4, 5.0])
    np.testing.assert_allclose(Greedy().scores(jax.random.key(0), alone(Gaussian(), z)), [0.0, 0.2, 0.1])
    assert counts(Greedy(), Gaussian(), z, 3).tolist() == [0, DECISIONS, 0]


def test_epsilon_of_zero_is_greedy() -> None:
    z = gaussians([-5.0, -7.0, -9.0], [1.0, 1.0, 1.0])
    assert counts(EpsilonGreedy(0.0), Gaussian(), z, 3).tolist() == [DECISIONS, 0, 0]


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_epsilon_greedy_frequencies(epsilon: float) -> None:
    """1 - epsilon + epsilon / k for the greedy action, epsilon / k for each other, wherever the means lie."""
    z = gaussians([-50.0, 50.0, 0.5, 0.2], [1.0] * 4)
    chosen = counts(EpsilonGreedy(epsilon), Gaussian(), z, 4)
    for action, count in enumerate(chosen):
        assert_frequency(count, epsilon / 4 + (1 - epsilon if action == 1 else 0.0))


@pytest.mark.parametrize(
    "policy", [Greedy(), EpsilonGreedy(0.0), EpsilonGreedy(), UCB(2.0, 2.0), UCB(), Thompson(), Thompson(3)], ids=str
)
@pytest.mark.parametrize("num_actions", [1, 2, 5])
def test_ties_are_broken_at_random(policy: ExplorationPolicy, num_actions: int) -> None:
    z = PointMassReturn(jnp.full(num_actions, -1.5))
    for chosen in counts(policy, PointMass(), z, num_actions):
        assert_frequency(chosen, 1 / num_actions)


def test_ties_below_the_highest_score_do_not_count() -> None:
    chosen = counts(Greedy(), PointMass(), PointMassReturn(jnp.array([0.0, 3.0, 0.0, 3.0, 3.0])), 5)
    assert chosen[0] == chosen[2] == 0
    for action in (1, 3, 4):
        assert_frequency(chosen[action], 1 / 3)


def test_the_highest_score_wins_however_the_compiler_rounds_it() -> None:
    """A program that computes the scores twice may round them differently: that decides between equal ones at most."""

    def scores(key: jax.Array, means: jax.Array, stds: jax.Array) -> jax.Array:
        return means + stds * jax.random.normal(key, means.shape)

    def decision(key: jax.Array, *moments: jax.Array) -> jax.Array:
        return highest(key, scores(key, *moments))

    keys = jax.random.split(jax.random.key(0), DECISIONS)
    moments = jnp.array([0.0, 0.5, 0.2]), jnp.array([1.0, 0.7, 1.1])
    chosen, found = (jax.jit(jax.vmap(f, in_axes=(0, None, None)))(keys, *moments) for f in (decision, scores))
    of_chosen = np.take_along_axis(np.asarray(found), np.asarray(chosen)[:, None], axis=1)
    assert (found - of_chosen).max() < 1e-5
    assert set(np.asarray(chosen).tolist()) == {0, 1, 2}


def test_an_action_is_an_integer_of_32_bits() -> None:
    assert decisions(UCB(), Gaussian(), gaussians([0.0, 0.0], [1.0, 1.0])).dtype == jnp.int32


# Ensembles


def ensemble(means: list[list[float]], stds: list[list[float]]) -> GaussianReturn:
    """Gaussians of [members, actions]."""
    return GaussianReturn(jnp.array(means), jnp.array(stds))


def test_an_ensemble_is_scored_by_the_mean_over_its_members() -> None:
    """Two of three members prefer action 0, but the mean over them action 1; nor does the highest of all decide."""
    for means, action in (([[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]], 1), ([[1.0, 2.0], [1.0, 0.0], [1.0, 0.0]], 0)):
        for policy in (Greedy(), UCB(2.0, 2.0), EpsilonGreedy(0.0)):
            assert (selections(policy, ensemble(means, [[1.0, 1.0]] * 3)) == action).all()
    spread = ensemble([[0.5, 0.0]] * 2, [[0.0, 0.0], [0.0, 1.0]])  # 0.5 against mean 2 * (0 + 1) / 2 = 1
    assert (selections(UCB(2.0, 2.0), spread) == 1).all()
    assert (selections(Greedy(), spread) == 0).all()


def test_all_members_are_scored_with_the_same_randomness() -> None:
    """Equal members decide as one of them would: with randomness of their own, their mean would vary less."""
    one = ensemble([[0.0, 0.3]], [[1.0, 0.9]])
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf, 4, axis=0), one)
    for policy in (UCB(), Thompson(), EpsilonGreedy(0.5)):
        np.testing.assert_array_equal(selections(policy, many), selections(policy, one))


@functools.partial(jax.jit, static_argnums=0)
def selections(policy: ExplorationPolicy, z: Any) -> jax.Array:
    """A hundred decisions, each the first of an episode."""
    keys = jax.random.split(jax.random.key(0), 100)
    return jax.vmap(lambda key: policy.first_action(key, Decision(Gaussian(), z)))(keys)


# Laws of every built-in policy


EVERY = [kind() for kind in PARTS["policy"].classes.values()]


@pytest.mark.parametrize("policy", EVERY, ids=str)
def test_every_policy_treats_actions_alike_and_takes_one_that_is_better_for_sure(policy: ExplorationPolicy) -> None:
    """Three equal actions equally often; and one far above the others, but for EpsilonGreedy's 5%."""
    keys = jax.random.split(jax.random.key(0), DECISIONS)
    equal, best = (ensemble([means] * 2, [[0.5] * 3] * 2) for means in ([1.0] * 3, [1.0, 90.0, 1.0]))

    @jax.jit
    def first_actions(z: GaussianReturn) -> jax.Array:
        return jax.vmap(lambda key: policy.first_action(key, Decision(Gaussian(), z)))(keys)

    for chosen in np.bincount(np.asarray(first_actions(equal)), minlength=3):
        assert_frequency(chosen, 1 / 3)
    actions = first_actions(best)
    assert actions.dtype == jnp.int32
    assert np.mean(np.asarray(actions) == 1) > 0.95


@pytest.mark.parametrize("policy", EVERY, ids=str)
def test_every_policy_keeps_the_shape_of_its_memory(policy: ExplorationPolicy) -> None:
    """From one decision to the next, and from one episode to the next."""
    key, decision = jax.random.key(0), Decision(Gaussian(), ensemble([[0.0, 1.0]] * 3, [[1.0, 1.0]] * 3), jnp.array(4))

    def shapes(memory: Any) -> Any:
        return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), memory)

    begun = policy.begun(key, decision.with_memory(policy.init(decision)))
    after = decision.with_memory(policy.advance(key, begun, policy.select(key, begun)))
    again = policy.begun(key, after)
    assert shapes(begun.memory) == shapes(after.memory) == shapes(again.memory)


# Bad input


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: EpsilonGreedy(-0.1), ["epsilon is -0.1", "[0, 1]", "0.05"]),
        (lambda: EpsilonGreedy(1.1), ["epsilon is 1.1", "[0, 1]"]),
        (lambda: EpsilonGreedy(math.nan), ["epsilon is nan", "finite number"]),
        (lambda: Thompson(0), ["draws is 0: use a whole number from 1 to 65536; the paper uses 1."]),
        (lambda: UCB(-1.0, 2.0), ["[-1.0, 2.0]", "0 <= low <= high"]),
        (lambda: UCB(2.0, 1.0), ["[2.0, 1.0]", "0 <= low <= high"]),
        (lambda: UCB(2.0, math.inf), ["high is inf", "finite number"]),
        (lambda: UCB(math.nan, 2.0), ["low is nan", "finite number"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(build: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        build()
    for word in words:
        assert word in str(error.value)


class Shown(Network):
    """Shows these means in every state."""

    means: Any

    def outputs(self, observation: Any) -> Any:
        return self.means[:, None] / 10.0


class Always(ExplorationPolicy):
    """One action."""

    def __init__(self, action: int) -> None:
        self.action = action

    def scores(self, key: Any, decision: Any) -> Any:
        return (jnp.arange(3) == self.action).astype(jnp.float32)


def test_nearly_equal_means_are_no_exploration() -> None:
    """Means of 0, 9.995 and 9.99, in a range of 10: only the first action is worse."""
    agent, network = Agent(PointMass(scale=10.0), UCB(), OneHot(1), 0.5), Shown(means=jnp.array([0.0, 9.995, 9.99]))
    for action, explores in enumerate((True, False, False)):
        choice = Actor(agent, Always(action)).first(jax.random.key(0), network, jnp.asarray(0))
        assert (int(choice.action), bool(choice.exploratory)) == (action, explores)


def test_an_evaluation_takes_the_first_of_the_best_actions_as_act_does() -> None:
    agent, network = Agent(PointMass(scale=10.0), UCB(), OneHot(1), 0.5), Shown(means=jnp.array([0.0, 3.0, 3.0]))
    here, begins, keys = jnp.asarray(0), jnp.asarray(True), jax.random.split(jax.random.key(0), 64)
    played = jax.vmap(lambda key: Actor(agent, Greedy()).play(key, network, here, (), begins))(keys)
    assert (played.action == 1).all()
    assert int(jnp.argmax(agent.returns(network, here).mean)) == 1


@pytest.mark.parametrize("more", [0, 2])
def test_scores_are_one_for_each_action(more: int) -> None:
    """One of three was an action that there is not."""

    @dataclasses.dataclass(frozen=True)
    class Other(ExplorationPolicy):
        def scores(self, key: PRNGKeyArray, decision: Decision) -> Any:
            return jnp.arange(1 + more)

    decision = Decision(PointMass(), PointMassReturn(mean=jnp.zeros((1, 2))))
    with pytest.raises(InputError, match=rf"^Other.scores gives an array of shape \({1 + more},\) in a state of 2 act"):
        Other().select(jax.random.key(0), decision)
