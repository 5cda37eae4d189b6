"""MiniGrid's environments as experiments/tasks/minigrid_runs.py and its peers see them, and the best return in each."""

import copy
import hashlib
from collections import deque
from typing import Any, NamedTuple

import gymnasium
import minigrid  # registers its environments
import numpy as np
from gymnasium import spaces
from minigrid.wrappers import FullyObsWrapper

IDS = ("Empty-8x8", "DoorKey-5x5", "DoorKey-6x6", "FourRooms", "MultiRoom-N2-S4", "KeyCorridorS3R1")
PREFIX, VERSION = "minigrid:MiniGrid-", minigrid.__version__
PLACES = 2048
"""States that peers are told apart; the largest of these grids, DoorKey-6x6, has 1,272."""


class Best(NamedTuple):
    """The best return from the start, the steps that it takes, and those after which an episode is truncated."""

    ret: float
    steps: int
    limit: int


def made(name: str, seed: int) -> gymnasium.Env[Any, Any]:
    """The environment whose every episode has the layout of this seed, with the whole grid in view."""
    return Layout(FullyObsWrapper(gymnasium.make(f"{PREFIX}{name}-v0")), seed)


class Layout(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Every episode is reset with the same seed."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int) -> None:
        super().__init__(env)
        self.seed = seed

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        del seed
        return self.env.reset(seed=self.seed, options=options)


class Numbered(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows peers the number of the observation, in the order in which they were first seen: a one-hot.

    Args:
        env: the environment.
        numbers: the numbers so far, which environments of training and of evaluation share.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], numbers: dict[bytes, int] | None = None) -> None:
        super().__init__(env)
        self.observation_space, self.numbers = spaces.Discrete(PLACES), {} if numbers is None else numbers

    def observation(self, observation: Any) -> int:
        return self.numbers.setdefault(_told(observation), len(self.numbers) % PLACES)


def best(name: str, seed: int, most: int = 200_000) -> Best:
    """By breadth first, over copies of the environment: independent of everything that learns.

    Args:
        name: the environment.
        seed: its layout.
        most: how many states are looked at before it gives up.

    Raises:
        RuntimeError: there is no way to a reward in these.
    """
    env = made(name, seed).env
    first, _ = env.reset(seed=seed)
    queue: deque[tuple[Any, int]] = deque([(env.unwrapped, 0)])
    seen = {_state(env.unwrapped)}
    while queue and len(seen) < most:
        state, depth = queue.popleft()
        for action in range(6):  # the seventh does nothing
            after = copy.deepcopy(state)
            _, reward, terminated, _, _ = after.step(action)
            if terminated and reward > 0:
                return Best(float(reward), depth + 1, int(after.max_steps))
            if not terminated and (key := _state(after)) not in seen:
                seen.add(key)
                queue.append((after, depth + 1))
    raise RuntimeError(f"{name}, layout {seed}: no reward among {len(seen)} states from {first}")


def _told(observation: Any) -> bytes:
    return hashlib.blake2b(np.asarray(observation["image"]).tobytes() + bytes([observation["direction"]])).digest()


def _state(env: Any) -> tuple[Any, ...]:
    carried = None if env.carrying is None else env.carrying.encode()
    return env.grid.encode().tobytes(), tuple(map(int, env.agent_pos)), int(env.agent_dir), carried
