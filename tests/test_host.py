"""Runs in environments that Python steps: the compiled run's equal, and what goes wrong there."""

import dataclasses
import functools
import inspect
import itertools
import json
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.envs.toy_text.taxi import TaxiEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from killed import Killed, assert_same, complain, dies_at_chunk
from uppertail import (
    Categorical,
    Chain,
    Checkpoints,
    FromGymnasium,
    Gaussian,
    GaussianMixture,
    Gym,
    Settings,
    Stop,
    train,
)
from uppertail.agent import Agent
from uppertail.encodings import OneHot
from uppertail.environments import EnvironmentFailedError, Toy, step_host
from uppertail.environments.actions import Actions
from uppertail.environments.gymnasium import builder as builder_module
from uppertail.environments.gymnasium.adapter import Adapter
from uppertail.environments.gymnasium.vector import HostEnvironments, episode_seed
from uppertail.environments.interface import Interface
from uppertail.environments.packages import call
from uppertail.environments.spaces import read_space
from uppertail.errors import InputError
from uppertail.evidence import NoEvidence
from uppertail.learners import Gradients
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import PerAction
from uppertail.policies import UCB, EpsilonGreedy, Greedy
from uppertail.replay import Sample, Uniform
from uppertail.targets import Online
from uppertail.training import checkpoint, compiled, host
from uppertail.training.checkpoints import Saver
from uppertail.training.loop import Episode
from uppertail.training.method import Method
from uppertail.training.results import TrainingFailedError
from uppertail.training.rollouts import Rollouts
from uppertail.training.run import Run
from uppertail.types import POLICY_CHOICE, Transition
from worlds import measure_returns

SMALL: dict[str, Any] = {
    "seeds": 2,
    "episodes": 10**6,
    "steps": 1024,
    "discount": 0.5,
    "learning_rate": 0.01,
    "learning_rate_end": 1e-4,
    "rollout_steps": 16,
    "replay_size": 128,
    "batch_size": 32,
    "updates_per_rollout": 4,
}
"""As few settings as can be, and the same families and policies: then the tests share their programs."""

WIDE, NARROW = Gaussian(scale=4.0), Categorical(5, -1.0, 1.0)
STAYS = GaussianMixture()  # its range does not grow
AT_RANDOM = EpsilonGreedy(1.0)
CHUNK = 64


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "CHUNK_STEPS", CHUNK)
    monkeypatch.setattr(host, "CHUNK_STEPS", CHUNK)


def settings_of(**changes: Any) -> Settings:
    return Settings(**{**SMALL, **changes})


# Environments


class Small(gymnasium.Env[Any, Any]):
    """Three states and two actions; an episode begins in the first."""

    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)
    state = steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.state = self.steps = 0
        return 0, {}


class ToyEnvironment(Small):
    """The Toy of Fig. 1, its rewards times a number, with the table that Gymnasium's own toys show."""

    def __init__(self, factor: float = 1.0) -> None:
        rewards = {0: (-1.0, 1.0), 1: (4.0, 1.0), 2: (1.0, 0.0)}
        self.P = {
            state: {
                action: [(1.0, action + 1 if state == 0 else state, factor * pay[action], state > 0)]
                for action in range(2)
            }
            for state, pay in rewards.items()
        }
        self.initial_state_distrib = np.array([1.0, 0.0, 0.0])

    def step(self, action: Any) -> Any:
        _, self.state, reward, terminated = self.P[self.state][int(action)][0]
        return self.state, reward, terminated, False, {}


class TaxiFromOnePlace(TaxiEnv):
    """Taxi whose episodes all start in one state."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.initial_state_distrib = np.eye(500)[self.encode(2, 2, 0, 1)]


class Endless(Small):
    """Three states in a circle, each step pays 1; it terminates after three steps, or only ever is cut short."""

    def __init__(self, terminates: bool) -> None:
        self.terminates = terminates

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.steps % 3, 1.0, self.terminates and self.steps == 3, False, {}


class Still(Endless):
    """Shows nothing of it."""

    def step(self, action: Any) -> Any:
        return 0, *super().step(action)[1:]


class Drawn(gymnasium.Env[Any, Any]):
    """Its seed draws how long an episode is, and each step's reward; it shows a sum over the episode's actions."""

    observation_space = spaces.Box(-math.inf, math.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.shown, self.length = np.zeros(2, np.float32), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.shown, self.length = (
            np.array([0.0, self.np_random.normal()], np.float32),
            int(self.np_random.integers(2, 9)),
        )
        return self.shown, {}

    def step(self, action: Any) -> Any:
        self.shown = self.shown + np.array([1.0, action - 0.5], np.float32)
        return self.shown, float(self.np_random.normal()), bool(self.shown[0] >= self.length), False, {}


class Moody(gymnasium.Env[Any, Any]):
    """Draws what it shows, and when it ends, from randomness that no seed reaches; each rising one pays more."""

    made: ClassVar[Iterator[int]] = itertools.count()
    seeds: ClassVar[list[int | None]] = []
    """What they all were reset with, in order."""

    observation_space = Drawn.observation_space
    action_space = spaces.Discrete(2)

    def __init__(self, rising: bool = False) -> None:
        self.own, self.over, self.pay = np.random.default_rng(), True, 1 + 0.01 * next(self.made) * rising

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.over = False
        return self.own.random(2, np.float32), {}

    def step(self, action: Any) -> Any:
        assert not self.over, "a step beyond the episode's end"
        self.over = bool(self.own.random() < 0.1)
        return self.own.random(2, np.float32), self.pay, self.over, False, {}


class Failing(Small):
    """Episodes of five steps that pay 1; one of its life, or one of each episode, pays no number, or raises."""

    def __init__(self, fault: str, life: int | None = None, step: int | None = None) -> None:
        self.fault, self.bad_life, self.bad_step, self.life = fault, life, step, 0

    def step(self, action: Any) -> Any:
        self.life, self.steps = self.life + 1, self.steps + 1
        bad = self.life == self.bad_life or self.steps == self.bad_step
        if bad and self.fault == "raises":
            raise RuntimeError("the\n  wheel came off.")
        return min(self.steps, 2), float(self.fault) if bad else 1.0, self.steps == 5, False, {}


class Paying(Small):
    """One step, which pays what it is told to."""

    def __init__(self, first: float, second: float) -> None:
        self.rewards = (first, second)

    def step(self, action: Any) -> Any:
        return 0, self.rewards[action], True, False, {}


REGISTERED = {"Toy": ToyEnvironment, "Taxi": TaxiFromOnePlace, "Endless": Endless, "Drawn": Drawn, "Moody": Moody}
REGISTERED |= {"Failing": Failing, "Paying": Paying}
LIMITS = {"Taxi": 200, "Endless": 3}


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Any:
    for name, kind in REGISTERED.items():
        gymnasium.register(f"Testing/{name}-v0", entry_point=kind, max_episode_steps=LIMITS.get(name))
    yield
    for name in REGISTERED:
        del gymnasium.registry[f"Testing/{name}-v0"]


# The same run, compiled and stepped in Python

LAKE = Gym("FrozenLake-v1", kwargs={"is_slippery": False}, max_episode_steps=20)
TAXI, TABLE_TOY = Gym("Testing/Taxi-v0"), Gym("Testing/Toy-v0")
SAME = {
    "lake, Gaussian": (LAKE, LAKE, Gaussian(scale=1.0)),
    "taxi, Categorical": (TAXI, TAXI, Categorical(11, -110.0, 30.0)),
    "toy, Gaussian": (Toy(), TABLE_TOY, Gaussian(scale=4.0)),
}
"""What is compiled, what is stepped in Python, and the family."""


def of_progress(progress: Any) -> list[float]:
    """What is measured of a chunk."""
    names = ("loss", "gradient_norm", "outside", "exploratory", "mean_return", "mean_length", "start_mean", "start_std")
    return [getattr(progress, name) for name in names]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")  # of so short a run
@pytest.mark.parametrize(("compiled", "stepped", "family"), SAME.values(), ids=SAME)
def test_a_run_is_the_same_compiled_and_stepped_in_python(compiled: Any, stepped: Gym, family: Any) -> None:
    """Everything random is drawn from the same keys: the same actions, episodes and networks, but for rounding."""
    settings = Settings(seeds=2, seed=3, episodes=10**6, steps=448, replay_size=128, batch_size=16)
    seen: tuple[list[Any], list[Any]] = ([], [])
    theirs = train(compiled, family, UCB(), settings, seen[0].append)
    stepped = dataclasses.replace(stepped, compile="never")
    ours = train(stepped, family, UCB(), settings, seen[1].append)
    assert theirs.environments is not None
    assert ours.environments is None
    for one, other in zip(ours.record.episodes, theirs.record.episodes, strict=True):
        assert other.returns.size >= (2 if compiled is TAXI else 20)
        np.testing.assert_array_equal(one.returns, other.returns)
        np.testing.assert_array_equal(one.lengths, other.lengths)
        np.testing.assert_array_equal(one.end_steps, other.end_steps)
    assert ours.record.env_steps == theirs.record.env_steps
    assert ours.record.greedy_returns == pytest.approx(theirs.record.greedy_returns)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4), ours.networks, theirs.networks
    )
    first, second = ([of_progress(progress) for progress in each] for each in seen)
    assert len(first) == 7
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4)
    assert [progress.episodes for progress in seen[0]] == [progress.episodes for progress in seen[1]]


DRAWN = Gym("Testing/Drawn-v0", features="scaled")
MOODY = Gym("Testing/Moody-v0", features="scaled", left_out=())  # which numbers matter would be drawn, too


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
@pytest.mark.parametrize("num_envs", [1, 2])
def test_seed_k_of_several_follows_the_run_of_seed_k_alone(num_envs: int) -> None:
    together, alone = (
        train(DRAWN, NARROW, UCB(), settings_of(seeds=seeds, seed=seed, num_envs=num_envs, steps=320))
        for seeds, seed in ((3, 7), (1, 8))
    )
    of_three, of_one = together.record.episodes[1], alone.record.episodes[0]
    np.testing.assert_array_equal(of_three.returns, of_one.returns)
    np.testing.assert_array_equal(of_three.end_steps, of_one.end_steps)
    assert of_one.returns.size > 20
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4),
        *(together.network(1), alone.network(0)),
    )
    assert together.record.greedy_returns[1] == pytest.approx(alone.record.greedy_returns[0], rel=1e-5)
    assert not np.array_equal(together.record.episodes[0].returns, of_one.returns)


# What is learned


@pytest.mark.slow
@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize(("terminates", "values"), [(False, [2.0, 2.0, 2.0]), (True, [1.75, 1.5, 1.0])])
def test_a_time_limit_is_no_end(num_envs: int, terminates: bool, values: list[float]) -> None:
    """1 / (1 - discount) where three steps of reward 1 are cut short, 1 + 1/2 + 1/4 where they are an episode."""
    builder = Gym("Testing/Endless-v0", kwargs={"terminates": terminates})
    result = train(builder, WIDE, AT_RANDOM, settings_of(num_envs=num_envs))
    assert (result.record.episodes[0].lengths == 3).all()
    for seed in range(2):
        z = jax.vmap(result.agent.returns, in_axes=(None, 0))(result.network(seed), jnp.arange(3))
        np.testing.assert_allclose(z.mean, np.stack([values, values], axis=1), atol=0.1)


class Clinging(ToyEnvironment):
    """Cannot be closed, which takes nothing away."""

    def close(self) -> None:
        raise RuntimeError("the motor still turns")


@pytest.mark.slow
@pytest.mark.parametrize("num_envs", [1, 4])
def test_the_toy_is_learned(num_envs: int) -> None:
    """With this discount the best is +1, then 1."""
    builder = FromGymnasium(Clinging, compile="never")
    record = train(builder, WIDE, UCB(), settings_of(num_envs=num_envs)).record
    assert record.greedy_returns == [2.0, 2.0]
    for seed, steps in zip(record.episodes, record.env_steps, strict=True):
        assert (seed.lengths == 2).all()
        assert steps == 1024
        assert seed.lengths.sum() > 1024 - 2 * num_envs
        assert set(seed.returns.tolist()) <= {3.0, 0.0, 2.0, 1.0}
        assert (seed.returns[-50:] == 2.0).mean() > 0.5


@pytest.mark.slow
def test_what_a_network_knows_of_bounds_is_what_it_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The observations of all transitions; evaluation adds nothing."""
    take, seen = Rollouts.take, {0: [], 1: []}

    def look(self: Rollouts, count: int) -> Any:
        transitions, records = take(self, count)
        seen[self.seed].append(transitions.observation)
        return transitions, records

    monkeypatch.setattr(Rollouts, "take", look)
    result = train(DRAWN, NARROW, UCB(), settings_of())
    for seed in range(2):
        observed = np.concatenate(seen[seed])
        assert observed.shape == (1024, 2)
        network: Any = result.network(seed)
        for bound, expected in zip(network.seen_bounds(), (observed.min(axis=0), observed.max(axis=0)), strict=True):
            np.testing.assert_array_equal(bound, expected)


@pytest.mark.parametrize("episodes", [20, 50])
def test_every_environment_of_an_evaluation_plays_as_many_episodes(episodes: int) -> None:
    """Those that are reset with seeds of their own, none of a run's: short episodes are no more frequent than long."""
    run = Run(DRAWN, Method(NARROW, UCB()), settings_of(seed=3))
    played = run.driver.play(run.driver.gather(run.driver.start()).learned.network, Greedy(), episodes)
    run.close()
    assert played.returns.shape == played.lengths.shape == (2, episodes)
    for row, seed in enumerate((3, 4)):
        for number, (episode, index) in enumerate(np.ndindex(math.ceil(episodes / 20), 20)):
            env = Drawn()
            env.reset(seed=episode_seed(2**31 + seed, index, episode))
            if number < episodes:
                assert played.lengths[row, number] == env.length
                expected = sum(env.step(0)[1] for _ in range(env.length))
                assert played.returns[row, number] == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_an_evaluation_has_no_more_processes_than_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are only said to be: each would import JAX."""
    builder, opened, many = FromGymnasium(Drawn), list[int](), FromGymnasium.open
    object.__setattr__(builder, "vectorization", "async")
    monkeypatch.setattr(builder_module, "adapt_apart", lambda parent, make, *arguments: Adapter(make(), *arguments))
    monkeypatch.setattr(builder_module, "AsyncVectorEnv", lambda makers, context, **mode: SyncVectorEnv(makers, **mode))
    monkeypatch.setattr(
        FromGymnasium, "open", lambda self, seed, envs, limit=None: opened.append(envs) or many(self, seed, envs, limit)
    )
    run = Run(builder, Method(NARROW, UCB()), settings_of(num_envs=2))
    run.driver.play(run.driver.gather(run.driver.start()).learned.network, Greedy(), episodes=20)
    run.close()
    assert max(opened) == 2


# What a callback sees


@pytest.mark.slow
def test_callbacks_see_finite_numbers_from_the_first_chunk_on() -> None:
    """A running mean plays in place of the network of which the progress tells, unless the target is that network."""
    seen: list[Any] = []
    result = train(DRAWN, NARROW, UCB(), settings_of(), seen.append, target=Online())
    assert [progress.step for progress in seen] == list(range(CHUNK, 1024 + 1, CHUNK))
    for progress in seen:
        assert np.isfinite(of_progress(progress)).all()
        assert progress.start_std > 0
        assert 0 <= progress.exploratory < 1
        assert 0 < progress.outside < 1
    assert any(progress.exploratory for progress in seen)
    first = np.stack([DRAWN.open(seed, 1).reset()[0] for seed in range(2)])
    z = jax.vmap(result.agent.returns)(result.networks, jnp.asarray(first))
    probability = np.exp(np.asarray(z.log_probabilities, float))
    mean = probability @ NARROW.centers
    variance = probability @ NARROW.centers**2 - mean**2
    best = mean.argmax(axis=1)
    assert seen[-1].start_mean == pytest.approx(mean[[0, 1], best].mean(), rel=1e-4)
    assert seen[-1].start_std == pytest.approx(np.sqrt(variance[[0, 1], best]).mean(), rel=1e-3)
    returns, lengths = ([getattr(each, name)[-100:].mean() for each in result.record.episodes] for name in COLUMNS)
    assert seen[-1].mean_return == pytest.approx(np.mean(returns), rel=1e-5)
    assert seen[-1].mean_length == pytest.approx(np.mean(lengths), rel=1e-5)


COLUMNS = ("returns", "lengths")


@pytest.mark.slow
def test_exploratory_is_the_share_of_actions_that_are_not_the_greedy_one() -> None:
    """None of a greedy policy's, and every other one of a blind one's, if no two values are equal."""
    shares, env = [], Gym("Testing/Toy-v0", compile="never")
    parts: dict[str, Any] = {"network": PerAction(), "evidence": NoEvidence()}
    for policy in (Greedy(), AT_RANDOM):
        seen: list[Any] = []
        train(env, WIDE, policy, settings_of(), seen.append, **parts)
        shares.append(np.mean([progress.exploratory for progress in seen]))
    assert shares[0] == 0
    assert shares[1] == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(2 * 1024))


# Targets outside of the support


@functools.cache
def five_bins() -> tuple[GradientLearner, Any]:
    """Centres at -2, -1, 0, 1 and 2; a discount of a half."""
    agent = Agent(Categorical(5, -2.5, 2.5), Greedy(), OneHot(1), 0.5)
    gradients = Gradients(PerAction(2, 1, True), Uniform(), Online(), optax.sgd(0.1), 16, 1, 6, 64)
    learner = GradientLearner(agent, gradients)
    return learner, jax.jit(learner.update)


@pytest.mark.parametrize(
    ("logits", "terminated", "rewards", "outside"),
    [
        # the return is surely 0 afterwards: the outermost centers, -2 and 2, are just inside
        ([0.0, 0.0, 0.0, 0.0, 99.0], True, [-7.0, -2.01, -2.0, 0.0, 2.0, 2.01], 3),
        # it is surely 2, discounted by a half
        ([0.0, 0.0, 0.0, 0.0, 99.0], False, [-4.0, -3.01, -3.0, 1.0, 1.01, 9.0], 4),
        # it is 2 or -2, 0 on average
        ([99.0, 0.0, 0.0, 0.0, 99.0], False, [-2.5, -1.9, 0.0, 1.0, 1.5, 1.9], 1),
    ],
)
def test_targets_outside_of_the_support_are_counted(
    logits: list[float], terminated: bool, rewards: list[float], outside: int
) -> None:
    learner, update = five_bins()
    state = learner.init(jax.random.key(0), jnp.zeros(1, jnp.int32), 1)
    network = jax.tree.map(jnp.zeros_like, state.network)
    network = dataclasses.replace(network, biases=(network.biases[0], jnp.array([logits])))
    size, zeros = len(rewards), jnp.zeros(len(rewards), jnp.int32)
    batch = Transition(zeros, zeros, jnp.array(rewards), jnp.full(size, terminated), zeros, zeros)
    sample = Sample(batch, jnp.zeros(size - learner.fresh_count, jnp.int32), jnp.ones(size))
    _, metrics = update(state._replace(network=network), jax.random.key(1), sample)
    assert metrics.outside == pytest.approx(outside / size)


@pytest.mark.slow
@pytest.mark.parametrize(("rewards", "share"), [((9.0, -9.0), 1.0), ((0.8, -0.8), 0.0), ((9.0, 0.1), None)])
def test_the_share_of_targets_outside_is_reported(rewards: tuple[float, float], share: float | None) -> None:
    """Of all targets of a run; half of them, where one of two actions pays too much and both are as frequent."""
    seen: list[Any] = []
    builder = Gym("Testing/Paying-v0", kwargs=dict(zip(("first", "second"), rewards, strict=True)))
    record = train(builder, NARROW, AT_RANDOM, settings_of(), seen.append).record
    reported = record.summary()["targets_outside_support"]
    assert reported == pytest.approx(np.mean([progress.outside for progress in seen]), abs=1e-6)
    assert reported == share if share is not None else 0.4 < reported < 0.6


# Rollouts


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_transitions_of_a_rollout_are_on_policy_and_within_episodes(mode: AutoresetMode) -> None:
    """Whichever way new episodes begin: by hand, for episodes of three steps that pay 1 each."""
    env = SyncVectorEnv([functools.partial(Endless, True)], autoreset_mode=mode)
    host = HostEnvironments(env, Interface(read_space(np, Endless.observation_space), Actions(2)), 0)
    random, zero = np.random.default_rng(0), np.zeros(1, np.int32)
    begun: tuple[Any, ...] = (host.reset(), zero, np.zeros(1, np.float32), zero, np.zeros(1, np.float32))
    rollouts = Rollouts(host, 0, Episode((), *begun), 0, 0)
    while rollouts.waiting < 14:
        rollouts.step()
        rollouts.continue_with(random.integers(2, size=1).astype(np.int32), np.ones(1, bool))
    parts, going_on = [rollouts.take(3)], Rollouts(host, 0, rollouts.episode, 0, 0)
    going_on.restore(rollouts.saved())
    parts.append(going_on.take(11))
    assert not going_on.saved()
    transitions, records = (
        jax.tree.map(lambda *leaves: np.concatenate(leaves), *each) for each in zip(*parts, strict=True)
    )
    step = np.arange(14) % 3
    np.testing.assert_array_equal(transitions.observation, step)
    np.testing.assert_array_equal(transitions.next_observation, (step + 1) % 3)
    np.testing.assert_array_equal(transitions.terminated, step == 2)
    np.testing.assert_array_equal(transitions.reward, 1.0)
    np.testing.assert_array_equal(records.ended, step == 2)
    np.testing.assert_array_equal(records.ret, step + 1.0)
    np.testing.assert_array_equal(records.length, step + 1)
    going_on = step[:-1] != 2
    np.testing.assert_array_equal(transitions.next_action[:-1][going_on], transitions.action[1:][going_on])
    assert (transitions.next_action[step == 2] == POLICY_CHOICE).all()
    assert set(transitions.action.tolist()) == {0, 1}
    assert "episode 5, at environment step 15," in rollouts._moment()


@pytest.mark.slow
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_of_ones_own_is_trained_on(mode: AutoresetMode) -> None:
    """Three environments, of which 16 steps is no multiple."""

    def make() -> Any:
        return SyncVectorEnv([ToyEnvironment] * 3, autoreset_mode=mode)

    record = train(make, WIDE, UCB(), settings_of()).record
    assert record.asked["environment"]["id"] == "make"
    assert record.greedy_returns == [2.0, 2.0]
    for seed in record.episodes:
        assert (seed.lengths == 2).all()
        assert 1024 // 2 - 3 <= seed.lengths.size <= 1024 // 2
        assert set(seed.returns.tolist()) <= {3.0, 0.0, 2.0, 1.0}


# Checkpoints


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")  # of so short a run
@pytest.mark.filterwarnings("ignore:Observations count the steps of an episode")  # of features that are not scaled
@pytest.mark.parametrize("num_envs", [1, 2, None])
def test_a_run_killed_again_and_again_ends_like_one_that_was_not(num_envs: int | None, tmp_path: Any) -> None:
    """Also in a vector environment of three, in which transitions wait for the next rollout of 16."""
    settings, drawn = settings_of(seed=3, num_envs=num_envs or 1), DRAWN
    if num_envs is None:
        three: Any = [DRAWN.make] * 3
        drawn = FromGymnasium(lambda: SyncVectorEnv(three, autoreset_mode=AutoresetMode.DISABLED))
    whole = train(drawn, NARROW, UCB(), settings)
    assert whole.record.summary()["targets_outside_support"] > 0.01
    place = Checkpoints(tmp_path, every=1, say=complain)
    for chunks in (2, 5, 3):
        with pytest.raises(Killed):
            train(drawn, NARROW, UCB(), settings, dies_at_chunk(chunks), place)
    assert int(place.files()[0].stem.partition("-")[2]) == (1 + 4 + 2) * CHUNK
    for ends in (seed.end_steps for seed in whole.record.episodes):
        assert not {CHUNK, 5 * CHUNK, 7 * CHUNK} <= set(ends.tolist())  # there are episodes in progress to go back to
    assert_same(train(drawn, NARROW, UCB(), settings, checkpoints=place), whole)


@pytest.mark.slow
def test_a_run_that_was_stopped_is_finished_and_says_why(tmp_path: Any) -> None:
    stopped = train(DRAWN, NARROW, UCB(), settings_of(), lambda progress: Stop("enough"), Checkpoints(tmp_path))
    assert stopped.record.summary()["stopped"] == "enough"
    assert stopped.record.env_steps == [CHUNK] * 2
    again = train(DRAWN, NARROW, UCB(), settings_of(), complain, Checkpoints(tmp_path, say=complain))
    assert_same(again, stopped)


@pytest.mark.slow
@pytest.mark.parametrize("num_envs", [1, 2])
def test_an_episode_that_nothing_leads_back_to_is_begun_anew_in_a_line(num_envs: int, tmp_path: Any) -> None:
    """Even the first observation is another one, and an episode may end while its actions are taken again."""
    moody, settings = MOODY, settings_of(seed=3, num_envs=num_envs)
    for chunks in (2, 4):
        lines: list[str] = []
        with pytest.raises(Killed):
            train(moody, STAYS, UCB(), settings, dies_at_chunk(chunks), Checkpoints(tmp_path, 1, lines.append))
        assert len(lines) == (chunks == 4)
    run = Run(moody, Method(STAYS, UCB()), settings)
    state = Saver(Checkpoints(tmp_path, say=lines.append), run).restore()
    assert lines == ["The episode in progress cannot be restored (seed 3, 4): another one begins."] * 2
    assert state is not None
    begun, ended = Moody.seeds[-2 * num_envs :], run.driver.gather(state).episodes.tolist()
    seen = {episode_seed(3 + row, env, n) for row in range(2) for env in range(num_envs) for n in range(ended[row] + 1)}
    assert min(ended) > 0
    assert len(seen | set(begun)) == len(seen) + 2 * num_envs  # the episodes of before are not begun again
    assert run.driver.gather(state).episode.length.tolist() == [[0] * num_envs] * 2
    assert run.driver.gather(state).episode.ret.tolist() == [[0.0] * num_envs] * 2
    run.close()
    record = train(moody, STAYS, UCB(), settings, checkpoints=Checkpoints(tmp_path, say=lines.append)).record
    assert record.env_steps == [1024] * 2
    for seed in record.episodes:
        assert seed.returns.tolist() == seed.lengths.tolist()  # each step pays 1
        assert seed.lengths.sum() < 1024


@pytest.mark.parametrize("num_envs", [1, 2])
def test_episodes_that_are_lost_again_and_again_are_never_begun_twice(num_envs: int) -> None:
    host = MOODY.open(3, num_envs)
    Moody.seeds.clear()
    host.reset()
    for lost in range(1, 4):  # no episode ends between
        saved = host.saved()
        host.restore(saved)
        del Moody.seeds[num_envs * lost :]  # those by which it tried
        host.begin_another(0)
    assert len(set(Moody.seeds)) == 4 * num_envs
    host.close()


@pytest.mark.slow
def test_what_was_measured_holds_for_a_run_that_goes_on(tmp_path: Any) -> None:
    """A random policy measures other returns each time, here, and the range of a mixture does not grow."""
    moody, settings = dataclasses.replace(MOODY, kwargs={"rising": True}), settings_of(discount=1.0)
    assert measure_returns(moody, 1.0) != measure_returns(moody, 1.0)
    with pytest.raises(Killed):
        train(moody, GaussianMixture(), UCB(), settings, dies_at_chunk(2), Checkpoints(tmp_path, 1, complain))
    before = checkpoint.read(Checkpoints(tmp_path).files()[0])[0].asked
    with pytest.warns(UserWarning, match="another one begins"):
        record = train(moody, GaussianMixture(), UCB(), settings, checkpoints=Checkpoints(tmp_path)).record
    assert record.summary()["measured_returns"] == before["measured_returns"] == record.asked["measured_returns"]
    assert record.asked["distribution"] == before["distribution"]


@pytest.mark.slow
def test_one_that_cannot_be_begun_anew_either_is_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    moody, settings = MOODY, settings_of(seed=3)
    with pytest.raises(Killed):
        train(moody, STAYS, UCB(), settings, dies_at_chunk(2), Checkpoints(tmp_path, 1, complain))
    run = Run(moody, Method(STAYS, UCB()), settings)

    def refuse(self: HostEnvironments, episodes: int) -> Any:
        raise RuntimeError("not today")

    monkeypatch.setattr(HostEnvironments, "begin_another", refuse)
    with pytest.raises(
        InputError, match=r"seed 3, as another episode began in place of the one in progress, raised Ru"
    ):
        Saver(Checkpoints(tmp_path), run).restore()
    run.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_where_gymnasium_resets_by_itself_episodes_are_begun_anew_in_a_line(mode: AutoresetMode, tmp_path: Any) -> None:
    """Also where the run seems to be where it starts, as it always does here."""

    def make() -> Any:
        return SyncVectorEnv([functools.partial(Still, True)] * 2, autoreset_mode=mode)

    builder, lines = FromGymnasium(make, id="Mine"), []
    with pytest.raises(Killed):
        train(builder, WIDE, AT_RANDOM, settings_of(), dies_at_chunk(2), Checkpoints(tmp_path, 1, complain))
    run = Run(builder, Method(WIDE, AT_RANDOM), settings_of())
    saver = Saver(Checkpoints(tmp_path, say=lines.append), run)
    _, arrays = checkpoint.read(saver.checkpoints.files()[0])
    assert arrays["run/episode/length"].tolist() == [[2, 2]] * 2
    state = saver.restore()
    assert lines == ["The episode in progress cannot be restored (seed 0, 1): another one begins."]
    assert state is not None
    assert run.driver.gather(state).episode.length.tolist() == [[0, 0]] * 2
    run.close()


# What goes wrong

FAULTS = {
    "raises": r"raised RuntimeError: the wheel came off \(test_.* \d+\)\.$",
    "nan": "gave the reward nan: rewards must be finite numbers",
    "inf": "gave the reward inf: rewards must be finite numbers",
    "-1e39": r"gave the reward -1e\+39: scale its rewards by a wrapper",
    "2e18": r"gave the reward 2e\+18: scale its rewards by a wrapper",
}


def failing(fault: str, **where: int) -> Gym:
    return Gym("Testing/Failing-v0", kwargs={"fault": fault, **where}, returns=(0.0, 5.0))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_an_environment_that_cannot_go_on_is_named_and_what_was_learned_is_kept(fault: str, tmp_path: Any) -> None:
    """At the 150th step, in the last of its 30 episodes of five steps; two chunks of 64 are done, and one rollout."""
    seen, place = [], Checkpoints(tmp_path, every=1)
    said = rf"^The environment of seed 3, in episode 30, at environment step 150, {FAULTS[fault]}"
    with pytest.raises(TrainingFailedError, match=said) as caught:
        train(failing(fault, life=150), WIDE, AT_RANDOM, settings_of(seed=3), seen.append, place)
    record = caught.value.result.record
    assert record.summary()["failed"] == str(caught.value)
    assert (record.interrupted, record.diverged, record.stopped) == (True, None, None)
    json.dumps(record.summary(), allow_nan=False)
    assert record.env_steps == [144, 144]  # whole rollouts
    assert [seed.returns.tolist() for seed in record.episodes] == [[5.0] * 28] * 2
    assert [progress.step for progress in seen] == [64, 128, 144]
    assert [path.name for path in place.files()] == ["step-000000128.safetensors", "step-000000064.safetensors"]


def test_the_networks_of_a_run_that_failed_are_those_of_its_last_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingFailedError) as caught:
        train(failing("raises", life=150), WIDE, AT_RANDOM, settings_of())
    monkeypatch.setattr(host, "CHUNK_STEPS", 16)
    stop_at = lambda progress: Stop("enough") if progress.step == 144 else None  # noqa: E731
    sound = train(failing("raises"), WIDE, AT_RANDOM, settings_of(), stop_at)
    jax.tree.map(np.testing.assert_array_equal, caught.value.result.networks, sound.networks)
    assert caught.value.result.record.greedy_returns == [5.0, 5.0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")  # of so short a run
def test_a_vector_environment_that_knows_one_seed_only_is_trained_on() -> None:
    """As Gymnasium's contract has it, and its own CartPole."""

    def make() -> Any:
        return gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")

    record = train(FromGymnasium(make, returns=(0.0, 100.0)), WIDE, AT_RANDOM, settings_of()).record
    assert all(10 < seed.returns.mean() < 40 for seed in record.episodes)  # 22 of a random policy
    assert (record.episodes[0].returns[:5] != record.episodes[1].returns[:5]).any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"distribution": Gaussian},
            r"^distribution is the class Gaussian: give an object of it, Gaussian\(\), or its name as a text",
        ),
        ({"policy": Settings()}, r"^Settings stand where a part is expected: give them by name, settings=ut\.Settings"),
        ({"settings": 3}, "^settings is 3: give an object of class Settings, or leave it out"),
        ({"checkpoints": "run"}, "^checkpoints is 'run': give an object of class Checkpoints, or leave it out"),
    ],
)
def test_train_refuses_arguments_of_another_kind(arguments: dict[str, Any], words: str) -> None:
    """As where nothing checks types at run time."""
    unchecked = inspect.unwrap(train)
    with pytest.raises(InputError, match=words):
        unchecked(Toy(), **arguments)


def test_an_environment_that_fails_at_once_leaves_a_result_too() -> None:
    seen: list[Any] = []
    with pytest.raises(TrainingFailedError, match=r"seed 0, in episode 2, at environment step 7, raised") as caught:
        train(failing("raises", life=7), WIDE, AT_RANDOM, settings_of(), seen.append)
    record = caught.value.result.record
    assert [seed.returns.size for seed in record.episodes] == [0, 0]
    assert record.env_steps == [0, 0]
    assert math.isnan(seen[0].loss)
    json.dumps(record.summary(), allow_nan=False)


class Reluctant(gymnasium.Env[Any, Any]):
    """The instances from the given one on refuse to be reset; at some step it gives no number, or one too many."""

    observation_space = spaces.Box(-1.0, 1.0, (2,))
    action_space = spaces.Discrete(2)
    made = 0

    def __init__(self, willing: int = 10**6, sane: int = 10**6, modest: int = 10**6) -> None:
        Reluctant.made += 1
        self.refuses, self.sane, self.modest, self.steps = Reluctant.made > willing, sane, modest, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if self.refuses:
            raise RuntimeError("not today")
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        size = 3 if self.steps >= self.modest else 2
        observation = np.full(size, np.nan if self.steps >= self.sane else 0.5, np.float32)
        return observation, 1.0, self.steps % 5 == 0, False, {}


def reluctant(returns: Any = (0.0, 5.0), **settings: int) -> FromGymnasium:
    Reluctant.made = 0
    return FromGymnasium(functools.partial(Reluctant, **settings), id="Reluctant", returns=returns, features="scaled")


@pytest.mark.parametrize(
    ("returns", "willing", "words"),
    [
        (
            (0.0, 5.0),
            1,
            r"^The environment, stepped by a random policy .*, raised RuntimeError: not today \(test_.* \d+\)\.$",
        ),
        (
            None,
            2,
            r"^The environment of seed 0, at the first reset of its evaluation, raised RuntimeError: not today",
        ),
        (
            None,
            5,
            r"^The environment of seed 1, at its first reset, raised RuntimeError: not today \(test_.* \d+\)\.$",
        ),
    ],
)
def test_an_environment_that_cannot_be_reset_is_a_sentence(returns: Any, willing: int, words: str) -> None:
    """One is looked at, one measured, two are for trying evaluation; then come those of two seeds."""
    with pytest.raises(InputError, match=words):
        train(reluctant(returns, willing=willing), WIDE, AT_RANDOM, settings_of())


@pytest.mark.slow
def test_an_evaluation_that_fails_costs_no_result() -> None:
    """Its environments are the sixth and those after: one was looked at, each seed has one, two were for trying."""
    with pytest.raises(
        TrainingFailedError, match="at the first reset of its evaluation, raised RuntimeError"
    ) as caught:
        train(reluctant(willing=5), WIDE, AT_RANDOM, settings_of(steps=64), evidence=NoEvidence())
    record = caught.value.result.record
    assert record.env_steps == [64, 64]
    assert [seed.returns.tolist() for seed in record.episodes] == [[5.0] * 12] * 2
    assert np.isnan(record.greedy_returns).all()
    json.dumps(record.summary(), allow_nan=False)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        pytest.param({"sane": 70}, "gave an observation that is not finite", marks=pytest.mark.slow),
        (
            {"modest": 70},
            r"does not keep to Gymnasium's contract: the observation has the shape \(3,\), but its space says \(2,\)",
        ),
    ],
)
def test_an_observation_that_is_no_number_or_of_another_shape_is_named(limits: dict[str, int], words: str) -> None:
    with pytest.raises(TrainingFailedError, match=f"at environment step 70, {words}"):
        train(reluctant(**limits), WIDE, AT_RANDOM, settings_of(), evidence=NoEvidence())


def test_a_first_observation_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first reset, and at the end of an episode of five steps."""

    def reset(self: Any, *, seed: Any = None, options: Any = None) -> Any:
        return np.full(2, np.nan if self.steps >= late else 0.0, np.float32), {}

    monkeypatch.setattr(Reluctant, "reset", reset)
    late = 0
    with pytest.raises(InputError, match=r"at the first reset of its evaluation, gave an observation that is not"):
        train(reluctant(), WIDE, AT_RANDOM, settings_of(), evidence=NoEvidence())
    late = 70
    with pytest.raises(TrainingFailedError, match=r"at environment step 70, gave an observation that is not finite"):
        train(reluctant(), WIDE, AT_RANDOM, settings_of(), evidence=NoEvidence())


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1e18, 1e20, -1e30])
def test_a_number_whose_square_is_none_of_32_bits_is_refused(largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, the scale of such a number became infinite in training, and `evaluate` blamed the learning rate."""

    def reset(self: Any, *, seed: Any = None, options: Any = None) -> Any:
        self.steps = 0
        return np.array([0.0, largest], np.float32), {}

    monkeypatch.setattr(Reluctant, "reset", reset)
    if largest == 1e18:
        train(reluctant(), WIDE, AT_RANDOM, settings_of(), evidence=NoEvidence())
        return
    with pytest.raises(InputError, match=r"gave an observation with the number -?1e.*: scale or clip its numbers by"):
        train(reluctant(), WIDE, AT_RANDOM, settings_of(), evidence=NoEvidence())


@pytest.mark.slow
def test_a_state_outside_of_its_space_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failing, "observation_space", spaces.Discrete(2))
    words = r"step 2, does not keep to Gymnasium's contract: the observation 2 is not in Discrete\(2"
    with pytest.raises(TrainingFailedError, match=words):
        train(failing("nan"), WIDE, AT_RANDOM, settings_of())


@pytest.mark.filterwarnings("ignore:.*The reward returned")
@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_reward_that_is_an_array_is_named(num_envs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Failing.step

    def array(self: Failing, action: Any) -> Any:
        observation, reward, *rest = step(self, action)
        return observation, np.full(1, reward), *rest

    monkeypatch.setattr(Failing, "step", array)
    words = r"at environment step 1, does not keep to Gymnasium's contract: the reward is array\(\[1\.\].*no number"
    with pytest.raises(TrainingFailedError, match=words):
        train(failing("nan"), WIDE, AT_RANDOM, settings_of(num_envs=num_envs))


@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0, 1.0, False, {}), "its step gives 4 values: return observation, reward, terminated, truncated"),
        (0, "its step gives one value: return"),
        (
            (0, np.ones(2), False, False, {}),
            r"the reward is array\(.*\), which is no number: return one float, such as a weighted",
        ),
        ((0, None, False, False, {}), "the reward is None, which is no number: return a float"),
        ((0, "1", False, False, {}), "the reward is '1', which is no number: return a float"),
        ((0, 1j, False, False, {}), "the reward is 1j, which is no number: return a float"),
        ((0, 1.0, None, False, {}), "terminated is None, which is no truth value: return True or False"),
        ((0, 1.0, False, [0, 1], {}), r"truncated is \[0, 1\], which is no truth value: return True or False"),
        (("a", 1.0, False, False, {}), "the observation is 'a', which cannot be read as its space says"),
        ((0, 1.0, 1.5, False, {}), "terminated is 1.5, which is no truth value: return True or False"),
        ((0, 1.0, "False", False, {}), "terminated is 'False', which is no truth value: return True or False"),
    ],
)
def test_a_step_of_another_form_is_named(
    given: Any, words: str, num_envs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "step", lambda self, action: given)
    host = FromGymnasium(functools.partial(Failing, "nan")).open(0, num_envs)
    host.reset()
    with pytest.raises(EnvironmentFailedError, match=f"^It does not keep to Gymnasium's contract: {words}"):
        step_host(host, np.zeros(num_envs, int), lambda: "It")


def test_a_step_of_another_form_is_named_inside_of_a_time_limit_too() -> None:
    def make() -> Any:
        env = Failing("nan")
        env.step = lambda action: (0, 1.0, False, {})
        return gymnasium.wrappers.TimeLimit(env, 9)

    host = FromGymnasium(make).open(0, 1)
    host.reset()
    with pytest.raises(EnvironmentFailedError, match="its step gives more or fewer than five values: return"):
        step_host(host, np.zeros(1, int), lambda: "It")


def reset(self: Failing) -> Any:
    return 0, {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": lambda self, action: (0, 1.0, False, False)}, "its step gives more or fewer than five values: "),
        ({"step": lambda self, action: (0, None, False, False, {})}, "the reward is None, which is no number"),
        ({"step": lambda self, action: (0, "1", False, False, {})}, "the reward is '1', which is no number"),
        ({"reset": reset}, ".* argument 'seed': let its reset take seed=None, options=None"),
    ],
)
def test_it_is_named_in_place_of_what_gymnasium_warns_of(changes: dict[str, Any], words: str) -> None:
    """Its checker is on by default; here a warning is an error."""

    def make() -> Any:
        return gymnasium.make(EnvSpec("Own-v0", lambda **kwargs: kind("nan"), max_episode_steps=9))

    kind = type("Own", (Failing,), changes)
    host = FromGymnasium(make).open(0, 1)
    with pytest.raises(EnvironmentFailedError, match=f"^It does not keep to Gymnasium's contract: {words}"):
        call(lambda: (host.reset(), host.step(np.zeros(1, int))), lambda: "It")


@pytest.mark.parametrize(("error", "words"), [(AssertionError(), "AssertionError"), (SystemExit(4), "SystemExit: 4")])
def test_an_exception_without_words_and_one_that_ends_the_process(
    error: BaseException, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_it(self: Failing, action: Any) -> Any:
        raise error

    monkeypatch.setattr(Failing, "step", raise_it)
    with pytest.raises(TrainingFailedError, match=rf"at environment step 1, raised {words} \(test_.* \d+\)\.$"):
        train(failing("nan"), WIDE, AT_RANDOM, settings_of())


@pytest.mark.slow
def test_a_run_that_fits_into_no_memory_is_a_sentence() -> None:
    words = r"need about .* GiB of memory, and .* free: use fewer --seeds, .* --env.encoding hashed or scalar\.$"
    with pytest.raises(InputError, match=words):
        train(Chain(5), Gaussian(), UCB(), settings_of(replay_size=2**31 - 1, seeds=1000))


@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize("fault", ["raises", "nan", "inf"])
def test_one_that_fails_in_every_episode_fails_in_the_evaluation_too(fault: str, num_envs: int) -> None:
    with pytest.raises(TrainingFailedError, match=r"The environment of seed 0, in episode 1, at environment") as caught:
        train(failing(fault, step=3), WIDE, AT_RANDOM, settings_of(num_envs=num_envs))
    summary = caught.value.result.record.summary()
    assert summary["final_greedy_return"] == [None, None]
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize("fault", ["raises", "nan"])
def test_one_that_fails_only_in_the_evaluation_is_named_too(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, step = settings_of(), Failing.step

    def fail_late(self: Failing, action: Any) -> Any:
        self.bad_step = 3 if late else None
        return step(self, action)

    def stop(progress: Any) -> Stop:
        nonlocal late
        late = True
        return Stop("enough")

    late = False
    monkeypatch.setattr(Failing, "step", fail_late)
    with pytest.raises(TrainingFailedError, match=r"of seed 0, in an episode by what it learned, ") as caught:
        train(failing(fault), WIDE, AT_RANDOM, settings, stop)
    record = caught.value.result.record
    assert record.env_steps == [CHUNK] * 2
    json.dumps(record.summary(), allow_nan=False)


@pytest.mark.parametrize(
    ("fault", "reason"), [("raises", r"raised RuntimeError: the wheel"), ("nan", "gave the reward nan: .* finite")]
)
def test_one_that_fails_while_its_returns_are_measured_is_named(fault: str, reason: str) -> None:
    with pytest.raises(
        InputError, match=rf"^The environment, stepped by a random policy before the run, {reason}.*\.$"
    ):
        measure_returns(failing(fault, step=3), 0.9)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (lambda: Chain(5), "num_envs is 2, but this environment is compiled, .*: leave it out.$"),
        (lambda: Gym("FrozenLake-v1"), "num_envs is 2, but this environment is compiled, .* --env.compile never.$"),
    ],
)
def test_a_compiled_environment_needs_no_others_beside_it(environment: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        train(environment(), settings=settings_of(num_envs=2))


def test_a_categorical_asks_for_the_edges_that_it_cannot_know() -> None:
    alone: dict[str, Any] = {"learner": "GradientDescent", "evidence": "NoEvidence"}  # it follows no range
    with pytest.raises(
        InputError,
        match=r"range of the .* returns is not known, .* suggest --distribution.low .* and --distribution.high ",
    ):
        train(Gym("CartPole-v1", radius=0.1), Categorical(), UCB(), Settings(seeds=1, episodes=2), **alone)


@pytest.mark.parametrize("compile_", ["auto", "never"])
def test_returns_that_are_given_are_those_that_a_family_is_fitted_to(compile_: Any) -> None:
    builder = Gym("FrozenLake-v1", returns=(-2.0, 3.0), compile=compile_)
    assert Run(builder, Method(Gaussian(), UCB()), settings_of()).method.distribution.scale == 5.0  # pyright: ignore[reportAttributeAccessIssue]
    assert Run(builder, Method(Categorical(), UCB()), settings_of()).method.distribution.support[0] < -2


def test_why_a_table_is_not_used_is_said_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: Any) -> Any:
        raise Killed

    monkeypatch.setattr("uppertail.training.train.drive", begun)
    with (
        pytest.warns(UserWarning, match="Taxi-v4 is stepped in Python: its passengers are fickle"),
        pytest.raises(Killed),
    ):
        train(Gym("Taxi-v4", kwargs={"fickle_passenger": True}))
    with pytest.raises(Killed):
        train(Gym("Taxi-v4"))
