"""`uppertail twin`: the same method with tables instead of networks, the limit of what a network can learn."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from uppertail.cli.parsing import add_parts, command_parser, instantiate, parse

if TYPE_CHECKING:
    from rich.table import Table

    from uppertail.twin import TwinResult

DESCRIPTION = """Runs the method with tables instead of networks, known transitions replayed exactly after each episode:
what its idea is worth when nothing is lost in learning. Prints the episode of each seed's first success. For
environments that are tables: Chain, DeepSea, Toy, FrozenLake, and Gymnasium's that show their table."""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail twin`; a light parser only shows help."""
    options = command_parser("twin", DESCRIPTION)
    add_parts(options, light)
    options.add_argument("--seeds", type=int, default=10, help="number of runs, each in the environment of its seed")
    options.add_argument("--seed", type=int, default=0, help="the base seed; run k uses seed + k")
    options.add_argument("--discount", type=float, default=0.999, help="discount per step, in [0, 1]")
    options.add_argument("--episodes", type=int, default=10_000, help="a run ends after this many episodes")
    options.add_argument(
        "--after", type=int, default=0, help="episodes that a run goes on for after its first success (0: it ends)"
    )
    options.add_argument("--json", action="store_true", help="print the result as JSON")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    options = parser()
    built = instantiate(options, parse(options, arguments))

    from uppertail.twin import twin

    result = twin(
        built.env,
        built.distribution,
        built.policy,
        seeds=built.seeds,
        seed=built.seed,
        discount=built.discount,
        episodes=built.episodes,
        after=built.after,
    )
    if built.json:
        print(json.dumps(result.document(), indent=2, allow_nan=False))
        return 0
    from rich.console import Console

    Console().print(result_table(result))
    return 0


def result_table(result: "TwinResult") -> "Table":
    """The result as a table: one row for each seed, and the median."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from uppertail.records import episode_text

    names = [part["name"] for part in (result.environment, result.distribution, result.policy)]
    title = f"The exact twin: {', '.join(names)}, discount {result.discount:g}"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("seed", "first\nsuccess", "times\nfloor", "success rate\nafter it"):
        table.add_column(heading, justify="right", no_wrap=True)
    floor = result.floor_episodes
    rates = result.success_rate_after
    for seed, first, rate in zip(result.seeds, result.first_success_episode, rates, strict=True):
        over = "-" if floor is None else episode_text(first and first / floor, ".1f")
        table.add_row(str(seed), episode_text(first), over, "-" if rate is None else f"{rate:.3f}")
    table.add_section()
    over = "-" if floor is None else episode_text(result.median_over_floor, ".1f")
    table.add_row("median", episode_text(result.median, ",.1f"), over, "")
    return table
