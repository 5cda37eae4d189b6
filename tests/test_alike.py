"""An environment is asked and read in one way: alone or beside others, in training, evaluation and watching."""

import os
import signal
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from uppertail.environments import EnvironmentFailedError, FromGymnasium
from uppertail.environments.gymnasium.adapter import _end_later, adapt_apart
from uppertail.training import rollouts

SIZES = {"vector": (3,), "image": (10, 10)}


class Reusing(gymnasium.Env[Any, Any]):
    """Writes its number of steps into one and the same array; ends after four of them."""

    action_space = spaces.Discrete(2, start=1)

    def __init__(self, kind: str = "vector", truncates: bool = False) -> None:
        self.observation_space = spaces.Box(0, 9, SIZES[kind], np.float32)
        self.array, self.truncates, self.actions = np.zeros(SIZES[kind], np.float32), truncates, []

    def reset(self, **kwargs: Any) -> Any:
        super().reset(seed=kwargs.get("seed"))
        self.array[...] = 0
        return self.array, {}

    def step(self, action: Any) -> Any:
        self.actions.append(action)
        self.array += 1
        ended = bool(self.array.flat[0] == 4)
        return self.array, 0.0, ended and not self.truncates, ended and self.truncates, {}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("num_envs", [1, 2])
def test_an_observation_stays_what_it_was(kind: str, truncates: bool, num_envs: int) -> None:
    host = FromGymnasium(lambda: Reusing(kind, truncates)).open(0, num_envs)
    seen = [host.reset()]
    steps = [host.step(np.zeros(num_envs, np.int32)) for _ in range(5)]
    seen += [step.observation for step in steps]
    assert [each.mean() for each in seen] == [0, 1, 2, 3, 0, 1]
    assert [step.next_observation.mean() for step in steps] == [1, 2, 3, 4, 1]
    host.close()


class Careless(Reusing):
    """Gives lists, an axis too many, numbers of 64 bits, ends that are arrays; takes only actions of type int."""

    def reset(self, **kwargs: Any) -> Any:
        return self.array.tolist(), super().reset(**kwargs)[1]

    def step(self, action: Any) -> Any:
        assert type(action) is int
        after, reward, terminated, truncated, info = super().step(action)
        return after[None].astype(np.float64), reward, np.array([terminated]), truncated, info


def test_what_a_single_environment_may_do_it_may_do_beside_others() -> None:
    builder = FromGymnasium(Careless)
    alone, beside = builder.open(0, 1), builder.open(0, 3)
    np.testing.assert_array_equal(beside.reset()[1], alone.reset()[0])
    for _ in range(5):
        one, three = alone.step(np.ones(1, np.int32)), beside.step(np.ones(3, np.int32))
        for name, each in one._asdict().items():
            if each is None:  # no mask of actions
                assert getattr(three, name) is None, name
                continue
            np.testing.assert_array_equal(getattr(three, name)[1], each[0], err_msg=name)
            assert getattr(three, name).dtype == each.dtype
    rollouts.require_alike(0, rollouts.rehearse(builder, 0, 1), alone.reset())


def test_a_vector_environment_gets_actions_of_one_type() -> None:
    class Seen(gymnasium.vector.SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            types.append(actions.dtype)
            return super().step(actions)

    types: list[Any] = []
    host = FromGymnasium(lambda: Seen([Reusing] * 2)).open(0, 2)
    host.reset()
    for kind in (np.int32, np.int64):
        host.step(np.zeros(2, kind))
    assert types == [np.dtype(np.int64)] * 2


def test_other_observations_in_evaluation_are_known_before_training() -> None:
    builder = FromGymnasium(Reusing)
    with pytest.raises(EnvironmentFailedError, match=r"seed 7, at the first reset of its .* float32\[3\], in .*\[5\]"):
        rollouts.require_alike(7, rollouts.rehearse(builder, 7, 1), np.zeros((1, 5), np.float32))

    class Later(Reusing):
        def __init__(self) -> None:
            super().__init__("vector" if len(made) < 2 else "image")
            made.append(self)

    made: list[Any] = []
    with pytest.raises(EnvironmentFailedError, match="its space says"):
        rollouts.rehearse(FromGymnasium(Later), 0, 1)


def test_a_process_of_its_own_leaves_ctrl_c_to_its_parent() -> None:
    seen = FromGymnasium(Reusing).inspected
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [*map(signal.getsignal, numbers[:2]), signal.signal(signal.SIGHUP, signal.SIG_DFL)]  # nohup ignores it
    try:
        adapt_apart(os.getpid(), Reusing, seen.interface.reading, seen.observed.example)
        assert [*map(signal.getsignal, numbers)] == [*before[:2], signal.SIG_DFL]
        adapt_apart(0, Reusing, seen.interface.reading, seen.observed.example)
        assert [signal.getsignal(number) for number in numbers] == [signal.SIG_IGN, _end_later, _end_later]
        for number in numbers[1:]:
            signal.raise_signal(number)
            assert 0 < signal.alarm(0) <= 60
    finally:
        signal.alarm(0)
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
