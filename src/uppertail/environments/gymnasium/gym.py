"""Any registered Gymnasium environment by its id, and FrozenLake as the paper uses it."""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Literal

import gymnasium
from jaxtyping import PRNGKeyArray

from uppertail.environments.base import StateBuilder, WatchedEnvironment
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.dm_control import PREFIX, make_control
from uppertail.environments.gymnasium.watched import Watched
from uppertail.environments.gymnasium.wrapping import Made, extra, missing
from uppertail.errors import InputError, message_of, nearest
from uppertail.parts import PARTS

NO_ENV = "must inherit from the gymnasium.Env class"  # what Gymnasium says of a vector environment of an id, too
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "FrozenLake": {"actions": ("left", "down", "right", "up")},
    "CliffWalking": {"actions": ("up", "right", "down", "left")},
    "Blackjack": {"actions": ("stick", "hit")},
    "Taxi": {"actions": ("south", "north", "east", "west", "pick up", "drop off")},
    "CartPole": {"actions": ("left", "right"), "numbers": ("position", "velocity", "angle", "angular velocity")},
    "MountainCar": {"actions": ("left", "none", "right"), "numbers": ("position", "velocity")},
    "Acrobot": {
        "actions": ("-1", "0", "+1"),
        "numbers": ("cos angle 1", "sin angle 1", "cos angle 2", "sin angle 2", "velocity 1", "velocity 2"),
    },
}
"""What actions, states and numbers of Gymnasium's own environments mean, as its documentation says."""


def newest_ids() -> dict[str, str]:
    """The newest id of each environment that is registered in Gymnasium, by its name without a version."""
    specs = gymnasium.registry.values()
    versions = sorted((each.version, each.id) for each in specs if each.version is not None)
    return {name.removesuffix(f"-v{version}"): name for version, name in versions}


@dataclasses.dataclass(frozen=True)
class Gym(GymnasiumBuilder):
    """Any registered Gymnasium environment, or a task of dm_control; `module:Name-v0` imports the module first.

    Args:
        id: the environment's id, for example CartPole-v1 or dm_control/pendulum-swingup-v0.
        kwargs: arguments of its constructor, for example '{map_name: 8x8, is_slippery: false}'.
        max_episode_steps: steps after which an episode is truncated; null: as registered.

    Examples:
        >>> lake = ut.Gym("FrozenLake-v1", kwargs={"is_slippery": False})
        >>> lake.num_actions, lake.compiles
        (4, True)
    """

    id: str
    kwargs: dict[str, Any] | None = None
    max_episode_steps: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_episode_steps is not None and self.max_episode_steps < 1:
            raise InputError(f"max_episode_steps is {self.max_episode_steps}, but an episode needs at least 1 step.")

    @property
    def known_names(self) -> dict[str, tuple[str, ...]]:
        known = {} if self.wrappers else NAMES.get(self.id.rpartition("/")[2].partition("-v")[0], {})
        return known or super().known_names

    def bare_maker(self) -> Callable[[], Made]:
        return functools.partial(_made, self.id, self.kwargs or {}, self.max_episode_steps)

    def explain(self, error: BaseException) -> str | None:
        match error:
            case gymnasium.error.DependencyNotInstalled():
                return f"{self.id} needs packages that are not installed: {extra(error)}."
            case gymnasium.error.Error() if self.id.rpartition(":")[2] not in gymnasium.registry:
                return f"There is no environment {self.id!r} in Gymnasium here.{_remedy(self.id)}"
            case ModuleNotFoundError():  # Gymnasium raises its own, without the name
                return f"{self.id} needs {missing(error.name or self.id.partition(':')[0])}."
            case TypeError() if NO_ENV in str(error):
                return (
                    f"{self.id} makes no gymnasium.Env ({message_of(error).partition('. See')[0]}): register one, or "
                    "give ut.train a function that makes a vector environment."
                )
            case TypeError():
                refused = f"{self.id} refuses its kwargs {self.kwargs or {}} ({message_of(error)})"
                return f"{refused}: give those of its constructor."
        return None

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> Watched:
        def make(mode: str | None) -> Made:
            shown = {} if mode is None else {"render_mode": mode}
            return dataclasses.replace(self, kwargs={**(self.kwargs or {}), **shown}).make()

        return Watched(self, make, pictures, frames_per_second)


def _made(asked: str, kwargs: dict[str, Any], limit: int | None) -> Made:
    """The environment of an id; InputError for a text where its constructor has a number, or true or false."""
    if asked.startswith(PREFIX) and asked not in gymnasium.registry:
        return make_control(asked, kwargs, limit)
    made = gymnasium.make(asked, **{**kwargs, **({} if limit is None else {"max_episode_steps": limit})})
    wanted = {bool: "true or false", int: "a number", float: "a number"}
    for name, parameter in inspect.signature(type(made.unwrapped).__init__).parameters.items():
        kind = type(parameter.default)
        if isinstance(kwargs.get(name), str) and kind in wanted:
            raise InputError(f"kwargs says {name}: {kwargs[name]!r}, a text, but {asked} takes {wanted[kind]} there.")
    return made


def _remedy(asked: str) -> str:
    """A hint at registered ids like this one, or at how one is registered."""
    module, colon, name = asked.rpartition(":")
    known = [key for key in gymnasium.registry if not key.startswith(("phys2d/", "tabular/"))]
    same = [key for key in known if key.lower() == name.lower()]
    if close := nearest(name, same or known, prefix=module + colon):
        return close
    if module:
        plain = re.sub(r"-v\d+$", "", name)
        full = name if name != plain else f"{plain}-v0"
        return f" Register it where it is defined: gymnasium.register('{full}', entry_point='{module}:{plain}')."
    if hint := nearest(name, PARTS["env"].kinds, 1):
        return hint
    if "/" in name:
        return f" If a package registers it, name its module first, as in MODULE:{name}."
    return " `python -c 'import gymnasium; gymnasium.pprint_registry()'` lists them."


@dataclasses.dataclass(frozen=True)
class FrozenLake(StateBuilder):
    """Gymnasium's FrozenLake, from its own transition table.

    Args:
        map_name: one of Gymnasium's maps.
        is_slippery: whether a step may slip sideways; the paper's environment does not.
        time_limit: steps after which an episode is truncated, at least 1.

    Examples:
        >>> ut.FrozenLake(map_name="4x4").build(jax.random.key(0)).num_states
        16
    """

    map_name: Literal["4x4", "8x8"] = "8x8"
    is_slippery: bool = False
    time_limit: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.time_limit < 1:
            raise InputError(f"time_limit is {self.time_limit}, but an episode needs at least 1 step.")

    @property
    def success_return(self) -> float:
        return 1.0

    @property
    def rows(self) -> int:
        return self._gym.rows

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        return self._gym.names

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        return self._gym.build(key)

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> WatchedEnvironment:
        return self._gym.watched(pictures, frames_per_second)

    @functools.cached_property
    def _gym(self) -> Gym:
        """Gymnasium's environment with these settings."""
        settings = {"map_name": self.map_name, "is_slippery": self.is_slippery}
        return Gym("FrozenLake-v1", kwargs=settings, max_episode_steps=self.time_limit)
