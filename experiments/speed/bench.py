"""Times training on the Chain of length 100 at equal network, batch and update ratio.

Usage: python -m experiments.speed.bench [--peer PYTHON] [--only "width 64"]; `make bench` gives it one.

This project with 1, 10 and 100 seeds, its peers if their interpreter is given, the machine's matrix products: all take
turns, and medians count. Writes bench.json, bench.svg and bench.png, in about ten minutes on two CPU cores.
"""

import argparse
from pathlib import Path
from typing import Any

import jax
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.common import ended, write
from experiments.speed.contest.figure import draw
from experiments.speed.contest.load import Load
from experiments.speed.contest.turns import contest, contestants
from uppertail.errors import InputError
from uppertail.records import output_errors


def main(arguments: list[str] | None = None) -> None:
    """Runs the command.

    Raises:
        InputError: nobody takes part, a peer cannot run, or the folder cannot be written.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="Python with the packages of experiments/peers/requirements.txt")
    parser.add_argument("--out", type=Path, default=Path("runs/bench"), help="folder for the results")
    parser.add_argument("--repetitions", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn takes, about")
    parser.add_argument("--only", default="", help="only contestants whose names contain this")
    given = parser.parse_args(arguments)
    if given.repetitions < 1:
        raise InputError(f"repetitions is {given.repetitions}: use 1 or more, 5 for numbers that are quoted.")
    everybody = contestants(given.peer)
    entrants = [entrant for entrant in everybody if given.only.lower() in entrant.label.lower()]
    if not entrants:
        names = "; ".join(entrant.label for entrant in everybody)
        raise InputError(f"No contestant's name contains {given.only!r}. They are: {names}.")
    with output_errors(given.out):
        given.out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_enable_compilation_cache", False)  # compile times are those of a first run
    console = Console()
    with console.status("") as status:
        document = contest(entrants, Load(), given.repetitions, given.seconds, status.update)
    with output_errors(given.out):
        write(given.out / "bench.json", document)
        draw(given.out / "bench", document)
    show(console, document)


def show(console: Console, document: dict[str, Any]) -> None:
    """Prints a row for each contestant, and the machine's own rates in a sentence."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("")
    for heading in ("depth", "steps/s", "x DQN", "x QR-DQN", "share", "compile"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in document["rows"]:
        times, ours = row.get("times", {}), row["ours"]
        table.add_row(
            row["label"].rpartition(", ")[0],
            str(row["hidden_layers"]),
            f"{row['steps_per_second']:,.0f}",
            *(f"{times[key]:g}" if key in times else "" for key in ("DQN", "QRDQN")),
            f"{row['share_of_small_products']:.0%}" if ours else "",
            f"{row['compile_seconds']:.1f} s" if ours else "",
        )
    console.print(table)
    small, large = document["products_gflops"].values()
    print(
        f"Matrix products of this machine: {small:,.0f} GFLOP/s for small ones on every core (shares are of these), "
        f"{large:,.0f} for a large one. Most memory held: {document['peak_megabytes']:,} MB."
    )


if __name__ == "__main__":
    ended(main)
