"""One checkpoint: named arrays and a header in a safetensors file, whole or not at all, with its own checksum."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from uppertail.errors import short_text
from uppertail.records import write_bytes
from uppertail.schema import MismatchError, build_from, convert
from uppertail.types import PyTree

FORMAT = 1  # number of the format; a reader refuses every other

HEADER, DIGEST = "uppertail", "sha256"
"""The entries of the file's metadata: the header as JSON, and the checksum of the header and all arrays."""

DAMAGED = (OSError, safetensors.SafetensorError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors that readers raise for damaged files."""


class UnusableCheckpointError(Exception):
    """A checkpoint that cannot be used; its text says why, and begins with a verb."""


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of a checkpoint."""

    step: int  # environment steps of each seed until then
    asked: dict[str, Any]  # the parts and settings of the run
    environments: str  # checksum of the environments' arrays, which a resumed run builds again
    stopped: str | None  # why the callback stopped the run
    seconds: dict[str, float]  # times of the run until then
    hardware: dict[str, Any]

    def __post_init__(self) -> None:
        with contextlib.suppress(MismatchError):
            for name, part in self.asked.items():
                convert(part, tuple[float, float] | None if name == "measured_returns" else dict[str, Any] | None)
            low, high = self.asked.get("measured_returns") or (0.0, 0.0)
            times = self.seconds.keys() == {"wall", "compile", "training"} and min(self.seconds.values()) >= 0
            if self.step >= 0 and low <= high and times:
                return
        raise MismatchError("step, asked or seconds is impossible")

    @classmethod
    def of_json(cls, text: str) -> Self:
        """The header of a file; one of another format is refused."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise UnusableCheckpointError("is damaged: its header is no mapping")
        if (number := fields.pop("format", None)) != FORMAT:
            version = dict(fields.get("hardware", {})).get("uppertail", "an unknown version")
            raise UnusableCheckpointError(
                f"has format {short_text(number)} (uppertail {version}), and this version reads {FORMAT}"
            )
        try:
            return build_from(cls, fields)
        except MismatchError as error:
            raise UnusableCheckpointError(f"is damaged: in its header, {error}") from error

    def json(self) -> str:
        """The header in the form of the file."""
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, allow_nan=False)

    def require_run(self, asked: dict[str, Any], environments: str) -> None:
        """Refuses the checkpoint of a run with other parts, settings or environments."""
        if different := next(_differences(self.asked, json.loads(json.dumps(asked))), None):
            raise UnusableCheckpointError(f"was made with {different}")
        if self.environments != environments:
            raise UnusableCheckpointError("was made in environments that are built differently here")


def _differences(was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Each part and setting in which two runs differ, in words; of parts of different classes, only the classes."""
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            kinds = before.get("name"), after.get("name")
            if kinds[0] == kinds[1]:
                yield from _differences(before, after)
            else:
                yield f"{name} {kinds[0]}, not {kinds[1]}"
        elif name not in was or name not in now:
            yield f"no {name}" if name not in was else f"{name}, which is unknown here"
        elif before != after:
            yield f"{name} {before}, not {after}"


def write(path: Path, header: Header, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a checkpoint, whole or not at all."""
    text = header.json()
    write_bytes(path, safetensors.numpy.save(dict(arrays), {HEADER: text, DIGEST: digest(arrays, text)}), durable=True)


def read(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    """Header and arrays of a checkpoint; one that is damaged or has another format is refused."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
            text, expected = metadata[HEADER], metadata[DIGEST]
            header = Header.of_json(text)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except DAMAGED as error:
        raise UnusableCheckpointError("is damaged") from error
    if digest(arrays, text) != expected:
        raise UnusableCheckpointError("is damaged")
    return header, arrays


def digest(arrays: Mapping[str, np.ndarray], text: str = "") -> str:
    """SHA-256 of a text and of arrays: their names, types, shapes and bytes."""
    total = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.asarray(array, order="C").reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def to_named(tree: PyTree) -> dict[str, np.ndarray]:
    """Every array of a tree, by its path."""
    return {name: np.asarray(_plain(leaf), order="C") for name, leaf in _leaves(tree)}


def from_named(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A tree with these arrays; the template, which may hold only shapes and types, must have the same ones."""
    expected = dict(_leaves(template))
    if odd := sorted(expected.keys() ^ arrays.keys()):
        problem = "missing" if odd[0] in expected else "not expected"
        raise UnusableCheckpointError(f"has another shape: {odd[0]} is {problem}")
    for name, leaf in expected.items():
        plain, array = jax.eval_shape(_plain, leaf), arrays[name]
        if (plain.shape, plain.dtype) != (array.shape, array.dtype):
            found, wanted = (f"{each.dtype}{list(each.shape)}" for each in (array, plain))
            raise UnusableCheckpointError(f"has another shape: {name} is {found}, not {wanted}")

    def on_device(leaf: Any, array: np.ndarray) -> Any:
        copy = jnp.array(array, copy=True)  # since the compiled loop overwrites what it is given
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(copy, impl=jax.random.key_impl(jnp.empty((), leaf.dtype)))
        return copy

    leaves = [on_device(leaf, arrays[name]) for name, leaf in expected.items()]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _leaves(tree: PyTree) -> list[tuple[str, Any]]:
    return [
        (jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in jax.tree.leaves_with_path(tree)
    ]


def _plain(leaf: Any) -> Any:
    """The numbers of an array, or of a key."""
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
