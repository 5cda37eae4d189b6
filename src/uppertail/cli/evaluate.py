"""`uppertail evaluate`: what a run's learned networks earn, over many episodes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import ArgumentParser

from uppertail import records
from uppertail.cli import trained
from uppertail.cli.parsing import command_parser, parse
from uppertail.cli.trust import HELP
from uppertail.errors import InputError

if TYPE_CHECKING:
    from uppertail.analysis.evaluation import Evaluation

DESCRIPTION = """Plays episodes with the networks that a run of `uppertail train` learned, of every seed and held still;
prints their returns with a 95% bootstrap interval over seeds, and writes evaluation-POLICY.json to the run's folder.
Called again, it prints the same numbers."""

MOST_EPISODES = 100_000
"""Compiled episodes are played all at once, and take about 4 kB of memory each at width 256."""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail evaluate`; a light parser is the same."""
    del light
    options = command_parser("evaluate", DESCRIPTION)
    options.add_argument("folder", type=str, nargs="?", default=None, help="the run's folder")
    options.add_argument("--episodes", type=int, default=100, help="episodes of each seed")
    options.add_argument("--policy", type=str, default="greedy", help=trained.POLICY)
    options.add_argument("--trust", action="store_true", help=HELP)
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    if config.folder is None:
        raise InputError("Which run? `uppertail evaluate DIR`, with the folder that `uppertail train` wrote to.")
    if not 1 <= config.episodes <= MOST_EPISODES:
        raise InputError(f"episodes is {config.episodes}: use 1 to {MOST_EPISODES:,}.")
    trained.check_policy(config.policy)
    return _evaluate(Path(config.folder), config.episodes, config.policy, config.trust, config.quiet)


def _evaluate(folder: Path, episodes: int, name: str, trust: bool, quiet: bool) -> int:
    from uppertail.analysis.evaluation import Evaluation
    from uppertail.records.described import describe
    from uppertail.training.process.hardware import hardware

    with trained.open_run(folder, trust) as finished:
        finished.require_finite(slice(None))
        run, policy = finished.run, finished.policy(name)
        played = run.play(finished.networks, policy, episodes)
    seeds = list(range(run.settings.seed, run.settings.seed + run.settings.seeds))
    evaluation = Evaluation(seeds, played.returns, played.lengths, run.builder.success_return)
    document = {
        "policy": {"asked": name, **describe(policy)},
        "env": run.asked()["environment"],
        **evaluation.document(),
        "networks": {"env_steps": finished.file.header.step, "sha256": finished.file.digest},
        "hardware": hardware(),
    }
    if not quiet:
        env = document["env"]
        _show(
            f"{env.get('id', env['name'])}, {type(run.method.distribution).__name__}, {_label(document['policy'])}",
            evaluation,
        )
    return _write(
        folder / records.EVALUATION.replace("*", name if name in trained.NAMES else type(policy).__name__),
        document,
        quiet,
    )


def _write(path: Path, document: dict[str, Any], quiet: bool) -> int:
    """Writes the file, whole or not at all."""
    try:
        records.write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise InputError(
            f"The episodes were played, but {path} cannot be written ({error.strerror}): make the folder writable, "
            "or evaluate a copy of it."
        ) from error
    if not quiet:
        print(f"Every episode in {path}")
    return 0


def _label(policy: dict[str, Any]) -> str:
    """A policy and its settings, for a title."""
    settings = [f"{name} {value:g}" for name, value in policy.items() if isinstance(value, int | float)]
    return f"{policy['name']} ({', '.join(settings)})" if settings else policy["name"]


def _show(title: str, evaluation: "Evaluation") -> None:
    """Prints a row for each seed, and the mean over seeds with its interval in a sentence."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    rates = evaluation.success_rates
    for heading in ("seed", "mean return", "mean length", *(["successes"] if rates else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    each = zip(evaluation.seeds, evaluation.mean_returns, evaluation.mean_lengths, strict=True)
    for row, (seed, ret, length) in enumerate(each):
        table.add_row(str(seed), f"{ret:.4g}", f"{length:.4g}", *([f"{rates[row]:.0%}"] if rates else []))
    mean, low, high = evaluation.interval
    count, episodes = evaluation.returns.shape
    seeds = f"95% interval over {count} seeds from {low:.4g} to {high:.4g}" if count > 1 else "one seed, so no interval"
    print(title)
    Console().print(table)
    print(f"Mean return {mean:.4g}, {seeds}; {episodes:,} episodes of each.")
