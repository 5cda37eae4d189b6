"""A run on the command line, from its first or its next step to the files that it leaves."""

import sys
from pathlib import Path

from rich.console import Console

from uppertail import records
from uppertail.analysis.curves import learning_curves
from uppertail.console import progress_bar, results_table
from uppertail.records import RunRecord
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.interrupt import interruptible
from uppertail.training.results import TrainingDivergedError
from uppertail.training.train import Run


def drive(run: Run, folder: Path, checkpoints: Checkpoints | None, quiet: bool) -> int:
    """Trains, and writes episodes.npz, summary.json and curve.png to a folder that is locked.

    Returns:
        The exit code: 0, or 130 after Ctrl-C.

    Raises:
        InputError: a checkpoint cannot be written, or there are some and none can be used.
        TrainingDivergedError: a loss became NaN or infinite; what was learned until then is written.
    """
    env, label = type(run.builder).__name__, f"{type(run.family).__name__}, {type(run.loop.agent.policy).__name__}"
    with interruptible():  # what has been learned is written, whatever happens meanwhile
        try:
            with progress_bar(label, quiet) as on_chunk:
                record = run.drive(on_chunk, checkpoints).record
        except TrainingDivergedError as error:
            _write(folder, error.result.record, env, label)
            raise
        _write(folder, record, env, label)
    if not quiet:
        if record.interrupted:
            how = f"; `uppertail resume {folder}` goes on" if checkpoints else ""
            print(f"Interrupted: what was learned until now is kept{how}.", file=sys.stderr)
        Console().print(results_table(f"{env}, seeds: {len(record.episodes)}", {label: record}))
        print(f"Results in {folder}")
    return 130 if record.interrupted else 0


def complain(line: str) -> None:
    """Says a line where errors go."""
    print(f"uppertail: {line}", file=sys.stderr)


def _write(folder: Path, record: RunRecord, env: str, label: str) -> None:
    """The curve last: a folder with a curve and a summary has all of its files, of one moment."""
    (folder / records.CURVE).unlink(missing_ok=True)
    records.write(folder, record)
    learning_curves(folder / records.CURVE, env, {label: record.episodes})
