"""The sides of a comparison: a run's folder, a study's folder, or some cells of a study."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.errors import InputError
from uppertail.records import RunFolder
from uppertail.studies import results
from uppertail.studies import settings as of
from uppertail.studies.cells import NAME, text
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder
from uppertail.studies.runs import Sample, key


def select_runs(what: str, study: StudyFolder | None) -> tuple[dict[str, Sample], list[str]]:
    """The seeds of one side, by the key of the environment, and the unfinished runs, which are left out.

    Args:
        what: a folder, or `option=value,option=value`: the cells of the study in which that holds.
        study: the study of these cells.

    Raises:
        InputError: there is no such run or study.
    """
    folders = _folders(what, study)
    environments: dict[str, list[RunFolder]] = {}
    left_out = []
    for folder in folders:
        run = results.finished(folder)
        if run is None:
            left_out.append(folder.name)
            continue
        environments.setdefault(key(of.environment(_settings(folder))), []).append(run)
    if not environments:
        raise InputError(f"There is no finished run in {what}: {', '.join(left_out) or 'it has no cells'}.")
    return {name: Sample.of(runs) for name, runs in environments.items()}, left_out


def _folders(what: str, study: StudyFolder | None) -> list[Path]:
    path = Path(what)
    if (path / records.CONFIG).is_file():
        return [path]
    if StudyFolder(path).definition.is_file():
        return [StudyFolder(path).cell(cell) for cell in Definition.read(StudyFolder(path).definition).cells]
    if path.exists() or "=" not in what:
        raise InputError(f"{what} is neither the folder of a run nor of a study, nor cells such as policy=UCB.")
    if study is None or not study.exists():
        raise InputError(f"Of which study are the cells with {what}? Name its file or folder before --compare.")
    return _cells(what, study)


def _cells(what: str, study: StudyFolder) -> list[Path]:
    """The folders of a study's cells in which options have certain values."""
    cells = {cell.name: cell for cell in Definition.read(study.definition).cells}
    chosen = list(cells)
    for part in what.split(","):
        option, _, value = part.partition("=")
        values = {
            name: text(_values(study.cell(cell), {**cell.options, **cell.varying}).get(option.strip()))
            for name, cell in cells.items()
        }
        there = sorted({each for name, each in values.items() if name in chosen} - {"null"})
        chosen = [name for name in chosen if values[name].casefold() == value.strip().casefold()]
        if not chosen:
            known = f"it is {' or '.join(there)}" if there else "there is no such option"
            raise InputError(f"No cell of the study in {study.path} has {part}: {known}.")
    return [study.cell(cells[name]) for name in chosen]


def _values(folder: Path, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A cell's options; with defaults, where it has begun."""
    return {**(_settings(folder) if (folder / records.CONFIG).is_file() else {}), **options, NAME: options.get(NAME)}


def _settings(folder: Path) -> dict[str, Any]:
    settings = results.settings(folder)
    if settings is None:
        raise InputError(f"{folder / records.CONFIG} cannot be read: restore it from a copy.")
    return settings
