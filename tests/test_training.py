"""The training loop: what data it makes, where it stops, and that its seeds mean something."""

import dataclasses
import json
import os
import signal
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import uppertail as ut
from uppertail.agent import Agent
from uppertail.distributions import Categorical, Gaussian, PointMass
from uppertail.encodings import Preferences
from uppertail.environments import Chain, EnvironmentBuilder, FiniteMDP, FrozenLake, Gym, Toy
from uppertail.errors import InputError
from uppertail.learners import Gradients, Metrics
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import PerAction
from uppertail.policies import UCB, EpsilonGreedy
from uppertail.records import Success, describe, write_run
from uppertail.replay import Uniform
from uppertail.targets import Online
from uppertail.training import compiled
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.compiled import CompiledRun
from uppertail.training.ledger import Ledger
from uppertail.training.loop import Loop, StepRecord
from uppertail.training.method import optimizer_of
from uppertail.training.results import TrainingDivergedError
from uppertail.training.settings import Settings
from uppertail.training.train import train
from uppertail.types import POLICY_CHOICE

SMALL: dict[str, Any] = {"replay_size": 512, "batch_size": 16}
THREE_CHUNKS: dict[str, Any] = {"episodes": 10**6, "steps": 3000}
"""The limits of most runs: limits are part of a program, and equal programs are compiled once."""


def small_train(environment=None, **settings: Any):
    return train(environment or Chain(length=5), Gaussian(), UCB(), Settings(**{**SMALL, **settings}))


def loop_in(environment, rollout_steps, replay_size, replay_start=0):
    """A loop of gradient descent that never ends, with one update of 32 transitions after each rollout."""
    agent = Agent(Gaussian(), UCB(), environment.observations.encoding(Preferences()), 0.9)
    gradients = Gradients(
        PerAction(16, 1), Uniform(), Online(), optax.adam(1e-3), rollout_steps, 1, 32, replay_size, "fresh",
        replay_start,
    )  # fmt: skip
    return Loop(GradientLearner(agent, gradients), rollout_steps, episodes=10**6)


def with_gradients(loop, **changes):
    """The learner of a loop, with other settings of its gradients."""
    return dataclasses.replace(loop.learner, gradients=dataclasses.replace(loop.learner.gradients, **changes))


def stored(capacity, transitions):
    """A replay buffer with these transitions."""
    return Uniform().add(Uniform().init(capacity, jax.tree.map(lambda leaf: leaf[0], transitions)), transitions)


def minibatch(learner, fresh, buffer):
    replayable = buffer.added >= learner.gradients.replay_start
    return learner.minibatch(jax.random.key(3), fresh, buffer, replayable).transitions


@pytest.fixture(scope="module")
def rollout():
    """Transitions and records of 64 steps on a slippery lake with a short time limit."""
    lake = FrozenLake(map_name="4x4", is_slippery=True, time_limit=4).build(jax.random.key(0))
    loop = loop_in(lake, 64, 64)
    run = CompiledRun(loop).init(jax.random.key(1), lake)
    rollout = jax.jit(CompiledRun(loop).rollout)
    _, transitions, records = rollout(jax.random.key(2), lake, run.learned.network, run.episode)
    return loop, jax.tree.map(np.asarray, transitions), jax.tree.map(np.asarray, records)


def test_the_next_action_of_fresh_data_is_the_action_taken(rollout):
    _, transitions, records = rollout
    going_on = ~records.ended[:-1]
    np.testing.assert_array_equal(transitions.next_action[:-1][going_on], transitions.action[1:][going_on])
    assert (transitions.next_action[records.ended] == POLICY_CHOICE).all()
    assert records.ended.any()
    assert going_on.any()


def test_the_next_observation_is_the_true_one_at_an_episodes_end(rollout):
    _, transitions, records = rollout
    going_on = ~records.ended[:-1]
    np.testing.assert_array_equal(transitions.next_observation[:-1][going_on], transitions.observation[1:][going_on])
    assert (transitions.observation[1:][records.ended[:-1]] == 0).all()  # every episode starts at S
    assert (transitions.next_observation[records.ended] != 0).any()


def test_truncation_is_not_termination(rollout):
    _, transitions, records = rollout
    truncated = records.ended & ~transitions.terminated
    assert truncated.any()
    assert (records.length[truncated] == 4).all()
    holes_and_goal = np.isin(transitions.next_observation, [5, 7, 11, 12, 15])
    np.testing.assert_array_equal(transitions.terminated, holes_and_goal)


def test_returns_and_lengths_start_anew_with_each_episode():
    toy = Toy().build(jax.random.key(0))
    loop = loop_in(toy, 16, 64)
    run = CompiledRun(loop).init(jax.random.key(1), toy)
    rollout = jax.jit(CompiledRun(loop).rollout)
    _, transitions, records = rollout(jax.random.key(2), toy, run.learned.network, run.episode)
    assert (np.asarray(transitions.reward) != 0).sum() > 8
    ret, length = 0.0, 0
    for step in range(16):
        ret, length = ret + transitions.reward[step], length + 1
        assert records.ret[step] == pytest.approx(ret)
        assert records.length[step] == length
        if records.ended[step]:
            ret, length = 0.0, 0


@pytest.mark.slow
def test_a_minibatch_is_half_fresh_on_policy_and_half_replay_off_policy(rollout):
    loop, transitions, _ = rollout
    old = transitions._replace(reward=np.full_like(transitions.reward, 7.0))
    buffer = stored(64, old)
    batch = jax.tree.map(np.asarray, minibatch(loop.learner, transitions, buffer))
    rows = {tuple(row) for row in np.stack([transitions.observation, transitions.action, transitions.next_action], 1)}
    fresh = np.stack([batch.observation, batch.action, batch.next_action], 1)[:16]
    assert {tuple(row) for row in fresh} <= rows
    assert (batch.reward[:16] != 7.0).all()
    assert (batch.reward[16:] == 7.0).all()
    assert (batch.next_action[16:] == POLICY_CHOICE).all()
    assert (batch.next_action[:16] != POLICY_CHOICE).any()


@pytest.mark.parametrize(
    ("on_policy", "keeps_fresh", "keeps_replayed"),
    [("fresh", True, False), ("all", True, True), ("none", False, False)],
)
def test_which_data_keep_the_next_action_that_was_taken(rollout, on_policy, keeps_fresh, keeps_replayed):
    loop, transitions, _ = rollout
    old = transitions._replace(reward=np.full_like(transitions.reward, 7.0))
    buffer = stored(64, old)
    learner = with_gradients(loop, on_policy=on_policy)
    batch = jax.tree.map(np.asarray, minibatch(learner, transitions, buffer))
    assert (batch.reward == 7.0).tolist() == [False] * 16 + [True] * 16
    rows = {tuple(row) for row in np.stack([transitions.observation, transitions.action, transitions.next_action], 1)}
    for half, keeps in ((slice(16), keeps_fresh), (slice(16, 32), keeps_replayed)):
        known = batch.next_action[half] != POLICY_CHOICE
        assert known.any() == keeps
        if keeps:
            assert set(zip(batch.observation[half], batch.action[half], batch.next_action[half], strict=True)) <= rows


@pytest.mark.parametrize("on_policy", ["fresh", "none"])
def test_until_replay_starts_a_minibatch_is_all_fresh(rollout, on_policy):
    """64 transitions stored are enough to start with 64, not with 65; the fresh half is the same in both."""
    loop, transitions, _ = rollout
    transitions = transitions._replace(reward=np.arange(64, dtype=np.float32))  # tells rows apart
    old = transitions._replace(reward=np.full(64, -1.0, np.float32))
    buffer = stored(128, old)
    started, waiting = (
        minibatch(with_gradients(loop, on_policy=on_policy, replay_start=start), transitions, buffer)
        for start in (64, 65)
    )
    assert (started.reward == -1.0).tolist() == [False] * 16 + [True] * 16
    rows = np.asarray(waiting.reward).astype(int)
    assert (np.unique(rows).size, rows.min() >= 0) == (32, True)
    expected = jax.tree.map(lambda leaf: leaf[rows], transitions)
    if on_policy == "none":
        expected = expected._replace(next_action=np.full(32, POLICY_CHOICE))
    jax.tree.map(np.testing.assert_array_equal, waiting, expected)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:16], b[:16]), started, waiting)


def test_a_rollout_shorter_than_the_minibatch_is_repeated_until_replay_starts(rollout):
    loop, transitions, _ = rollout
    fresh = jax.tree.map(lambda leaf: leaf[:16], transitions._replace(reward=np.arange(64, dtype=np.float32)))
    buffer = stored(64, fresh)
    learner = with_gradients(loop, rollout_steps=16, replay_start=17)
    rows = np.asarray(minibatch(learner, fresh, buffer).reward)
    assert np.bincount(rows.astype(int)).tolist() == [2] * 16


@pytest.mark.slow
def test_replay_starts_in_the_middle_of_a_run(rollout):
    """Up to then a run is the one that never replays, and then it is not."""
    chain, key = Chain(length=5).build(jax.random.key(0)), jax.random.key(1)

    def networks(replay_start):
        whole = CompiledRun(loop_in(chain, 16, 256, replay_start))
        run, chunk = whole.init(key, chain), jax.jit(whole.chunk, static_argnums=0)
        for _ in range(8):
            run, _, _ = chunk(1, 1, key, chain, run)
            yield run.learned.network

    same = [
        jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), *pair))
        for pair in zip(networks(112), networks(256), strict=True)
    ]
    assert same == [True] * 6 + [False] * 2


def test_a_family_without_a_density_cannot_be_learned_by_draws():
    with pytest.raises(InputError, match="loss_samples is 2, but PointMass has no density"):
        train(Chain(length=5), PointMass(), EpsilonGreedy(), Settings(**SMALL, loss_samples=2))


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_run(tmp_path / name, small_train(seeds=2, episodes=60).record)
    first, second = ((tmp_path / name / "episodes.npz").read_bytes() for name in ("first", "second"))
    assert first == second


@pytest.mark.slow
def test_every_seed_has_its_own_chain():
    result = small_train(seeds=2, **THREE_CHUNKS)
    assert isinstance(result.environments, FiniteMDP)
    first, second = np.asarray(result.environments.terminated)
    assert (first != second).any()


@dataclasses.dataclass(frozen=True)
class Corridor(EnvironmentBuilder):
    """Goes on whatever the action, for 1 to 40 steps: how many is drawn for each seed."""

    @property
    def success_return(self):
        return 1.0

    @property
    def floor_episodes(self):
        return None

    def build(self, key):
        state = jnp.broadcast_to(jnp.arange(40)[:, None, None], (40, 2, 1))
        ends = state + 1 >= jax.random.randint(key, (), 1, 41)
        return FiniteMDP(
            next_state=jnp.minimum(state + 1, 39),
            reward=ends.astype(jnp.float32),
            terminated=ends,
            probability=jnp.ones((40, 2, 1)),
            time_limit=100,
        )


@pytest.mark.slow
def test_a_seed_that_is_done_learns_no_more():
    """Its network is the one at its own limit, whatever the other seeds still do."""
    together = small_train(Corridor(), seeds=3, episodes=150)
    steps = together.record.env_steps
    done_first = int(np.argmin(steps))
    assert steps[done_first] + 1024 < max(steps)
    alone = small_train(Corridor(), seeds=1, seed=done_first, episodes=150)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3),
        together.network(done_first),
        alone.network(0),
    )


@pytest.mark.slow
def test_a_run_learns_up_to_its_limit_and_not_to_the_end_of_the_chunk():
    by_steps = small_train(Corridor(), seeds=1, episodes=10**6, steps=32)
    length = int(by_steps.record.episodes[0].lengths[0])
    by_episodes = small_train(Corridor(), seeds=1, episodes=32 // length)
    assert 16 < by_episodes.record.env_steps[0] <= 32
    jax.tree.map(np.testing.assert_array_equal, by_episodes.network(0), by_steps.network(0))
    longer = small_train(Corridor(), seeds=1, episodes=10**6, steps=48)
    weights = [jax.tree.leaves(run.network(0)) for run in (longer, by_steps)]
    assert any((a != b).any() for a, b in zip(*weights, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "episodes", "steps"), [({"episodes": 60}, 60, None), ({"steps": 50}, None, 50)])
def test_a_run_ends_at_whichever_limit_comes_first(limits, episodes, steps):
    record = small_train(seeds=2, **({"episodes": 10**6} | limits)).record
    for seed, env_steps in zip(record.episodes, record.env_steps, strict=True):
        if episodes is not None:
            assert seed.returns.size == episodes
            assert env_steps == seed.end_steps[-1] == seed.lengths.sum()
        if steps is not None:
            assert env_steps == steps
            assert seed.end_steps[-1] <= steps < seed.end_steps[-1] + 5


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_learned():
    before = signal.getsignal(signal.SIGINT)
    settings = Settings(**SMALL, seeds=2, **THREE_CHUNKS)
    with pytest.raises(KeyboardInterrupt) as caught:
        train(
            Chain(length=5), Gaussian(), UCB(), settings, on_chunk=lambda progress: os.kill(os.getpid(), signal.SIGINT)
        )
    assert isinstance(caught.value, ut.TrainingInterrupted)
    result = caught.value.result
    assert result.record.interrupted
    assert result.record.env_steps == [1024, 1024]
    assert result.record.diverged is None
    assert all(seed.returns.size for seed in result.record.episodes)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_run_ends_once_every_seed_is_done_also_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "CHUNK_STEPS", 64)
    settings = Settings(seeds=2, episodes=10**6, steps=6400, until="solved")
    whole = train(Chain(length=3), settings=settings).record
    assert (whole.stopped, whole.interrupted) == ("until solved", False)
    solved = [seed.end_steps[at - 1] for seed, at in zip(whole.episodes, whole.solved_episode, strict=True) if at]
    assert len(solved) == 2
    assert 128 < max(solved) <= whole.env_steps[0] < max(solved) + 64  # at the end of the chunk

    steps = iter([64, 128])
    place = Checkpoints(tmp_path, every=64)
    with pytest.raises(StopIteration):
        train(Chain(length=3), settings=settings, checkpoints=place, on_chunk=lambda _: next(steps))
    for _ in range(2):  # the second call has nothing left to do
        again = train(Chain(length=3), settings=settings, checkpoints=place).record
        assert (again.stopped, again.env_steps) == ("until solved", whole.env_steps)
        for one, other in zip(whole.episodes, again.episodes, strict=True):
            np.testing.assert_array_equal(one.returns, other.returns)


@pytest.mark.parametrize("until", ["solve", "return", "return=", "return=x", "return=inf", "return=nan", "steps=9", ""])
def test_what_a_run_cannot_end_by_is_refused(until):
    with pytest.raises(InputError, match=r"until is .*use solved, or return=NUMBER"):
        Settings(until=until)


def test_the_criterion_is_the_mean_of_fifty_episodes_in_a_row():
    nothing: Any = np.zeros((2, 60, 1), np.float32)
    metrics, ret, ended = Metrics(nothing, nothing, nothing, nothing), nothing - 200.0, nothing == 0
    ret[:, 5:] = -110.0
    records = StepRecord(ended, ret, ended.astype(np.int32), ret, ~ended, ended & False)
    start = np.zeros(2), np.zeros(2)
    for until, stopped in (("return=-110", "until return=-110"), ("return=-109.9", None), ("solved", "until solved")):
        ledger = Ledger(Settings(seeds=2, until=until, rollout_steps=1), Success(-100.0))
        ledger.extend(records, metrics, start)
        assert (ledger.stopped, ledger.over) == (stopped, stopped is not None)
    with pytest.raises(InputError, match="defines no success return"):
        Ledger(Settings(until="solved"), Success())


@pytest.mark.slow
def test_a_loss_that_is_not_finite_names_seed_and_step_and_keeps_the_rest():
    with pytest.raises(TrainingDivergedError, match=r"seed \d+ became NaN or infinite by .*step \d+") as caught:
        small_train(seeds=2, seed=3, episodes=10**6, steps=4096, learning_rate=1e30)
    assert caught.value.seed in (3, 4)
    assert caught.value.step % 4 == 0  # the actions of a rollout
    assert caught.value.result.record.episodes[0].returns.size
    assert caught.value.result.record.diverged == {"seed": caught.value.seed, "step": caught.value.step}


@pytest.mark.slow
def test_progress_is_reported_after_each_chunk():
    seen = []
    train(Chain(length=5), Gaussian(), UCB(), Settings(**SMALL, seeds=2, **THREE_CHUNKS), seen.append)
    assert [round(progress.fraction, 2) for progress in seen] == [0.34, 0.68, 1.0]
    assert seen[-1].env_steps == 6000
    assert seen[-1].steps_per_second > 0


def test_returns_outside_the_support_are_refused_before_training():
    with pytest.raises(InputError, match=r"from 0 to 4.*use --distribution.low -0.8 and --distribution.high 4.8"):
        train(Toy(), Categorical(low=-0.2, high=1.2), UCB(), Settings(discount=1.0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seeds", 0), ("episodes", -1), ("steps", 0), ("discount", 1.1), ("learning_rate", -1.0),
        ("learning_rate", float("nan")), ("batch_size", 1), ("replay_size", 0), ("seed", -1),
        ("rollout_steps", 0), ("updates_per_rollout", 0), ("gradient_clip", 0.0),
        ("replay_start", -1), ("loss_samples", -1), ("num_envs", 0),
        ("learning_rate_end", -0.1), ("learning_rate_end", float("nan")),
    ],
)  # fmt: skip
def test_settings_refuse_what_cannot_be(name, value):
    with pytest.raises(InputError, match=rf"^{name} is {value}"):
        Settings(**{"steps": 100, name: value})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replay_size": 3, "rollout_steps": 16}, "^replay_size is 3: use at least the 16"),
        ({"replay_size": 30, "replay_start": 31}, "^replay_start is 31: use 0 or more, at most the 30 transitions"),
        ({"num_envs": 3, "rollout_steps": 16}, r"^num_envs is 3: use a divisor of rollout_steps \(16\), such as 2"),
        ({"learning_rate_end": 0.0}, "^learning_rate_end is 0.0: say after how many steps"),
    ],
)
def test_settings_refuse_what_does_not_go_together(settings, words):
    with pytest.raises(InputError, match=words):
        Settings(**settings)


def test_what_a_part_is_made_of_can_be_written_as_json():
    """Numpy's numbers and arrays, infinite numbers, and what JSON has no word for."""
    kwargs = {"a": np.bool_(True), "b": np.array([1.5, np.inf]), "c": {"d": (1, None)}, "e": np.dtype("float32")}
    shown = describe(Gym("CartPole-v1", kwargs=kwargs))
    assert json.loads(json.dumps(shown, allow_nan=False))["kwargs"] == {
        "a": True,
        "b": [1.5, "inf"],
        "c": {"d": [1, None]},
        "e": "dtype('float32')",
    }


def test_the_learning_rate_falls_to_its_end_over_all_updates_of_a_run():
    """7 rollouts of 16 steps, with 3 updates each."""
    settings = Settings(steps=100, rollout_steps=16, updates_per_rollout=3, learning_rate=0.1, learning_rate_end=0.04)
    rate = optimizer_of(settings).rate
    assert callable(rate)
    by_hand = {0: 0.1, 7: 0.08, 14: 0.06, 21: 0.04, 30: 0.04}
    np.testing.assert_allclose(
        [np.asarray(rate(update)).item() for update in by_hand], list(by_hand.values()), rtol=1e-5
    )
    assert optimizer_of(dataclasses.replace(settings, learning_rate_end=None)).rate == 0.1


def test_a_short_chain_is_learned():
    record = train(Chain(length=5), Gaussian(), UCB(), Settings(seeds=3, episodes=400)).record
    assert None not in record.solved_episode
    assert record.greedy_returns == [1.0, 1.0, 1.0]
