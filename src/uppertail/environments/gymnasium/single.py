"""One Gymnasium environment, stepped in Python."""

import contextlib
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Int

from uppertail.environments.gymnasium.spaces import Reading
from uppertail.environments.host import HostEnvironment, HostStep

EPISODE, ACTIONS = "episode", "actions"


def episode_seed(seed: int, environment: int, episode: int, fixed: int | None = None) -> int:
    """The seed that an episode is reset with, so that it can begin again without the episodes before it.

    Args:
        seed: the seed of the run.
        environment: which of its environments, counted from 0.
        episode: which of that one's episodes, counted from 0.
        fixed: the seed of every episode instead.
    """
    if fixed is not None:
        return fixed
    return int(np.random.SeedSequence((seed, environment, episode)).generate_state(1)[0])


def close_quietly(env: Any) -> None:
    """Closes an environment, and ignores any error: nothing is lost by one."""
    with contextlib.suppress(Exception, SystemExit, GeneratorExit):
        env.close()


def checked_reset(given: Any) -> tuple[Any, dict[str, Any]]:
    """What an environment's reset gives: the first observation and the info.

    Raises:
        ValueError: it gives something else.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError("its reset gives no pair of an observation and an info, as Gymnasium's does")
    first, info = given
    return first, info


def checked_step(given: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """What an environment's step gives; an array of one truth value, as some give, is that value.

    Raises:
        ValueError: it gives something else, or the reward is no number.
    """
    if not isinstance(given, tuple | list) or len(given) != 5:
        count = f"{len(given)} values" if isinstance(given, tuple | list) else "one value"
        raise ValueError(f"its step gives {count}; Gymnasium's gives observation, reward, terminated, truncated, info")
    after, reward, terminated, truncated, info = given
    if reward is None or np.ndim(reward):
        raise ValueError(f"the reward {reward} is {'no' if reward is None else 'an array, not a'} number")
    return after, reward, bool(terminated), bool(truncated), info


class Single(HostEnvironment):
    """One environment.

    To go back to an episode, its seed and its actions are played again: an environment that keeps to Gymnasium's
    contract then gives the same observations.

    Args:
        env: the environment.
        reading: how its observations are read.
        first_action: the number of its first action.
        seed: the seed of the run.
        reset_seed: what every episode is reset with; None: each with a seed of its own.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        reading: Reading,
        first_action: int,
        seed: int,
        reset_seed: int | None = None,
    ) -> None:
        self.env, self.array, self.first_action = env, reading.array, first_action
        self.seed, self.reset_seed = seed, reset_seed
        self.episode = 0
        self.actions: list[int] = []

    @property
    def num_envs(self) -> int:
        return 1

    def reset(self) -> np.ndarray:
        self.episode = 0
        return self._begin()

    def begin_another(self, episodes: int) -> np.ndarray:
        self.episode = max(self.episode, episodes) + 1
        return self._begin()

    def step(self, actions: Int[np.ndarray, " envs"]) -> HostStep:
        self.actions.append(int(actions[0]))
        given = self.env.step(self.actions[-1] + self.first_action)
        after, reward, terminated, truncated, _ = checked_step(given)
        next_observation = observation = self.array(after)[None]
        if terminated or truncated:
            self.episode += 1
            observation = self._begin()
        return HostStep(
            next_observation,
            np.array([reward], np.float32),
            np.array([terminated], bool),
            np.array([truncated and not terminated], bool),
            observation,
            np.ones(1, bool),
        )

    def saved(self) -> dict[str, np.ndarray]:
        return {EPISODE: np.array([self.episode]), ACTIONS: np.array(self.actions, np.int64)[None]}

    def restore(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        self.episode = int(arrays[EPISODE][0])
        observation = self._begin()
        for action in arrays[ACTIONS][0].tolist():
            self.actions.append(action)
            after, _, terminated, truncated, _ = checked_step(self.env.step(action + self.first_action))
            if terminated or truncated:  # it did not end at first: the environment behaves differently now
                return self._begin()
            observation = self.array(after)[None]
        return observation

    def close(self) -> None:
        close_quietly(self.env)

    def _begin(self) -> np.ndarray:
        """The first observation of the next episode."""
        self.actions = []
        first, _ = checked_reset(self.env.reset(seed=episode_seed(self.seed, 0, self.episode, self.reset_seed)))
        return self.array(first)[None]
