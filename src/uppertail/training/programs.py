"""Compiled programs, and the groups of seeds that run one together: each seed alone on a CPU, all on an accelerator.

The numbers of a run's parts are arguments of its programs, so runs that differ only in these share them. On a CPU, a
seed alone keeps its weights in the cache, computes only the branches it takes, and learns the same however many seeds
run beside it. An accelerator needs large products, so its seeds are batched.
"""

import contextlib
import copy
import dataclasses
import functools
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uppertail.capacity import require_memory
from uppertail.compiling import jitted
from uppertail.identity import identity_of
from uppertail.training.process import cores
from uppertail.types import PyTree

MOST = 64  # programs that a process keeps; the one used longest ago goes first
NUMBERS = {float: np.float32, int: np.int32}  # the types of numbers that can be arguments, and their types in a program
ALONE = ("cpu",)  # platforms on which each seed runs alone
LESS = (
    "use fewer --seeds, a smaller --network.width, --batch_size or --rollout_steps, or fewer --distribution.bins or "
    "components"
)
"""The remedy if a program needs too much memory."""

_kept: OrderedDict[Any, Any] = OrderedDict()
_found_on_disk = [0]


def _count(event: str, **_: Any) -> None:
    _found_on_disk[0] += event == "/jax/compilation_cache/cache_hits"


jax.monitoring.register_event_listener(_count)


class Programs:
    """The compiled programs of a run, and its seconds: in total, for compilation, in the training loop.

    Attributes:
        compilations: programs that this process compiled for it; it shares the others with earlier runs.
    """

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.compile = self.training = 0.0
        self.compilations = 0
        self._lock, self._compiling, self._since = threading.Lock(), 0, 0.0

    def state(self) -> dict[str, float]:
        """The times until now, to which a resumed run adds its own."""
        return {"wall": time.perf_counter() - self.began, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        self.began -= state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]

    def compiled(
        self,
        function: Callable[..., Any],
        parts: Any,
        *arguments: PyTree,
        static: tuple[Any, ...] = (),
        shared: int = 0,
        donate: tuple[int, ...] = (),
        keep: bool = True,
    ) -> Callable[..., Any]:
        """Compiles `function(parts, *static, *arguments)` of one seed for all seeds, or finds it compiled.

        The function is defined in a module. Fields of its parts with the metadata `schema.TRACED` are arguments of the
        program, and `static` are constants. Arguments are arrays, or shapes and types, with a leading axis of seeds,
        but the first `shared` are the same for all of them; those in `donate` may be overwritten. Later runs find it
        again if parts hold the same (`identity_of`), unless `keep` is false. A program that needs more memory than
        there is is refused.
        """
        found = _found_on_disk[0]
        skeleton, numbers = split(parts)
        key = (function, identity_of((skeleton, static)), _kinds(arguments), shared, donate)
        compiled = _kept.pop(key, None) if keep else None
        if compiled is None:

            def program(numbers: list[Any], *arguments: PyTree) -> Any:
                of_seed = functools.partial(function, filled(skeleton, numbers), *static)
                return over_seeds(of_seed, *arguments, shared=shared)

            donated = [number + 1 for number in donate]
            with self._counted():
                compiled = jitted(program, donate_argnums=donated).lower(numbers, *arguments).compile()
            self.compilations += _found_on_disk[0] == found
        if keep:
            _kept[key] = compiled
        if len(_kept) > MOST:
            _kept.popitem(last=False)
        if (needs := compiled.memory_analysis()) is not None:
            new = needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes
            require_memory(new, "A step of this run needs", LESS)
        device, *_ = [*jax.tree.leaves(compiled.input_shardings[0]), None]
        return functools.partial(compiled, jax.device_put(numbers, device))

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts what happens within as time for compilation; what threads compile at the same time, once."""
        with self._lock:
            self._since = self._since if self._compiling else time.perf_counter()
            self._compiling += 1
        try:
            yield
        finally:
            with self._lock:
                self._compiling -= 1
                self.compile += 0.0 if self._compiling else time.perf_counter() - self._since

    def call(self, function: Callable[..., Any], parts: Any, *arguments: PyTree, **options: Any) -> Any:
        """What the same program returns of these arguments, on the device where they are."""
        return self.compiled(function, parts, *arguments, **options)(*arguments)

    def compiled_later(self, function: Callable[..., Any], parts: Any, **options: Any) -> Callable[..., Any]:
        """The same for the arguments of the first call, and later ones on the same device."""
        program: Callable[..., Any] | None = None

        def call(*arguments: Any) -> Any:
            nonlocal program
            program = program or self.compiled(function, parts, *arguments, **options)
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


@dataclasses.dataclass(frozen=True)
class Group:
    """Some seeds, as a slice of all of them, and the device where they run."""

    rows: slice
    device: Any

    def part_of(self, template: PyTree) -> PyTree:
        """Shapes and types of its part of a tree, whose arrays have a leading axis of all seeds."""
        here, size = jax.sharding.SingleDeviceSharding(self.device), self.rows.stop - self.rows.start
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype, sharding=here), template
        )


class Groups:
    """This many seeds of a run, in groups; as many run at a time as there are cores or accelerators."""

    def __init__(self, seeds: int) -> None:
        devices = jax.local_devices()
        alone = devices[0].platform in ALONE
        count = seeds if alone else min(seeds, len(devices))
        edges = np.linspace(0, seeds, count + 1).astype(int).tolist()
        self.groups = [
            Group(slice(*rows), devices[number % len(devices)]) for number, rows in enumerate(itertools.pairwise(edges))
        ]
        self.workers = min(count, cores()) if alone else count

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def split(self, tree: PyTree) -> list[PyTree]:
        """Each group's part of a tree, whose arrays have a leading axis of all seeds, on its device."""
        if len(self.groups) == 1:
            return [jax.device_put(tree, self.groups[0].device)]
        return [jax.device_put(rows_of(tree, group.rows), group.device) for group in self.groups]

    def join(self, parts: list[PyTree]) -> PyTree:
        """Joins the groups' trees into one of all seeds, on the first device or on the host."""

        def end_to_end(*leaves: Any) -> Any:
            if isinstance(leaves[0], np.ndarray):
                return np.concatenate(leaves)
            first = jax.local_devices()[0]
            if _is_of_keys(leaves[0]):
                return jnp.concatenate(jax.device_put(list(leaves), first))
            return jax.device_put(np.concatenate([*map(np.asarray, leaves)]), first)

        return parts[0] if len(parts) == 1 else jax.tree.map(end_to_end, *parts)

    def map(self, function: Callable[..., Any], *parts: list[Any]) -> list[Any]:
        """Applies a function to each group's parts, to as many groups at a time as there are workers."""
        if len(self.groups) == 1:
            return [function(*(each[0] for each in parts))]
        return list(self._threads.map(function, *parts))

    def close(self) -> None:
        """Ends the threads; later calls of `map` start others."""
        if threads := self.__dict__.pop("_threads", None):
            threads.shutdown()

    @functools.cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.workers)


def rows_of(tree: PyTree, rows: int | slice) -> PyTree:
    """Some rows of every array of a tree, taken on the host: nothing is compiled for them, but for those of keys."""
    return jax.tree.map(lambda leaf: leaf[rows] if _is_of_keys(leaf) else np.asarray(leaf)[rows], tree)


def _is_of_keys(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def on_accelerator() -> bool:
    """Whether runs are on a GPU, say."""
    return jax.local_devices()[0].platform not in ALONE


def over_seeds(function: Callable[..., Any], *arguments: PyTree, shared: int = 0) -> PyTree:
    """Applies a function of one seed to arrays with a leading axis of seeds; a single seed on a CPU is not batched.

    The first `shared` arguments are the same for all seeds, and have no such axis.
    """
    function = functools.partial(function, *arguments[:shared])
    own = arguments[shared:]
    if jax.tree.leaves(own)[0].shape[0] > 1 or on_accelerator():
        return jax.vmap(function)(*own)
    results = function(*jax.tree.map(lambda leaf: leaf[0], own))
    return jax.tree.map(lambda leaf: leaf[None], results)
