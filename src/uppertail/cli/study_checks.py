"""The checks of `uppertail study` before anything runs."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uppertail.errors import InputError
from uppertail.studies.cells import Cell, text
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder

if TYPE_CHECKING:
    from uppertail.studies.summary import Settings

SOME = 100
"""The most cells that a dry run checks; a cell takes about a tenth of a second."""


def check_cells(definition: Definition, folder: StudyFolder) -> "Settings":
    """Checks every cell, or those at the ends of a search, and returns the settings of each, flat.

    Raises:
        InputError: a cell is not valid, two cells are the same, or a folder is that of another run.
    """
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
    """Checks one cell for each value of each option, up to a hundred.

    Raises:
        InputError: as `check_cells`.
    """
    if definition.space is None:
        _check(list(itertools.islice(_with_new_values(definition.cells), SOME)), folder)
    else:
        check_cells(definition, folder)


def _with_new_values(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells that have a value which none before them has."""
    seen: set[tuple[str, str]] = set()
    for cell in cells:
        values = {(option, text(value)) for option, value in cell.options.items()}
        if not values <= seen:
            yield cell
        seen |= values


def _check(cells: Sequence[Cell], folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """The settings of each cell, flat."""
    import yaml

    from uppertail.cli import train
    from uppertail.studies.cells import flat
    from uppertail.studies.runs import key
    from uppertail.training.checkpoints.folder import Checkpoints
    from uppertail.training.settings import Settings

    found: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for cell in cells:
        place = folder.cell(cell)
        try:
            request = train.parse_request(cell.arguments)
            Settings(**{name: request.built[name] for name in Settings.__dataclass_fields__})
            Checkpoints(place, request.checkpoint_every)
            if request.built.logger:
                request.loggers(place)
        except InputError as error:
            raise InputError(f"In the cell {cell.name}: {error}") from error
        asked = flat(yaml.safe_load(request.config))
        same = names.setdefault(key(asked), cell.name)
        if same != cell.name:
            raise InputError(f"The cells {same} and {cell.name} ask for the same: leave one of them out.")
        found[cell.name] = asked
        if other := _other(place, asked):
            raise InputError(
                f"The cell folder {place} has other settings ({other}): choose another --out, or remove it."
            )
    return found


def _other(place: Path, asked: dict[str, Any]) -> str | None:
    """The first setting of a run that differs from those asked for, in words; None without one or without a run."""
    from uppertail import records
    from uppertail.studies.cells import differences
    from uppertail.studies.runs import settings

    saved = settings(place) if (place / records.CONFIG).is_file() else None
    return None if saved is None else next(differences(saved, asked), None)
