"""The run folder of a cell: whether it is complete, and its results."""

import dataclasses
import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uppertail import records
from uppertail.errors import InputError
from uppertail.records import Episodes
from uppertail.schema import MismatchError
from uppertail.studies.settings import flat
from uppertail.yaml_files import read_yaml

KEPT = (records.CONFIG, records.EPISODES, records.SUMMARY, records.NETWORKS)
"""Files whose checksums a finished cell's claim keeps."""


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """The results of a finished run.

    Args:
        summary: its summary.json.
        episodes: the episodes of each seed.
    """

    summary: Mapping[str, Any]
    episodes: list[Episodes]

    @property
    def trouble(self) -> str | None:
        """Why the run ended before its limits; None if it did not."""
        diverged = self.summary.get("diverged")
        return diverged and (
            f"the loss of seed {diverged['seed']} became NaN or infinite by environment step {diverged['step']}"
        )


def read_result(folder: Path) -> Result | None:
    """The result of a finished run; None if it is not finished, or its files are damaged."""
    if not all((folder / name).is_file() for name in records.FILES):
        return None
    try:
        with np.load(folder / records.EPISODES, allow_pickle=False) as arrays:
            episodes = Episodes.of_arrays(arrays)
        summary = json.loads((folder / records.SUMMARY).read_text(encoding="utf-8"))
        whole = len(episodes) == summary["seeds"] and summary["interrupted"] is False
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, RecursionError, MismatchError):
        return None
    return Result(summary, episodes) if whole else None


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of each of a finished run's files, by name."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in KEPT}


def damage(folder: Path, sums: Mapping[str, str]) -> str | None:
    """What is wrong with the files of a run that was finished, in words; None if they have not changed."""
    for name in KEPT:
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if name in sums and hashlib.sha256(path.read_bytes()).hexdigest() != sums[name]:
            return f"{name} is not as it was written"
    return None if read_result(folder) else "its results cannot be read"


def settings(folder: Path) -> dict[str, Any] | None:
    """The settings of a run, flat; None if its config.yaml cannot be read.

    Raises:
        FileNotFoundError: it has none.
    """
    try:
        return flat(dict(read_yaml(folder / records.CONFIG, "The config file")))
    except (InputError, ValueError, TypeError):
        return None


def begin_again(folder: Path) -> None:
    """Deletes the checkpoints of a damaged run, and the file that makes it look finished."""
    for path in [folder / records.SUMMARY, *(folder / records.CHECKPOINTS).glob(records.CHECKPOINT_PATTERN)]:
        path.unlink(missing_ok=True)


def has_checkpoint(folder: Path) -> bool:
    """Whether an unfinished run can go on from a checkpoint."""
    has_config = (folder / records.CONFIG).is_file()
    return has_config and any((folder / records.CHECKPOINTS).glob(records.CHECKPOINT_PATTERN))
