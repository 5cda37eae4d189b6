"""`uppertail study`: many runs of `uppertail train` from one file, on one machine or many."""

import functools
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from jsonargparse import Namespace

from uppertail import records
from uppertail.cli import study_running
from uppertail.cli.parsing import QUIET, Command, flag, option
from uppertail.cli.study_checks import check_cells, check_some_cells
from uppertail.errors import InputError
from uppertail.studies import pool
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder

WORKERS = (
    "cells side by side, each in a process of its own, or as many jobs (default: the cores that are usable); 1: one "
    "after another in this process"
)
COMPARE = "instead: is B better than A? Folders of runs or of studies, or cells of this study: option=value,..."
LAUNCHERS = Literal["here", "slurm", "pbs", "lsf", "sge"]

COMMAND = Command(
    "study",
    """Runs every cell of a study, each a run folder of `uppertail train`, and writes study.json. The file is
YAML: base (options of `uppertail train`), grid (option: list of values; their product) and cells (a list of options).
The same command again does what is missing. Exit code 1: some cells failed. Give the study's folder instead of the file
to go on with the study in it.""",
    {
        "study": option(str | None, None, "the study's file, or its folder", nargs="?"),
        "--out": option(str | None, None, "the study's folder (default: runs/NAME)"),
        "--workers": option(int | None, None, WORKERS),
        "--scheduler": option(str | None, None, "use the workers of a running Dask cluster: tcp://HOST:PORT"),
        "--launcher": option(LAUNCHERS, "here", "where the workers are started: here, or as jobs of a cluster"),
        "--dry-run": flag("only say how many cells, and about how long"),
        "--compare": option(str, None, COMPARE, nargs=2, metavar=("A", "B")),
        **QUIET,
    },
)


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = COMMAND.parse(arguments)
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
    return (_dry_run if config.dry_run else _run)(config, definition, folder, workers)


def _places(study: str, out: str | None) -> tuple[Path, StudyFolder]:
    """The study's file, and its folder."""
    path = Path(study)
    if path.is_dir():
        folder = StudyFolder(path)
        if not folder.definition.is_file():
            raise InputError(f"{path} is not the folder of a study: give one that `uppertail study` made, or a file.")
        if out is not None and Path(out).resolve() != path.resolve():
            raise InputError(f"The study in {path} goes on in that folder: leave out --out {out}, or give its file.")
        return folder.definition, folder
    return path, StudyFolder(Path(out) if out else Path("runs", path.stem))


def _workers(config: Namespace) -> int:
    """How many workers: as many as cores by default, or one where Dask is not installed."""
    from uppertail.training import process

    if config.workers is not None:
        return config.workers
    return process.cores() if importlib.util.find_spec("distributed") or config.launcher != "here" else 1


def _dry_run(config: Namespace, definition: Definition, folder: StudyFolder, workers: int) -> int:
    """Says how many cells there are, after checking some of them, and about how long they take."""
    del config
    outcomes = folder.outcomes(definition)
    counts = study_running.counts(outcomes)
    print(f"{len(outcomes):,} cells" + (f": {counts}" if counts else ""), flush=True)
    check_some_cells(definition, folder)
    print(f"Time left with {workers} at a time: {study_running.time_left(outcomes, workers)}")
    return 0


def _run(config: Namespace, definition: Definition, folder: StudyFolder, workers: int) -> int:
    settings = check_cells(definition, folder)
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
                say(f"Finished cells are kept: `uppertail study {folder.path}` goes on from there.")
                raise
        return study_running.conclude(definition, folder, settings, config.quiet)


def _compare(study: str | None, out: str | None, a: str, b: str) -> int:
    from uppertail.cli.study_tables import show_comparison
    from uppertail.studies.comparison import compare, labels, select_runs

    folder = None if study is None else _places(study, out)[1]
    sides, left_out = zip(*(select_runs(what, folder) for what in (a, b)), strict=True)
    names = labels([*sides[0], *sides[1]])
    show_comparison(a, b, compare(*({names[env]: sample for env, sample in side.items()} for side in sides)))
    if unfinished := list(dict.fromkeys([*left_out[0], *left_out[1]])):
        print(f"Left out, as they are not finished: {', '.join(unfinished)}.")
    return 0
