"""`uppertail study`: many runs of `uppertail train` from one file, on one machine or many."""

import contextlib
import dataclasses
import importlib.util
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from uppertail import records
from uppertail.cli import complain, keep_programs, resume
from uppertail.cli.options import Values
from uppertail.cli.study_tables import show_cells, show_comparison, show_trials
from uppertail.cli.train import begin, parse_request
from uppertail.errors import InputError
from uppertail.records.run_folder import title_of
from uppertail.studies import pool
from uppertail.studies.cells import Cell, Outcome, differences, key
from uppertail.studies.comparison import compare, labels, select_runs
from uppertail.studies.definition import Definition
from uppertail.studies.folder import SUMMARY, StudyFolder, checkpoints, effective, finished_run, settings_of
from uppertail.studies.search import Search, open_study
from uppertail.studies.summary import CellSettings, summary
from uppertail.training import process


def main(config: Values) -> int:
    """Runs the command."""
    if config.compare is not None:
        return _compare(config.study, config.out, *config.compare)
    if config.study is None:
        raise InputError("Which study? `uppertail study STUDY.yaml`, or the folder of one.")
    if config.workers is not None and config.workers < 1:
        raise InputError(f"workers is {config.workers}: use 1 or more, or leave it out for one per core.")
    if config.scheduler is not None and (config.launcher != "here" or config.workers is not None):
        raise InputError(f"The scheduler {config.scheduler} has workers already: leave out --workers and --launcher.")
    file, folder = _places(config.study, config.out)
    definition = Definition.read(file)
    folder.exists()
    workers = min(_workers(config), len(definition.cells))
    if config["dry-run"]:
        outcomes = folder.outcomes(definition)
        done = counts(outcomes)
        print(f"{len(outcomes):,} cells" + (f": {done}" if done else ""), flush=True)
        _checked(definition, folder)
        cells = definition.cells if definition.space is None else definition.space.probes()
        with Console(stderr=True, quiet=config.quiet).status("") as status:
            for number, cell in enumerate(cells, 1):
                if cell.name not in outcomes or outcomes[cell.name].state in ("waiting", "failed"):
                    status.update(f"building cell {number:,} of {len(cells):,}, without a step")
                    _try(cell)
        print(f"Time left with {workers} at a time: {time_left(outcomes, workers)}")
        return 0
    settings = _checked(definition, folder)
    say: Callable[[str], object] = (lambda line: None) if config.quiet else print
    folder.make(definition)
    with records.locked(folder.path):
        for line in folder.release(definition):
            say(line)
        try:
            _run(config, definition, folder, workers)
        except KeyboardInterrupt:
            say(f"Finished cells are kept: `uppertail study {shlex.quote(str(folder.path))}` continues from there.")
            raise
        return _conclude(definition, folder, settings, config.quiet)


def _places(study: str, out: str | None) -> tuple[Path, StudyFolder]:
    """The study's file, and its folder."""
    path = Path(study)
    if not path.is_dir():
        return path, StudyFolder(Path(out) if out else Path("runs", path.stem))
    folder = StudyFolder(path)
    if not folder.definition.is_file():
        raise InputError(f"{path} is not the folder of a study: give one that `uppertail study` made, or a file.")
    if out is not None and Path(out).resolve() != path.resolve():
        raise InputError(f"The study in {path} continues in that folder: leave out --out {out}, or give its file.")
    return folder.definition, folder


def _workers(config: Values) -> int:
    """How many workers: by default as many as cores, or one where Dask is not installed."""
    if config.workers is not None:
        return config.workers
    return process.cores() if importlib.util.find_spec("distributed") or config.launcher != "here" else 1


def _checked(definition: Definition, folder: StudyFolder) -> CellSettings:
    """Checks every cell, or those at the ends of a search; returns the settings of each cell."""
    if definition.space is None:
        return _check(definition.cells, folder)
    if folder.definition.is_file():
        other = Definition.read(folder.definition).space
        if other is None or dataclasses.replace(other, trials=definition.space.trials) != definition.space:
            raise InputError(f"The study in {folder.path} is not this search: choose another --out.")
    for probe in definition.space.probes():  # any two may be the same
        _check([probe], folder)
    return {}


def _check(cells: Sequence[Cell], folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """The settings of each cell; a cell that is not valid, or the same as another, is refused."""
    found: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for cell in cells:
        place = folder.cell(cell)
        try:
            asked = parse_request(cell.arguments)
            asked.check(place)
        except InputError as error:
            raise InputError(f"In the cell {title_of(cell.name)}: {error}") from error
        settings = effective(yaml.safe_load(asked.config))
        same = names.setdefault(key(settings), cell.name)
        if same != cell.name:
            both = f"{title_of(same)} and {title_of(cell.name)}"
            raise InputError(f"The cells {both} have the same settings: leave one of them out.")
        found[cell.name] = settings
        saved = settings_of(place)
        if other := None if saved is None else next(differences(saved, settings), None):
            raise InputError(f"The folder {place} has other settings ({other}): choose another --out, or remove it.")
    return found


def _try(cell: Cell) -> None:
    """Builds the run of a cell, without a step; InputError if `uppertail train` would refuse it."""
    try:
        parse_request(cell.arguments).begun()[0].close()
    except InputError as error:
        raise InputError(f"In the cell {title_of(cell.name)}: {error}") from error


def _run(config: Values, definition: Definition, folder: StudyFolder, workers: int) -> None:
    """Runs the cells that have not ended: one after another in this process, or by workers."""
    outcomes, place = folder.outcomes(definition), folder.path.resolve()
    search = None if definition.space is None else Search(open_study(folder.path), definition.space)
    if search is None and not any(each.is_open for each in outcomes.values()):
        return
    cells = search.cells() if search else (cell for cell in definition.cells if outcomes[cell.name].is_open)
    work = pool.Work(place, train, definition.space)
    with contextlib.ExitStack() as stack:
        if workers == 1 and config.scheduler is None and config.launcher == "here":
            ended = ((cell, work(cell)) for cell in cells)
        else:
            cluster = pool.connected(workers, config.scheduler, config.launcher, definition.jobs, place)
            ended = pool.outcomes(work, cells, stack.enter_context(cluster))
        status = stack.enter_context(Console(stderr=True, quiet=config.quiet).status(progress(outcomes, workers)))
        for cell, outcome in ended:
            if folder.outcome(cell.name) is None:  # its worker died, and could not say so
                folder.end(cell.name, outcome)
            if search is not None:
                search.tell(cell, outcome)
            outcomes[cell.name] = outcome
            status.update(progress(outcomes, workers))


def train(cell: Cell, place: Path, beside: Sequence[Callable[[Any], object]]) -> None:
    """Trains a cell to its end, from its last checkpoint if there is one."""
    keep_programs()
    if (place / records.CONFIG).is_file() and checkpoints(place):
        code = resume.go_on(place, None, True, True, beside)
    else:
        code = begin(parse_request([*cell.arguments, f"--out={place}", "--overwrite", "--quiet"]), beside)
    if code:
        raise KeyboardInterrupt(code - 128)


def _conclude(definition: Definition, folder: StudyFolder, settings: CellSettings, quiet: bool) -> int:
    """Writes study.json, shows a table, and lists the cells that failed; returns the exit code."""
    outcomes = folder.outcomes(definition)
    if definition.space is not None:
        document, show = Search(open_study(folder.path), definition.space).summary(), show_trials
    else:
        ended = [cell for cell in definition.cells if outcomes[cell.name].state in ("done", "failed")]
        runs = {cell.name: run for cell in ended if (run := finished_run(folder.cell(cell)))}
        document, show = summary(definition, settings, outcomes, runs), show_cells
    with records.output_errors(folder.path):
        records.write_json(folder.path / SUMMARY, document)
    if not quiet:
        show(document)
        print(f"{progress(outcomes, 1)}; all numbers in {folder.path / SUMMARY}")
    for name, outcome in outcomes.items():
        if outcome.state == "failed":
            complain(f"The cell {name} failed: {outcome.message}")
    return 0 if all(each.state in ("done", "pruned") for each in outcomes.values()) else 1


def _compare(study: str | None, out: str | None, a: str, b: str) -> int:
    folder = None if study is None else _places(study, out)[1]
    sides, left_out = zip(*(select_runs(what, folder) for what in (a, b)), strict=True)
    names = labels([*sides[0], *sides[1]])
    show_comparison(a, b, compare(*({names[env]: sample for env, sample in side.items()} for side in sides)))
    if unfinished := list(dict.fromkeys([*left_out[0], *left_out[1]])):
        print(f"Left out, as they are not finished: {', '.join(unfinished)}.")
    return 0


def counts(outcomes: Mapping[str, Outcome]) -> str:
    """`12 done, 1 failed`; empty if nothing has begun."""
    count = Counter("done" if each.state == "pruned" else each.state for each in outcomes.values())
    return ", ".join(f"{count[state]} {state}" for state in ("done", "begun", "failed") if count[state])


def time_left(outcomes: Mapping[str, Outcome], workers: int) -> str:
    """About how long the rest takes, if each cell takes as long as those that are done, on average."""
    done = [each.seconds for each in outcomes.values() if each.state == "done"]
    left = sum(each.is_open for each in outcomes.values())
    if not done and left:
        return "unknown, as no cell is done"
    seconds = left * sum(done) / (len(done) or 1) / max(1, min(workers, left))
    if seconds < 120:
        return f"about {seconds:.0f} seconds"
    return f"about {seconds / 60:.0f} minutes" if seconds < 7200 else f"about {seconds / 3600:.1f} hours"


def progress(outcomes: Mapping[str, Outcome], workers: int) -> str:
    """`12 of 60 cells have ended; time left: about 3 minutes`."""
    ended = sum(not each.is_open for each in outcomes.values())
    said = f"{ended} of {len(outcomes)} cells have ended"
    return f"{said}; time left: {time_left(outcomes, workers)}" if ended < len(outcomes) else said
