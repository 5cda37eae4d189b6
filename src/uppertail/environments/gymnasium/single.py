"""One Gymnasium environment, stepped in Python."""

import contextlib
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Int

from uppertail.environments.gymnasium.answers import checked_reset, checked_step
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
