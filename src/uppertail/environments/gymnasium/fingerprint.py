"""A checksum of a function that makes environments: of its code and of what the code refers to.

A pickle would not do: its bytes depend on the order of sets, and on which texts Python happens to share.
"""

import contextlib
import functools
import hashlib
import inspect
import types
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def fingerprint(environment: Any) -> str:
    """Twelve hexadecimal digits: the same for the same function or environment, with the same version of Python.

    It covers bytecode, constants, defaults, plain values in closures and globals, and, of the same package, the
    functions and classes that are referred to; also classes of environments of other packages, except Gymnasium's
    own. Of an environment itself it covers the arguments of its constructor that it keeps in attributes of the same
    names, not its current state.
    """
    facts = repr(_Walk(_package(environment)).facts(environment))
    return hashlib.sha256(facts.encode(errors="surrogatepass")).hexdigest()[:12]


class _Walk:
    """A walk over all that a function refers to; each thing is visited once.

    Args:
        package: where the code is that the walk follows.
    """

    def __init__(self, package: str) -> None:
        self.package = package
        self.seen: dict[int, Any] = {}  # keeps objects alive, so that no id is used twice

    def facts(self, value: Any) -> Any:
        """The facts that distinguish this value, in lists of plain values."""
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, set | frozenset):
            return sorted(repr(self.facts(item)) for item in value)  # a set has no fixed order
        if isinstance(value, tuple | list | dict):
            items = list(value.items()) if isinstance(value, dict) else value
            return [type(value).__name__, *map(self.facts, items)]
        if isinstance(value, types.CodeType):
            return [value.co_name, value.co_varnames, value.co_names, value.co_code, self.facts(value.co_consts)]
        if id(value) in self.seen:
            return "again"
        self.seen[id(value)] = value
        return [_name(value if hasattr(value, "__qualname__") else type(value)), self.facts(self._inside(value))]

    def _inside(self, value: Any) -> Any:
        """What an object is made of."""
        match value:
            case functools.partial():
                return value.func, value.args, value.keywords
            case types.MethodType():
                return value.__func__, value.__self__
            case staticmethod() | classmethod():
                return value.__func__
            case property():
                return value.fget, value.fset
            case gymnasium.Env() | VectorEnv():
                spec = value.spec and (value.spec.id, value.spec.kwargs)
                return spec, type(value), type(value.unwrapped), _constructor_arguments(value.unwrapped)
            case types.FunctionType() if self._follows(value):
                referred = {
                    name: each if _is_constant(each) else type(each)
                    for name, each in sorted(_references(value).items())
                }
                return value.__code__, value.__defaults__, value.__kwdefaults__, referred
            case type() if self._follows(value):
                kinds = (*PLAIN, tuple, types.FunctionType, staticmethod, classmethod, property)
                own = {name: each for name, each in sorted(vars(value).items()) if isinstance(each, kinds)}
                return value.__bases__, {n: each for n, each in own.items() if not n.startswith("__") or callable(each)}
            case _ if not isinstance(value, type) and self._follows(type(value)):
                return type(value), _constructor_arguments(value)
        return None

    def _follows(self, value: Any) -> bool:
        package = _package(value)
        is_environment = isinstance(value, type) and issubclass(value, gymnasium.Env | VectorEnv)
        return package != "gymnasium" and (package == self.package or is_environment)


def _constructor_arguments(value: Any) -> dict[str, Any]:
    """The plain arguments of an object's constructor that it keeps under the same names."""
    try:
        names = inspect.signature(type(value)).parameters
    except (TypeError, ValueError):
        return {}
    kept = getattr(value, "__dict__", {})
    return {name: kept[name] for name in names if name in kept and isinstance(kept[name], PLAIN)}


def _references(function: types.FunctionType) -> dict[str, Any]:
    """The globals and closure variables that a function's code refers to, by name."""
    names, codes = set[str](), [function.__code__]
    for code in codes:
        names |= set(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def _is_constant(value: Any) -> bool:
    """Whether a value is likely to be the same in the next process; a container may hold notes of a running program."""
    items = value.values() if isinstance(value, dict) else value
    return all(map(_is_plain, items)) if isinstance(value, dict | list | set) else True


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, tuple | list) and all(map(_is_plain, value)))


def _package(value: Any) -> str:
    while isinstance(value, functools.partial):
        value = value.func
    named = getattr(value, "__module__", None) or type(value).__module__
    return str(named).partition(".")[0]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
