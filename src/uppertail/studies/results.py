"""What a study asks of a cell's run folder, beside what `RunFolder` reads."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.errors import InputError
from uppertail.records import RunFolder
from uppertail.studies.settings import flat

KEPT = (records.CONFIG, records.EPISODES, records.SUMMARY, records.NETWORKS)
"""Files whose checksums are kept when a cell is done."""


def finished(place: Path) -> RunFolder | None:
    """The run in a folder, if it came to its end and its files are whole."""
    run = RunFolder(place)
    return run if run.finished else None


def trouble(run: RunFolder) -> str | None:
    """Why a finished run ended before its limits; None if it did not."""
    at = run.summary["diverged"]
    return at and f"the loss of seed {at['seed']} became NaN or infinite by environment step {at['step']}"


def checksums(place: Path) -> dict[str, str]:
    """SHA-256 of each of a finished run's files, by name."""
    return {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in KEPT}


def damage(place: Path, sums: Mapping[str, str]) -> str | None:
    """What is wrong with the files of a run that was finished, in words; None if they have not changed."""
    if missing := [name for name in KEPT if not (place / name).is_file()]:
        return f"{missing[0]} is missing"
    if changed := [name for name, found in checksums(place).items() if sums.get(name, found) != found]:
        return f"{changed[0]} is not as it was written"
    return None if finished(place) else "its results cannot be read"


def settings(place: Path) -> dict[str, Any] | None:
    """The settings of a run, flat; None without a config.yaml, or if it cannot be read."""
    try:
        return flat(RunFolder(place).config or {}) or None
    except InputError:
        return None


def begin_again(place: Path) -> None:
    """Deletes the checkpoints of a damaged run, and the file that makes it look finished."""
    for path in [place / records.SUMMARY, *(place / records.CHECKPOINTS).glob(records.CHECKPOINT_PATTERN)]:
        path.unlink(missing_ok=True)


def has_checkpoint(place: Path) -> bool:
    """Whether an unfinished run can go on from a checkpoint."""
    checkpoints = (place / records.CHECKPOINTS).glob(records.CHECKPOINT_PATTERN)
    return (place / records.CONFIG).is_file() and any(checkpoints)
