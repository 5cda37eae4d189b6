"""What `uppertail study` shows: a row for each cell, or how B compares with A."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from uppertail.records import episode_text
from uppertail.studies.cells import text
from uppertail.studies.comparison import verdict
from uppertail.studies.runs import FINAL_RETURN, FIRST_SUCCESS, SOLVED

NAMES = {FIRST_SUCCESS: "first success", SOLVED: "solved", FINAL_RETURN: "final return"}


def show_cells(document: Mapping[str, Any]) -> None:
    """Prints a row for each cell that has results, and the exponents of growth."""
    table = _table("cell", "seeds\nsolved", "first success\n(episode)", "solved at\n(episode)", "final\nreturn")
    rows = [cell for cell in document["cells"] if "seeds" in cell]
    for cell in rows:
        table.add_row(
            cell["name"].replace(",", ", "),  # lines break between options
            f"{cell[SOLVED]['seeds']}/{cell['seeds']}",
            *(_median(cell[metric]) for metric in (FIRST_SUCCESS, SOLVED)),
            "" if cell[FINAL_RETURN] is None else _interval(*cell[FINAL_RETURN].values()),
        )
    if not rows:
        return
    Console().print(table)
    print("Medians over seeds (final return: mean, of each seed's last 100 episodes), and 95% bootstrap intervals.")
    for row in document["growth"]:
        for metric in (FIRST_SUCCESS, SOLVED):
            if row[metric] is not None:
                interval = _interval(*row[metric].values())
                print(
                    f"{row['method']}: episodes until {NAMES[metric]} grow with {row['over']} to the power {interval}."
                )


def show_trials(document: Mapping[str, Any], rows: int = 10) -> None:
    """Prints a row for each of the best trials of a search."""
    trials = document["trials"]
    table = _table("trial", NAMES[document["metric"]], "options")
    for trial in [each for each in trials if each["value"] is not None][:rows]:
        options = ", ".join(f"{name}={_short(value)}" for name, value in trial["options"].items())
        table.add_row(trial["name"], f"{trial['value']:.4g}", options)
    if table.rows:
        Console().print(table)
    pruned = sum(trial["state"] == "pruned" for trial in trials)
    print(f"Means over seeds, the best first; {pruned} of {len(trials)} trials were ended early.")


def show_comparison(a: str, b: str, document: Mapping[str, Any]) -> None:
    """Prints a row for each metric, and its verdict in a sentence."""
    table = _table("", "P(B is better)", "p", "effect")
    found = {name: document[metric] for metric, name in NAMES.items() if metric in document}
    for name, numbers in found.items():
        probability = _interval(numbers["probability"], numbers["low"], numbers["high"])
        times = "ratio" in numbers
        effect = _interval(*numbers["ratio" if times else "difference"].values(), form=".3g" if times else "+.3g")
        table.add_row(name, probability, f"{numbers['p_value']:.2g}", f"{effect} times" if times else effect)
    print(f"A: {a}\nB: {b}\nEnvironments: {'; '.join(document['environments'])}")
    Console().print(table)
    print("Effects: how many times the episodes of A it takes B; final return of B less that of A.")
    print("95% bootstrap intervals over seeds, within each environment; p: permutation test.")
    for name, numbers in found.items():
        print(f"{name.capitalize()}: {verdict(numbers)}.")
    if document["left_out"]:
        print(f"Left out, as only one of them was run there: {'; '.join(document['left_out'])}.")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else text(value)


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", overflow="fold", no_wrap=index > 0)
    return table


def _median(found: Mapping[str, Any]) -> str:
    if found["median"] is None:
        return "never"
    return f"{episode_text(found['median'])} [{episode_text(found['low'])}, {episode_text(found['high'])}]"


def _interval(value: float, low: float, high: float, form: str = ".3g") -> str:
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"
