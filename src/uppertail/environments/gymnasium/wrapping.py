"""Wrappers around a Gymnasium environment: those that it has, and those that a user asks for."""

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TimeLimit

from uppertail.environments.gymnasium.packages import is_missing, missing
from uppertail.errors import InputError, message_of

Made = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

FORM = (
    "give import paths such as minigrid.wrappers.FullyObsWrapper (a name alone is one of Gymnasium's), or "
    "{class_path: PATH, init_args: {name: value}}"
)


def wrappers_of(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """The wrappers around an environment, the outermost first."""
    while env is not env.unwrapped:
        yield env
        env = env.env  # pyright: ignore[reportAttributeAccessIssue]


def time_limit(env: Made) -> int | None:
    """Steps after which its wrappers truncate an episode; None where there is no such limit."""
    if isinstance(env, VectorEnv):
        return None if env.spec is None else env.spec.max_episode_steps
    limits = [wrapper._max_episode_steps for wrapper in wrappers_of(env) if isinstance(wrapper, TimeLimit)]
    return min(limits, default=None)


class Wrapper(NamedTuple):
    """A wrapper that a user asks for.

    Args:
        path: import path of its class, or of a function that wraps.
        arguments: what it is given beside the environment.
    """

    path: str
    arguments: Mapping[str, Any]

    @property
    def plain(self) -> str | dict[str, Any]:
        """As a file holds it."""
        return {"class_path": self.path, "init_args": dict(self.arguments)} if self.arguments else self.path

    def load(self) -> Callable[..., Any]:
        """The class.

        Raises:
            InputError: there is no such class, or its package is not installed.
        """
        module, _, name = self.path.rpartition(".")
        try:
            found = functools.reduce(getattr, name.split("."), importlib.import_module(module or "gymnasium.wrappers"))
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and error.name and is_missing(error.name):
                raise InputError(f"The wrapper {self.path!r} needs {missing(error.name)}.") from error
            raise InputError(f"The wrapper {self.path!r} cannot be imported ({message_of(error)}): {FORM}.") from error
        if not callable(found):
            raise InputError(f"The wrapper {self.path!r} is no class: {FORM}.")
        return found

    def around(self, env: Made) -> Made:
        """The environment in this wrapper.

        Raises:
            InputError: it refuses the environment or its arguments.
        """
        try:
            wrapped = self.load()(env, **self.arguments)
        except InputError:
            raise
        except Exception as error:
            given = f" with {dict(self.arguments)}" if self.arguments else ""
            raise InputError(
                f"The wrapper {self.path}{given} cannot be put around the environment ({type(error).__name__}: "
                f"{message_of(error)}): give the arguments of its constructor, or leave it out."
            ) from error
        if not isinstance(wrapped, gymnasium.Env | VectorEnv):
            raise InputError(f"The wrapper {self.path} gives {wrapped!r}, which is no Gymnasium environment: {FORM}.")
        return wrapped


class Wrapped:
    """Makes an environment and wraps it; it is pickled for environments with processes of their own.

    Args:
        make: makes the environment.
        wrappers: what is put around it, the innermost first.
    """

    def __init__(self, make: Callable[[], Any], wrappers: Sequence[Any]) -> None:
        self.make, self.wrappers = make, [wrapper(each) for each in wrappers]

    def __call__(self) -> Made:
        return functools.reduce(lambda env, each: each.around(env), self.wrappers, self.make())


def wrapper(asked: Any) -> Wrapper:
    """The wrapper that is meant.

    Args:
        asked: an import path (of Gymnasium's own wrappers the name is enough), a mapping of class_path and init_args,
            or a class.

    Raises:
        InputError: it has another form, or cannot be imported.
    """
    if isinstance(asked, Mapping) and "class_path" in asked and set(asked) <= {"class_path", "init_args"}:
        meant = Wrapper(str(asked["class_path"]), dict(asked.get("init_args") or {}))
    elif isinstance(asked, str):
        meant = Wrapper(asked, {})
    elif callable(asked) and hasattr(asked, "__qualname__"):
        meant = Wrapper(f"{asked.__module__}.{asked.__qualname__}", {})
        if "<" in meant.path or meant.load() is not asked:
            raise InputError(
                f"The wrapper {meant.path} cannot be found again by its name: define it at the top of a module, or "
                "train a function that makes the wrapped environment."
            )
    else:
        raise InputError(f"wrappers holds {asked!r}: {FORM}.")
    meant.load()
    return meant
