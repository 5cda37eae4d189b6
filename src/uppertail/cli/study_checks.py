"""The checks of `uppertail study` before anything runs."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uppertail.errors import InputError
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder

if TYPE_CHECKING:
    from uppertail.studies.space import Space


def check_cells(definition: Definition, folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """Checks every cell before anything runs, and returns the settings of each, flat.

    Raises:
        InputError: a cell is not valid, two cells are the same, or a folder is that of another run.
    """
    import yaml

    from uppertail.cli import train
    from uppertail.studies.runs import key
    from uppertail.studies.settings import flat
    from uppertail.training.checkpoints.folder import Checkpoints
    from uppertail.training.settings import Settings

    if definition.space is not None:
        _search(definition.space, folder)
    found: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for cell in definition.cells if definition.space is None else definition.space.probes():
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
        if same != cell.name and definition.space is None:
            raise InputError(f"The cells {same} and {cell.name} ask for the same: leave one of them out.")
        found[cell.name] = asked
        if other := _other(place, asked):
            raise InputError(
                f"The cell folder {place} has other settings ({other}): choose another --out, or remove it."
            )
    return found


def _search(space: "Space", folder: StudyFolder) -> None:
    """Refuses a search without Optuna, and one in the folder of another."""
    from uppertail.studies.search import require_optuna

    require_optuna()
    if not folder.definition.is_file():
        return
    other = Definition.read(folder.definition).space
    if other is None or dataclasses.replace(other, trials=space.trials) != space:
        raise InputError(f"The study in {folder.path} is not this search: choose another --out.")


def _other(place: Path, asked: dict[str, Any]) -> str | None:
    """The first setting of a run that differs from those asked for, in words; None without one or without a run."""
    import yaml

    from uppertail import records
    from uppertail.cli import train
    from uppertail.studies import results
    from uppertail.studies.settings import differences, flat

    config = place / records.CONFIG
    saved = results.settings(place) if config.is_file() else None
    if saved is None or saved == asked:
        return None
    now = flat(yaml.safe_load(train.read_request(config).config))  # with settings that came with a later version
    return next(differences(now, asked), None)
