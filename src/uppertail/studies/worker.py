"""A worker: runs one cell after another until every cell of the study is done or failed."""

import contextlib
import io
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from uppertail.errors import InputError
from uppertail.studies import results
from uppertail.studies.cells import Cell
from uppertail.studies.claim import Claim, Outcome
from uppertail.studies.claims import Claims

POLL = 0.5
"""Seconds between two looks at the work of other processes."""
INTERRUPTED = 130
"""The exit code of a command after Ctrl-C."""

Command = Callable[[Sequence[str]], int]
"""The command line: takes arguments, such as train and its options, and returns an exit code."""


Run = Callable[[Cell, Claim], bool]
"""Runs a cell that has been claimed, and ends the claim; False if the worker must end."""


def work(cells: Sequence[Cell], claims: Claims, run: Run, poll: float = POLL) -> bool:
    """Runs cells until each is done or has failed, here or elsewhere.

    It takes cells that no process works on, also those of processes that died, and waits for the others.

    Args:
        cells: all cells of the study, in the order in which they are taken.
        claims: the claims of all cells.
        run: runs one cell.
        poll: seconds between two looks while there is nothing to take.

    Returns:
        Whether all cells have ended; False after Ctrl-C.

    Raises:
        InputError: claims cannot be written.
    """
    open_cells = {cell.name: cell for cell in cells}
    while open_cells:
        standings = claims.standings(open_cells)
        waiting = [name for name, standing in standings.items() if standing.state == "waiting"]
        open_cells = {name: open_cells[name] for name in standings if standings[name].state in ("waiting", "running")}
        taken = ((name, claim) for name in waiting if (claim := claims.take(name, standings[name])))
        name, claim = next(taken, (None, None))
        if name is not None and claim is not None:
            if not run(open_cells[name], claim):
                return False
        elif open_cells:
            time.sleep(poll)
    return True


def run_cell(place: Path, command: Command, cell: Cell, claim: Claim) -> bool:
    """Trains a cell that has been claimed, and ends the claim; False after Ctrl-C.

    Args:
        place: the folder of all run folders.
        command: the command line that trains.
        cell: the cell.
        claim: its claim.
    """
    folder = place / cell.name
    began = time.monotonic()
    message, code = "", 0
    with release_if_cut_off(claim):
        if results.read_result(folder) is None:
            code, message = train_cell(cell, folder, command)
    if code == INTERRUPTED:
        end(claim, "released")
        return False
    result = results.read_result(folder)
    if result is None or result.trouble:
        trouble = result.trouble if result else None
        end(claim, "failed", message=message or trouble or f"it ended with exit code {code}, and without results")
        return True
    seconds = max(time.monotonic() - began, result.summary["wall_seconds"])
    end(claim, "done", seconds=round(seconds, 3), sha256=results.checksums(folder))
    return True


@contextlib.contextmanager
def release_if_cut_off(claim: Claim) -> Iterator[None]:
    """Releases a cell at once on Ctrl-C or at a time limit, so that others need not wait for this process to die."""
    try:
        yield
    except BaseException:
        end(claim, "released")
        raise


def train_cell(cell: Cell, folder: Path, command: Command) -> tuple[int, str]:
    """Trains, from the last checkpoint if there is one; returns the exit code and the text of errors."""
    if results.has_checkpoint(folder):
        arguments = ["resume", str(folder), "--quiet"]
    else:
        arguments = ["train", *cell.arguments, "--out", str(folder), "--overwrite", "--quiet"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            code = command(arguments)
    except Exception as error:  # the user's own code may raise anything
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {error}"
    return code, said.getvalue().strip().removeprefix("uppertail: ")


def end(claim: Claim, outcome: Outcome, **details: Any) -> None:
    """Ends a claim.

    Raises:
        InputError: that cannot be written.
    """
    try:
        claim.end(outcome, **details)
    except OSError as error:
        raise InputError(
            f"The claim {claim.path} cannot be written ({error.strerror}): make room, then call the same command again."
        ) from error
