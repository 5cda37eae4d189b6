"""Compiled programs, and the seconds that they take.

The numbers of a run's parts are arguments of its programs, so runs that differ only in these share them.
"""

import contextlib
import copy
import dataclasses
import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from uppertail.capacity import require_memory
from uppertail.training.groups import over_seeds
from uppertail.types import PyTree

MOST = 64  # programs that a process keeps; the one used longest ago goes first
NUMBERS = {float: np.float32, int: np.int32}  # the types of numbers that can be arguments, and their types in a program

LESS = "use fewer seeds, a smaller width, batch_size or rollout_steps, or fewer bins or components"
"""The remedy if a program needs too much memory."""


class Program(NamedTuple):
    """A compiled program, of numbers and arguments; the same of its arguments alone; whether XLA compiled it just now.

    If it is not new, it was in this process or on disk.
    """

    compiled: Any
    call: Callable[..., Any]
    is_new: bool


def compile_program(
    function: Callable[..., Any],
    parts: Any,
    arguments: tuple[PyTree, ...],
    static: tuple[Any, ...] = (),
    shared: int = 0,
    donate: tuple[int, ...] = (),
) -> Program:
    """Compiles `function(parts, *static, *arguments)` of one seed for all seeds, or finds it compiled.

    Args:
        function: a pure function, defined in a module.
        parts: frozen dataclasses, whose fields with the metadata `schema.TRACED` are arguments of the program.
        arguments: arrays, or their shapes and types, with a leading axis of seeds.
        static: hashable arguments that are constants of the program.
        shared: how many of `arguments`, from the first on, are the same for all seeds.
        donate: which of `arguments` the program may overwrite.
    """
    skeleton, numbers = split(parts)
    key, found, is_new = (function, skeleton, static, _kinds(arguments), shared, donate), _found_on_disk[0], False
    try:
        compiled = _programs.pop(key, None)
    except TypeError:  # a user's part cannot be hashed: nothing is shared
        compiled, key = None, object()
    if compiled is None:

        def program(numbers: list[Any], *arguments: PyTree) -> Any:
            of_seed = functools.partial(function, filled(skeleton, numbers), *static)
            return over_seeds(of_seed, *arguments, shared=shared)

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


class Stopwatch:
    """Seconds of a run, including those before it was resumed: in total, for compilation, in the training loop.

    Attributes:
        compilations: programs that this process compiled for it; it shares the others with earlier runs.
    """

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0
        self.compilations = 0

    @property
    def wall(self) -> float:
        """Seconds of the whole run until now."""
        return self.before + time.perf_counter() - self.started

    def state(self) -> dict[str, float]:
        """The times until now, to which a resumed run adds its own."""
        return {"wall": self.wall, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        """Adds the times of a run that is resumed."""
        self.before += state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]

    def compiled(
        self,
        function: Callable[..., Any],
        parts: Any,
        *arguments: Any,
        static: tuple[Any, ...] = (),
        shared: int = 0,
        donate: tuple[int, ...] = (),
    ) -> Callable[..., Any]:
        """As `compile_program`, and counts the time; a program that needs more memory than there is is refused."""
        began = time.perf_counter()
        program = compile_program(function, parts, arguments, static, shared, donate)
        self.compile += time.perf_counter() - began
        self.compilations += program.is_new
        if (needs := program.compiled.memory_analysis()) is not None:
            new = needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes
            require_memory(new, "A step of this run needs", LESS)
        return program.call

    def compiled_later(
        self, function: Callable[..., Any], parts: Any, static: tuple[Any, ...] = ()
    ) -> Callable[..., Any]:
        """The same for the arguments of the first call."""
        program: Callable[..., Any] | None = None

        def call(*arguments: Any) -> Any:
            nonlocal program
            program = program or self.compiled(function, parts, *arguments, static=static)
            return program(*arguments)

        return call

    @contextlib.contextmanager
    def in_loop(self) -> Iterator[None]:
        """Counts what happens within as time in the training loop, but for what compiles there."""
        began, compiled = time.perf_counter(), self.compile
        try:
            yield
        finally:
            self.training += time.perf_counter() - began - (self.compile - compiled)
