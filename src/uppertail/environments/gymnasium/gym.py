"""Any Gymnasium environment: by its id, or one that a program has at hand."""

import copy
import dataclasses
import difflib
import functools
import re
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.fingerprint import fingerprint
from uppertail.environments.gymnasium.names import names_of
from uppertail.environments.gymnasium.watched import Watched
from uppertail.environments.gymnasium.wrapping import Made, extra, missing
from uppertail.errors import InputError, message_of


@dataclasses.dataclass(frozen=True)
class Gym(GymnasiumBuilder):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_episode_steps is not None and self.max_episode_steps < 1:
            raise InputError(f"max_episode_steps is {self.max_episode_steps}, but an episode needs at least 1 step.")
        if self.max_episode_steps is not None and "max_episode_steps" in (self.kwargs or {}):
            raise InputError("max_episode_steps is given twice, once in kwargs: leave one of them out.")

    @property
    def label(self) -> str:
        return self.id

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        return {} if self.wrappers else names_of(self.id)

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

        return Watched(self.id, make, self.inspected, pictures, frames_per_second, self.seed_of_resets)


@dataclasses.dataclass(frozen=True)
class FromGymnasium(GymnasiumBuilder):
    """A Gymnasium environment of your own: each seed trains on a copy of its own.

    Args:
        environment: the environment, or a function without arguments that makes it: an Env or a VectorEnv.
        id: what it is called in a run's files; empty: its registered id, or the name of its class.

    Attributes:
        code: a checksum of the function or environment, so that a run does not load the checkpoints of another one.

    Examples:
        >>> import gymnasium
        >>> import uppertail as ut
        >>> ut.FromGymnasium(lambda: gymnasium.make("CartPole-v1"), returns=(0, 100)).num_actions
        2
    """

    environment: Made | Callable[[], Made] = dataclasses.field(repr=False, compare=False)
    id: str = ""
    code: str = dataclasses.field(init=False, default="", compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "id", self.id or _name(self.environment))
        object.__setattr__(self, "code", fingerprint(self.environment))

    @property
    def label(self) -> str:
        return self.id

    def bare_maker(self) -> Callable[[], Made]:
        if isinstance(self.environment, gymnasium.Env | VectorEnv):
            return self._copy
        return self.environment

    def require_new(self, made: Made) -> None:
        if isinstance(self.environment, gymnasium.Env | VectorEnv):
            return  # it is copied
        if any(made is before() for before in self._made):
            raise InputError(
                f"{self.id} gives the same environment again: give a function that makes a new one at each call, as in "
                "train(lambda: MyEnvironment())."
            )
        self._made.append(weakref.ref(made))

    @functools.cached_property
    def _made(self) -> list[weakref.ref[Made]]:
        """The environments made so far that still exist."""
        return []

    def _copy(self) -> Made:
        try:
            return copy.deepcopy(self.environment)  # pyright: ignore[reportReturnType]
        except Exception as error:
            raise InputError(
                f"{self.id} cannot be copied for each seed ({type(error).__name__}): give a function that makes it, "
                "as in train(lambda: MyEnvironment())."
            ) from error


def builder_of(environment: object) -> EnvironmentBuilder:
    """The builder of the environment that `train` is given.

    Raises:
        InputError: it is not an environment, a builder, or a function that makes one.
    """
    if isinstance(environment, EnvironmentBuilder):
        return environment
    if isinstance(environment, str):
        return Gym(environment)
    if isinstance(environment, gymnasium.Env | VectorEnv) or callable(environment):
        return FromGymnasium(environment)  # pyright: ignore[reportArgumentType]
    raise InputError(
        f"environment is {environment!r}: give a builder such as Chain(), the id of a Gymnasium environment, "
        "such an environment, or a function that makes one."
    )


def _name(environment: Any) -> str:
    spec = getattr(environment, "spec", None)
    if spec is not None:
        return spec.id
    if isinstance(environment, gymnasium.Env | VectorEnv):
        return type(environment.unwrapped).__name__
    return getattr(environment, "__name__", type(environment).__name__)


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
