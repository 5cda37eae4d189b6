"""`uppertail inspect`: what a run learned, in the terminal: distributions of a state, the greedy path."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import ArgumentParser

from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError

if TYPE_CHECKING:
    from uppertail.records import RunFolder
    from uppertail.records.distributions import Distributions
    from uppertail.reports.inspected import Inspected

DESCRIPTION = """Shows what a run of `uppertail train` learned: the return distribution of each action in a state, and
the greedy path with upper bounds; of its end, or with --step of any moment that --record distributions recorded."""

WIDTH = 20
"""Characters of a drawn distribution."""
BLOCKS = "·▁▂▃▄▅▆▇█"


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail inspect`; a light parser is the same."""
    del light
    options = command_parser("inspect", DESCRIPTION)
    options.add_argument("folder", type=str, nargs="?", default=None, help="the run's folder")
    options.add_argument("--seed", type=int | None, default=None, help="which seed (default: the first)")
    options.add_argument(
        "--state", type=int | None, default=None, help="which state (default: the greedy path's first)"
    )
    options.add_argument(
        "--step",
        type=int | None,
        default=None,
        help="the last recorded moment up to this environment step (default: the end)",
    )
    options.add_argument("--json", action="store_true", help="print the numbers as JSON")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    if config.folder is None:
        raise InputError("Which run? `uppertail inspect DIR`, with the folder that `uppertail train` wrote to.")
    if config.step is not None and config.step < 0:
        raise InputError(f"step is {config.step}: use 0, the beginning, or more.")
    found = _inspect(Path(config.folder), config.seed, config.step)
    document = found.document(config.state)
    if config.json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _show(found, document)
    return 0


def _inspect(folder: Path, seed: int | None, step: int | None) -> "Inspected":
    from uppertail.records import RunFolder, config_of
    from uppertail.reports.inspected import Inspected

    config_of(folder)  # refuses what is no run's folder
    run = RunFolder(folder)
    recorded = run.distributions or _at_the_end(run, step)
    return Inspected.of(run, recorded, seed, step)


def _at_the_end(run: "RunFolder", step: int | None) -> "Distributions":
    """What the networks of a run give that recorded nothing.

    Raises:
        InputError: another moment is asked for, or the run names a class that is not built in.
    """
    from uppertail.cli import trained
    from uppertail.training.snapshot import at_the_end

    if step is not None:
        raise InputError(
            "This run recorded no distributions, so only its end can be looked at: leave --step out, or train with "
            "--record distributions."
        )
    with trained.open_run(run.path, trust=None) as finished:
        header = finished.file.header
        return at_the_end(finished.run, finished.networks, run.summary["episodes"], header.step)


def _show(found: "Inspected", document: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    print(f"{document['environment']}, {document['method']}: seed {document['seed']}, {document['when']}")
    heights = found.densities(document["state"], WIDTH)
    rows = [
        {
            "action": f"{row['action']}{' *' if row['greedy'] else ''}",
            **_numbers(row),
            **(
                {f"from {heights.low:.3g} to {heights.high:.3g}": _picture(heights.of[row["action"]])}
                if heights
                else {}
            ),
        }
        for row in document["actions"]
    ]
    title = "First observation" if document["state"] is None else f"State {document['state']}"
    console.print(_table(title, rows))
    shown = {"mean": "mean", "upper": "upper", "best other": "other_upper", "gap": "gap"}
    path = [
        {
            "state": str(row["state"]),
            "action": str(row["action"]),
            **{heading: _text(row[name], "+.3g" if name == "gap" else ".4g") for heading, name in shown.items()},
        }
        for row in document["path"]
    ]
    if path:
        console.print(_table("Greedy path", path))
    gap = " Gap: upper bound less the best of the other actions." if path else ""
    print(f"Upper: the mean and two standard deviations. *: greedy.{gap}")


def _numbers(row: dict[str, Any]) -> dict[str, str]:
    shown = {"mean": _text(row["mean"]), "sd": _text(row["std"], ".3g"), "upper": _text(row["upper"])}
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


def _table(title: str, rows: list[dict[str, str]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for heading in rows[0]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    return table
