"""`uppertail study`: many runs of `uppertail train` from one file, on one machine or many."""

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from jsonargparse import ArgumentParser

from uppertail.cli import study_running
from uppertail.cli.parsing import command_parser, parse
from uppertail.cli.study_checks import check_cells
from uppertail.errors import InputError
from uppertail.studies import progress
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder

DESCRIPTION = """Runs every cell of a study, each a run folder of `uppertail train`, and writes study.json. The file is
YAML: base (options of `uppertail train`), grid (option: list of values; their product) and cells (a list of options).
The same command again does what is missing; on several machines with a shared folder, they share the cells. Exit code
1: some cells failed. Give the study's folder instead of the file to go on with the study in it."""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail study`; a light parser is the same."""
    del light
    options = command_parser("study", DESCRIPTION)
    options.add_argument("study", type=str | None, nargs="?", default=None, help="the study's file, or its folder")
    options.add_argument("--out", type=str | None, default=None, help="the study's folder (default: runs/NAME)")
    options.add_argument(
        "--workers", type=int | None, default=None, help="cells side by side (default: the cores that are usable)"
    )
    options.add_argument(
        "--launcher", type=Literal["here", "slurm"], default="here", help="where the workers are: here, or Slurm's jobs"
    )
    options.add_argument("--dry-run", action="store_true", help="only say how many cells, and about how long")
    options.add_argument(
        "--compare",
        type=str,
        nargs=2,
        metavar=("A", "B"),
        default=None,
        help="instead: is B better than A? Folders of runs or of studies, or cells of this study: option=value,...",
    )
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    if config.compare is not None:
        return _compare(config.study, config.out, *config.compare)
    if config.study is None:
        raise InputError("Which study? `uppertail study STUDY.yaml`, or the folder of one.")
    if config.workers is not None and config.workers < 1:
        raise InputError(f"workers is {config.workers}: use 1 or more, or leave it out for one to a core.")
    file, folder = _places(config.study, config.out)
    definition = Definition.read(file)
    folder.exists()
    settings = check_cells(definition, folder)
    workers = min(config.workers or _cores(), len(definition.cells))
    if config.dry_run:
        return _foretell(definition, folder, workers)
    say: Callable[[str], object] = (lambda line: None) if config.quiet else print
    folder.make(definition)
    for line in folder.release(definition):
        say(line)
    if folder.left(definition):
        if config.launcher == "slurm":
            return study_running.submit(definition, folder, config.workers, say)
        study_running.run(definition, folder, workers, config.quiet)
    return study_running.conclude(definition, folder, settings, config.quiet)


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


def _cores() -> int:
    from uppertail.training.process import threads

    return threads.cores()


def _foretell(definition: Definition, folder: StudyFolder, workers: int) -> int:
    standings = folder.standings(definition)
    count = progress.counts(standings)
    parts = ", ".join(f"{count[state]} {state}" for state in ("done", "running", "failed") if count[state])
    print(f"{len(standings)} cells" + (f": {parts}" if parts else ""))
    left = progress.seconds_left(standings, workers, datetime.datetime.now(datetime.UTC))
    print(f"Time left with {workers} at a time: {progress.about(left)}")
    return 0


def _compare(study: str | None, out: str | None, a: str, b: str) -> int:
    from uppertail.cli.study_tables import show_comparison
    from uppertail.studies.comparison import compare
    from uppertail.studies.runs import labels
    from uppertail.studies.selection import select_runs

    folder = None if study is None else _places(study, out)[1]
    sides, left_out = zip(*(select_runs(what, folder) for what in (a, b)), strict=True)
    names = labels([*sides[0], *sides[1]])
    show_comparison(a, b, compare(*({names[env]: sample for env, sample in side.items()} for side in sides)))
    if unfinished := list(dict.fromkeys([*left_out[0], *left_out[1]])):
        print(f"Left out, as they are not finished: {', '.join(unfinished)}.")
    return 0
