"""`uppertail resume`: continues a run that was killed or interrupted."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from uppertail import records
from uppertail.cli.options import Values
from uppertail.cli.train import read_request, train
from uppertail.cli.trust import require_trust
from uppertail.errors import InputError
from uppertail.training import process
from uppertail.training.checkpoints import Saver
from uppertail.training.results import remedy
from uppertail.training.train import OnChunk


def main(values: Values) -> int:
    """Runs the command."""
    return go_on(values.folder, values.steps, values.trust, values.quiet)


def go_on(folder: Path, steps: int | None, trust: bool, quiet: bool, beside: Sequence[OnChunk] = ()) -> int:
    """Goes on with a run to its own limits, or to a later one of `steps`, and returns the exit code.

    `trust` says whether code that its folder names may run; `beside` are called with the progress after each chunk.
    """
    config = records.config_of(folder)
    with records.locked(folder):
        run, later = records.RunFolder(folder), folder / records.NEXT_CONFIG
        if run.finished and (diverged := run.summary["diverged"]):
            raise InputError(
                f"The run in {folder} ended when the loss of seed {diverged['seed']} became NaN or infinite, by "
                f"environment step {diverged['step']}: train again {remedy(run.summary)}."
            )
        onward = f"`uppertail train --init {shlex.quote(str(folder))}` starts another run from it."
        if run.finished and steps is None and not later.is_file():
            if not quiet:
                more = onward if run.summary["stopped"] else f"`--steps N` raises a limit of steps, and {onward}"
                print(f"The run in {folder} is finished: nothing is left to compute, and nothing was changed. {more}")
            return 0
        if run.finished and run.summary["stopped"]:
            raise InputError(f"The run in {folder} was stopped before its limits ({run.summary['stopped']}): {onward}")
        require_trust(folder, trust)
        if later.is_file() and steps is None:
            steps = read_request(later).settings.steps
        return _train(folder, config, steps, quiet, beside)


def _train(folder: Path, config: Path, steps: int | None, quiet: bool, beside: Sequence[OnChunk]) -> int:
    """Trains on; without the file of a new limit, which lasts until results are written, the old limit counts again."""
    request = read_request(config)
    if steps is not None:
        _require_longer(request.settings.steps, steps, folder)
        request = read_request(config, [f"--steps={steps}"])
    process.limit_threads(request.settings.seeds)
    loggers, checkpoints = request.loggers(folder), request.checkpoints(folder)
    files = checkpoints.files()
    if not files and (checkpoints.every is None or steps is not None):
        raise InputError(
            f"The run in {folder} has no checkpoints: train again, with --checkpoint_every N if it may be killed."
        )
    if not quiet:
        print(f"Going on from {files[0].name}." if files else "There is no checkpoint yet: beginning again.")
    run = request.run(checkpoints.plan() or request.plan)
    learned = None if files or request.earlier is None else request.earlier.learned(run)
    if steps is not None:
        Saver(checkpoints, run).newest()  # refuses what cannot be used
        with records.output_errors(folder):
            records.write_config(folder / records.NEXT_CONFIG, request.config_with(run.plan))
    return train(run, folder, checkpoints, loggers, quiet, beside, learned)


def _require_longer(before: int | None, steps: int, folder: Path) -> None:
    """Refuses a limit that is not beyond the one that the run has."""
    if before is None:
        raise InputError(
            f"The run in {folder} has no limit of steps to raise: `uppertail train --init {shlex.quote(str(folder))}` "
            "starts another run from it."
        )
    if steps <= before:
        raise InputError(f"steps is {steps}, but the run in {folder} already goes to step {before}: use more.")
