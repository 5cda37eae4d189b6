"""A checksum of a function that makes environments: of its code and of what the code refers to."""

import contextlib
import functools
import hashlib
import inspect
import types
from collections.abc import Iterator
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
    total = hashlib.sha256()
    for part in _Walk(environment).parts(environment):
        total.update(part.encode(errors="surrogatepass") + b"\0")
    return total.hexdigest()[:12]


class _Walk:
    """A walk over all that a function refers to; each thing is visited once.

    Args:
        environment: where it begins.
    """

    def __init__(self, environment: Any) -> None:
        self.roots = {_root(environment)}
        self.seen: set[int] = set()
        self.kept: list[Any] = []  # keeps objects alive, so that no id is used twice

    def parts(self, value: Any) -> Iterator[str]:
        """The facts that distinguish this value, as text."""
        if isinstance(value, PLAIN):
            yield f"{type(value).__name__} {value!r}"
        elif isinstance(value, tuple | list | dict | set | frozenset):
            yield from self._collection(value)
        elif isinstance(value, types.CodeType):
            yield from self._code(value)
        elif id(value) in self.seen:
            yield "again"
        else:
            self.seen.add(id(value))
            self.kept.append(value)
            yield from self._object(value)

    def _collection(self, value: Any) -> Iterator[str]:
        yield type(value).__name__
        items = list(value.items()) if isinstance(value, dict) else list(value)
        each = ["\0".join(self.parts(item)) for item in items]
        yield from sorted(each) if isinstance(value, set | frozenset) else each  # a set has no fixed order

    def _object(self, value: Any) -> Iterator[str]:
        if isinstance(value, functools.partial):
            yield from self.parts((value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            yield from self.parts((value.__func__, value.__self__))
        elif isinstance(value, gymnasium.Env | VectorEnv):
            yield from self._environment(value)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, staticmethod | classmethod):
            yield from self.parts(value.__func__)
        elif isinstance(value, property):
            yield from self.parts((value.fget, value.fset))
        else:
            yield _name(type(value))
            if self._followed(type(value)):
                yield from self.parts((type(value), _constructor_arguments(value)))

    def _environment(self, env: Any) -> Iterator[str]:
        if env.spec is not None:
            yield from self.parts((env.spec.id, env.spec.kwargs))
        yield from self.parts((type(env), type(env.unwrapped), _constructor_arguments(env.unwrapped)))

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        yield _name(function)
        if not self._followed(function):
            return
        yield from self.parts((function.__code__, function.__defaults__, function.__kwdefaults__))
        for name, value in sorted(_references(function).items()):
            yield name
            yield from self.parts(value if _constant(value) else type(value))

    def _code(self, code: types.CodeType) -> Iterator[str]:
        yield f"{code.co_name} {code.co_varnames} {code.co_names} {code.co_code.hex()}"
        yield from self.parts(code.co_consts)

    def _class(self, kind: type) -> Iterator[str]:
        yield _name(kind)
        if not self._followed(kind):
            return
        for base in kind.__bases__:
            yield from self.parts(base)
        for name, value in sorted(vars(kind).items()):
            if isinstance(value, (*PLAIN, tuple, types.FunctionType, staticmethod, classmethod, property)) and (
                not name.startswith("__") or callable(value)
            ):
                yield name
                yield from self.parts(value)

    def _followed(self, value: Any) -> bool:
        root = _root(value)
        if root == "gymnasium":
            return False
        return root in self.roots or (isinstance(value, type) and issubclass(value, gymnasium.Env | VectorEnv))


def _constructor_arguments(value: Any) -> dict[str, Any]:
    """The plain arguments of an object's constructor that it keeps under the same names."""
    try:
        names = inspect.signature(type(value)).parameters
    except (TypeError, ValueError):
        return {}
    kept = getattr(value, "__dict__", {})
    return {name: kept[name] for name in names if isinstance(kept.get(name), PLAIN) and name in kept}


def _references(function: types.FunctionType) -> dict[str, Any]:
    """The globals and closure variables that a function's code refers to, by name."""
    names, codes = set(), [function.__code__]
    for code in codes:
        names |= set(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found


def _constant(value: Any) -> bool:
    """Whether a value is likely to be the same in the next process; a container may hold notes of a running program."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return all(map(_plain, value)) if isinstance(value, list | set) else True


def _plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, tuple | list) and all(map(_plain, value)))


def _root(value: Any) -> str:
    while isinstance(value, functools.partial):
        value = value.func
    named = getattr(value, "__module__", None) or type(value).__module__
    return str(named).partition(".")[0]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
