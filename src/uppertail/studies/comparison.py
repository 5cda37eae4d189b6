"""Is B better than A? Over the environments that both have been run in, with effects and intervals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.analysis.improvement import (
    difference_of_means,
    earlier_is_better,
    higher_is_better,
    improvement,
    ratio_of_times,
)
from uppertail.errors import InputError
from uppertail.records import RunFolder
from uppertail.studies import cells as of
from uppertail.studies import runs
from uppertail.studies.cells import NAME, text
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder
from uppertail.studies.runs import FINAL_RETURN, TIMES, Sample, key

SIGNIFICANT = 0.05


def compare(a: Mapping[str, Sample], b: Mapping[str, Sample]) -> dict[str, Any]:
    """For each metric, the probability that a run of B is better than one of A, and the effect.

    Args:
        a: environment to the seeds in it.
        b: likewise.

    Raises:
        InputError: they have no environment in common.
    """
    shared = [name for name in a if name in b]
    if not shared:
        raise InputError(
            f"A was run in {'; '.join(a)}, and B in {'; '.join(b)}: only runs in the same environment can be compared."
        )
    document: dict[str, Any] = {"environments": shared, "left_out": [name for name in {**a, **b} if name not in shared]}
    for metric in TIMES:
        pairs = [(a[name].times[metric], b[name].times[metric]) for name in shared]
        document[metric] = {
            **_round(improvement([earlier_is_better(*pair) for pair in pairs])._asdict()),
            "ratio": _round(ratio_of_times(pairs)._asdict()),
        }
    returns = [(a[name].final_return, b[name].final_return) for name in shared]
    if all(values.size for pair in returns for values in pair):
        document[FINAL_RETURN] = {
            **_round(improvement([higher_is_better(*pair) for pair in returns])._asdict()),
            "difference": _round(difference_of_means(returns)._asdict()),
        }
    return document


def verdict(found: Mapping[str, float]) -> str:
    """The verdict of a metric, in a word or two: the interval and the permutation test must agree."""
    if found["p_value"] < SIGNIFICANT and not found["low"] <= 0.5 <= found["high"]:
        return "B is better" if found["probability"] > 0.5 else "A is better"
    return "not told apart"


def _round(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in numbers.items()}


def select_runs(what: str, study: StudyFolder | None) -> tuple[dict[str, Sample], list[str]]:
    """The seeds of one side, by the key of the environment, and the unfinished runs, which are left out.

    Args:
        what: a folder, or `option=value,option=value`: the cells of the study in which that holds.
        study: the study of these cells.

    Raises:
        InputError: there is no such run or study.
    """
    environments: dict[str, list[RunFolder]] = {}
    left_out: list[str] = []
    for folder in _folders(what, study):
        if (run := runs.finished(folder)) is None:
            left_out.append(folder.name)
        else:
            environments.setdefault(key(of.environment(_settings(folder))), []).append(run)
    if not environments:
        raise InputError(f"There is no finished run in {what}: {', '.join(left_out) or 'it has no cells'}.")
    return {name: Sample.of(found) for name, found in environments.items()}, left_out


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
    settings = runs.settings(folder)
    if settings is None:
        raise InputError(f"{folder / records.CONFIG} cannot be read: restore it from a copy.")
    return settings
