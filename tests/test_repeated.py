"""Actions that are taken several times: against loops by hand, in compiled environments and in Gymnasium's."""

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import uppertail as ut
from uppertail.defaults.pace import Pace
from uppertail.encodings import Numbers
from uppertail.environments.repeated import build_repeated
from uppertail.errors import InputError
from uppertail.reports.groups import environment_label
from uppertail.training.rollouts import play_episodes
from uppertail.types import TimeStep


class Track(ut.Environment):
    """A place on a track of 10, which an action moves by 0 or 1, and noise; each step pays the place.

    It ends at 10, or after 13 steps.
    """

    length: Any

    @property
    def observations(self) -> Numbers:
        return Numbers((0.0, 0.0), (10.0, 13.0))

    @property
    def num_actions(self) -> int:
        return 2

    def reset(self, key: Any) -> tuple[Any, TimeStep]:
        return self._shown(jnp.zeros(()), jnp.zeros(()))

    def step(self, key: Any, state: Any, action: Any) -> tuple[Any, TimeStep]:
        return self._shown(state[0] + action.astype(jnp.float32) + 0.1 * jax.random.uniform(key), state[1] + 1)

    def return_range(self, discount: float) -> Any:
        return jnp.zeros(()), jnp.full((), 100.0 * discount)

    def _shown(self, place: Any, steps: Any) -> tuple[Any, TimeStep]:
        seen, over = jnp.stack([place, steps]), place >= self.length
        return (place, steps), TimeStep(seen, place, over, (steps >= 13) & ~over)


@dataclasses.dataclass(frozen=True)
class Tracks(ut.VectorBuilder):
    def build(self, key: Any) -> Track:
        return Track(jnp.full((), 10.0))


@pytest.mark.parametrize("actions", [[1, 1, 1, 1], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]])
@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_rewards_add_up_and_nothing_happens_after_an_end(actions: list[int], repeats: int) -> None:
    plain, repeated = (
        Tracks().build(jax.random.key(0)),
        build_repeated(Tracks(action_repeat=repeats), jax.random.key(0)),
    )
    state, seen = repeated.reset(jax.random.key(0))
    by_hand, _ = plain.reset(jax.random.key(0))
    for number, action in enumerate(actions):
        key, rewards, now = jax.random.key(number), list[float](), seen
        for each in jax.random.split(key, repeats):
            by_hand, now = plain.step(each, by_hand, jnp.asarray(action))
            rewards.append(float(now.reward))
            if now.terminated | now.truncated:
                break
        state, seen = repeated.step(key, state, jnp.asarray(action))
        np.testing.assert_allclose(seen.observation, now.observation, rtol=1e-6)
        assert float(seen.reward) == pytest.approx(sum(rewards))
        assert (bool(seen.terminated), bool(seen.truncated)) == (bool(now.terminated), bool(now.truncated))
        if now.terminated | now.truncated:
            return


def test_the_range_of_returns_is_that_of_the_environments_own_discount() -> None:
    """Wider by what an action that pays 1 for each of its steps earns more than if these were discounted."""
    named = build_repeated(Tracks(action_repeat=4), jax.random.key(0)).return_range(0.5**4)
    assert named is not None
    assert float(named[1]) == pytest.approx(50.0 * 4 / (1 + 0.5 + 0.25 + 0.125))


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("num_envs", [1, 2])
def test_steps_of_gymnasium_are_those_of_a_loop_by_hand(repeats: int, num_envs: int) -> None:
    """Also where an episode ends in the middle of an action, and after a checkpoint."""
    builder = ut.Gym("CartPole-v1", action_repeat=repeats)
    host, again = builder.open(0, num_envs), builder.open(0, num_envs)
    alone = gymnasium.make("CartPole-v1")
    random = np.random.default_rng(0)
    host.reset()
    here = alone.reset(seed=host._seeds()[0])[0]
    ended = 0
    for _ in range(120):
        action = random.integers(2, size=num_envs).astype(np.int32)
        now, total = host.step(action), 0.0
        terminated = truncated = False
        for _ in range(repeats):
            here, reward, terminated, truncated, _ = alone.step(int(action[0]))
            total += float(reward)
            if terminated or truncated:
                break
        np.testing.assert_array_equal(now.next_observation[0], here)
        assert (now.reward[0], now.terminated[0], now.truncated[0]) == (total, terminated, truncated)
        if terminated:
            ended += 1
            here = alone.reset(seed=host._seeds()[0])[0]
            np.testing.assert_array_equal(now.observation[0], here)
    assert ended > 2
    np.testing.assert_array_equal(again.restore(host.saved())[0], here)


class Ticks(gymnasium.Env[Any, Any]):
    """Terminates in the fifth step of an episode, and pays 1 in each; a limit of 4 may truncate it before."""

    observation_space, action_space = gymnasium.spaces.Box(0.0, 9.0, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.taken = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> Any:
        self.taken += 1
        return np.array([self.taken], np.float32), 1.0, self.taken == 5, False, {}


@pytest.mark.slow
@pytest.mark.parametrize("vectorization", ["sync", pytest.param("async", marks=pytest.mark.slow)])
@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.filterwarnings("ignore:Observations show when time runs out")
def test_an_episode_is_as_long_as_its_steps_where_its_last_action_is_cut_short(
    limit: int | None, vectorization: Any
) -> None:
    make = (lambda: gymnasium.wrappers.TimeLimit(Ticks(), limit)) if limit else Ticks
    builder = ut.FromGymnasium(make, action_repeat=3, vectorization=vectorization)
    settings = ut.Settings(seeds=1, steps=48, num_envs=2)
    result = ut.train(builder, settings=settings, learner=ut.GradientDescent())
    assert set(result.record.episodes[0].lengths.tolist()) == {limit or 5}
    for host in (builder.open(0, 2), builder.open(0, 1)):
        host.reset()
        steps = [host.step(np.zeros(host.num_envs, int)).steps.tolist() for _ in range(4)]
        assert [each[0] for each in steps] == [3, (limit or 5) - 3] * 2
        host.close()
    act = lambda step, seen, memory, *_: (np.zeros(seen.shape[:2], int), memory)  # noqa: E731
    played = play_episodes(builder, [0], 1, act, lambda _: (), 3, lambda over: None)
    assert played.lengths.tolist() == [[limit or 5] * 3] and played.returns.tolist() == [[limit or 5] * 3]
    assert ut.RichChain(length=5, action_repeat=2).steps_of(np.array([10, 167])).tolist() == [20, 334]


@pytest.mark.slow
@pytest.mark.parametrize("builder", [Tracks(action_repeat=3), ut.Gym("CartPole-v1", action_repeat=3)])
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_a_run_counts_steps_of_the_environment(builder: Any) -> None:
    """Its discount is one for each of them, too."""
    result = ut.train(builder, settings=ut.Settings(seeds=2, steps=301, episodes=10**6, discount=0.9))
    assert result.record.env_steps == [301, 301]
    assert float(result.agent.discount) == pytest.approx(0.9**3)
    assert result.record.asked["environment"]["action_repeat"] == 3
    assert repr(result).endswith("\n  each action of act is for 3 steps, as in training")
    assert result.record.asked["settings"]["discount"] == 0.9
    for seed in result.record.episodes:
        assert seed.lengths.size > 3
        apart = seed.end_steps - np.cumsum(seed.lengths)  # where it ends, an action counts in full
        assert (np.diff(apart, prepend=0) >= 0).all() and (np.diff(apart, prepend=0) < 3).all()
        if isinstance(builder, ut.Gym):  # CartPole pays 1 for each step
            assert (seed.lengths == seed.returns).all()
        else:
            assert (seed.lengths % 3 == 0).all()


@pytest.mark.slow
def test_a_run_that_goes_on_repeats_actions_as_before(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ut.Settings(seeds=1, steps=600, episodes=10**6)
    whole = ut.train(ut.Gym("MountainCar-v0"), settings=settings)
    kept = ut.Checkpoints(tmp_path / "run")
    short = dataclasses.replace(settings, steps=300)
    ut.train(ut.Gym("MountainCar-v0"), settings=short, checkpoints=kept)
    monkeypatch.setattr("uppertail.defaults.facts.pace", lambda *_: Pace(1, 1))
    longer = ut.train(ut.Gym("MountainCar-v0"), settings=settings, checkpoints=kept)
    assert longer.record.asked["environment"]["action_repeat"] == whole.record.asked["environment"]["action_repeat"] > 1
    np.testing.assert_array_equal(longer.record.episodes[0].returns, whole.record.episodes[0].returns)


def test_bad_requests_get_a_sentence() -> None:
    for given in (0, 10**9):
        with pytest.raises(InputError, match=f"action_repeat is {given}: use 1 to 1,000"):
            ut.Gym("CartPole-v1", action_repeat=given)
    vector = ut.FromGymnasium(lambda: SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")]), action_repeat=2)
    with pytest.raises(InputError, match="a vector environment is used as it is"):
        vector.open(0, 1)
    lake = ut.Gym("FrozenLake-v1", action_repeat=2)
    assert not lake.compiles
    assert "its actions are repeated" in (lake.note or "")


class Odd(gymnasium.Env[Any, Any]):
    """It pays 200 for each step, in a number of another type, or always in the same array."""

    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Discrete(2)

    def __init__(self, kind: Any) -> None:
        self.kind, self.array = kind, np.zeros(())

    def reset(self, **kwargs: Any) -> Any:
        self.array[...] = 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.array[...] = 200.0
        reward = self.array if self.kind is None else self.kind(200)
        return np.ones(1, np.float32), reward, False, False, {}


@pytest.mark.parametrize("kind", [None, np.uint8, np.float16, int])
def test_rewards_of_any_type_add_up(kind: Any) -> None:
    host = ut.FromGymnasium(lambda: Odd(kind), action_repeat=3).open(0, 1)
    host.reset()
    assert host.step(np.zeros(1, np.int32)).reward == 600.0


def test_runs_that_repeat_actions_differently_are_in_one_section_of_a_report() -> None:
    described = {"name": "Gym", "id": "MountainCar-v0", "action_repeat": 8}
    assert environment_label(described) == "MountainCar-v0"
