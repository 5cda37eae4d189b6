"""`uppertail bench`: how fast the training loop is, beside its peers and beside the machine's own rate."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from uppertail.cli.output import picture
from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError

DESCRIPTION = """Times training on the Chain of length 100 at equal network, batch and update ratio: this project with
1, 10 and 100 seeds, its peers if their interpreter is given (`make bench` makes it), the machine's matrix products.
All take turns; medians count. Writes bench.json, bench.svg and bench.png, in about ten minutes on two CPU cores."""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail bench`; a light parser is the same."""
    del light
    options = command_parser("bench", DESCRIPTION)
    options.add_argument("--peer", type=str, default=None, help="Python with the packages of benchmarks/peers.txt")
    options.add_argument("--out", type=str, default="runs/bench", help="folder for the results")
    options.add_argument("--repetitions", type=int, default=5, help="turns of each contestant")
    options.add_argument("--seconds", type=float, default=2.0, help="how long a turn takes, about")
    options.add_argument("--only", type=str, default="", help="only contestants whose names contain this")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    if config.repetitions < 1:
        raise InputError(f"repetitions is {config.repetitions}: use 1 or more, 5 for numbers that are quoted.")
    if not 0 < config.seconds < 3600:
        raise InputError(f"seconds is {config.seconds:g}: use more than 0 and less than 3600.")
    return _bench(config)


def _bench(config: Any) -> int:
    import jax
    from rich.console import Console

    from uppertail.bench.contest import contest, contestants
    from uppertail.bench.load import Load
    from uppertail.records import output_errors, write_text

    jax.config.update("jax_enable_compilation_cache", False)  # compile times are those of a first run
    entrants = [entrant for entrant in contestants(config.peer) if config.only.lower() in entrant.label.lower()]
    if not entrants:
        names = "; ".join(entrant.label for entrant in contestants(config.peer))
        others = "" if config.peer else " (Stable-Baselines3 and sb3-contrib take part with --peer)"
        raise InputError(f"No contestant's name contains {config.only!r}{others}. They are: {names}.")
    folder = Path(config.out)
    with output_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ".writable", "")  # a folder that cannot be written is an error before the timing
        (folder / ".writable").unlink()
    console = Console(quiet=config.quiet)
    with console.status("") as status:
        document = contest(entrants, Load(), config.repetitions, config.seconds, status.update)
    with output_errors(folder):
        write_text(folder / "bench.json", json.dumps(document, indent=2) + "\n")
    if not config.quiet:
        _show(console, document)
    with output_errors(folder), picture(folder / "bench.png"):
        from uppertail.bench.figure import bars

        bars(folder / "bench", document)
    if not config.quiet:
        print(f"Results in {folder / 'bench.json'}, bars in {folder / 'bench.png'}")
    return 0


def _show(console: Any, document: dict[str, Any]) -> None:
    """Prints a row for each contestant, and the machine's own rates in a sentence."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

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
