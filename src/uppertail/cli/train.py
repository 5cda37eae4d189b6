"""`uppertail train`: one method, one environment, several seeds; a run, from its first step to its files."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from uppertail import records
from uppertail.cli.output import complain, picture
from uppertail.cli.parsing import Values
from uppertail.cli.request import Request, request_of
from uppertail.console import progress_bar, results_table
from uppertail.environments import GymnasiumBuilder
from uppertail.loggers import JSONL, Logger
from uppertail.loggers.base import NotALogError
from uppertail.training import process
from uppertail.training.checkpoints import Checkpoints, save_networks
from uppertail.training.process import interruptible
from uppertail.training.results import TrainingFailedError, TrainingResult
from uppertail.training.run import Run
from uppertail.training.train import OnChunk, drive


def main(values: Values) -> int:
    """Runs the command."""
    request = request_of(values)
    if values.print_config:
        print(request.config, end="")
        return 0
    return begin(request)


def begin(request: Request, beside: Sequence[OnChunk] = ()) -> int:
    """Trains what was asked for, and returns the exit code; `beside` are called with the progress after each chunk."""
    process.limit_threads(request.settings.seeds)
    planned = request.folder()
    request.checkpoints(planned)
    loggers = request.loggers(planned)  # an error up to here, or in the next line, comes before any file
    run = request.run()
    folder = request.claim()
    if folder != planned:  # another process was faster
        loggers = request.loggers(folder)
    checkpoints = None if request.built.checkpoint_every is None else request.checkpoints(folder)
    with records.locked(folder):
        records.write_config(folder / records.CONFIG, request.config)
        return train(run, folder, checkpoints, loggers, request.built.quiet, beside)


def train(
    run: Run,
    folder: Path,
    checkpoints: Checkpoints | None,
    loggers: Sequence[Logger],
    quiet: bool,
    beside: Sequence[OnChunk] = (),
) -> int:
    """Trains, writes the files of the run to a locked folder, also if training fails, and returns the exit code."""
    env, label = run.builder.label, f"{type(run.method.distribution).__name__}, {type(run.method.policy).__name__}"
    for note in run.notes:
        complain(note)
    if isinstance(run.builder, GymnasiumBuilder) and run.builder.may_go_on:
        complain(f"{env} declares no time limit: if it never ends an episode by itself, set --env.max_episode_steps N.")
    log = _log(folder)
    with interruptible() as asked_to_stop:  # an interrupted run still writes what it learned
        try:
            with progress_bar(label, quiet) as show, contextlib.ExitStack() as logs:
                callbacks = [show, *map(logs.enter_context, (log, *loggers)), *beside]
                result = drive(run, lambda progress: [callback(progress) for callback in callbacks], checkpoints)
        except TrainingFailedError as error:
            _write(folder, error.result, label)
            raise
        _write(folder, result, label)
    if not any(seed.returns.size for seed in result.record.episodes):
        complain(
            f"No episode ended in {max(result.record.env_steps):,} steps, so there are no returns: train longer, or "
            "set a time limit."
        )
    if remark := result.networks.remark():
        complain(remark)
    if result.record.interrupted and not quiet:
        how = f"; `uppertail resume {folder}` continues the run" if checkpoints else ""
        print(f"Interrupted: what was learned until now is kept{how}.", file=sys.stderr)
    if not quiet:
        console, title = Console(), f"{env}, seeds: {len(result.record.episodes)}"
        console.print(results_table(title, label, result.record, console.width))
        print(f"Results in {folder}; programs compiled: {result.record.compilations}")
    return asked_to_stop.exit_code if result.record.interrupted else 0


def _log(folder: Path) -> JSONL:
    """Opens the run's log; a damaged one is kept under another name, and a new one begins."""
    path = folder / records.LOG
    try:
        return JSONL(path)
    except NotALogError:
        with records.output_errors(folder):
            path.replace(folder / records.DAMAGED_LOG)
        complain(f"{path} is damaged: it is kept as {records.DAMAGED_LOG}, and a new log begins.")
        return JSONL(path)


def _write(folder: Path, result: TrainingResult, label: str) -> None:
    """Writes the files, the curve last: a folder with a curve and a summary has all files of one moment."""
    with records.output_errors(folder):
        for name in (records.CURVE, records.REPORT, records.DISTRIBUTIONS, records.EVALUATION):
            for path in folder.glob(name):  # left by earlier networks
                path.unlink()
        records.write_run(folder, result.record, result.distributions)
        save_networks(folder, result)
        if (later := folder / records.NEXT_CONFIG).is_file():
            later.replace(folder / records.CONFIG)
        with picture(folder / records.CURVE):
            from uppertail.analysis.figures import learning_curves  # imported late: it takes a second

            learning_curves(folder / records.CURVE, result.record.environment, {label: result.record.episodes})
