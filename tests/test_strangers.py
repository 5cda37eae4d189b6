"""Environments of other people: penalties, late rewards, chance and long memories, by the defaults."""

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import uppertail as ut
from experiments.chance.tasks import Jackpot, Measured

pytestmark = pytest.mark.slow

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class Pit(gymnasium.Env[int, int]):
    """A 6 x 6 grid: 1 at the far corner, and one pit that costs much."""

    observation_space: Any = spaces.Discrete(36)
    action_space: Any = spaces.Discrete(4)

    def __init__(self, pit: float) -> None:
        self.pit, self.y, self.x = pit, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.y = self.x = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        dy, dx = MOVES[action]
        self.y, self.x = int(np.clip(self.y + dy, 0, 5)), int(np.clip(self.x + dx, 0, 5))
        goal, pit = (self.y, self.x) == (5, 5), (self.y, self.x) == (3, 3)
        return 6 * self.y + self.x, float(goal) + self.pit * pit, goal or pit, False, {}


class Corridor(gymnasium.Env[int, int]):
    """Action 1 leads on, 0 ends with 0; place 11 ends with `pay`, or leads by action 2 to a place that pays thrice."""

    observation_space: Any = spaces.Discrete(13)
    action_space: Any = spaces.Discrete(3)

    def __init__(self, pay: float) -> None:
        self.pay, self.place = pay, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        here = self.place
        if here == 12:
            return here, 3 * self.pay * (action == 1), True, False, {}
        if action == 0 or (here == 11 and action == 1):
            return here, self.pay * (action == 1), True, False, {}
        self.place += action == (2 if here == 11 else 1)
        return self.place, 0.0, False, False, {}


def episodes_of(make: Any, limit: int, **settings: Any) -> list[np.ndarray]:
    """The returns of each seed."""
    limited = functools.partial(gymnasium.wrappers.TimeLimit, max_episode_steps=limit)
    run = ut.train(ut.FromGymnasium(lambda: limited(make())), settings=ut.Settings(**{"seeds": 2, **settings}))
    return [np.asarray(each.returns) for each in run.record.episodes]


@pytest.mark.parametrize(
    ("pit", "discount"), [(-3.0, 0.995), (-100.0, 0.995), (-10_000.0, 0.995), (-10.0, 0.9999), (-10.0, 1.0)]
)
@pytest.mark.filterwarnings("ignore:The discount is 1")
def test_a_rare_large_penalty_costs_no_more_than_finding_it(pit: float, discount: float) -> None:
    for returns in episodes_of(functools.partial(Pit, pit), 100, episodes=40, discount=discount):
        assert (returns[20:] == 1.0).all(), returns


@pytest.mark.parametrize("pay", [0.001, 100.0])
def test_a_larger_reward_behind_the_first_one_is_found(pay: float) -> None:
    for returns in episodes_of(functools.partial(Corridor, pay), 200, episodes=80):
        np.testing.assert_allclose(returns[-20:], 3 * pay, rtol=1e-5)


class Dock(gymnasium.Env[Any, Any]):
    """A ship in a channel, which has to be slow where it lands: 1, and the end; outside of the channel it is lost."""

    observation_space: Any = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.at, self.speed = self.np_random.uniform(-0.9, -0.6), 0.0
        return np.array([self.at, self.speed], np.float32), {}

    def step(self, action: Any) -> Any:
        self.speed += 0.01 * (int(action) - 1)
        self.at += self.speed
        landed, lost = abs(self.at - 0.8) < 0.05 and abs(self.speed) < 0.025, abs(self.at) > 1.2
        return np.array([self.at, self.speed], np.float32), float(landed), landed or lost, False, {}


def test_a_small_goal_is_found_that_first_counts_as_seen() -> None:
    """Without a finer reach two of the four seeds found nothing in 65 episodes, and looked no more."""
    builder = ut.FromGymnasium(lambda: TimeLimit(Dock(), 200))
    result = ut.train(builder, settings=ut.Settings(seeds=4, steps=10_000))
    assert min(result.record.greedy_returns) >= 0.5


def test_a_rare_jackpot_is_not_given_up() -> None:
    """One arm pays 0.04 for certain, the other 1 with chance 0.1."""
    for policy in (ut.UCB(), ut.PosteriorSampling()):
        run = ut.train(Jackpot(), None, policy, ut.Settings(seeds=10, episodes=400))
        networks: list[Any] = [run.network(seed) for seed in range(10)]
        better = [int(np.argmax(np.asarray(network.values)[0, :, 0])) for network in networks]
        assert sum(better) >= 9, better


def test_the_far_end_of_the_river_is_found_though_its_range_was_measured() -> None:
    """A random policy sees the 5 of one bank alone; the other pays 10,000. One of ten seeds stays at the 5."""
    run = ut.train(Measured(ut.RiverSwim()), settings=ut.Settings(seeds=10, episodes=10**6, steps=5_000))
    assert run.record.asked["measured_returns"][1] > 10_000
    networks: list[Any] = [run.network(seed) for seed in range(10)]
    assert sum(np.asarray(network.counts)[5, 1] > 500 for network in networks) >= 9
