"""Any registered Gymnasium environment, by its id."""

import dataclasses
import difflib
import functools
import re
from collections.abc import Callable
from typing import Any

import gymnasium

from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.watched import Watched
from uppertail.environments.gymnasium.wrapping import Made, extra, missing
from uppertail.environments.watched import WatchableBuilder
from uppertail.errors import InputError, message_of


@dataclasses.dataclass(frozen=True)
class Gym(GymnasiumBuilder, WatchableBuilder):
    """Any registered Gymnasium environment with discrete actions; `module:Name-v0` imports the module first.

    Args:
        id: the environment's id, for example CartPole-v1.
        kwargs: what its constructor is given, for example '{map_name: 8x8, is_slippery: false}'; a value of the form
            '{class_path: NAME, init_args: {...}}' becomes an object of that class.
        max_episode_steps: steps after which an episode is truncated; null: as registered.

    Examples:
        >>> import uppertail as ut
        >>> lake = ut.Gym("FrozenLake-v1", kwargs={"is_slippery": False})
        >>> lake.num_actions, lake.compiles
        (4, True)
    """

    id: str
    kwargs: dict[str, Any] | None = None
    max_episode_steps: int | None = None

    def complete(self) -> None:
        if self.max_episode_steps is not None and self.max_episode_steps < 1:
            raise InputError(f"max_episode_steps is {self.max_episode_steps}, but an episode needs at least 1 step.")
        if self.max_episode_steps is not None and "max_episode_steps" in (self.kwargs or {}):
            raise InputError("max_episode_steps is given twice, once in kwargs: leave one of them out.")

    @property
    def label(self) -> str:
        return self.id

    def bare_maker(self) -> Callable[[], Made]:
        kwargs = dict(self.kwargs or {})
        if self.max_episode_steps is not None:
            kwargs["max_episode_steps"] = self.max_episode_steps
        return functools.partial(gymnasium.make, self.id, **kwargs)

    def explain(self, error: BaseException) -> str | None:
        match error:
            case gymnasium.error.DependencyNotInstalled():
                return f"{self.id} needs packages that are not installed: {extra(error)}."
            case gymnasium.error.Error():
                return f"There is no environment {self.id!r} in Gymnasium here.{_nearest(self.id)}"
            case ModuleNotFoundError():  # Gymnasium raises its own, without the name
                return f"{self.id} needs {missing(error.name or self.id.partition(':')[0])}."
            case TypeError():
                refused = f"{self.id} refuses its kwargs {self.kwargs or {}} ({message_of(error)})"
                return f"{refused}: give those of its constructor."
        return None

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> Watched:
        def make(mode: str | None) -> Made:
            shown = {} if mode is None else {"render_mode": mode}
            return dataclasses.replace(self, kwargs={**(self.kwargs or {}), **shown}).make()

        seen = self.inspected
        first_action = int(seen.actions.start)
        return Watched(self.id, make, seen.reading, first_action, pictures, frames_per_second, self.seed_of_resets)


def _nearest(asked: str) -> str:
    """A hint at registered ids like this one, or at how one is registered."""
    module, colon, name = asked.rpartition(":")
    known = [key for key in gymnasium.registry if not key.startswith(("phys2d/", "tabular/"))]
    same = [key for key in known if key.lower() == name.lower()]
    if close := same or difflib.get_close_matches(name, known, n=3, cutoff=0.6):
        return f" Did you mean {' or '.join(module + colon + each for each in close)}?"
    if module:
        plain = re.sub(r"-v\d+$", "", name)
        full = name if name != plain else f"{plain}-v0"
        return f" Register it where it is defined: gymnasium.register('{full}', entry_point='{module}:{plain}')."
    return " `python -c 'import gymnasium; gymnasium.pprint_registry()'` lists them."
