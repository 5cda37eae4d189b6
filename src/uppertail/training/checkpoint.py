"""One checkpoint: named arrays and a header in a safetensors file, whole or not at all, with its own checksum."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from uppertail.defaults import Plan
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.records import NETWORKS, RunFolder, RunRecord, digest, write_bytes
from uppertail.schema import convert
from uppertail.training.results import TrainingResult
from uppertail.training.run import Run
from uppertail.training.settings import most_episodes
from uppertail.types import PyTree

FORMAT = 1  # number of the format; a reader refuses every other

HEADER, DIGEST = "uppertail", "sha256"
"""The entries of the file's metadata: the header as JSON, and the checksum of the header and all arrays."""


AGAIN = "delete it and resume the run, or train it again"  # the remedy if the file is damaged
OTHER_VERSION = "use the version of uppertail that made it, or train again in another folder"
OTHER_SETTINGS = "restore the run's settings, or train again in another folder"


class UnusableCheckpointError(Exception):
    """A checkpoint that cannot be used; its text says why, and begins with a verb. It is damaged without a `remedy`."""

    def __init__(self, text: str, remedy: str | None = None) -> None:
        super().__init__(text)
        self.remedy = remedy


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of a checkpoint."""

    step: int  # environment steps of each seed until then
    asked: dict[str, Any]  # the parts and settings of the run
    environments: str  # checksum of the environments' arrays, which a resumed run builds again
    stopped: str | None  # why the callback stopped the run
    seconds: dict[str, float]  # times of the run until then
    hardware: dict[str, Any]

    @property
    def plan(self) -> Plan | None:
        """What was chosen for the run; None: it was made before there were plans."""
        return Plan.read(self.asked.get("plan"))

    def check(self) -> None:
        """Raises one of several errors unless its entries are of the types that a run writes."""
        json.dumps(dataclasses.asdict(self), allow_nan=False, ensure_ascii=False).encode()
        measured = self.asked["measured_returns"]
        parts = {name: part for name, part in self.asked.items() if name != "measured_returns" and part is not None}
        for value, kind in (
            (self.step, int),
            (parts, dict[str, dict[str, Any]]),
            ([parts[name]["name"] for name in ("environment", "distribution", "policy")], list[str]),
            ([parts["settings"][name] for name in ("seed", "seeds")], list[int]),
            ([parts["settings"][name] for name in ("episodes", "steps")], list[int | None]),
            (measured, tuple[float, float] | None),
            (self.environments, str),
            (self.stopped, str | None),
            (self.seconds, dict[str, float]),
            (self.hardware, dict[str, Any]),
        ):
            convert(value, kind)
        if self.seconds.keys() != {"wall", "compile", "training"} or self.step < 0:
            raise ValueError("no run wrote this")

    def require_run(self, asked: dict[str, Any], environments: str) -> None:
        """Refuses the checkpoint of a run with other parts, settings or environments."""
        was, now = ({name: each for name, each in of.items() if name != "plan"} for of in (self.asked, asked))
        if different := [*differences(was, json.loads(json.dumps(now)))]:
            other = next((text for text, is_new in different if is_new), None)
            remedy = OTHER_SETTINGS if other is None else OTHER_VERSION
            raise UnusableCheckpointError(f"was made with {other or different[0][0]}", remedy)
        if self.environments != environments:
            raise UnusableCheckpointError("was made in environments that are built differently here", OTHER_VERSION)


def differences(was: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each part and setting in which two runs differ, in words; of parts of different classes, only the classes.

    It says also whether only one of the two knows it, as if another version had made the run.
    """
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            kinds = before.get("name"), after.get("name")
            if kinds[0] == kinds[1]:
                yield from differences(before, after)
            else:
                yield f"{name} {kinds[0]}, not {kinds[1]}", False
        elif name not in was and after is None:  # a later version has it, and it is open
            continue
        elif name not in was or name not in now:
            yield f"no {name}" if name not in was else f"{name}, which is unknown here", True
        elif before != after:
            yield f"{name} {before}, not {after}", False


def write(path: Path, header: Header, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a checkpoint, whole or not at all."""
    text = json.dumps({"format": FORMAT, **dataclasses.asdict(header)}, allow_nan=False)
    write_bytes(path, safetensors.numpy.save(dict(arrays), {HEADER: text, DIGEST: digest(arrays, text)}), durable=True)


def read(path: Path) -> tuple[Header, dict[str, np.ndarray]]:
    """Header and arrays of a checkpoint; one that is damaged or has another format is refused."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            text, expected = (file.metadata()[name] for name in (HEADER, DIGEST))
        if digest(arrays, text) != expected:
            raise ValueError("another checksum")
        fields = json.loads(text)
        if (number := fields.pop("format")) == FORMAT:
            header = Header(**fields)
            header.check()
            return header, arrays
        version = fields["hardware"]["uppertail"]
    except (Exception, MemoryError) as error:  # a damaged or forged file raises many kinds of errors
        raise UnusableCheckpointError("is damaged") from error
    raise UnusableCheckpointError(
        f"has format {number} (uppertail {version}), and this version reads {FORMAT}", OTHER_VERSION
    )


def save_networks(folder: Path, result: TrainingResult) -> None:
    """Writes the networks of all seeds to a run's folder, whole or not at all."""
    record, environments = result.record, digest(to_named(result.environments))
    seconds = {name: getattr(record, f"{name}_seconds") for name in ("wall", "compile", "training")}
    header = Header(max(record.env_steps), record.asked, environments, record.stopped, seconds, record.hardware)
    write(folder / NETWORKS, header, to_named(result.networks))


@dataclasses.dataclass(frozen=True)
class LearnedFile:
    """The contents of the file: its path, its header, and the networks of all seeds as named arrays."""

    path: Path
    header: Header
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The file in a run's folder; an InputError says why it cannot be used."""
        path = folder / NETWORKS
        if not path.is_file():
            raise InputError(
                f"The run in {folder} has no {NETWORKS}: train it again, or resume it if it has checkpoints."
            )
        try:
            return cls(path, *read(path))
        except UnusableCheckpointError as error:
            raise InputError(f"{path} {error}: {error.remedy or AGAIN}.") from error

    def networks(self, run: Run) -> Network:
        """The networks of a run that was built again; those of another run are refused."""
        try:
            self.header.require_run(run.asked(), digest(to_named(run.driver.environments)))
            return from_named(run.driver.template.network_at_limit, self.arrays)
        except UnusableCheckpointError as error:
            raise InputError(f"{self.path} {error}: {error.remedy or AGAIN}.") from error


def record_of(folder: RunFolder, header: Header) -> RunRecord:
    """The record of a run, from its folder and the header of its networks."""
    summary, settings = folder.summary, header.asked["settings"]
    most = most_episodes(settings["episodes"], settings["steps"])
    return RunRecord(
        asked=header.asked,
        success=folder.success,
        floor_episodes=summary.get("floor_episodes"),
        episodes=folder.episodes,
        env_steps=[int(seed.end_steps[-1]) if seed.returns.size >= most else header.step for seed in folder.episodes],
        greedy_returns=[math.nan if ret is None else ret for ret in summary["final_greedy_return"]],
        **{f"{name}_seconds": seconds for name, seconds in header.seconds.items()},
        **{name: summary[name] for name in ("interrupted", "diverged", "stopped", "failed", "hardware")},
        outside_share=math.nan if (share := summary["targets_outside_support"]) is None else share,
        compilations=summary["compilations"],
        kept_step=summary.get("kept_step"),
    )


def to_named(tree: PyTree) -> dict[str, np.ndarray]:
    """Every array of a tree, by its path."""
    return {name: np.asarray(_plain(leaf), order="C") for name, leaf in _leaves(tree)}


def from_named(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A tree with these arrays; the template, which may hold only shapes and types, must have the same ones."""
    plain = dict(_leaves(jax.eval_shape(lambda tree: jax.tree.map(_plain, tree), template)))
    found, wanted = (
        {name: f"{each.dtype}{[*each.shape]}" for name, each in named.items()} for named in (arrays, plain)
    )
    for name in sorted(found.keys() | wanted.keys()):
        if (here := found.get(name, "missing")) != (there := wanted.get(name, "expected")):
            raise UnusableCheckpointError(f"has another shape: {name} is {here}, not {there}", OTHER_VERSION)

    def on_device(leaf: Any, array: np.ndarray) -> Any:
        copy = jnp.array(array, copy=True)  # since the compiled loop overwrites what it is given
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(copy, impl=jax.random.key_impl(jnp.empty((), leaf.dtype)))
        return copy

    leaves = [on_device(leaf, arrays[name]) for name, leaf in _leaves(template)]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _leaves(tree: PyTree) -> list[tuple[str, Any]]:
    return [
        (jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in jax.tree.leaves_with_path(tree)
    ]


def _plain(leaf: Any) -> Any:
    """The numbers of an array, or of a key."""
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
