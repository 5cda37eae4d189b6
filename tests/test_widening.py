"""A measured range of returns grows in a run, with several environments too, and wherever the run is stopped."""

import dataclasses
import functools
import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from killed import assert_same
from uppertail.environments.actions import Actions
from uppertail.environments.gymnasium.vector import HostEnvironments
from uppertail.environments.interface import Interface
from uppertail.environments.random_policy import measured_range, random_steps
from uppertail.environments.spaces import read_space
from uppertail.training.loop import Episode
from uppertail.training.method import Method
from uppertail.training.remarks import beyond_what_was_given, endless
from uppertail.training.rollouts import Rollouts
from uppertail.training.run import Run
from uppertail.training.train import drive
from worlds import Cell

LENGTH = 9


class Crumbs(gymnasium.Env[int, int]):
    """A Chain of crumbs, which is all that a random policy sees; a wrong action ends it, and its end pays 1."""

    observation_space: Any = spaces.Discrete(LENGTH)
    action_space: Any = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action != self.at % 4:
            return self.at, 0.001, True, False, {}
        self.at += 1
        return self.at % LENGTH, 1.0 if self.at == LENGTH else 0.0005, self.at == LENGTH, False, {}


def trained(steps: int, num_envs: int, folder: Path | None = None) -> ut.TrainingResult:
    settings = ut.Settings(seeds=2, episodes=10**6, steps=steps, num_envs=num_envs)
    saved = None if folder is None else ut.Checkpoints(folder, say=pytest.fail)
    return ut.train(ut.FromGymnasium(Crumbs), settings=settings, checkpoints=saved)


def test_a_chunk_ends_at_the_same_places_wherever_a_run_is_stopped() -> None:
    run = Run(ut.Toy(), Method(), ut.Settings(seeds=1, rollout_steps=16, steps=1_000))
    run.close()
    assert [run.loop.chunk(32, at) + at for at in (0, 1, 31, 32, 40)] == [32, 32, 32, 63, 63]  # 63 reach 1,000
    assert [dataclasses.replace(run.loop, steps=None).chunk(32, at) for at in (0, 31, 64)] == [32, 1, 32]


def test_each_of_several_environments_has_its_own_discounted_rewards() -> None:
    """The first ends with 0.001 after its first step, the second goes on to the end."""
    vector = gymnasium.vector.SyncVectorEnv([Crumbs] * 2, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED)
    host = HostEnvironments(vector, Interface(read_space(np, Crumbs.observation_space), Actions(4)), 0)
    zeros = np.zeros(2, np.float32)
    begun: tuple[Any, ...] = host.reset(), np.array([1, 0]), zeros, zeros.astype(np.int32), zeros
    rollouts = Rollouts(host, 0, Episode((), *begun), 0, 0, discount=0.5)
    for action in range(1, LENGTH + 1):
        rollouts.step()
        rollouts.continue_with(np.array([1, action % 4]), np.zeros(2, bool))
    first, second = rollouts.take(2 * LENGTH)[1].earned.reshape(-1, 2).T
    np.testing.assert_allclose(first, 0.001)
    on = 0.001 * (1 - 0.5 ** np.arange(1, LENGTH))  # 0.0005 and half of what was before
    np.testing.assert_allclose(second, [*on, on[-1] / 2 + 1.0], rtol=1e-6)


class Wear(gymnasium.Env[Any, Any]):
    """Two machines wear a little in each step and earn less; an action repairs one, which costs 1."""

    observation_space: Any = spaces.Box(0, 1, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.worn = self.np_random.uniform(0, 0.2, 2)
        return self.worn.astype(np.float32), {}

    def step(self, action: int) -> Any:
        reward = float((1 - self.worn**2).sum()) - (action > 0)
        if action:
            self.worn[action - 1] = 0.0
        self.worn = np.minimum(self.worn + self.np_random.uniform(0.05, 0.15, 2), 1.0)
        return self.worn.astype(np.float32), reward, False, False, {}


@pytest.mark.slow
def test_values_beyond_a_limit_that_comes_soon_are_within_the_range() -> None:
    """Random actions return 64. Before, two seeds returned 69 in their first episodes, and 45 in the end."""
    limited = lambda: gymnasium.wrappers.TimeLimit(Wear(), 60)  # noqa: E731
    result = ut.train(ut.FromGymnasium(limited, id="Wear"), settings=ut.Settings(seeds=2, steps=2_000))
    assert min(np.mean(each.returns[-10:]) for each in result.record.episodes) > 72
    assert min(result.record.greedy_returns) > 72


@pytest.mark.slow
@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_run_that_is_stopped_before_its_range_grows_goes_on_as_if_it_had_not_been(
    num_envs: int, tmp_path: Path
) -> None:
    """The reward of 1 is found within 400 steps, and the range grows at 512, where a chunk ends."""
    stopped = trained(400, num_envs, tmp_path)
    assert max(max(seed.returns) for seed in stopped.record.episodes) > 1.0
    crumbs = ut.FromGymnasium(Crumbs)
    before = measured_range(crumbs, random_steps(crumbs, observed=True), stopped.record.asked["settings"]["discount"])
    assert stopped.record.asked["measured_returns"] == [before.low, before.high] and before.high < 0.02
    whole = trained(1_000, num_envs)
    assert whole.record.asked["measured_returns"][1] > 1.0
    assert_same(trained(1_000, num_envs, tmp_path), whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("returns", "words"), [((0.0, 0.1), r"^Returns from 0 to 1\.\d+ were seen"), ((0.0, 1.0), None)]
)
def test_a_given_range_that_is_far_too_small_is_said(returns: tuple[float, float], words: str | None) -> None:
    run = Run(ut.FromGymnasium(Crumbs, returns=returns), Method(), ut.Settings(seeds=1))
    run.close()
    run.ledger.seen = np.array([0.0, 1.004])
    found = beyond_what_was_given(run)
    assert found is None if words is None else re.match(words, found or "")


class Shifted(Cell):
    """Rewards of 0 and 1 with a constant added."""

    def __init__(self, constant: float) -> None:
        self.constant = constant

    def step(self, action: Any) -> Any:
        after, reward, *others = super().step(action)
        return after, reward + self.constant, *others


@pytest.mark.parametrize(
    ("constant", "learner", "said"),
    [
        (100.0, ut.GradientDescent(), "between 100 and 101"),
        (-101.0, ut.GradientDescent(), "between -101 and -100"),
        (5.0, ut.GradientDescent(), None),
        (100.0, None, None),  # a table
        (1e6, None, "subtract 1000000 from"),
    ],
)
def test_rewards_that_have_much_in_common_are_said(constant: float, learner: Any, said: str | None) -> None:
    run = Run(ut.FromGymnasium(lambda: Shifted(constant)), Method(learner=learner), ut.Settings(seeds=1))
    run.close()
    found = [note for note in run.notes if note.startswith("Rewards of a random policy lie between ")]
    assert len(found) == (said is not None) and (said or "") in "".join(found)


class Beyond(Cell):
    """A number from 0 to 1, to which another one is added where an episode begins."""

    observation_space = spaces.Box(np.float32(0.0), np.float32(1.0), (1,), np.float32)

    def __init__(self, more: float) -> None:
        self.more = more

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.array([self.np_random.random() * 0.01 + self.more], np.float32), {}

    def step(self, action: Any) -> Any:
        return np.array([self.np_random.random()], np.float32), *super().step(action)[1:]


@pytest.mark.parametrize(("more", "said"), [(4.0, True), (0.990001, False), (-4.0, True)])
def test_numbers_outside_of_their_space_are_said(more: float, said: bool) -> None:
    run = Run(ut.FromGymnasium(lambda: Beyond(more)), Method(), ut.Settings(seeds=1))
    run.close()
    words = r"Number 0 of observations, counted from 0, was -?[34]\.\d+, but its space goes from 0 to 1: [\d,]+ of "
    assert [bool(re.match(words, note)) for note in run.notes if "outside of observation_space" in note] == [
        True
    ] * said


@pytest.mark.parametrize(("peak", "kind", "said"), [(1, np.float32, True), (1, np.uint8, True), (255, np.uint8, False)])
def test_images_outside_of_their_space_are_said(peak: int, kind: Any, said: bool) -> None:
    class Bright(Cell):
        observation_space = spaces.Box(0, peak, (12, 12, 1), kind)

        def reset(self, **settings: Any) -> Any:
            return np.full((12, 12, 1), 200, kind), super().reset(**settings)[1]

        def step(self, action: Any) -> Any:
            return self.np_random.integers(200, size=(12, 12, 1)).astype(kind), *super().step(action)[1:]

    run = Run(ut.FromGymnasium(Bright), Method(), ut.Settings(seeds=1))
    run.close()
    words = "A pixel of the first image was 200 in size, but its space reaches 1. "
    assert [note.startswith(words) for note in run.notes if "observation_space" in note] == [True] * said


class Tailed(Cell):
    """Two numbers: the first is small but once in `rare` steps, and the second is never large."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def __init__(self, rare: int) -> None:
        self.rare = rare

    def seen(self) -> np.ndarray:
        first = 1e6 if self.np_random.integers(self.rare) == 0 else self.np_random.normal()
        return np.array([first, self.np_random.normal()], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        return self.seen(), *super().step(action)[1:]


@pytest.mark.parametrize(
    ("rare", "left_out", "said"), [(50, None, True), (50, (0,), False), (2, None, False), (10**9, None, False)]
)
def test_a_number_whose_rare_values_set_its_scale_is_said(rare: int, left_out: Any, said: bool) -> None:
    """Once in 50 steps 1e6, a number of size 1 has a scale of more than 1e5; every other step, it is no tail."""
    run = Run(ut.FromGymnasium(lambda: Tailed(rare), left_out=left_out), Method(), ut.Settings(seeds=1))
    run.close()
    found = [note for note in run.notes if note.startswith("Number 0 of observations, counted from 0, is within ")]
    assert len(found) == said and ("up to 1e+06 away" in "".join(found)) == said


class Delayed(gymnasium.Env[Any, int]):
    """A walk of nine cells whose middle pays 1 in each step; an action is taken, and shown, one step later."""

    observation_space: Any = spaces.MultiDiscrete([9, 3])
    action_space: Any = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.next = int(self.np_random.integers(9)), 2
        return np.array([self.at, self.next]), {}

    def step(self, action: Any) -> Any:
        self.at, self.next = int(np.clip(self.at + (1, -1, 0)[self.next], 0, 8)), int(action)
        return np.array([self.at, self.next]), float(self.at == 4), False, False, {}


@pytest.mark.slow
def test_what_is_learned_beyond_the_time_limit_widens_the_range_of_a_table() -> None:
    """Staying in the middle is worth 200 to a discount of 0.995, but within 30 steps no episode earns 23.

    With a start as wide as 23, what was tried once at the middle looked better than all that was not.
    """
    limited = functools.partial(gymnasium.wrappers.TimeLimit, max_episode_steps=30)
    make: Any = lambda: limited(Delayed())  # noqa: E731
    settings = ut.Settings(seeds=1, steps=3_000)
    found = ut.train(ut.FromGymnasium(make), settings=settings).record
    assert found.asked["measured_returns"][1] >= 200.0
    assert min(found.greedy_returns) >= 26.0
    with pytest.warns(UserWarning, match=r"A return of [\d.]+ was learned, far beyond the given 0 to 23"):
        ut.train(ut.FromGymnasium(make, returns=(0.0, 23.0)), settings=ut.Settings(seeds=1, steps=1_000))


class Endless(Cell):
    """Has a number of another meaning by the name of a limit."""

    max_steps = 7

    def step(self, action: Any) -> Any:
        return *super().step(action)[:2], False, False, {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "said"), [(Endless, True), (Cell, False)])
def test_a_number_called_max_steps_is_no_limit_if_no_episode_ends(
    kind: Any, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uppertail.training.rollouts.EVALUATION_STEPS", 100)
    run = Run(ut.FromGymnasium(kind, returns=(0.0, 9.0)), Method(), ut.Settings(seeds=1, steps=64))
    drive(run, lambda progress: None)
    found = endless(run)
    assert (found is not None and "set a time limit" in found) == said
