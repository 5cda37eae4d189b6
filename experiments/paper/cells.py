"""A cell: one piece of a figure, computed once and kept in a file, so that a second call continues from there."""

import dataclasses
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.provenance import record
from uppertail import records
from uppertail.training.ledger import Progress

DOCUMENT, SETTINGS = "document", "asked"
"""The array of a cell's file that holds its document as JSON, and the document's entry for the cell's settings."""

Report = Callable[[Progress], object]


@dataclasses.dataclass(frozen=True, eq=False)
class CellResult:
    """The result of a cell: a document of plain values, for JSON, and arrays."""

    document: dict[str, Any]
    arrays: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One piece of a figure.

    Args:
        name: its name within the figure, and its file's.
        settings: all settings that its result depends on, for JSON; a kept result of other settings is not used.
        compute: computes it, and reports the progress of what it trains.
        first: computes its first seed alone; None: there is no such thing.
    """

    name: str
    settings: dict[str, Any]
    compute: Callable[[Report], CellResult]
    first: Callable[[Report], CellResult] | None = None


class UnusableCellError(Exception):
    """A cell's file that cannot be used; its text says why."""


def read(folder: Path, cell: Cell) -> CellResult | None:
    """The kept result of a cell; None where there is none.

    Raises:
        UnusableCellError: its file is damaged, or the result of other settings.
    """
    path = folder / f"{cell.name}.npz"
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:  # each array has its checksum
            arrays = dict(content)
        document = json.loads(str(arrays.pop(DOCUMENT)))
        settings = document.pop(SETTINGS)
    except Exception as error:  # a damaged archive raises many kinds of errors
        raise UnusableCellError("its file is damaged") from error
    if settings != json.loads(json.dumps(cell.settings)):
        raise UnusableCellError("it was computed with other settings")
    return CellResult(document, arrays)


def write(folder: Path, cell: Cell, result: CellResult) -> None:
    """Keeps the result of a cell, whole or not at all."""
    document = json.dumps({SETTINGS: cell.settings, **result.document}, allow_nan=False)
    content = io.BytesIO()
    np.savez_compressed(content, **result.arrays, **{DOCUMENT: np.array(document)})  # pyright: ignore[reportArgumentType]
    folder.mkdir(exist_ok=True)
    path = folder / f"{cell.name}.npz"
    records.write_bytes(path, content.getvalue())
    record(path)


def episodes_of(arrays: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
    """Returns and lengths of the episodes of each seed, if a cell has some."""
    seeds = records.Episodes.of_arrays(arrays) if "return" in arrays else []
    return {"returns": [each.returns.tolist() for each in seeds], "lengths": [each.lengths.tolist() for each in seeds]}


def stored(path: Path) -> dict[str, Any]:
    """A cell's file as a document, with its episodes."""
    with np.load(path, allow_pickle=False) as content:
        arrays = dict(content)
    return {**json.loads(str(arrays.pop(DOCUMENT))), **episodes_of(arrays)}
