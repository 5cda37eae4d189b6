"""An environment that a program has at hand: a Gymnasium environment, or a function that makes one."""

import copy
import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.fingerprint import fingerprint
from uppertail.environments.gymnasium.wrapping import Made
from uppertail.errors import InputError


@dataclasses.dataclass(frozen=True)
class Given(GymnasiumBuilder):
    """A Gymnasium environment of your own: each seed trains on a copy of its own.

    Args:
        environment: the environment, or a function without arguments that makes it: an Env or a VectorEnv.
        id: what it is called in a run's files; empty: its registered id, or the name of its class.

    Attributes:
        code: a checksum of the function or environment, so that a run does not load the checkpoints of another one.

    Examples:
        >>> import gymnasium
        >>> import uppertail as ut
        >>> ut.Given(lambda: gymnasium.make("CartPole-v1"), returns=(0, 100)).num_actions
        2
    """

    environment: Made | Callable[[], Made] = dataclasses.field(repr=False, compare=False)
    id: str = ""
    code: str = dataclasses.field(init=False, default="", compare=False)

    def complete(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", _name(self.environment))
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
    if isinstance(environment, gymnasium.Env | VectorEnv) or callable(environment):
        return Given(environment)  # pyright: ignore[reportArgumentType]
    raise InputError(
        f"environment is {environment!r}: give a builder such as Chain() or Gym('CartPole-v1'), a Gymnasium "
        "environment, or a function that makes one."
    )


def _name(environment: Any) -> str:
    spec = getattr(environment, "spec", None)
    if spec is not None:
        return spec.id
    if isinstance(environment, gymnasium.Env | VectorEnv):
        return type(environment.unwrapped).__name__
    return getattr(environment, "__name__", type(environment).__name__)
