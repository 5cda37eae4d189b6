"""The algorithm: its parts by hand, and tiny environments that each need one ability."""

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

import worlds
from uppertail import agent as agent_module
from uppertail.agent import Agent
from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass, ReturnDistribution
from uppertail.encodings import OneHot
from uppertail.environments import FiniteMDP
from uppertail.errors import InputError
from uppertail.learners import GradientDescent, Gradients, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import PerAction
from uppertail.policies import UCB, Decision, EpsilonGreedy, ExplorationPolicy, Greedy
from uppertail.replay import Sample, Uniform
from uppertail.targets import Online
from uppertail.training.compiled import CompiledRun
from uppertail.training.loop import Actor, Loop
from uppertail.types import POLICY_CHOICE, Transition

DISCOUNT = 0.5
FAMILIES = [Gaussian(distance="cross_entropy"), Categorical(31, -2.0, 3.0), GaussianMixture(), PointMass()]
WITH_DENSITY = [
    Gaussian(distance="cross_entropy"),
    Gaussian(distance="cross_entropy", scale=5.0),
    Categorical(31, -2.0, 3.0),
    GaussianMixture(),
    GaussianMixture(2),
]
STATES, ACTIONS = 3, 2
DRAWS = 50_000


def learner_of(
    family: ReturnDistribution[Any],
    policy: ExplorationPolicy | None = None,
    loss_samples: int = 0,
    optimizer: optax.GradientTransformation | None = None,
) -> GradientLearner:
    """A learner of a small network, from minibatches of 16 of which 4 are fresh."""
    agent = Agent(family, policy or Greedy(), OneHot(STATES), DISCOUNT, None, loss_samples)
    steps = optimizer or optax.chain(optax.clip(1.0), optax.adam(0.01))
    return GradientDescent().build(agent, Gradients(PerAction(16, 1), Uniform(), Online(), steps, 4, 2, 16, 200))


def init(learner: GradientLearner, key: jax.Array) -> LearnerState:
    """A learner that knows nothing; its run begins in state 0."""
    return learner.init(key, jnp.zeros(1, jnp.int32), ACTIONS)


def target_of(agent: Agent, network: Any, key: jax.Array, transition: Transition) -> Any:
    """q(Z | s, a) with the bootstrap of this network."""
    z_next = agent.returns(network, transition.next_observation)
    bootstrap = agent.bootstrap(key, z_next, transition)
    bootstrap = agent_module.where(transition.terminated, agent.family.terminal(), bootstrap)
    return agent.back_up(bootstrap, transition)


def update(
    learner: GradientLearner, state: LearnerState, key: jax.Array, batch: Transition
) -> tuple[LearnerState, Metrics]:
    """An update in which every transition counts alike."""
    size = batch.action.shape[0]
    replayed = jnp.zeros(max(0, size - learner.fresh_count), jnp.int32)
    return learner.update(state, key, Sample(batch, replayed, jnp.ones(size)))


@functools.cache
def compiled(family: ReturnDistribution[Any], loss_samples: int = 0) -> SimpleNamespace:
    """A greedy agent's methods, each compiled once for all tests."""
    learner = learner_of(family, loss_samples=loss_samples)
    return SimpleNamespace(
        init=jax.jit(functools.partial(init, learner)),
        returns=jax.jit(learner.agent.returns),
        target=jax.jit(functools.partial(target_of, learner.agent)),
        update=jax.jit(functools.partial(update, learner)),
        backup=jax.jit(family.backup),
    )


def transition(
    observation: int = 0,
    action: int = 0,
    reward: float = 0.25,
    terminated: bool = False,
    next_observation: int = 1,
    next_action: int = POLICY_CHOICE,
) -> Transition:
    return Transition(
        jnp.asarray(observation),
        jnp.asarray(action),
        jnp.asarray(reward),
        jnp.asarray(terminated),
        jnp.asarray(next_observation),
        jnp.asarray(next_action),
    )


def batch() -> Transition:
    """Every state and action, with ends, next actions given, and next actions left to the policy."""
    rows = [
        transition(s, a, 0.3 * s - 0.4 * a, (s + a) % 2 == 0, (s + 1) % STATES, POLICY_CHOICE if s == 0 else 1)
        for s in range(STATES)
        for a in range(ACTIONS)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def assert_same(ours: Any, expected: Any) -> None:
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.fixture(params=FAMILIES, ids=str)
def family(request: pytest.FixtureRequest) -> ReturnDistribution[Any]:
    return request.param


def test_target_of_an_end_is_the_reward_alone(family: ReturnDistribution[Any]) -> None:
    do = compiled(family)
    network = do.init(jax.random.key(0)).network
    target = do.target(network, jax.random.key(1), transition(reward=0.25, terminated=True))
    assert_same(target, do.backup(family.terminal(), jnp.asarray(0.25), jnp.asarray(DISCOUNT)))
    np.testing.assert_allclose(family.mean(target), 0.25, atol=1e-5)


@pytest.mark.parametrize("next_action", range(ACTIONS))
def test_target_bootstraps_on_the_next_action_that_was_taken(family: ReturnDistribution[Any], next_action: int) -> None:
    """Also where a time limit cut the episode short: a transition says only whether it terminated."""
    do = compiled(family)
    network = do.init(jax.random.key(0)).network
    target = do.target(network, jax.random.key(1), transition(next_action=next_action))
    z_next = jax.tree.map(lambda leaf: leaf[next_action], do.returns(network, jnp.asarray(1)))
    assert_same(target, do.backup(z_next, jnp.asarray(0.25), jnp.asarray(DISCOUNT)))


def test_target_lets_the_policy_choose_where_the_next_action_is_not_known(family: ReturnDistribution[Any]) -> None:
    do = compiled(family)
    chosen = set()
    for seed in range(6):
        network = do.init(jax.random.key(seed)).network
        target = do.target(network, jax.random.key(1), transition(next_action=POLICY_CHOICE))
        z = do.returns(network, jnp.asarray(1))
        by_action = [jax.tree.map(lambda leaf, a=a: leaf[a], z) for a in range(ACTIONS)]
        best = int(np.argmax([family.mean(z) for z in by_action]))
        chosen.add(best)
        assert_same(target, do.backup(by_action[best], jnp.asarray(0.25), jnp.asarray(DISCOUNT)))
    assert chosen == {0, 1}


def test_the_policy_chooses_differently_with_other_keys() -> None:
    learner = learner_of(PointMass(), EpsilonGreedy(1.0))
    network = init(learner, jax.random.key(0)).network
    keys = jax.random.split(jax.random.key(1), 200)
    targets = jax.jit(jax.vmap(functools.partial(target_of, learner.agent), in_axes=(None, 0, None)))
    assert len(np.unique(targets(network, keys, transition(next_action=POLICY_CHOICE)).mean)) == ACTIONS
    assert len(np.unique(targets(network, keys, transition(next_action=0)).mean)) == 1


def test_act_follows_the_policy_or_the_one_that_is_named() -> None:
    learner = learner_of(Gaussian(), EpsilonGreedy(1.0))
    agent, network = learner.agent, init(learner, jax.random.key(0)).network
    keys = jax.random.split(jax.random.key(1), 100)
    random, greedy = (
        jax.jit(jax.vmap(lambda key, p=policy: Actor(agent, p).first(key, network, jnp.asarray(2)).action))(keys)
        for policy in (agent.policy, Greedy())
    )
    assert set(np.asarray(random).tolist()) == {0, 1}
    means = jax.vmap(agent.family.mean)(agent.returns(network, jnp.asarray(2)))
    assert (np.asarray(greedy) == int(np.argmax(means))).all()


def test_loss_is_of_the_action_that_was_taken() -> None:
    learner = learner_of(PointMass())
    agent, network = learner.agent, init(learner, jax.random.key(0)).network
    keys = jax.random.split(jax.random.key(1))
    for action in range(ACTIONS):
        prediction = agent.returns(network, jnp.asarray(2)).mean[action]
        end = transition(observation=2, action=action, reward=1.0, terminated=True)
        loss, outside = agent.loss(network, network, keys, end)
        np.testing.assert_allclose(loss, [0.5 * (1 - float(prediction)) ** 2], rtol=1e-5)
        assert not outside.any()


@pytest.mark.slow
def test_update_steps_down_the_gradient_with_targets_held_still(family: ReturnDistribution[Any]) -> None:
    """Plain gradient descent with a step of 1: the network's change is the gradient, and none flows through targets."""
    learner = learner_of(family, optimizer=optax.sgd(1.0))
    agent, state = learner.agent, init(learner, jax.random.key(0))
    data, key = batch(), jax.random.key(1)
    held_still = state.network

    @jax.jit
    def gradients(network: Any) -> Any:
        def mean_loss(network: Any) -> jax.Array:
            def of_one(transition: Transition) -> jax.Array:
                prediction = agent_module.take(agent.returns(network, transition.observation), transition.action)
                return family.loss(target_of(agent, held_still, key, transition), prediction)

            return jnp.mean(jax.vmap(of_one)(data))

        return jax.value_and_grad(mean_loss)(network)

    loss, held = gradients(state.network)
    after, metrics = jax.jit(functools.partial(update, learner))(state, key, data)
    change = jax.tree.map(lambda before, now: before - now, state.network, after.network)
    for ours, expected in zip(jax.tree.leaves(change), jax.tree.leaves(held), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=2e-6)
    norm = np.sqrt(sum(np.sum(np.asarray(leaf, np.float64) ** 2) for leaf in jax.tree.leaves(held)))
    np.testing.assert_allclose(metrics.loss, loss, rtol=1e-5)
    np.testing.assert_allclose(metrics.gradient_norm, norm, rtol=1e-5)
    assert norm > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "loss_samples"), [*((family, 0) for family in FAMILIES), *((family, 4) for family in FAMILIES[:-1])]
)
def test_a_state_that_is_only_bootstrapped_from_is_left_alone(
    family: ReturnDistribution[Any], loss_samples: int
) -> None:
    """One-hot states without biases: an update at state 0 leaves the first-layer row of state 1 as it was."""
    do = compiled(family, loss_samples)
    state = do.init(jax.random.key(0))
    data = jax.tree.map(lambda leaf: jnp.stack([leaf] * STATES * ACTIONS), transition(next_action=0))
    after, _ = do.update(state, jax.random.key(1), data)
    changed = np.asarray(state.network.weights[0] != after.network.weights[0]).any(axis=2)
    assert changed.tolist() == [[True, False, False], [False, False, False]]


def test_updates_reduce_the_loss(family: ReturnDistribution[Any]) -> None:
    do = compiled(family)
    data = batch()._replace(terminated=jnp.ones(STATES * ACTIONS, bool))
    state, losses = do.init(jax.random.key(0)), []
    for key in jax.random.split(jax.random.key(1), 21):
        state, metrics = do.update(state, key, data)
        losses.append(float(metrics.loss))
    assert losses[20] < losses[10] < losses[0]


def test_a_network_that_cannot_follow_another_range_of_returns_stays_as_it_is() -> None:
    """At the first reward, if a random policy saw none: it was rescaled nevertheless, which ended the run."""
    learner = learner_of(Gaussian())
    state = init(learner, jax.random.key(0))
    assert not learner.can_refit and learner.refitted(learner, state) is state


@pytest.mark.slow
def test_every_transition_and_update_has_its_own_randomness() -> None:
    """With a policy that chooses blindly, one transition has two targets, and a large batch a mixture of them."""
    learner = learner_of(PointMass(), EpsilonGreedy(1.0))
    state = init(learner, jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 50)

    def losses(size: int) -> np.ndarray:
        data = jax.tree.map(lambda leaf: jnp.stack([leaf] * size), transition(next_action=POLICY_CHOICE))
        return np.asarray(jax.jit(jax.vmap(lambda key: update(learner, state, key, data)[1].loss))(keys))

    alone, together = np.unique(losses(1)), losses(32)
    assert len(alone) == 2
    assert len(np.unique(together)) > 2
    assert (together > alone[0]).all() and (together < alone[1]).all()


def surprise(
    family: ReturnDistribution[Any], target: Any, log_p: Callable[[np.ndarray], np.ndarray]
) -> tuple[float, float]:
    """Mean and standard deviation of - log p(Z) under the target, in float64: a sum, or a trapezium rule."""
    q = {name: np.asarray(leaf, np.float64) for name, leaf in target._asdict().items()}
    if isinstance(family, Categorical):
        points, mass = np.asarray(family.centers, np.float64), np.exp(q["log_probabilities"])
    else:
        weights, means, stds = q.values() if len(q) == 3 else (np.ones(1), q["mean"][None], q["std"][None])
        points = np.linspace((means - 12 * stds).min(), (means + 12 * stds).max(), 200_001)
        mass = scipy.stats.norm.pdf(points[:, None], means, stds) @ weights * (points[1] - points[0])
    np.testing.assert_allclose(mass.sum(), 1.0, rtol=1e-5)
    log_p_of_points = np.where(mass > 0, log_p(points), 0.0)
    mean = -np.sum(mass * log_p_of_points)
    return float(mean), math.sqrt(max(np.sum(mass * log_p_of_points**2) - mean**2, 0.0))


def log_density_of(family: ReturnDistribution[Any], z: Any) -> Callable[[np.ndarray], np.ndarray]:
    """log p in float64; of a categorical, p_i / bin width at its centers."""
    p = {name: np.asarray(leaf, np.float64) for name, leaf in z._asdict().items()}
    if isinstance(family, Categorical):
        return lambda _: p["log_probabilities"] - math.log(family.bin_width)
    weights, means, stds = p.values() if len(p) == 3 else (np.ones(1), p["mean"][None], p["std"][None])
    return lambda x: np.log(scipy.stats.norm.pdf(x[:, None], means, stds) @ weights + 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("family", WITH_DENSITY, ids=str)
def test_the_sample_based_loss_is_the_cross_entropy_on_average(family: ReturnDistribution[Any]) -> None:
    """The mean over many draws, within 5 standard errors of the integral of - q log p."""
    learner = learner_of(family, loss_samples=DRAWS)
    agent, network = learner.agent, init(learner, jax.random.key(0)).network
    bootstrap = family.from_outputs(jax.random.normal(jax.random.key(1), (family.num_outputs,)))
    target = family.backup(bootstrap, jnp.asarray(0.25), jnp.asarray(DISCOUNT))
    for action, key in enumerate(jax.random.split(jax.random.key(2), ACTIONS)):
        prediction = jax.tree.map(lambda leaf, a=action: leaf[a], agent.returns(network, 2))
        expected, spread = surprise(family, target, log_density_of(family, prediction))
        loss = agent.distance(key, target, prediction)
        np.testing.assert_allclose(loss, expected, atol=5 * spread / math.sqrt(DRAWS) + 1e-4)
        assert spread > 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        Gaussian(beta=0.0, distance="cross_entropy"),
        Gaussian(beta=0.0, distance="cross_entropy", scale=5.0),
        Categorical(31, -2.0, 3.0),
    ],
    ids=str,
)
def test_the_sample_based_loss_has_the_gradient_of_the_closed_form_on_average(family: ReturnDistribution[Any]) -> None:
    sampled, closed = (learner_of(family, loss_samples=count) for count in (DRAWS, 0))
    network = init(closed, jax.random.key(0)).network
    target = family.backup(
        family.from_outputs(jnp.linspace(1.0, -1.0, family.num_outputs)), jnp.asarray(1.0), jnp.asarray(DISCOUNT)
    )

    def gradient_of(agent: Agent) -> Any:
        def distance(network: Any) -> jax.Array:
            prediction = agent_module.take(agent.returns(network, jnp.asarray(2)), jnp.asarray(0))
            return agent.distance(jax.random.key(2), target, prediction)

        return jax.jit(jax.grad(distance))(network)

    by_draws, in_closed_form = (gradient_of(learner.agent) for learner in (sampled, closed))
    for ours, expected in zip(jax.tree.leaves(by_draws), jax.tree.leaves(in_closed_form), strict=True):
        np.testing.assert_allclose(ours, expected, atol=0.03 * float(np.abs(expected).max()))


@pytest.mark.parametrize("family", FAMILIES[:-1], ids=str)
def test_updates_by_draws_reduce_the_loss(family: ReturnDistribution[Any]) -> None:
    do = compiled(family, 4)
    data = batch()._replace(terminated=jnp.ones(STATES * ACTIONS, bool))
    state, losses = do.init(jax.random.key(0)), []
    for key in jax.random.split(jax.random.key(1), 41):
        state, metrics = do.update(state, key, data)
        losses.append(float(metrics.loss))
    assert np.mean(losses[-5:]) < np.mean(losses[18:23]) < np.mean(losses[:5])


@pytest.mark.slow
def test_every_transition_has_its_own_draws() -> None:
    """The mean loss of 64 equal transitions varies an eighth as much as the loss of one."""
    learner = learner_of(Gaussian(), loss_samples=1)
    state = init(learner, jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 1000)

    def spread(size: int) -> float:
        data = jax.tree.map(lambda leaf: jnp.stack([leaf] * size), transition(next_action=0))
        return float(np.std(jax.jit(jax.vmap(lambda key: update(learner, state, key, data)[1].loss))(keys)))

    np.testing.assert_allclose(spread(64), spread(1) / 8, rtol=0.2)


@pytest.mark.slow
def test_draws_are_independent_of_the_policys_choice() -> None:
    """A policy that is mostly chance between two equal distributions, then one draw of the target: neither tells of
    the other."""
    learner = learner_of(Gaussian(), UCB(0.0, 4.0), loss_samples=1)
    agent, state = learner.agent, init(learner, jax.random.key(0))
    network = jax.tree.map(lambda leaf: jnp.stack([leaf[0]] * ACTIONS), state.network)
    state = state._replace(network=network)
    # the reward is far from the prediction, so that the loss tells a high draw from a low one
    data = jax.tree.map(lambda leaf: leaf[None], transition(reward=3.0, next_action=POLICY_CHOICE))
    keys = jax.random.split(jax.random.key(1), 4000)
    losses = jax.jit(jax.vmap(lambda key: update(learner, state, key, data)[1].loss))(keys)
    seen = Decision(agent.family, agent.returns_by_member(network, jnp.asarray(1)))
    choices = jax.vmap(lambda key: agent.policy.first_action(jax.random.split(key, (1, 2))[0, 0], seen))(keys)
    first, second = (np.asarray(losses)[np.asarray(choices) == action] for action in range(ACTIONS))
    assert scipy.stats.kstest(first, second).pvalue > 1e-4


def test_a_family_without_a_density_cannot_be_learned_by_draws() -> None:
    with pytest.raises(InputError, match=r"loss_samples is 3, but PointMass has no density.*use 0.*Gaussian"):
        learner_of(PointMass(), loss_samples=3)


def test_take_and_where_reach_into_a_distribution() -> None:
    z = Gaussian().from_outputs(jnp.array([1.0, 2.0]))
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), Gaussian().terminal(), z)
    assert_same(agent_module.take(both, jnp.asarray(1)), z)
    assert_same(agent_module.where(jnp.asarray(True), z, Gaussian().terminal()), z)
    assert_same(agent_module.where(jnp.asarray(False), z, Gaussian().terminal()), Gaussian().terminal())


def table(rewards: list[list[float]], next_state: list[list[int]], terminated: list[list[bool]]) -> FiniteMDP:
    """A table of three states and two actions; states that are not given end at once."""
    missing = STATES - len(rewards)
    rows = next_state + [[0, 0]] * missing, rewards + [[0.0, 0.0]] * missing, terminated + [[True, True]] * missing
    return worlds.table(*rows, time_limit=3)


PROBES = {
    "value": table([[1.0, 1.0]], [[0, 0]], [[True, True]]),
    "discount": table([[0.0, 0.0], [1.0, 1.0]], [[1, 1], [1, 1]], [[False, False], [True, True]]),
    "choice": table([[-1.0, 1.0]], [[0, 0]], [[True, True]]),
    "truncation": table([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], [[1, 1], [2, 2], [2, 2]], [[False, False]] * 3),
    "two steps": table(
        [[-0.5, 0.2], [2.0, 0.0], [0.0, 0.1]], [[1, 2], [1, 1], [2, 2]], [[False, False], [True, True], [True, True]]
    ),
}
"""Each needs one ability: to learn a return, to discount it, to choose, to see past a time limit, to plan."""

VALUES = {
    "value": (0, 1.0),
    "discount": (0, DISCOUNT),
    "choice": (0, 1.0),
    "truncation": (2, 1 / (1 - DISCOUNT)),
    "two steps": (0, 0.5),
}
"""A state and the value of its best action. A time limit of 3 steps changes nothing, though it is met in state 2."""

CHOICES = {"choice": [1], "two steps": [0, 0]}
"""The best action in the states that the best policy visits; in the other probes both are as good."""


@pytest.mark.slow
def test_probes_are_learned(family: ReturnDistribution[Any], subtests: pytest.Subtests) -> None:
    """In the median of five seeds: a mixture that has narrowed too soon can stay where its L2 loss is flat."""
    policy = EpsilonGreedy(0.1) if isinstance(family, PointMass) else UCB()
    learner = learner_of(family, policy)
    agent, probe_run = learner.agent, CompiledRun(Loop(learner, rollout_steps=4, episodes=10**6))
    environments = jax.tree.map(lambda *leaves: jnp.stack(leaves), *PROBES.values())

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    @functools.partial(jax.vmap, in_axes=(None, 0))
    def learn(key: jax.Array, environment: FiniteMDP) -> jax.Array:
        """Action values of every state after training."""
        run, _, _ = probe_run.chunk(300, jnp.int32(300), key, environment, probe_run.init(key, environment))
        returns = jax.vmap(agent.returns, in_axes=(None, 0))(run.learned.network, jnp.arange(STATES))
        return jax.vmap(jax.vmap(family.mean))(returns)

    learned = np.asarray(learn(jax.random.split(jax.random.key(0), 5), environments))
    for probe, (name, (where, value)) in enumerate(VALUES.items()):
        with subtests.test(name):
            values, choices = learned[:, probe], CHOICES.get(name, [])
            np.testing.assert_allclose(np.median(values[:, where, choices[:1] or [0, 1]]), value, rtol=0.1, atol=0.15)
            for state, action in enumerate(choices):
                assert np.mean(values[:, state].argmax(axis=1) == action) > 0.5
