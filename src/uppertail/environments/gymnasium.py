"""Environments from Gymnasium. The only file that imports it."""

import dataclasses
from typing import Any, Literal

import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from uppertail.encodings import STATE_ENCODINGS, Encoding, StateEncoding
from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError


@dataclasses.dataclass(frozen=True)
class FrozenLake(EnvironmentBuilder):
    """Gymnasium's FrozenLake, from its own transition table.

    Args:
        map_name: one of Gymnasium's maps.
        desc: a map of your own instead: rows of equal length made of S (start), F (frozen), H (hole) and G (goal).
        is_slippery: whether a step may slip sideways; the paper's environment does not.
        encoding: how a state enters the network.
        time_limit: steps after which an episode is truncated, at least 1.
    """

    map_name: Literal["4x4", "8x8"] = "8x8"
    desc: tuple[str, ...] | None = None
    is_slippery: bool = False
    encoding: StateEncoding = "one_hot"
    time_limit: int = 200

    def __post_init__(self) -> None:
        if self.time_limit < 1:
            raise InputError(f"time_limit is {self.time_limit}, but an episode needs at least 1 step.")
        if self.desc is not None:
            letters = "".join(self.desc)
            equal_rows = len({len(row) for row in self.desc}) == 1
            if not equal_rows or not letters or set(letters) - set("SFHG") or not {"S", "G"} <= set(letters):
                raise InputError(
                    f"desc is {list(self.desc)}, but a map needs rows of equal length made of S, F, H and G, "
                    "with at least one S and one G."
                )

    @property
    def success_return(self) -> float:
        return 1.0

    @property
    def floor_episodes(self) -> None:
        return None

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        del key  # nothing is drawn at random
        desc = None if self.desc is None else list(self.desc)
        lake = gymnasium.make(
            "FrozenLake-v1", map_name=self.map_name, desc=desc, is_slippery=self.is_slippery
        ).unwrapped
        states = STATE_ENCODINGS[self.encoding](len(lake.P))  # pyright: ignore[reportAttributeAccessIssue]
        return from_table(lake.P, lake.initial_state_distrib, self.time_limit, states)  # pyright: ignore[reportAttributeAccessIssue]


def from_table(table: dict[int, dict[int, list[Any]]], start: Any, time_limit: int, encoding: Encoding) -> FiniteMDP:
    """A FiniteMDP from a Gymnasium table `P[state][action] = [(probability, next_state, reward, terminated), ...]`.

    Args:
        table: the environment's `unwrapped.P`.
        start: probability that an episode starts in each state.
        time_limit: steps after which an episode is truncated.
        encoding: how a state enters the network.
    """
    num_states, num_actions = len(table), len(table[0])
    outcomes = max(len(table[s][a]) for s in range(num_states) for a in range(num_actions))
    entries = np.zeros((num_states, num_actions, outcomes, 4))
    for s in range(num_states):
        for a in range(num_actions):
            for outcome, entry in enumerate(table[s][a]):
                entries[s, a, outcome] = entry
    probability, next_state, reward, terminated = np.moveaxis(entries, -1, 0)
    return FiniteMDP(
        next_state=jnp.asarray(next_state, jnp.int32),
        reward=jnp.asarray(reward, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        probability=jnp.asarray(probability, jnp.float32),
        start_state=jnp.asarray(np.flatnonzero(start), jnp.int32),
        start_probability=jnp.asarray(np.asarray(start)[np.flatnonzero(start)], jnp.float32),
        time_limit=time_limit,
        encoding=encoding,
    )
