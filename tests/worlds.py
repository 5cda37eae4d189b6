"""Environments and transitions that several tests need."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np

from uppertail.environments import EnvironmentBuilder, FiniteMDP, measured_range, random_steps
from uppertail.types import POLICY_CHOICE, ReturnRange, Transition


def table(
    next_state: Any, reward: Any, terminated: Any = False, probability: Any = 1.0, time_limit: int = 10, **more: Any
) -> FiniteMDP:
    """A table from arrays or lists of [states, actions] or [states, actions, outcomes]; it starts in state 0."""
    reward = np.asarray(reward, np.float32)
    shape = reward.shape if reward.ndim == 3 else (*reward.shape, 1)

    def filled(values: Any, kind: Any) -> Any:
        values = np.asarray(values)
        return jnp.asarray(np.broadcast_to(values[..., None] if values.ndim == 2 else values, shape).astype(kind))

    arrays = filled(next_state, np.int32), filled(reward, np.float32), filled(terminated, bool)
    return FiniteMDP(*arrays, filled(probability, np.float32), time_limit, **more)


def measure_returns(builder: EnvironmentBuilder, discount: float) -> ReturnRange:
    """The range of returns that a random policy shows."""
    return measured_range(builder, random_steps(builder), discount)


class Cell(gymnasium.Env):
    """Two actions in one place: action 1 pays 1, and eight steps end an episode."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(1, np.float32), float(action), self.steps == 8, False, {}


class Pictured(gymnasium.Env[Any, Any]):
    """A room as a picture: the walker is red, the goal in the far corner green and pays 1; a blue pixel may flicker."""

    def __init__(self, size: int = 8, flicker: bool = False) -> None:
        self.size, self.flicker = size, flicker
        self.observation_space = gymnasium.spaces.Box(0, 255, (4 * size, 4 * size, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(4)

    def picture(self) -> np.ndarray:
        picture = np.zeros((self.size, self.size, 3), np.uint8)
        picture[*self.cell, 0] = picture[-1, -1, 1] = 255
        if self.flicker:
            picture[0, 0, 2] = self.np_random.integers(256)
        return picture.repeat(4, axis=0).repeat(4, axis=1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = (0, 0)
        return self.picture(), {}

    def step(self, action: Any) -> Any:
        moves = ((-1, 0), (1, 0), (0, -1), (0, 1))[action]
        self.cell = tuple(min(max(at + by, 0), self.size - 1) for at, by in zip(self.cell, moves, strict=True))
        done = self.cell == (self.size - 1, self.size - 1)
        return self.picture(), float(done), done, False, {}


class Corridor(gymnasium.Env[Any, Any]):
    """A corridor: the first observation says which of the actions 2 and 3 pays 1 at its end; 0 and 1 walk."""

    observation_space: Any = gymnasium.spaces.Dict(
        {"place": gymnasium.spaces.Discrete(4), "cue": gymnasium.spaces.Discrete(3)}
    )
    action_space: Any = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.paid = 0, int(self.np_random.integers(2, 4))
        return {"place": 0, "cue": self.paid - 1}, {}

    def step(self, action: Any) -> Any:
        done = self.place == 3 and action > 1
        self.place = self.place if action > 1 else min(max(self.place + 2 * int(action) - 1, 0), 3)
        return {"place": self.place, "cue": 0}, float(done and action == self.paid), bool(done), False, {}


def transitions(states: Any, actions: list[int], nexts: Any) -> Transition:
    """Transitions without reward, of which none terminates."""
    count = len(actions)
    no, nothing = jnp.zeros(count, bool), jnp.zeros(count)
    following = jnp.full(count, POLICY_CHOICE)
    return Transition(jnp.asarray(states), jnp.asarray(actions), nothing, no, jnp.asarray(nexts), following)


def recorded(data: dict[str, np.ndarray], **more: Any) -> Transition:
    """Transitions from arrays by name, whose next actions are the policy's."""
    return Transition(
        jnp.asarray(data["state"], jnp.int32),
        jnp.asarray(data["action"], jnp.int32),
        jnp.asarray(data["reward"], jnp.float32),
        jnp.asarray(data["terminated"]),
        jnp.asarray(data["next"], jnp.int32),
        jnp.full(len(data["state"]), POLICY_CHOICE, jnp.int32),
        **more,
    )
