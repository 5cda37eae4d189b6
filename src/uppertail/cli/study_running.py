"""Runs the cells of `uppertail study`, in this process or by workers, sums up at their end, and shows tables."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from uppertail import records
from uppertail.cli.output import complain
from uppertail.console import print_table
from uppertail.studies import pool
from uppertail.studies.cells import FINAL_RETURN, FIRST_SUCCESS, SOLVED, Cell, Outcome, text
from uppertail.studies.comparison import verdict
from uppertail.studies.definition import Definition
from uppertail.studies.folder import SUMMARY, StudyFolder, checkpoints, finished_run
from uppertail.studies.search import Search, open_study
from uppertail.studies.summary import Settings, summary


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
    if seconds < 7200:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def line(outcomes: Mapping[str, Outcome], workers: int) -> str:
    """`12 of 60 cells have ended; time left: about 3 minutes`."""
    ended = sum(not each.is_open for each in outcomes.values())
    said = f"{ended} of {len(outcomes)} cells have ended"
    return f"{said}; time left: {time_left(outcomes, workers)}" if ended < len(outcomes) else said


def train(cell: Cell, place: Path, beside: Sequence[Callable[[Any], object]]) -> None:
    """Trains a cell to its end, from its last checkpoint if there is one."""
    from uppertail.cli import programs, request, resume
    from uppertail.cli.train import begin

    programs.keep()
    if (place / records.CONFIG).is_file() and checkpoints(place):
        code = resume.go_on(place, None, True, True, beside)
    else:
        asked = request.parse_request([*cell.arguments, f"--out={place}", "--overwrite", "--quiet"])
        code = begin(asked, beside)
    if code:
        raise KeyboardInterrupt(code - 128)


def run(
    definition: Definition,
    folder: StudyFolder,
    connect: "Callable[[], contextlib.AbstractContextManager[Any]] | None",
    workers: int,
    quiet: bool,
) -> None:
    """Runs the cells that have not ended: by the workers that `connect` gives, or, without it, in this process."""
    outcomes = folder.outcomes(definition)
    search = None if definition.space is None else Search(open_study(folder.path), definition.space)
    cells = search.cells() if search else (cell for cell in definition.cells if outcomes[cell.name].is_open)
    work = pool.Work(folder.path.resolve(), train, definition.space)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(connect()) if connect else None
        status = stack.enter_context(Console(stderr=True, quiet=quiet).status(line(outcomes, workers)))
        ended = pool.outcomes(work, cells, client) if client else ((cell, work(cell)) for cell in cells)
        for cell, outcome in ended:
            if folder.outcome(cell.name) is None:  # its worker died, and could not say so
                folder.end(cell.name, outcome)
            if search is not None:
                search.tell(cell, outcome)
            outcomes[cell.name] = outcome
            status.update(line(outcomes, workers))


def conclude(definition: Definition, folder: StudyFolder, settings: Settings, quiet: bool) -> int:
    """Writes study.json, shows a table, and lists the cells that failed; returns the exit code."""
    outcomes = folder.outcomes(definition)
    if definition.space is not None:
        document, show = Search(open_study(folder.path), definition.space).summary(), show_trials
    else:
        ended = [cell for cell in definition.cells if outcomes[cell.name].state in ("done", "failed")]
        runs = {cell.name: run for cell in ended if (run := finished_run(folder.cell(cell)))}
        document, show = summary(definition, settings, outcomes, runs), show_cells
    folder.write(document)
    if not quiet:
        show(document)
        print(f"{line(outcomes, 1)}; all numbers in {folder.path / SUMMARY}")
        print(f"Programs compiled: {folder.compilations()}")
    for name, outcome in outcomes.items():
        if outcome.state == "failed":
            complain(f"The cell {name} failed: {outcome.message}")
    return 0 if all(each.state in ("done", "pruned") for each in outcomes.values()) else 1


NAMES = {FIRST_SUCCESS: "first success", SOLVED: "solved", FINAL_RETURN: "final return"}


def show_cells(document: Mapping[str, Any]) -> None:
    """Prints a row for each cell that has results, and the exponents of growth."""
    rows = [
        {
            "cell": cell["name"].replace(",", ", "),  # lines break between options
            "seeds\nsolved": f"{cell[SOLVED]['seeds']}/{cell['seeds']}",
            "first success\n(episode)": _median(cell[FIRST_SUCCESS]),
            "solved at\n(episode)": _median(cell[SOLVED]),
            "final\nreturn": "" if cell[FINAL_RETURN] is None else _interval(*cell[FINAL_RETURN].values()),
        }
        for cell in document["cells"]
        if "seeds" in cell
    ]
    if not rows:
        return
    print_table(rows, texts=1)
    print("Medians over seeds (final return: mean, of each seed's last 100 episodes), and 95% bootstrap intervals.")
    for row in document["growth"]:
        for metric in (FIRST_SUCCESS, SOLVED):
            if row[metric] is not None:
                power = _interval(*row[metric].values())
                print(f"{row['method']}: episodes until {NAMES[metric]} grow with {row['over']} to the power {power}.")


def show_trials(document: Mapping[str, Any], rows: int = 10) -> None:
    """Prints a row for each of the best trials of a search."""
    trials, metric = document["trials"], NAMES[document["metric"]]
    best = [each for each in trials if each["value"] is not None][:rows]
    if best:
        shown = [", ".join(f"{name}={_short(value)}" for name, value in each["options"].items()) for each in best]
        pairs = zip(best, shown, strict=True)
        print_table([{"trial": e["name"], metric: f"{e['value']:.4g}", "options": o} for e, o in pairs], texts=1)
    pruned = sum(trial["state"] == "pruned" for trial in trials)
    print(f"Means over seeds, the best first; {pruned} of {len(trials)} trials were ended early.")


def show_comparison(a: str, b: str, document: Mapping[str, Any]) -> None:
    """Prints a row for each metric, and its verdict in a sentence."""
    found = {name: document[metric] for metric, name in NAMES.items() if metric in document}
    print(f"A: {a}\nB: {b}\nEnvironments: {'; '.join(document['environments'])}")
    rows = []
    for name, numbers in found.items():
        is_ratio = "ratio" in numbers
        form = ".3g" if is_ratio else "+.3g"
        effect = _interval(*numbers["ratio" if is_ratio else "difference"].values(), form=form)
        better = _interval(numbers["probability"], numbers["low"], numbers["high"])
        row = {"": name, "P(B is better)": better, "p": f"{numbers['p_value']:.2g}"}
        rows.append({**row, "effect": f"{effect} times" if is_ratio else effect})
    print_table(rows, texts=1)
    print("Effects: episodes of B divided by those of A; final return of B minus that of A.")
    print("95% bootstrap intervals over seeds, within each environment; p: permutation test.")
    for name, numbers in found.items():
        print(f"{name.capitalize()}: {verdict(numbers)}.")
    if document["left_out"]:
        print(f"Left out, as only one of them was run there: {'; '.join(document['left_out'])}.")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else text(value)


def _median(found: Mapping[str, Any]) -> str:
    if found["median"] is None:
        return "never"
    median, low, high = (records.episode_text(found[name]) for name in ("median", "low", "high"))
    return f"{median} [{low}, {high}]"


def _interval(value: float, low: float, high: float, form: str = ".3g") -> str:
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"
