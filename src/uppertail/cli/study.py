"""`uppertail study`: many runs of `uppertail train` from one file, on one machine or many."""

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from uppertail import records
from uppertail.cli import study_running
from uppertail.cli.parsing import Values
from uppertail.cli.request import parse_request
from uppertail.cli.study_running import show_comparison
from uppertail.errors import InputError
from uppertail.studies import pool
from uppertail.studies.cells import Cell, differences, flat, key, text
from uppertail.studies.comparison import compare, labels, select_runs
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder, settings_of
from uppertail.studies.summary import Settings
from uppertail.training import process

SOME = 100
"""The most cells that a dry run checks; a cell takes about a tenth of a second."""


def main(config: Values) -> int:
    """Runs the command."""
    if config.compare is not None:
        return _compare(config.study, config.out, *config.compare)
    if config.study is None:
        raise InputError("Which study? `uppertail study STUDY.yaml`, or the folder of one.")
    if config.workers is not None and config.workers < 1:
        raise InputError(f"workers is {config.workers}: use 1 or more, or leave it out for one to a core.")
    if config.scheduler is not None and (config.launcher != "here" or config.workers is not None):
        raise InputError(f"The scheduler {config.scheduler} has workers already: leave out --workers and --launcher.")
    file, folder = _places(config.study, config.out)
    definition = Definition.read(file)
    folder.exists()
    workers = min(_workers(config), len(definition.cells))
    return (_dry_run if config["dry-run"] else _run)(config, definition, folder, workers)


def _places(study: str, out: str | None) -> tuple[Path, StudyFolder]:
    """The study's file, and its folder."""
    path = Path(study)
    if path.is_dir():
        folder = StudyFolder(path)
        if not folder.definition.is_file():
            raise InputError(f"{path} is not the folder of a study: give one that `uppertail study` made, or a file.")
        if out is not None and Path(out).resolve() != path.resolve():
            raise InputError(f"The study in {path} continues in that folder: leave out --out {out}, or give its file.")
        return folder.definition, folder
    return path, StudyFolder(Path(out) if out else Path("runs", path.stem))


def _workers(config: Values) -> int:
    """How many workers: by default as many as cores, or one where Dask is not installed."""
    if config.workers is not None:
        return config.workers
    return process.cores() if importlib.util.find_spec("distributed") or config.launcher != "here" else 1


def _dry_run(config: Values, definition: Definition, folder: StudyFolder, workers: int) -> int:
    """Says how many cells there are, after checking some of them, and about how long they take."""
    del config
    outcomes = folder.outcomes(definition)
    counts = study_running.counts(outcomes)
    print(f"{len(outcomes):,} cells" + (f": {counts}" if counts else ""), flush=True)
    _check_some(definition, folder)
    print(f"Time left with {workers} at a time: {study_running.time_left(outcomes, workers)}")
    return 0


def _run(config: Values, definition: Definition, folder: StudyFolder, workers: int) -> int:
    settings = _check_all(definition, folder)
    say: Callable[[str], object] = (lambda line: None) if config.quiet else print
    alone = workers == 1 and config.scheduler is None and config.launcher == "here"
    connect = functools.partial(
        pool.connected, workers, config.scheduler, config.launcher, definition.jobs, folder.path.resolve()
    )
    folder.make(definition)
    with records.locked(folder.path):
        for line in folder.release(definition):
            say(line)
        if any(each.is_open for each in folder.outcomes(definition).values()) or definition.space:
            try:
                study_running.run(definition, folder, None if alone else connect, workers, config.quiet)
            except KeyboardInterrupt:
                say(f"Finished cells are kept: `uppertail study {folder.path}` continues from there.")
                raise
        return study_running.conclude(definition, folder, settings, config.quiet)


def _compare(study: str | None, out: str | None, a: str, b: str) -> int:
    folder = None if study is None else _places(study, out)[1]
    sides, left_out = zip(*(select_runs(what, folder) for what in (a, b)), strict=True)
    names = labels([*sides[0], *sides[1]])
    show_comparison(a, b, compare(*({names[env]: sample for env, sample in side.items()} for side in sides)))
    if unfinished := list(dict.fromkeys([*left_out[0], *left_out[1]])):
        print(f"Left out, as they are not finished: {', '.join(unfinished)}.")
    return 0


def _check_all(definition: Definition, folder: StudyFolder) -> Settings:
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


def _check_some(definition: Definition, folder: StudyFolder) -> None:
    """Checks one cell for each value of each option, up to a hundred."""
    if definition.space is None:
        known: set[tuple[str, str]] = set()
        some: list[Cell] = []
        for cell in definition.cells:
            values = {(option, text(value)) for option, value in cell.options.items()}
            some += [] if values <= known else [cell]
            known |= values
        _check(some[:SOME], folder)
    else:
        _check_all(definition, folder)


def _check(cells: Sequence[Cell], folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """The settings of each cell, flat; a cell that is not valid, or the same as another, is refused."""
    found: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for cell in cells:
        place = folder.cell(cell)
        try:
            asked = parse_request(cell.arguments)
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
