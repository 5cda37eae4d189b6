"""A Gymnasium environment that a program has at hand, or a function that makes one."""

import copy
import dataclasses
import functools
import hashlib
import inspect
import sys
import tokenize
import types
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.gym import Gym
from uppertail.environments.gymnasium.wrapping import Made
from uppertail.errors import InputError
from uppertail.parts import PARTS, newest, part_of

LAMBDA = "<lambda>"  # the name of a function without one
PLAIN = bool | int | float | complex | str | bytes | None


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
        >>> ut.FromGymnasium(lambda: gymnasium.make("CartPole-v1"), returns=(0, 100)).num_actions
        2
    """

    environment: Made | Callable[[], Made] = dataclasses.field(repr=False, compare=False)
    id: str = ""
    code: str = dataclasses.field(init=False, default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.environment, str):
            raise InputError(
                f"environment is {self.environment!r}: give an environment, or a function that makes one; of its id, "
                f"ut.Gym({self.environment!r})."
            )
        super().__post_init__()
        object.__setattr__(self, "id", self.id or _name(self.environment))
        object.__setattr__(self, "code", fingerprint(self.environment))

    def bare_maker(self) -> Callable[[], Made]:
        return self._copy if isinstance(self.environment, gymnasium.Env | VectorEnv) else self.environment

    def make(self) -> Made:
        made = super().make()
        if any(made.unwrapped is before() for before in self._made):
            raise InputError(
                f"{self.id} returns the same environment again: give a function that makes a new one at each call, as "
                "in train(lambda: MyEnvironment())."
            )
        self._made.append(weakref.ref(made.unwrapped))
        if self.id == LAMBDA:
            object.__setattr__(self, "id", _name(made))
        return made

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
    """The builder of the environment that `train` is given; InputError if it is none, and makes none."""
    if isinstance(environment, EnvironmentBuilder):
        return environment
    if isinstance(environment, str):
        return part_of("env", environment) if environment in PARTS["env"].kinds else Gym(newest(environment))
    if inspect.isclass(environment) and issubclass(environment, EnvironmentBuilder):
        return part_of("environment", environment)
    if isinstance(environment, gymnasium.Env | VectorEnv) or callable(environment):
        return FromGymnasium(environment)  # pyright: ignore[reportArgumentType]
    raise InputError(
        f"environment is {environment!r}: give a builder such as Chain(), its name, the id of a Gymnasium environment, "
        "such an environment, or a function that makes one."
    )


def _name(environment: Any) -> str:
    if isinstance(environment, gymnasium.Env | VectorEnv):
        return environment.spec.id if environment.spec else type(environment.unwrapped).__name__
    return getattr(environment, "__name__", type(environment).__name__)


def fingerprint(value: Any) -> str:
    """Twelve hexadecimal digits that tell functions and environments apart; the same in every process.

    They cover the source of a function, the plain values that it is bound to or names, and the source of functions and
    classes that it names, except Python's and Gymnasium's. Of an environment they cover its id, its class and the
    arguments of its constructor that it keeps in attributes of the same names, not its current state.
    """
    return hashlib.sha256(repr(_facts(value)).encode(errors="surrogatepass")).hexdigest()[:12]


def _facts(value: Any, follow: bool = True) -> Any:
    """What distinguishes a value, in plain values; `follow`: also what a function names."""
    match value:
        case bool() | int() | float() | complex() | str() | bytes() | None:
            return value
        case tuple():
            return [_facts(each, follow) for each in value]
        case functools.partial():
            return [_facts(each) for each in (value.func, value.args, *sorted(value.keywords.items()))]
        case types.MethodType():
            return _facts(value.__func__, follow), _facts(value.__self__)
        case types.FunctionType():
            globals_ = {name for code in _codes(value) for name in code.co_names} & value.__globals__.keys()
            named = {name: value.__globals__[name] for name in globals_} | dict(inspect.getclosurevars(value).nonlocals)
            followed = [(name, _facts(each, False)) for name, each in sorted(named.items()) if follow]
            return _source(value), _facts(value.__defaults__), followed
        case type():
            foreign = {"gymnasium", *sys.stdlib_module_names}
            return value.__qualname__, [_source(c) for c in value.__mro__ if c.__module__.split(".")[0] not in foreign]
        case types.ModuleType() | list() | dict() | set():  # what these hold may change while the program runs
            return type(value).__name__
    bare = value.unwrapped if isinstance(value, gymnasium.Env | VectorEnv) else value
    spec = getattr(value, "spec", None)
    registered = spec and (spec.id, [(name, _facts(each, False)) for name, each in sorted(spec.kwargs.items())])
    return registered, _facts(type(value)), _facts(type(bare)), _kept_arguments(bare)


def _kept_arguments(value: Any) -> dict[str, Any]:
    """The plain arguments of an object's constructor that it keeps under the same names."""
    try:
        names = inspect.signature(type(value)).parameters
    except (TypeError, ValueError):
        return {}
    kept = getattr(value, "__dict__", {})
    return {name: kept[name] for name in names if name in kept and isinstance(kept[name], PLAIN)}


def _codes(function: types.FunctionType) -> list[types.CodeType]:
    """The code of a function and of those within it."""
    codes = [function.__code__]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return codes


def _source(value: Any) -> str:
    """The source of a function or a class; where Python does not keep it or cannot cut it out, its bytecode."""
    try:
        return inspect.getsource(value)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        if isinstance(value, type):
            return "".join(_source(each) for each in vars(value).values() if isinstance(each, types.FunctionType))
        codes = _codes(value)
        return repr([(c.co_code, c.co_names, [each for each in c.co_consts if isinstance(each, PLAIN)]) for c in codes])
