"""Where a random policy sees nothing but 0, the first reward sets the scale: its size does not matter."""

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from uppertail import UCB, FromGymnasium, Gaussian, Settings, train
from uppertail.training.method import Method
from uppertail.training.results import TrainingResult
from uppertail.training.run import Run
from worlds import measure_returns

pytestmark = pytest.mark.slow

LENGTH = 12
SETTINGS = Settings(seeds=1, steps=2048, episodes=10**6, replay_size=256, batch_size=64, learning_rate=0.01)


class Corridor(gymnasium.Env[int, int]):
    """A Chain whose only reward is past its end; the right action alternates."""

    observation_space: Any = spaces.Discrete(LENGTH)
    action_space: Any = spaces.Discrete(2)

    def __init__(self, reward: float) -> None:
        self.reward, self.at = reward, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action != self.at % 2:
            return self.at, 0.0, True, False, {}
        if self.at == LENGTH - 1:
            return self.at, self.reward, True, False, {}
        self.at += 1
        return self.at, 0.0, False, False, {}


@functools.cache
def run(reward: float) -> TrainingResult:
    builder = FromGymnasium(functools.partial(Corridor, reward), id="Corridor", success=0.5 * reward)
    return train(builder, Gaussian(), UCB(), SETTINGS)


def test_a_random_policy_sees_nothing_here() -> None:
    builder = FromGymnasium(functools.partial(Corridor, 1.0))
    seen = measure_returns(builder, 0.995)
    assert (seen.low, seen.high, seen.known) == (0.0, 0.0, False)
    begun = Run(builder, Method.of(), SETTINGS)
    begun.close()
    assert "; returns not known yet, set by the first reward, since a random policy saw none; " in begun.opening


@pytest.mark.parametrize("reward", [0.01, 1000.0])
def test_the_size_of_the_first_reward_does_not_matter(reward: float) -> None:
    """The oracle is a reward of 1: the same episodes up to the first success, and solved as soon, but for rounding."""
    one, other = run(1.0).record, run(reward).record
    first, solved, later = one.first_success_episode[0], one.solved_episode[0], other.solved_episode[0]
    assert first is not None and solved is not None and later is not None
    np.testing.assert_array_equal(other.episodes[0].lengths[:first], one.episodes[0].lengths[:first])
    assert abs(later - solved) <= 20
    assert other.greedy_solves == one.greedy_solves == [True]


def test_in_powers_of_two_it_makes_no_difference_at_all() -> None:
    one, other, reward = run(1.0), run(1024.0), 1024.0
    np.testing.assert_array_equal(other.record.episodes[0].lengths, one.record.episodes[0].lengths)
    np.testing.assert_array_equal(other.record.episodes[0].returns, reward * one.record.episodes[0].returns)
    z, expected = (each.agent.returns(each.network(0), LENGTH - 1) for each in (other, one))
    np.testing.assert_array_equal(z.mean, reward * expected.mean)
    np.testing.assert_array_equal(z.std, reward * expected.std)


def test_the_scale_is_kept_with_the_run() -> None:
    record, opening = run(1024.0).record, run(1024.0).opening
    assert "; returns 0 to 1024, set by the first reward, since a random policy saw none; " in opening
    assert record.asked["distribution"]["scale"] == 1024.0
    assert record.asked["measured_returns"] == [0.0, 1024.0]
    assert record.summary()["distribution"]["scale"] == 1024.0


class Halls(gymnasium.Env[int, int]):
    """A corridor whose moves fail with chance 0.1: 100 behind 11 steps, and 300 behind 20 more."""

    observation_space: Any = spaces.Discrete(32)
    action_space: Any = spaces.Discrete(3)  # end here, take the reward or go on; go on beyond it; stay

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.np_random.random() < 0.1 or action == 2:
            return self.at, 0.0, False, False, {}
        if action == 0:
            return self.at, {11: 100.0, 31: 300.0}.get(self.at, 0.0), True, False, {}
        self.at = min(self.at + 1, 31)
        return self.at, 0.0, False, False, {}


@pytest.mark.parametrize("seed", [7919, 7920])
def test_the_first_reward_is_not_taken_for_the_largest_where_there_is_chance(seed: int) -> None:
    builder = FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Halls(), 300))
    result = train(builder, settings=Settings(seeds=1, seed=seed, episodes=100))
    assert result.record.episodes[0].returns[-30:].mean() > 290


class Lock(gymnasium.Env[int, int]):
    """Eight dials, which jam at times. A wrong turn pays 0.05 at times and leads back; the last right one pays 10."""

    observation_space: Any = spaces.Discrete(8)
    action_space: Any = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.np_random.random() < 0.1:
            return self.at, 0.0, False, False, {}
        if action != (2, 0, 0, 1, 2, 1, 0, 2)[self.at]:
            self.at = 0
            return self.at, 0.05 * (self.np_random.random() < 0.5), False, False, {}
        self.at += 1
        return min(self.at, 7), 10.0 * (self.at == 8), self.at == 8, False, {}


def test_what_a_random_policy_measured_is_not_taken_for_the_most_where_there_is_chance() -> None:
    builder = FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Lock(), 40))
    result = train(builder, settings=Settings(seeds=1, seed=7919, steps=4_000))
    assert result.record.asked["measured_returns"] is not None
    assert result.record.episodes[0].returns[-20:].mean() > 9
