"""Compiled programs: the numbers of a run's parts are their arguments, so runs that differ only in these share them."""

import copy
import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from uppertail.types import PyTree

MOST = 64
"""Programs that a process keeps; the one used longest ago goes first."""

NUMBERS = {float: np.float32, int: np.int32}
"""The types of numbers that can be arguments, and their types in a program."""


class Program(NamedTuple):
    """A compiled program.

    Args:
        compiled: the program, of numbers and arguments.
        call: the program of its arguments alone.
        is_new: whether XLA compiled it just now; else it was in this process or on disk.
    """

    compiled: Any
    call: Callable[..., Any]
    is_new: bool


def compile_program(
    function: Callable[..., Any],
    parts: Any,
    arguments: tuple[PyTree, ...],
    static: tuple[Any, ...] = (),
    donate: tuple[int, ...] = (),
) -> Program:
    """Compiles `function(parts, *static, *arguments)`, or finds it compiled for other numbers.

    Args:
        function: a pure function, defined in a module.
        parts: frozen dataclasses, whose fields with the metadata `schema.TRACED` are arguments of the program.
        arguments: arrays, or their shapes and types.
        static: hashable arguments that are constants of the program.
        donate: which of `arguments` the program may overwrite.
    """
    skeleton, numbers = split(parts)
    key = (function, skeleton, static, _kinds(arguments), donate)
    try:
        compiled, found = _programs.pop(key, None), _found_on_disk[0]
    except TypeError:  # a user's part cannot be hashed: nothing is shared
        compiled, found, key = None, _found_on_disk[0], object()
    is_new = compiled is None
    if compiled is None:

        def program(numbers: list[Any], *arguments: PyTree) -> Any:
            return function(filled(skeleton, numbers), *static, *arguments)

        donated = [number + 1 for number in donate]
        compiled = jax.jit(program, donate_argnums=donated).lower(numbers, *arguments).compile()
        is_new = _found_on_disk[0] == found
    _programs[key] = compiled
    if len(_programs) > MOST:
        _programs.popitem(last=False)
    device, *_ = [*jax.tree.leaves(compiled.input_shardings[0]), None]
    return Program(compiled, functools.partial(compiled, jax.device_put(numbers, device)), is_new)


def split(parts: Any) -> tuple[Any, list[Any]]:
    """The parts with types in place of their marked numbers, and the numbers."""
    numbers: list[Any] = []

    def taken(value: Any) -> Any:
        if type(value) not in NUMBERS:
            return value
        numbers.append(NUMBERS[type(value)](value))
        return type(value)

    return _changed(parts, taken), numbers


def filled(skeleton: Any, numbers: Sequence[Any]) -> Any:
    """The parts with these numbers, as they were split off; nothing is checked again."""
    left = iter(numbers)
    return _changed(skeleton, lambda value: next(left) if value in NUMBERS else value)


def _changed(part: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of dataclasses with the values of all marked fields changed; the same object if there are none."""
    if type(part) is tuple:
        changed = tuple(_changed(each, change) for each in part)
        return changed if any(new is not old for new, old in zip(changed, part, strict=True)) else part
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    changed = {}
    for field in dataclasses.fields(part):
        before = getattr(part, field.name)
        after = change(before) if "traced" in field.metadata else _changed(before, change)
        if after is not before:
            changed[field.name] = after
    if changed:
        part = copy.copy(part)
        for name, value in changed.items():
            object.__setattr__(part, name, value)
    return part


def _kinds(arguments: tuple[PyTree, ...]) -> tuple[Any, ...]:
    """What a program is compiled for: the structure of its arguments, and type, shape and device of each array."""
    leaves, structure = jax.tree.flatten(arguments)
    wanted = ("weak_type", "sharding")
    return structure, *((leaf.shape, leaf.dtype, *(getattr(leaf, name, None) for name in wanted)) for leaf in leaves)


_programs: OrderedDict[Any, Any] = OrderedDict()
_found_on_disk = [0]


def _count(event: str, **_: Any) -> None:
    _found_on_disk[0] += event == "/jax/compilation_cache/cache_hits"


jax.monitoring.register_event_listener(_count)
