"""Wrappers that a user asks for by name, and what to say of packages that are not installed."""

import functools
import importlib
import importlib.util
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import NormalizeObservation, NormalizeReward, PassiveEnvChecker, TimeAwareObservation, TimeLimit

from uppertail.environments.actions import Actions, list_actions
from uppertail.environments.gymnasium.adapter import Listed, Stack, WithFirst, WithOptions
from uppertail.environments.gymnasium.masked import Masked, Unmasked
from uppertail.environments.packages import described
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
    if isinstance(env, VectorEnv) and env.spec is not None:
        return env.spec.max_episode_steps
    limits = [wrapper._max_episode_steps for wrapper in _wrappers_in(env) if isinstance(wrapper, TimeLimit)]
    return min(limits, default=None)


def shows_time(env: Made) -> bool:
    """Whether one of its wrappers shows how many steps of an episode are gone."""
    return any(isinstance(each, TimeAwareObservation) for each in _wrappers_in(env))


def normalizing(env: Made) -> tuple[str, ...]:
    """Its wrappers that scale by what they saw, which no other copy of the environment saw."""
    found = (each for each in _wrappers_in(env) if isinstance(each, NormalizeObservation | NormalizeReward))
    return (*(type(each).__name__ for each in found),)


def _wrappers_in(env: Made) -> list[gymnasium.Env[Any, Any]]:
    """Its wrappers, or those of the first environment of a vector that holds its environments."""
    held = getattr(env.unwrapped, "envs", None) if isinstance(env, VectorEnv) else [env]
    first = held[0] if isinstance(held, list | tuple) and held else None
    return [*wrappers_of(first)] if isinstance(first, gymnasium.Env) else []


def missing(module: str) -> str:
    """A module that is not there, and how to get it."""
    remedy = "install its package, or start in a folder from which Python finds it"
    if module.partition(".")[0] == "minigrid":
        remedy = "run `pip install minigrid`"
    return f"the module {module!r}, which is not installed: {remedy}"


def extra(error: Exception) -> str:
    """How Gymnasium says to install what is missing."""
    named = re.search(r"gymnasium\[[\w-]+\]", str(error))
    return f"run `pip install '{named[0]}'`" if named else message_of(error)


def plain(asked: Any) -> str | dict[str, Any]:
    """A wrapper as a file holds it: an import path, or a mapping of class_path and init_args; others are refused."""
    if isinstance(asked, type | types.FunctionType):
        path = f"{asked.__module__}.{asked.__qualname__}"
        if "<" in path or _load(path) is not asked:
            raise InputError(
                f"The wrapper {path} cannot be found again by its name: define it at the top level of a module, or "
                "train a function that makes the wrapped environment."
            )
        return path
    path, arguments = _split(asked)
    _load(path)
    return {"class_path": path, "init_args": arguments} if arguments else path


def _split(asked: Any) -> tuple[str, dict[str, Any]]:
    """The import path of a wrapper, and its arguments."""
    match asked:
        case str():
            return asked, {}
        case {"class_path": path, **others} if set(others) <= {"init_args"}:
            return str(path), dict(others.get("init_args") or {})
    raise InputError(f"wrappers holds {asked!r}: {FORM}.")


def _load(path: str) -> Callable[..., Any]:
    """The class, or the function that wraps."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module or "gymnasium.wrappers"), name)
    except Exception as error:
        needed = error.name if isinstance(error, ModuleNotFoundError) else None
        if needed and importlib.util.find_spec(needed.partition(".")[0]) is None:
            raise InputError(f"The wrapper {path!r} needs {missing(needed)}.") from error
        raise InputError(f"The wrapper {path!r} cannot be imported ({message_of(error)}): {FORM}.") from error
    if not callable(found):
        raise InputError(f"The wrapper {path!r} is no class: {FORM}.")
    return found


def _wrap(env: Made, asked: Any) -> Made:
    """The environment in a wrapper; InputError if the wrapper refuses it or its arguments."""
    path, arguments = _split(asked)
    try:
        wrapper = _load(path)
        wrapped = wrapper(env, **_as_declared(wrapper, arguments))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"The wrapper {path}{f' with {arguments}' if arguments else ''} cannot be put around the environment "
            f"({described(error)}): give the arguments of its constructor, or leave it out."
        ) from error
    if not isinstance(wrapped, gymnasium.Env | VectorEnv):
        raise InputError(f"The wrapper {path} gives {wrapped!r}, which is no Gymnasium environment: {FORM}.")
    return wrapped


def _as_declared(wrapper: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as files hold them, with arrays in place of lists where the wrapper declares an array."""
    try:
        declared = typing.get_type_hints(wrapper.__init__ if isinstance(wrapper, type) else wrapper)
    except (AttributeError, NameError, TypeError):  # of a callable without any, or with names that are not there
        declared = dict[str, Any]()
    is_list = {name for name, value in arguments.items() if isinstance(value, list) and _is_array(declared.get(name))}
    return {name: np.array(value) if name in is_list else value for name, value in arguments.items()}


def _is_array(declared: Any) -> bool:
    """Whether an argument may be an array, and not a list."""
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    kinds = [typing.get_origin(each) or each for each in (typing.get_args(declared) if is_union else (declared,))]
    return np.ndarray in kinds and list not in kinds


def actions_of(env: Made, levels: int | None) -> Actions:
    """How its actions are numbered."""
    if isinstance(env, VectorEnv):
        return list_actions(env.single_action_space, levels)
    listed = [wrapper.listed for wrapper in wrappers_of(env) if isinstance(wrapper, Listed)]
    return listed[0] if listed else list_actions(env.action_space, levels)


def make_wrapped(
    make: Callable[[], Any],
    wrappers: Sequence[Any],
    stack: int | Literal["first"],
    levels: int | None = None,
    masked: bool = True,
    options: dict[str, Any] | None = None,
) -> Any:
    """Makes an environment and wraps it, the first wrapper innermost; lists its actions, and stacks what it shows.

    `masked`: whether it says which actions are allowed, where it knows; `options`: those of its every reset.
    """
    bare = make()
    if options and isinstance(bare, VectorEnv):
        raise InputError("reset_options are given, but a vector environment is used as it is: give them in its own.")
    made = functools.reduce(_wrap, wrappers, WithOptions(bare, options) if options else bare)
    if stack != 1 and isinstance(made, VectorEnv):
        raise InputError(f"stack is {stack}, but a vector environment is used as it is: stack in each of its own.")
    if isinstance(made, gymnasium.Env) and hasattr(made, "action_space"):  # one without is refused when it is asked
        for each in wrappers_of(made):
            if isinstance(each, PassiveEnvChecker):  # where it would warn of what `Checked` refuses in a sentence
                each.checked_step = each.checked_data_reuse = True
                each.checked_reset = not {"seed", "options"} <= inspect.signature(each.env.reset).parameters.keys()
        actions = list_actions(made.action_space, levels)
        made = made if actions.own is None else Listed(made, actions)
        if not masked:
            made = Unmasked(made)
        elif Masked.fits(made):
            made = Masked(made)
    if stack == 1 or not isinstance(made, gymnasium.Env):
        return made
    return WithFirst(made) if stack == "first" else Stack(made, stack)
