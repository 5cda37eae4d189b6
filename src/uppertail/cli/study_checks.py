"""The checks of `uppertail study` before anything runs."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from uppertail.cli import request
from uppertail.errors import InputError
from uppertail.studies.cells import Cell, differences, flat, key, text
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder, settings_of
from uppertail.studies.summary import Settings

SOME = 100
"""The most cells that a dry run checks; a cell takes about a tenth of a second."""


def check_cells(definition: Definition, folder: StudyFolder) -> Settings:
    """Checks every cell, or those at the ends of a search, and returns the settings of each, flat."""
    if definition.space is None:
        return _check(definition.cells, folder)
    if folder.definition.is_file():
        other = Definition.read(folder.definition).space
        if other is None or dataclasses.replace(other, trials=definition.space.trials) != definition.space:
            raise InputError(f"The study in {folder.path} is not this search: choose another --out.")
    for probe in definition.space.probes():  # any two may be the same
        _check([probe], folder)
    return {}


def check_some_cells(definition: Definition, folder: StudyFolder) -> None:
    """Checks one cell for each value of each option, up to a hundred."""
    if definition.space is None:
        _check(list(itertools.islice(_with_new_values(definition.cells), SOME)), folder)
    else:
        check_cells(definition, folder)


def _with_new_values(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells that have a value which none before them has."""
    known: set[tuple[str, str]] = set()
    for cell in cells:
        values = {(option, text(value)) for option, value in cell.options.items()}
        if not values <= known:
            yield cell
        known |= values


def _check(cells: Sequence[Cell], folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """The settings of each cell, flat; a cell that is not valid, or the same as another, is refused."""
    found: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for cell in cells:
        place = folder.cell(cell)
        try:
            asked = request.parse_request(cell.arguments)
            asked.check(place)
        except InputError as error:
            raise InputError(f"In the cell {cell.name}: {error}") from error
        settings = flat(yaml.safe_load(asked.config))
        same = names.setdefault(key(settings), cell.name)
        if same != cell.name:
            raise InputError(f"The cells {same} and {cell.name} ask for the same: leave one of them out.")
        found[cell.name] = settings
        saved = settings_of(place)
        if other := None if saved is None else next(differences(saved, settings), None):
            raise InputError(
                f"The cell folder {place} has other settings ({other}): choose another --out, or remove it."
            )
    return found
