"""`uppertail headline`: four methods on the Chain of length 100, one table, one figure."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser

from uppertail.cli.parsing import command_parser, parse

DESCRIPTION = """Solves the randomized Chain of length 100 with three return distributions, beside epsilon-greedy.
Writes episodes.npz and summary.json of each method, under its name, and curves.png."""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail headline`; a light parser is the same."""
    del light
    options = command_parser("headline", DESCRIPTION)
    options.add_argument("--out", type=str | None, default=None, help="folder for the results (default: runs/headline)")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    return _headline(config.out, config.quiet)


def _headline(out: str | None, quiet: bool) -> int:
    from rich.console import Console

    from uppertail import records
    from uppertail.analysis.curves import learning_curves
    from uppertail.console import progress_bar, results_table
    from uppertail.experiments import headline
    from uppertail.training.process.interrupt import interruptible
    from uppertail.training.train import train

    folder = Path(out) if out else records.unused_folder(Path("runs"), "headline")
    records.claim_folder(folder)
    runs: dict[str, records.RunRecord] = {}
    with interruptible() as asked_to_stop:  # what has been learned is written, whatever happens meanwhile
        for label, (distribution, policy) in headline.METHODS.items():
            with progress_bar(label, quiet) as on_chunk:
                record = train(headline.ENVIRONMENT, distribution, policy, headline.SETTINGS, on_chunk).record
            records.write(folder, record, prefix=f"{type(distribution).__name__}-")
            runs[label] = record
            if asked_to_stop.is_set():
                break
    title = f"Randomized Chain of length {headline.ENVIRONMENT.length}, seeds: {headline.SETTINGS.seeds}"
    learning_curves(folder / "curves.png", title, {label: record.episodes for label, record in runs.items()})
    if not quiet:
        Console().print(results_table(title, runs))
        print(f"Results in {folder}; learning curves in {folder / 'curves.png'}")
    return 130 if asked_to_stop.is_set() else 0
