"""`uppertail headline`: four methods on the Chain of length 100, one table, one figure."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from uppertail.cli.output import picture
from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError

DESCRIPTION = """Solves the randomized Chain of length 100 with three return distributions, beside epsilon-greedy.
Writes episodes.npz, summary.json, log.jsonl and distributions.npz of each method, under its name, curves.png, and
report.html if `pip install 'uppertail[report]'` was."""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail headline`; a light parser is the same."""
    del light
    options = command_parser("headline", DESCRIPTION)
    options.add_argument("--out", type=str, default=None, help="folder for the results (default: runs/headline)")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse(parser(), arguments)
    return _headline(config.out, config.quiet)


def _headline(out: str | None, quiet: bool) -> int:
    from rich.console import Console

    from uppertail import records
    from uppertail.console import progress_bar, results_table
    from uppertail.experiments import headline
    from uppertail.loggers import JSONL
    from uppertail.records import distributions
    from uppertail.training.process.interrupt import interruptible
    from uppertail.training.train import train

    folder = Path(out) if out else records.claim_unused(Path("runs"), "headline")
    if out:
        records.claim_folder(folder)
    runs: dict[str, records.RunRecord] = {}
    unwritten: list[str] = []
    with interruptible() as asked_to_stop:  # an interrupted run still writes what it learned
        for label, (distribution, policy) in headline.METHODS.items():
            prefix = f"{type(distribution).__name__}-"
            with progress_bar(label, quiet) as show, JSONL(folder / f"{prefix}{records.LOG}") as log:
                callbacks = (show, _write_or_note(log, unwritten))
                result = train(
                    headline.ENVIRONMENT,
                    distribution,
                    policy,
                    headline.SETTINGS,
                    lambda now, callbacks=callbacks: [callback(now) for callback in callbacks],
                    record="distributions",
                )
            runs[label] = result.record
            with _note_errors(unwritten, label):  # the other methods and the table are worth having all the same
                records.write(folder, runs[label], prefix)
                if result.distributions:
                    distributions.write(folder, result.distributions, prefix)
            if asked_to_stop.is_set():
                break
    title = f"Randomized Chain of length {headline.ENVIRONMENT.length}, seeds: {headline.SETTINGS.seeds}"
    if not quiet or unwritten:
        console = Console()
        console.print(results_table(title, runs, console.width))
    curves = folder / "curves.png"
    with _note_errors(unwritten, curves.name), picture(curves):
        from uppertail.analysis.curves import learning_curves

        learning_curves(curves, title, {label: record.episodes for label, record in runs.items()})
    if unwritten:
        raise InputError(f"In {folder}, not all could be written ({'; '.join(unwritten)}): make room, or run it again.")
    if not quiet:
        print(f"Results in {folder}; learning curves in {curves}")
    _report(folder, quiet)
    return asked_to_stop.exit_code if asked_to_stop.is_set() else 0


def _write_or_note(log: Callable[[Any], None], unwritten: list[str]) -> Callable[[Any], None]:
    """The log, but if a write fails, the log ends with a note and the run goes on."""
    failed: list[str] = []

    def write(now: Any) -> None:
        if not failed:
            try:
                log(now)
            except InputError as error:
                failed.append(str(error).rstrip("."))
                unwritten.extend(failed)

    return write


def _report(folder: Path, quiet: bool) -> None:
    """Writes the report, or says why not; a failure here loses no result."""
    from uppertail import records
    from uppertail.cli import report
    from uppertail.reports.page import missing

    line = missing()
    if line is None:
        try:
            out = folder / records.REPORT
            report.write([folder], out, [], False, f"uppertail report {folder}")
            line = f"Report in {out}: open it in a browser."
        except InputError as error:
            line = str(error)
    if not quiet:
        print(line)


@contextlib.contextmanager
def _note_errors(unwritten: list[str], what: str) -> Iterator[None]:
    """Notes what cannot be written, and why."""
    try:
        yield
    except OSError as error:
        unwritten.append(f"{what}: {error.strerror}")
