"""The runs that `uppertail study --compare` names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uppertail.errors import InputError
from uppertail.records import CONFIG, RunFolder
from uppertail.studies import cells as of
from uppertail.studies.cells import NAME, key, text
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder, finished_run, settings_of
from uppertail.studies.samples import Sample


def select_runs(what: str, study: StudyFolder | None) -> tuple[dict[str, Sample], list[str]]:
    """The seeds of one side, by the key of the environment, and the unfinished runs, which are left out.

    Args:
        what: a folder, or `option=value,option=value`: the cells of the study in which that holds.
        study: the study of these cells.
    """
    environments: dict[str, list[RunFolder]] = {}
    left_out: list[str] = []
    for folder in _folders(what, study):
        if (run := finished_run(folder)) is None:
            left_out.append(folder.name)
        else:
            environments.setdefault(key(of.environment(_settings(folder))), []).append(run)
    if not environments:
        raise InputError(f"There is no finished run in {what}: {', '.join(left_out) or 'it has no cells'}.")
    return {name: Sample.of(found) for name, found in environments.items()}, left_out


def _folders(what: str, study: StudyFolder | None) -> list[Path]:
    path, other = Path(what), StudyFolder(Path(what))
    if (path / CONFIG).is_file():
        return [path]
    if other.definition.is_file():
        return [other.cell(cell) for cell in Definition.read(other.definition).cells]
    if path.exists() or "=" not in what:
        raise InputError(f"{what} is neither the folder of a run nor of a study, nor cells such as policy=UCB.")
    if study is None or not study.exists():
        raise InputError(f"Of which study are the cells with {what}? Name its file or folder before --compare.")
    return _cells(what, study)


def _cells(what: str, study: StudyFolder) -> list[Path]:
    """The folders of a study's cells in which options have certain values."""
    cells = {study.cell(cell): _options(study, cell) for cell in Definition.read(study.definition).cells}
    for part in what.split(","):
        option, _, value = part.partition("=")
        values = {folder: text(options.get(option.strip())) for folder, options in cells.items()}
        cells = {folder: cells[folder] for folder in cells if values[folder].casefold() == value.strip().casefold()}
        if not cells:
            there = sorted({*values.values()} - {"null"})
            known = f"it is {' or '.join(there)}" if there else "there is no such option"
            raise InputError(f"No cell of the study in {study.path} has {part}: {known}.")
    return list(cells)


def _options(study: StudyFolder, cell: of.Cell) -> Mapping[str, Any]:
    """A cell's options; with defaults, where it has begun."""
    folder, options = study.cell(cell), {**cell.options, **cell.varying}
    return {**(_settings(folder) if (folder / CONFIG).is_file() else {}), **options, NAME: options.get(NAME)}


def _settings(folder: Path) -> dict[str, Any]:
    settings = settings_of(folder)
    if settings is None:
        raise InputError(f"{folder / CONFIG} cannot be read: restore it from a copy.")
    return settings
