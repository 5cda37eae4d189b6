"""Tables of `uppertail study`: of its cells, of the trials of a search, of a comparison."""

from collections.abc import Mapping
from typing import Any

from uppertail import records
from uppertail.cli import print_table
from uppertail.records.run_folder import title_of
from uppertail.studies.cells import FINAL_RETURN, FIRST_SUCCESS, SOLVED, text
from uppertail.studies.comparison import verdict

NAMES = {FIRST_SUCCESS: "first success", SOLVED: "solved", FINAL_RETURN: "final return"}


def show_cells(document: Mapping[str, Any]) -> None:
    """Prints a row for each cell that has results, and the exponents of growth."""
    cells = [cell for cell in document["cells"] if "seeds" in cell]
    any_success = any(cell[SOLVED] for cell in cells)
    rows = [
        {
            "cell": title_of(cell["name"]),
            **(_successes(cell) if any_success else {}),
            "final\nreturn": "" if cell[FINAL_RETURN] is None else _interval(*cell[FINAL_RETURN].values()),
        }
        for cell in cells
    ]
    if not rows:
        return
    print_table(rows, texts=("cell",))
    print("Medians over seeds (final return: mean, of each seed's last 100 episodes), and 95% bootstrap intervals.")
    for row in document["growth"]:
        for metric in (FIRST_SUCCESS, SOLVED):
            if row[metric] is not None:
                power = _interval(*row[metric].values())
                print(f"{row['method']}: episodes until {NAMES[metric]} grow with {row['over']} to the power {power}.")


def _successes(cell: Mapping[str, Any]) -> dict[str, str]:
    """The columns of a cell that count successes; empty where they are not defined."""
    solved, first = cell[SOLVED], cell[FIRST_SUCCESS]
    return {
        "seeds\nsolved": f"{solved['seeds']}/{cell['seeds']}" if solved else "",
        "first success\n(episode)": _median(first) if first else "",
        "solved after\n(episode)": _median(solved) if solved else "",
    }


def show_trials(document: Mapping[str, Any], most: int = 10) -> None:
    """Prints a row for each of the best trials of a search."""
    trials, metric = document["trials"], NAMES[document["metric"]]
    best = [each for each in trials if each["value"] is not None][:most]
    if best:
        shown = [", ".join(f"{name}={_short(value)}" for name, value in each["options"].items()) for each in best]
        pairs = zip(best, shown, strict=True)
        rows = [{"trial": each["name"], metric: f"{each['value']:.4g}", "options": options} for each, options in pairs]
        print_table(rows, texts=("trial", "options"))
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
    print_table(rows, texts=("",))
    if SOLVED in document:
        print("Effects: episodes of B divided by those of A; final return of B minus that of A.")
    else:
        print("Success is not defined (--env.success RETURN). Effect: final return of B minus that of A.")
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
