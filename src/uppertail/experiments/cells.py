"""A cell: one piece of an experiment, computed once and kept in a file, so that a second call continues from there."""

import dataclasses
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uppertail import records
from uppertail.training.results import Progress

DOCUMENT, ASKED = "document", "asked"
"""The array of a cell's file that holds its document, as JSON, and the document's entry for the cell's settings."""

FORMAT = 1
"""Raised when the documents of cells change, so that older files are not read as newer ones."""

Report = Callable[[Progress], object]


@dataclasses.dataclass(frozen=True, eq=False)
class CellResult:
    """The result of a cell: a document of plain values, for JSON, and arrays."""

    document: dict[str, Any]
    arrays: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One piece of an experiment.

    Args:
        name: its name within the experiment, and its file's.
        settings: all settings that its result depends on, for JSON; a kept result of other settings is not used.
        compute: computes it, and reports the progress of what it trains.
    """

    name: str
    settings: dict[str, Any]
    compute: Callable[[Report], CellResult]


class UnusableCellError(Exception):
    """A cell's file that cannot be used; its text says why."""


def read(folder: Path, cell: Cell) -> CellResult | None:
    """The kept result of a cell; None where there is none.

    Raises:
        UnusableCellError: its file is damaged, or the result of other settings.
    """
    path = _path(folder, cell)
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:  # each array has its checksum
            arrays = {name: content[name] for name in content.files}
        document = json.loads(str(arrays.pop(DOCUMENT)))
        asked = dict(document.pop(ASKED))
    except Exception as error:  # a damaged archive raises many kinds of errors
        raise UnusableCellError("its file is damaged") from error
    if asked.pop("format", None) != FORMAT:
        raise UnusableCellError("its file is of another version")
    if asked != _plain(cell.settings):
        raise UnusableCellError("it was computed with other settings")
    return CellResult(document, arrays)


def write(folder: Path, cell: Cell, result: CellResult) -> None:
    """Keeps the result of a cell, whole or not at all."""
    document = json.dumps({ASKED: {"format": FORMAT, **cell.settings}, **result.document}, allow_nan=False)
    content = io.BytesIO()
    np.savez_compressed(content, **result.arrays, **{DOCUMENT: np.array(document)})  # pyright: ignore[reportArgumentType]
    folder.mkdir(exist_ok=True)
    records.write_bytes(_path(folder, cell), content.getvalue())


def _path(folder: Path, cell: Cell) -> Path:
    return folder / f"{cell.name}.npz"


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(settings))
