"""A study's file: YAML with `base`, `grid` and `cells`, or `search`, and `jobs` for the workers of a cluster."""

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from uppertail.errors import InputError, nearest
from uppertail.studies.cells import NAME, Cell, environment_of, name_of
from uppertail.studies.search import Space
from uppertail.yaml_files import read_yaml

CELLS = ("base", "grid", "cells", "search")
KEYS = (*CELLS, "trials", "metric", "jobs")
MOST_CELLS = 10_000  # more are a mistake in the grid, or the work of a search
SETTLED_BY_STUDY = {
    "out": "every cell has a folder of its own within the study's",
    "overwrite": "a study does what is missing, and keeps what is there",
    "quiet": "a study's cells are always quiet",
    "config": "write its options under base",
}
"""Options of `uppertail train` that are not allowed in a study, and why."""


@dataclasses.dataclass(frozen=True)
class Definition:
    """A study."""

    text: str  # the text of the file
    cells: Sequence[Cell]  # its cells, in order; no two have the same name
    jobs: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # the parameters of a cluster's jobs
    space: Space | None = None  # the space of a search, if the cells are its trials; else None

    @classmethod
    def read(cls, path: Path) -> Self:
        """The study in a file."""
        document = read_yaml(path, "The study")
        content = path.read_text(encoding="utf-8")
        try:
            _require_study(document)
            base, jobs = _options("base", document), dict(document.get("jobs") or {})
            if "search" not in document:
                return cls(content, _cells(base, document), jobs)
            space = Space.of(document, base, _options("search", document))
            return cls(content, space.cells(), jobs, space)
        except InputError as error:
            raise InputError(f"In the study {str(path)!r}: {error}") from error


def _require_study(document: Any) -> None:
    """Refuses a document that is not a study, and unknown keys."""
    if not isinstance(document, dict) or not document.keys() & set(CELLS):
        raise InputError(f"it is not a study: it has none of the keys {', '.join(CELLS)}.")
    for key in document:
        if key not in KEYS:
            raise InputError(f"there is no key {key!r}: use {', '.join(KEYS)}.{nearest(str(key), KEYS, 1)}")
        if key in ("trials", "metric") and "search" not in document:
            raise InputError(f"it has {key}, but no search: leave {key} out.")
    if not isinstance(document.get("jobs") or {}, dict):
        raise InputError(f"jobs is {document['jobs']!r}, but it must hold parameters, as `name: value` lines.")


def _cells(base: Mapping[str, Any], document: Mapping[str, Any]) -> list[Cell]:
    grid, listed = _grid(document), _listed(document)
    count = math.prod(map(len, grid.values())) * len(listed)
    if count > MOST_CELLS:
        raise InputError(f"it has {count:,} cells: use {MOST_CELLS:,} or fewer, or a search, which tries some of them.")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    cells = [_cell(base, point, entry) for point in points for entry in listed]
    for name, count in Counter(cell.name.casefold() for cell in cells).items():
        if count > 1:
            raise InputError(f"{count} cells have the name {name!r}: let them differ, or give each a name.")
    return cells


def _cell(base: Mapping[str, Any], point: Mapping[str, Any], entry: Mapping[str, Any]) -> Cell:
    own = {option: value for option, value in entry.items() if option != NAME}
    if both := [option for option in own if option in point]:
        raise InputError(f"{both[0]} is in grid and in cells: leave it out of one of them.")
    named = {NAME: str(entry[NAME])} if NAME in entry else own  # a name stands for the options of the method
    name = name_of({**named, **point}).removeprefix(f"{NAME}=")
    return Cell(name, {**base, **own, **point}, {**named, **environment_of(own), **point})


def _grid(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    grid = _options("grid", document)
    if not grid and ("grid" in document or "cells" not in document):
        said = "grid is empty" if "grid" in document else "it has neither grid nor cells"
        raise InputError(f"{said}: list the values of an option under grid.")
    for option, values in grid.items():
        if not isinstance(values, list):
            raise InputError(f"grid has {option}: {values!r}, but it must be a list of values.")
        if not values:
            raise InputError(f"grid has no values of {option}, so there is no cell: list some, or leave it out.")
    return grid


def _listed(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of `cells`; one empty entry without such a list, so that the grid alone makes the cells."""
    if "cells" not in document:
        return [{}]
    listed = document["cells"]
    if not isinstance(listed, list) or not listed:
        raise InputError("cells must be a list of options and their values, at least one, or be left out.")
    entries = [_options("cells", {"cells": entry}) for entry in listed]
    if not all(entry and str(entry.get(NAME, NAME)).strip() for entry in entries):
        raise InputError("one of cells is empty: give it an option, or a name.")
    return entries


def _options(key: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping from options of `uppertail train`; empty where it is left out."""
    options = document.get(key) or {}
    if not isinstance(options, dict):
        raise InputError(f"{key} is {options!r}, but it must hold options, as `option: value` lines.")
    for option in options:
        if not isinstance(option, str) or not re.fullmatch(r"\w+(\.\w+)*", option):
            raise InputError(f"{key} has {option!r}, which is not the name of an option, such as env.length.")
        if option in SETTLED_BY_STUDY:
            raise InputError(f"{key} has {option}, which is no setting of a run: {SETTLED_BY_STUDY[option]}.")
    return options
