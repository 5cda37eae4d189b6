"""Adapts an environment: observations become arrays, return values are checked, actions are Python integers."""

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import TimeLimit

from uppertail.environments.spaces import Reading

LAST_SECONDS = 60  # for which an environment's process outlives SIGTERM, so that its parent can save what was learned


class Adapter(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that is called in the same way alone, beside others and when it is watched.

    Without it, Gymnasium's vector environments convert observations to the declared shape and type, and pass actions as
    numbers of NumPy's types: an environment that works alone might fail, or behave differently, beside others.
    `example` is an observation that was read.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], reading: Reading, example: np.ndarray) -> None:
        super().__init__(env)
        kind = example.dtype
        bounds = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
        self.array, self.observation_space = reading.array, spaces.Box(*bounds, example.shape, kind.type)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        first, info = checked_reset(self.env.reset(seed=seed, **({"options": options} if options else {})))
        return self.array(first), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        after, reward, terminated, truncated, info = checked_step(self.env.step(int(action)))
        return self.array(after), reward, terminated, truncated, info


class AdapterMaker:
    """Makes adapted environments, truncated after `limit` steps; it is pickled for those with processes of their own.

    Such a process leaves Ctrl-C to its parent. After SIGTERM, which may be sent to all processes at once, it lives on
    for as long as the parent may need to save what was learned.
    """

    def __init__(self, make: Callable[[], Any], limit: int | None, reading: Reading, example: np.ndarray) -> None:
        self.make, self.limit, self.reading, self.example = make, limit, reading, example
        self.parent = os.getpid()

    def __call__(self) -> Adapter:
        if os.getpid() != self.parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, _end_later)
        made = self.make()
        return Adapter(made if self.limit is None else TimeLimit(made, self.limit), self.reading, self.example)


def _end_later(number: int, frame: Any) -> None:
    if os.name == "posix":
        signal.alarm(LAST_SECONDS)
    else:
        signal.signal(number, signal.SIG_DFL)


class VectorOfOne(VectorEnv[Any, Any, Any]):
    """An adapted environment as a vector of one, without the copies that Gymnasium's vectors make at each step."""

    num_envs = 1

    def __init__(self, env: Adapter) -> None:
        self.envs, self.metadata = [env], {"autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        first, info = self.envs[0].reset(seed=seed[0])
        return first[None], info

    def step(self, actions: Any) -> Any:
        after, reward, terminated, truncated, info = self.envs[0].step(actions[0])
        return after[None], np.array([reward]), np.array([terminated]), np.array([truncated]), info

    def close_extras(self, **kwargs: Any) -> None:
        close_quietly(self.envs[0])


def close_quietly(env: Any) -> None:
    """Closes an environment, and ignores any error: nothing is lost by one."""
    with contextlib.suppress(Exception, SystemExit, GeneratorExit):
        env.close()


def checked_reset(returned: Any) -> tuple[Any, dict[str, Any]]:
    """The first observation and the info that a reset returns; ValueError if it returns something else."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise ValueError("its reset does not return an observation and an info, as Gymnasium's does")
    first, info = returned
    return first, info


def checked_step(returned: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """The five values that a step returns; ValueError if it returns something else, or the reward is no number.

    An end may be an array of one truth value, as some environments have it.
    """
    if not isinstance(returned, tuple | list) or len(returned) != 5:
        count = f"{len(returned)} values" if isinstance(returned, tuple | list) else "one value"
        raise ValueError(f"its step gives {count}; Gymnasium's gives observation, reward, terminated, truncated, info")
    after, reward, terminated, truncated, info = returned
    if reward is None or np.ndim(reward):
        raise ValueError(f"the reward {reward} is {'no' if reward is None else 'an array, not a'} number")
    return after, reward, bool(terminated), bool(truncated), info
