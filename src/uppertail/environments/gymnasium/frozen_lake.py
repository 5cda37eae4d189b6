"""Gymnasium's FrozenLake, as the paper uses it."""

import dataclasses
from typing import Literal

from jaxtyping import PRNGKeyArray

from uppertail.environments.base import WatchedEnvironment
from uppertail.environments.builders import StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.gym import Gym
from uppertail.environments.gymnasium.tables import from_table
from uppertail.errors import InputError


@dataclasses.dataclass(frozen=True)
class FrozenLake(StateBuilder):
    """Gymnasium's FrozenLake, from its own transition table.

    Args:
        map_name: one of Gymnasium's maps.
        desc: a map of your own instead: rows of equal length made of S (start), F (frozen), H (hole) and G (goal).
        is_slippery: whether a step may slip sideways; the paper's environment does not.
        time_limit: steps after which an episode is truncated, at least 1.

    Examples:
        >>> import jax
        >>> import uppertail as ut
        >>> ut.FrozenLake(map_name="4x4").build(jax.random.key(0)).num_states
        16
    """

    map_name: Literal["4x4", "8x8"] = "8x8"
    desc: tuple[str, ...] | None = None
    is_slippery: bool = False
    time_limit: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
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
    def rows(self) -> int:
        return int(self.map_name.partition("x")[0]) if self.desc is None else len(self.desc)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        return self._gym.names

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        del key  # nothing is drawn at random
        return from_table(self._gym.make().unwrapped, self.time_limit)

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> WatchedEnvironment:
        return self._gym.watched(pictures, frames_per_second)

    @property
    def _gym(self) -> Gym:
        """Gymnasium's environment with these settings."""
        desc = None if self.desc is None else list(self.desc)
        settings = {"map_name": self.map_name, "desc": desc, "is_slippery": self.is_slippery}
        return Gym("FrozenLake-v1", kwargs=settings, max_episode_steps=self.time_limit)
