"""Environments that are slow to make, or of which few can be open at once: simulators on a port, licenses, robots."""

import contextlib
import functools
import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeObservation, NormalizeReward

import uppertail as ut
from uppertail.environments.gymnasium import builder as builder_module
from uppertail.environments.gymnasium.vector import episode_seed
from uppertail.environments.packages import EnvironmentFailedError
from uppertail.errors import ContractError
from uppertail.training import rollouts
from uppertail.training.driver import Played
from uppertail.training.rollouts import play_episodes
from worlds import Cell

pytestmark = pytest.mark.filterwarnings("ignore")


class Bound(gymnasium.Env[Any, int]):
    """A way of a random length, which ends sooner by action 1; at most `most` are open at once."""

    observation_space: Any = spaces.Discrete(30)
    action_space: Any = spaces.Discrete(2)
    most, opened, made = 1, 0, 0

    def __init__(self, seconds: float = 0.0) -> None:
        if Bound.opened == Bound.most:
            raise OSError(98, "Address already in use")
        time.sleep(seconds)
        Bound.opened, Bound.made, self.open = Bound.opened + 1, Bound.made + 1, True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(5, 25))
        return self.left, {}

    def step(self, action: int) -> Any:
        self.left = max(0, self.left - 1 - action)
        return self.left, -1.0, self.left == 0, False, {}

    def close(self) -> None:
        Bound.opened -= self.open
        self.open = False


@contextlib.contextmanager
def at_most(count: int) -> Iterator[None]:
    Bound.most, Bound.opened, Bound.made = count, 0, 0
    try:
        yield
        assert Bound.opened == 0
    finally:
        Bound.most = 1


def play(builder: ut.FromGymnasium, episodes: int) -> Played:
    """Episodes of two seeds by action 1."""

    def act(steps: Any, observations: np.ndarray, *_: Any) -> tuple[np.ndarray, Any]:
        return np.ones(observations.shape[:2], np.int32), ()

    return play_episodes(builder, [3, 4], 1, act, lambda first: (), episodes, lambda over: None)


@pytest.mark.parametrize("most", [2, 3, 9, 40])
@pytest.mark.parametrize("episodes", [20, 33])
def test_the_same_episodes_are_played_in_as_many_copies_as_can_be_open(most: int, episodes: int) -> None:
    with at_most(most):
        played = play(ut.FromGymnasium(Bound), episodes)
        assert Bound.made == 1 + most  # one was inspected
    assert played.returns.shape == (2, episodes)
    for row, seed in enumerate((3, 4)):
        for number in range(episodes):
            episode, place = divmod(number, 20)
            way = int(np.random.default_rng(episode_seed(2**31 + seed, place, episode)).integers(5, 25))
            assert played.returns[row, number] == -((way + 1) // 2)


def test_no_more_copies_are_made_than_can_be_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder_module, "MAKING_SECONDS", 0.0)
    with at_most(40):
        slow = play(ut.FromGymnasium(functools.partial(Bound, 0.01)), 20)
        assert Bound.made == 1 + 2  # inspected, and one of each seed
        monkeypatch.undo()
        assert (play(ut.FromGymnasium(Bound), 20).returns == slow.returns).all()


@pytest.mark.slow
def test_what_can_be_open_only_once_is_trained_and_played() -> None:
    with at_most(1):
        result = ut.train(ut.FromGymnasium(Bound), settings=ut.Settings(seeds=1, steps=400))
    assert len(result.record.greedy_returns) == 1 and result.record.failed is None


@pytest.mark.parametrize("more", [{"seeds": 2}, {"seeds": 1, "num_envs": 2}, {"seeds": 1, "evaluate_every": 200}])
def test_what_asks_for_more_than_can_be_open_is_refused_before_training(more: dict[str, Any]) -> None:
    words = "cannot be made .*Address already in use.*It was made before: if only one can be open at a time, use"
    with at_most(1), pytest.raises(ut.InputError, match=words):
        ut.train(ut.FromGymnasium(Bound), settings=ut.Settings(steps=400, **more))


class Shared(Cell):
    """Copies pay into one array that they share."""

    paid = np.zeros(())

    def step(self, action: Any) -> Any:
        after, self.paid[...], *ends = super().step(action)
        return after, self.paid, *ends


def test_a_reward_in_an_array_that_copies_share_is_read_when_it_is_paid() -> None:
    copies = ut.FromGymnasium(Shared).open(0, 3)
    copies.reset()
    assert copies.step(np.array([1, 0, 1])).reward.tolist() == [1.0, 0.0, 1.0]
    copies.close()


class Others(Cell):
    """From the third on, actions are counted from 1."""

    made = 0

    def __init__(self) -> None:
        Others.made += 1
        self.action_space = spaces.Discrete(2, start=int(Others.made > 2))


def test_copies_with_other_actions_are_refused() -> None:
    """They were stepped with the numbers of the first one's."""
    with pytest.raises(ut.InputError, match=r"^Others has other actions when it is made again: give a function that "):
        ut.train(Others, seeds=4, steps=16)


def of_vector(mode: AutoresetMode, env: Any = Cell) -> ut.FromGymnasium:
    return ut.FromGymnasium(lambda: SyncVectorEnv([env, env], autoreset_mode=mode))


@pytest.mark.parametrize("more", [{"num_envs": 4}, {"vectorization": "async"}])
def test_a_vector_environment_has_its_own_number(more: dict[str, Any]) -> None:
    builder = of_vector(AutoresetMode.NEXT_STEP)
    if "vectorization" in more:
        builder = builder.with_settings(**more)
    with pytest.raises(ut.InputError, match="is used as it is, here 2 for each seed: leave num_envs and vectorization"):
        builder.open(0, more.get("num_envs", 1))


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP])
def test_episodes_of_a_vector_environment_that_never_end_are_cut(
    mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(Cell):
        def step(self, action: Any) -> Any:
            return *super().step(action)[:2], False, False, {}

    monkeypatch.setattr(rollouts, "EVALUATION_STEPS", 30)
    played = play(of_vector(mode, Endless), 3)
    assert played.lengths.tolist() == played.returns.tolist() == [[30] * 3] * 2


def test_an_end_without_its_last_observation_is_named() -> None:
    class Bare(SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            return *super().step(actions)[:4], {}

    host = ut.FromGymnasium(lambda: Bare([Cell, Cell], autoreset_mode=AutoresetMode.SAME_STEP)).open(0, 1)
    host.reset()
    for _ in range(7):
        host.step(np.ones(2, np.int64))
    with pytest.raises(ContractError, match=r"^its info has no final_obs where an episode ended, as AutoresetMode"):
        host.step(np.ones(2, np.int64))
    host.close()


class Misshapen(SyncVectorEnv):
    """A vector environment that keeps to its contract but for one thing."""

    def __init__(self, wrong: str) -> None:
        super().__init__([Cell, Cell], autoreset_mode=AutoresetMode.NEXT_STEP)
        self.wrong = wrong
        if wrong == "mode":
            self.metadata = {**self.metadata, "autoreset_mode": "next_step"}

    def reset(self, **asked: Any) -> Any:
        first, info = super().reset(**asked)
        return first if self.wrong == "info" else (first, info)

    def step(self, actions: Any) -> Any:
        after, reward, terminated, truncated, info = super().step(actions)
        if self.wrong == "ends":
            terminated = terminated[:, None]
        return after[:1] if self.wrong == "rows" else after, reward, terminated, truncated, info


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            "mode",
            r"^autoreset_mode in the metadata of this vector environment is 'next_step': use one of the members of",
        ),
        ("info", "its reset returns no pair of an observation and an info: return both"),
        ("ends", r"terminated has the shape \(2, 1\): give one truth value for each of the 2 environments"),
        ("rows", "it has 2 environments, but gives 1 observations: give one each"),
    ],
)
def test_a_vector_environment_against_its_contract_is_a_sentence(wrong: str, said: str) -> None:
    """Each was a traceback of NumPy's, or of an observation's shape."""
    with pytest.raises(ValueError, match=said):
        ut.train(lambda: Misshapen(wrong), seeds=1, steps=16)


def test_a_wrapper_that_scales_by_what_a_copy_saw_is_told_of() -> None:
    builder = ut.FromGymnasium(Cell, wrappers=[NormalizeObservation, NormalizeReward], id="Cell")
    for name in ("NormalizeObservation", "NormalizeReward"):
        said = f"{name} scales by what each copy of Cell saw itself, so an evaluation has other numbers"
        assert said in (builder.note or "")
    assert ut.FromGymnasium(Cell, id="Cell").note is None


@pytest.mark.parametrize(
    "error", [EOFError(), ConnectionResetError(104, "Connection reset by peer"), BrokenPipeError()]
)
def test_a_process_that_dies_as_it_begins_is_named(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a sentence about standard output, or nothing."""

    def die(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("gymnasium.vector.AsyncVectorEnv.__init__", die)
    builder = ut.Gym("CartPole-v1", vectorization="async")
    words = "CartPole-v1, begun in processes of its own, .*: the process of one of its environments has ended"
    with pytest.raises(EnvironmentFailedError, match=words):
        builder.open(0, 2)
