"""Runs the cells of `uppertail study`, in this process or by workers, and sums up at their end."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uppertail.cli.output import complain
from uppertail.studies.cells import Cell
from uppertail.studies.definition import Definition
from uppertail.studies.folder import SUMMARY, Outcome, StudyFolder
from uppertail.studies.runs import finished, has_checkpoint
from uppertail.studies.work import Work

if TYPE_CHECKING:
    from uppertail.studies.summary import Settings


OPEN = ("begun", "waiting")


def counts(standings: Mapping[str, Outcome]) -> str:
    """`12 done, 1 failed`; empty if nothing has begun."""
    count = Counter("done" if each.state == "pruned" else each.state for each in standings.values())
    return ", ".join(f"{count[state]} {state}" for state in ("done", "begun", "failed") if count[state])


def time_left(standings: Mapping[str, Outcome], workers: int) -> str:
    """About how long the rest takes, if each cell takes as long as those that are done, on average."""
    done = [each.seconds for each in standings.values() if each.state == "done"]
    left = sum(each.state in OPEN for each in standings.values())
    if not done and left:
        return "unknown, as no cell is done"
    seconds = left * sum(done) / (len(done) or 1) / max(1, min(workers, left))
    if seconds < 120:
        return f"about {seconds:.0f} seconds"
    if seconds < 7200:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def line(standings: Mapping[str, Outcome], workers: int) -> str:
    """`12 of 60 cells: 11 done, 1 failed; time left: about 3 minutes`."""
    over = sum(each.state not in OPEN for each in standings.values())
    said = f"{over} of {len(standings)} cells have ended"
    return f"{said}; time left: {time_left(standings, workers)}" if over < len(standings) else said


def train(cell: Cell, place: Path, beside: Sequence[Callable[[Any], object]]) -> None:
    """Trains a cell to its end, from its last checkpoint if there is one.

    Raises:
        InputError: it cannot be trained.
        KeyboardInterrupt: after Ctrl-C or SIGTERM.
    """
    from uppertail.cli import programs, resume
    from uppertail.cli import train as command

    programs.keep()
    if has_checkpoint(place):
        code = resume.go_on(place, None, True, True, beside)
    else:
        request = command.parse_request([*cell.arguments, "--out", str(place), "--overwrite", "--quiet"])
        code = command.begin(request, beside)
    if code:
        raise KeyboardInterrupt(code - 128)


def run(
    definition: Definition,
    folder: StudyFolder,
    connect: "Callable[[], contextlib.AbstractContextManager[Any]] | None",
    workers: int,
    quiet: bool,
) -> None:
    """Runs the cells that have not ended.

    Args:
        definition: the study.
        folder: its folder.
        connect: connects to Dask's workers; None: cells run in this process, one after another.
        workers: how many workers there are, to foretell the end.
        quiet: whether only errors are printed.
    """
    from rich.console import Console

    from uppertail.studies import pool
    from uppertail.studies.search import Search, open_study

    standings = folder.standings(definition)
    search = None if definition.space is None else Search(open_study(folder.path), definition.space)
    left = (cell for cell in definition.cells if standings[cell.name].state in OPEN)
    cells = left if search is None else search.cells()
    work = Work(folder.path.resolve(), train, definition.space)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(connect()) if connect else None
        status = stack.enter_context(Console(stderr=True, quiet=quiet).status(line(standings, workers)))
        ended = pool.outcomes(work, cells, client) if client else ((cell, work(cell)) for cell in cells)
        for cell, outcome in ended:
            if folder.outcome(cell.name) is None:  # its worker died, and could not say so
                folder.end(cell.name, outcome)
            if search is not None:
                search.tell(cell, outcome)
            standings[cell.name] = outcome
            status.update(line(standings, workers))


def conclude(definition: Definition, folder: StudyFolder, settings: "Settings", quiet: bool) -> int:
    """Writes study.json, shows a table, and lists the cells that failed; returns the exit code."""
    from uppertail.cli.study_tables import show_cells, show_trials
    from uppertail.studies.search import Search, open_study
    from uppertail.studies.summary import summary

    standings = folder.standings(definition)
    if definition.space is not None:
        document = Search(open_study(folder.path), definition.space).summary()
    else:
        found = {cell.name: finished(folder.cell(cell)) for cell in definition.cells}
        ended = {
            name: each
            for name, each in found.items()
            if each is not None and standings[name].state in ("done", "failed")
        }
        document = summary(definition, settings, standings, ended)
    folder.write(document)
    if not quiet:
        (show_cells if definition.space is None else show_trials)(document)
        print(f"{line(standings, 1)}; all numbers in {folder.path / SUMMARY}")
    for name, standing in standings.items():
        if standing.state == "failed":
            complain(f"The cell {name} failed: {standing.message}")
    return 0 if all(standing.state in ("done", "pruned") for standing in standings.values()) else 1
