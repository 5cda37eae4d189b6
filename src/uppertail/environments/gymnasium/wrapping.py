"""What is wrapped around a Gymnasium environment."""

from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TimeLimit


def wrappers_of(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """The wrappers around an environment, the outermost first."""
    while env is not env.unwrapped:
        yield env
        env = env.env  # pyright: ignore[reportAttributeAccessIssue]


def time_limit(env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> int | None:
    """Steps after which its wrappers truncate an episode; None where there is no such limit."""
    if isinstance(env, VectorEnv):
        return None if env.spec is None else env.spec.max_episode_steps
    limits = [wrapper._max_episode_steps for wrapper in wrappers_of(env) if isinstance(wrapper, TimeLimit)]
    return min(limits, default=None)
