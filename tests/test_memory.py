"""Policies with a memory: kept for an episode and begun anew with the next, whoever makes the steps."""

import dataclasses
import functools
import itertools
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Array, Float, Int, PRNGKeyArray

from killed import Killed, assert_same, dies_at_chunk
from uppertail import Checkpoints, FromGymnasium, Gaussian, Gym, Periodic, Prioritized, Settings, train
from uppertail.agent import Agent
from uppertail.cli.watch import watch
from uppertail.encodings import OneHot
from uppertail.environments import Chain, WatchedEnvironment
from uppertail.learners import Gradients
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import PerAction
from uppertail.policies import UCB, Decision, ExplorationPolicy, Thompson
from uppertail.replay import Uniform
from uppertail.targets import Online
from uppertail.training.compiled import CompiledRun
from uppertail.training.loop import Actor, Loop
from uppertail.training.method import Method
from uppertail.training.run import Run
from worlds import table

MANY = 64
"""Actions, so that two episodes hardly ever hold the same one."""


@dataclasses.dataclass(frozen=True)
class Held(ExplorationPolicy):
    """One action for a whole episode, drawn as it begins: what it remembers is seen in what it does."""

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, decision.num_actions)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jax.nn.one_hot(decision.memory, decision.num_actions)


@dataclasses.dataclass(frozen=True)
class Committed(ExplorationPolicy):
    """mean + c std, with c of each action drawn as an episode begins."""

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jax.random.uniform(key, (decision.num_actions,), maxval=9.0)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return jnp.mean(decision.mean + decision.memory[None] * decision.std, axis=0)


@dataclasses.dataclass(frozen=True)
class Repeated(ExplorationPolicy):
    """An action drawn at random among the two best, then repeated for a few steps: memory that evolves."""

    times: int = 3

    def begin(self, key: PRNGKeyArray, decision: Decision) -> tuple[Int[Array, ""], Int[Array, ""]]:
        return jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        (action, left), mean = decision.memory, jnp.mean(decision.mean, axis=0)
        drawn = mean + 9.0 * jax.random.uniform(key, mean.shape)
        return jnp.where(left > 0, jax.nn.one_hot(action, decision.num_actions), drawn)

    def advance(self, key: PRNGKeyArray, decision: Decision, action: Int[Array, ""]) -> tuple[Array, Array]:
        left = decision.memory[1]
        return action, jnp.where(left > 0, left - 1, self.times - 1)


# Compiled runs


def loop_of_one_step(policy: ExplorationPolicy, network: PerAction, states: int) -> Loop:
    """A loop that learns after each step."""
    agent = Agent(Gaussian(scale=1.0), policy, OneHot(states), 0.9)
    return Loop(GradientLearner(agent, Gradients(network, Uniform(), Online(), optax.sgd(0.1), 1, 1, 2, 8)), 1)


@pytest.mark.slow
def test_a_compiled_run_keeps_c_for_an_episode_and_draws_it_anew_for_the_next() -> None:
    """Step by step: what the policy keeps changes where an episode has ended, and nowhere else."""
    loop = loop_of_one_step(Committed(), PerAction(4, 1), 5)
    run, key, environment = CompiledRun(loop), jax.random.key(1), Chain(5).build(jax.random.key(0))

    def body(state: Any, _: None) -> Any:
        after, record, metrics = run.iterate(key, environment, state)
        del metrics
        return after, (state.episode.memory, after.episode.memory, record.ended[0])

    start = run.init(key, environment)
    _, (before, after, ended) = jax.jit(lambda state: jax.lax.scan(body, state, length=60))(start)
    ended = np.asarray(ended)
    assert 10 < ended.sum() < 50
    assert before.shape == (60, 2)
    np.testing.assert_array_equal(before[0], start.episode.memory)
    np.testing.assert_array_equal(np.asarray(before == after).all(axis=1), ~ended)
    assert np.asarray(before != after)[ended].all()
    assert len(np.unique(np.asarray(after), axis=0)) == ended.sum() + 1


@pytest.mark.parametrize("policy", [Committed(), Thompson()], ids=["Committed", "Thompson"])
def test_the_first_decision_is_that_of_a_replayed_next_action(policy: ExplorationPolicy) -> None:
    """With one key: the memory of an episode's start, then the decision."""
    learner = loop_of_one_step(policy, PerAction(4, 1), 5).learner
    agent, network = learner.agent, learner.init(jax.random.key(0), jnp.zeros(1, jnp.int32), 4).network
    actor = Actor(agent, agent.policy)
    keys = jax.random.split(jax.random.key(1), 200)
    first = jax.jit(jax.vmap(lambda key: actor.first(key, network, jnp.asarray(2)).action))(keys)
    seen = Decision(agent.family, agent.returns_by_member(network, jnp.asarray(2)))
    replayed = jax.jit(jax.vmap(lambda key: agent.policy.first_action(key, seen)))(keys)
    np.testing.assert_array_equal(first, replayed)
    assert set(np.asarray(first).tolist()) == {0, 1, 2, 3}


def test_an_episode_played_in_a_compiled_environment_holds_one_action() -> None:
    """Action a pays a at each of three steps: returns are 3 a, and not those of one episode again and again."""
    environment = table(0, [range(MANY)], time_limit=3)
    loop = loop_of_one_step(UCB(), PerAction(2, 1), 1)
    network = loop.learner.init(jax.random.key(0), jnp.zeros(1, jnp.int32), MANY).network
    play = jax.jit(lambda key: CompiledRun(loop, Held()).play(30, key, environment, network))
    returns, lengths = map(np.asarray, play(jax.random.key(0)))
    np.testing.assert_array_equal(lengths, 3)
    np.testing.assert_array_equal(returns % 3, 0)
    assert len(np.unique(returns)) > 15


# Host runs


class Logging(gymnasium.Env[Any, Any]):
    """Episodes of 2 to 4 steps that say which actions were taken in them."""

    observation_space = spaces.Discrete(5)
    action_space = spaces.Discrete(MANY)
    played: ClassVar[list[tuple[int, list[int]]]] = []

    def __init__(self) -> None:
        self.count, self.actions = 0, list[int]()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.actions, self.count = [], self.count + 1
        type(self).played.append((id(self), self.actions))
        return 0, {}

    def step(self, action: Any) -> Any:
        self.actions.append(int(action))
        length, limit = len(self.actions), 2 + self.count % 3
        return length, 0.0, length == limit and self.count % 2 == 0, length == limit, {}


def assert_held(count: int) -> None:
    """In each of at least so many episodes since the last time one action only, and another in the next of its kind."""
    by_environment: dict[int, list[list[int]]] = {}
    for environment, actions in Logging.played:
        by_environment.setdefault(environment, []).extend([actions] if actions else [])
    Logging.played.clear()
    episodes = [actions for each in by_environment.values() for actions in each]
    assert len(episodes) >= count
    assert max(len(actions) for actions in episodes) >= 3
    assert all(len(set(actions)) == 1 for actions in episodes)
    following = [pair for each in by_environment.values() for pair in itertools.pairwise(each)]
    assert sum(one[0] == other[0] for one, other in following) <= 0.2 * len(following)


def run_of(make: Any, num_envs: int) -> Run:
    settings = Settings(
        seeds=1, steps=10**6, episodes=10**6, num_envs=num_envs, rollout_steps=12, replay_size=16, batch_size=4
    )
    method = Method(Gaussian(), Held(), network=PerAction(2, 1), replay=Uniform(), target=Online())
    run = Run(FromGymnasium(make, returns=(0.0, 1.0)), method, dataclasses.replace(settings, updates_per_rollout=1))
    run.driver.iterations = 2
    Logging.played.clear()
    return run


@pytest.mark.slow
@pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=str)
def test_a_host_run_and_its_evaluation_hold_the_memory_of_each_environment(mode: AutoresetMode | None) -> None:
    """Three environments; opened by the run itself, or a vector of one's own in each of Gymnasium's modes."""
    make = Logging if mode is None else functools.partial(SyncVectorEnv, [Logging] * 3, autoreset_mode=mode)
    run = run_of(make, 3 if mode is None else 1)
    try:
        state = run.driver.start()
        for _ in range(2):
            state, *_ = run.driver.advance(state)
        assert run.driver.failure is None
        assert_held(12)
        networks = run.driver.gather(state, lambda each: each.learned.network)
        run.driver.play(networks, Held(), 5)
        assert_held(5)
    finally:
        run.close()


class Watched(WatchedEnvironment):
    """One of them, to be watched."""

    frames_per_second = 10.0

    def __init__(self) -> None:
        self.env = Logging()

    def reset(self, seed: int, episode: int) -> np.ndarray:
        return np.asarray(self.env.reset(seed=seed)[0], np.int32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return np.asarray(observation, np.int32), reward, terminated or truncated

    def frame(self) -> None:
        return None

    def close(self) -> None:
        """There is nothing to close."""


def test_watching_holds_it_too() -> None:
    run = run_of(Logging, 1)
    try:
        networks = run.driver.gather(run.driver.start(), lambda each: each.learned.network)
        Logging.played.clear()
        assert len(list(watch(run, networks, Held(), 0, Watched(), 8, lambda frame, over: None))) == 8
        assert_held(8)
    finally:
        run.close()


# The same, compiled and stepped in Python


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Repeated(), Committed()], ids=["Repeated", "Committed"])
def test_memory_is_the_same_compiled_and_stepped_in_python(policy: ExplorationPolicy) -> None:
    """The same actions from the same keys, in the order in which they were stored; and played with what was learned."""
    lake = Gym("FrozenLake-v1", kwargs={"map_name": "4x4", "is_slippery": False}, returns=(0.0, 1.0))
    settings = Settings(seeds=1, seed=5, steps=10**6, replay_size=1024, batch_size=16)
    stored, played = [], []
    for compiles in ("auto", "never"):
        run = Run(dataclasses.replace(lake, compile=compiles), Method(Gaussian(), policy, replay=Uniform()), settings)
        run.driver.iterations = 64
        try:
            state, *_ = run.driver.advance(run.driver.start())
            replay = run.driver.gather(state, lambda each: each.learned.memory.buffer)
            stored.append(jax.tree.map(np.asarray, replay.transitions))
            networks = run.driver.gather(state, lambda each: each.learned.network)
            played.append(run.driver.play(networks, policy, 3))
        finally:
            run.close()
    for compiled, stepped in zip(*(each for each in stored), strict=True):
        np.testing.assert_array_equal(compiled, stepped)
    actions, ended = stored[0].action[0], stored[0].next_action[0] < 0
    assert len(set(actions.tolist())) > 1
    assert ended.sum() >= 2
    if isinstance(policy, Repeated):
        for episode in np.split(actions, np.flatnonzero(ended) + 1):
            for start in range(0, len(episode), policy.times):
                assert len(set(episode[start : start + policy.times].tolist())) == 1
    assert all(each.lengths.shape == (1, 3) for each in played)


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_with_its_memory_priorities_and_target(tmp_path: Any) -> None:
    """In the middle of an episode: it ends as one that was not killed."""

    def trained(on_chunk: Any, folder: Any = None) -> Any:
        settings = Settings(seeds=2, steps=2048, episodes=10**6, replay_size=64, batch_size=8)
        parts = {"replay": Prioritized(), "target": Periodic(7)}
        checkpoints = Checkpoints(folder, every=1) if folder else None
        return train(Chain(6, ordered=True), Gaussian(), Repeated(2), settings, on_chunk, checkpoints, **parts)

    whole = trained(lambda progress: None)
    with pytest.raises(Killed):
        trained(dies_at_chunk(2), tmp_path)
    assert_same(trained(lambda progress: None, tmp_path), whole)
