"""`uppertail study`: many runs of `uppertail train` from one file, on one machine or many."""

import dataclasses
import datetime
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser

from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError
from uppertail.studies import progress
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uppertail.studies.claims import Standing
    from uppertail.studies.space import Space
    from uppertail.studies.summary import Settings

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
    settings = _checked(definition, folder)
    if definition.space is not None:
        _check_search(definition.space, folder)
    workers = min(config.workers or _cores(), len(definition.cells))
    if config.dry_run:
        return _foretell(definition, folder, workers)
    say: Callable[[str], object] = (lambda line: None) if config.quiet else print
    folder.make(definition)
    for line in folder.release(definition):
        say(line)
    if config.launcher == "slurm" and _left(definition, folder):
        return _submit(definition, folder, config.workers, say)
    _run(definition, folder, workers, config.quiet)
    return _conclude(definition, folder, settings, config.quiet)


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


def _checked(definition: Definition, folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """The settings of each cell, flat; before anything runs.

    Raises:
        InputError: one of them asks for what cannot be, two ask for the same, or a folder is that of another run.
    """
    import yaml

    from uppertail.cli import train
    from uppertail.studies.settings import flat
    from uppertail.training.checkpoints import Checkpoints
    from uppertail.training.settings import Settings

    found: dict[str, dict[str, Any]] = {}
    for cell in definition.cells if definition.space is None else definition.space.probes():
        place = folder.cell(cell)
        try:
            request = train.requested(cell.arguments)
            Settings(**{name: request.built[name] for name in Settings.__dataclass_fields__})
            Checkpoints(place, request.checkpoint_every)
            if request.built.logger:
                request.loggers(place)
        except InputError as error:
            raise InputError(f"In the cell {cell.name}: {error}") from error
        asked = flat(yaml.safe_load(request.config))
        same = [name for name, settings in found.items() if settings == asked]
        if same and definition.space is None:
            raise InputError(f"The cells {same[0]} and {cell.name} ask for the same: leave one of them out.")
        found[cell.name] = asked
        if other := _other(place, asked):
            raise InputError(
                f"The cell folder {place} is of other settings ({other}): choose another --out, or remove it."
            )
    return found


def _check_search(space: "Space", folder: StudyFolder) -> None:
    """Refuses a search without Optuna, and one in the folder of another."""
    from uppertail.studies.search import require_optuna

    require_optuna()
    if not folder.definition.is_file():
        return
    other = Definition.read(folder.definition).space
    if other is None or dataclasses.replace(other, trials=space.trials) != space:
        raise InputError(f"The study in {folder.path} is not this search: choose another --out.")


def _other(place: Path, asked: dict[str, Any]) -> str | None:
    """The first setting of a run that is not as asked, in words; None if there is none, or no run that can be read."""
    import yaml

    from uppertail import records
    from uppertail.cli import train
    from uppertail.studies import results
    from uppertail.studies.settings import differences, flat

    config = place / records.CONFIG
    saved = results.settings(place) if config.is_file() else None
    if saved is None or saved == asked:
        return None
    now = flat(yaml.safe_load(train.requested_in(config).config))  # with settings that came with a later version
    return next(differences(now, asked), None)


def _cores() -> int:
    from uppertail.training import threads

    return threads.cores()


def _foretell(definition: Definition, folder: StudyFolder, workers: int) -> int:
    standings = folder.standings(definition)
    count = progress.counts(standings)
    parts = ", ".join(f"{count[state]} {state}" for state in ("done", "running", "failed") if count[state])
    print(f"{len(standings)} cells" + (f": {parts}" if parts else ""))
    left = progress.seconds_left(standings, workers, datetime.datetime.now(datetime.UTC))
    print(f"Time left with {workers} at a time: {progress.about(left)}")
    return 0


def _left(definition: Definition, folder: StudyFolder) -> int:
    """How many cells have not come to their end."""
    return sum(standing.state in ("waiting", "running") for standing in folder.standings(definition).values())


def _submit(definition: Definition, folder: StudyFolder, workers: int | None, say: Callable[[str], object]) -> int:
    from uppertail.cli.study_worker import work_in
    from uppertail.studies.slurm import submit

    jobs = submit(folder.path, work_in, workers or _left(definition, folder), definition.slurm)
    say(f"Slurm has {len(jobs)} jobs: {', '.join(job.job_id for job in jobs)}.")
    say(f"`uppertail study {folder.path} --dry-run` says how far they are, and without --dry-run sums up at their end.")
    return 0


def _run(definition: Definition, folder: StudyFolder, workers: int, quiet: bool) -> None:
    from rich.console import Console

    from uppertail.studies.crew import Crew

    claims = folder.claims()
    names = [cell.name for cell in definition.cells]
    left = _left(definition, folder)
    if not left:
        return
    crew = Crew([sys.executable, "-m", "uppertail.cli.study_worker", str(folder.path)], min(workers, left))
    with Console(stderr=True, quiet=quiet).status("") as status:

        def show() -> None:
            status.update(progress.line(claims.standings(names), workers, datetime.datetime.now(datetime.UTC)))

        try:
            crew.run(claims.claimed_by, show)
        except KeyboardInterrupt:
            if not quiet:
                print(f"Finished cells are kept: `uppertail study {folder.path}` goes on from there.")
            raise


def _conclude(definition: Definition, folder: StudyFolder, settings: "Settings", quiet: bool) -> int:
    """Writes study.json, shows a table, and lists the cells that failed."""
    import json

    from uppertail.cli.study_tables import show_cells, show_trials
    from uppertail.studies.folder import SUMMARY
    from uppertail.studies.search import found

    standings = folder.standings(definition)
    if definition.space is not None:
        document = found(folder.path, definition.space)
    else:
        document = _summary(definition, folder, settings, standings)
    folder.write(SUMMARY, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if not quiet:
        (show_cells if definition.space is None else show_trials)(document)
        line = progress.line(standings, 1, datetime.datetime.now(datetime.UTC))
        print(f"{line}; all numbers in {folder.path / SUMMARY}")
    for name, standing in standings.items():
        if standing.state == "failed":
            print(f"uppertail: The cell {name} failed: {standing.message}", file=sys.stderr)
    return 0 if all(standing.state == "done" for standing in standings.values()) else 1


def _summary(
    definition: Definition, folder: StudyFolder, settings: "Settings", standings: "Mapping[str, Standing]"
) -> dict[str, Any]:
    from uppertail.studies.results import finished
    from uppertail.studies.summary import summary

    over = [cell for cell in definition.cells if standings[cell.name].state in ("done", "failed")]
    results = {cell.name: result for cell in over if (result := finished(folder.cell(cell)))}
    return summary(definition, settings, standings, results)


def _compare(study: str | None, out: str | None, a: str, b: str) -> int:
    from uppertail.cli.study_tables import show_comparison
    from uppertail.studies.comparison import compared
    from uppertail.studies.runs import labels
    from uppertail.studies.selection import selected

    folder = None if study is None else _places(study, out)[1]
    sides, left_out = zip(*(selected(what, folder) for what in (a, b)), strict=True)
    names = labels([*sides[0], *sides[1]])
    show_comparison(a, b, compared(*({names[env]: sample for env, sample in side.items()} for side in sides)))
    if unfinished := list(dict.fromkeys([*left_out[0], *left_out[1]])):
        print(f"Left out, as they are not finished: {', '.join(unfinished)}.")
    return 0
