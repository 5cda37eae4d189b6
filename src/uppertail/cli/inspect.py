"""`uppertail inspect`: what a run learned, in the terminal: distributions of a state, the greedy path."""

import json
from collections.abc import Sequence
from typing import Any

from uppertail.cli import trained
from uppertail.cli.parsing import Values
from uppertail.console import print_table
from uppertail.errors import InputError
from uppertail.records import RunFolder, config_of
from uppertail.records.distributions import Distributions
from uppertail.reports.inspected import Inspected
from uppertail.training.trained import at_the_end

WIDTH = 20
"""Characters of a drawn distribution."""
BLOCKS = "·▁▂▃▄▅▆▇█"


def main(config: Values) -> int:
    """Runs the command."""
    if config.step is not None and config.step < 0:
        raise InputError(f"step is {config.step}: use 0, the beginning, or more.")
    config_of(config.folder)  # refuses what is no run's folder
    run = RunFolder(config.folder)
    found = Inspected.of(run, run.distributions or _at_the_end(run, config.step), config.seed, config.step)
    document = found.document(config.state)
    if config.json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _show(found, document)
    return 0


def _at_the_end(run: RunFolder, step: int | None) -> Distributions:
    """What the networks give of a run that recorded nothing; code that its folder names never runs."""
    if step is not None:
        raise InputError(
            "This run recorded no distributions, so only its end can be looked at: leave --step out, or train with "
            "--record distributions."
        )
    with trained.open_run(run.path, trust=None) as opened:
        return at_the_end(opened.run, opened.networks, run.summary["episodes"], opened.file.header.step)


def _show(found: Inspected, document: dict[str, Any]) -> None:
    print(f"{document['environment']}, {document['method']}: seed {document['seed']}, {document['when']}")
    heights = found.densities(document["state"], WIDTH)
    rows = [_numbers(row) for row in document["actions"]]
    if heights:
        heading = f"from {heights.low:.3g} to {heights.high:.3g}"
        rows = [{**row, heading: _picture(heights.of[number])} for number, row in enumerate(rows)]
    print_table(rows, "First observation" if document["state"] is None else f"State {_state(document)}")
    path = [
        {
            "state": _state(row),
            "action": _action(row),
            "mean": _text(row["mean"]),
            "upper": _text(row["upper"]),
            "best other": _text(row["other_upper"]),
            "gap": _text(row["gap"], "+.3g"),
        }
        for row in document["path"]
    ]
    if path:
        print_table(path, "Greedy path")
    gap = " Gap: the upper bound minus that of the best other action." if path else ""
    print(f"Upper: the mean plus two standard deviations. *: greedy.{gap}")


def _action(row: dict[str, Any]) -> str:
    """An action's number, and what the environment calls it."""
    return f"{row['action']} {row['name']}" if row["name"] else str(row["action"])


def _state(row: dict[str, Any]) -> str:
    """A state's number, and what else it is called."""
    named = row["state_name"] != f"state {row['state']}"
    return f"{row['state']} ({row['state_name']})" if named else str(row["state"])


def _numbers(row: dict[str, Any]) -> dict[str, str]:
    """An action's row of the table."""
    shown = {"action": f"{_action(row)}{' *' if row['greedy'] else ''}", "mean": _text(row["mean"])}
    shown |= {"sd": _text(row["std"], ".3g"), "upper": _text(row["upper"])}
    if row["visits"] is not None:
        age = "never taken" if row["age"] is None else f"{row['age']:,}"
        shown |= {"data": f"{row['visits']:,}", "age (steps)": age}
    return shown


def _text(value: float | None, form: str = ".4g") -> str:
    """A number; None is one that is not finite, or does not exist."""
    return "-" if value is None else format(value, form)


def _picture(heights: Sequence[float]) -> str:
    """A row of blocks, the highest for the peak."""
    peak = max(heights) or 1.0
    return "".join(BLOCKS[round(height / peak * (len(BLOCKS) - 1))] for height in heights)
