"""The runs that a report is about, read from their folders."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.records import CONFIG, EPISODES, LOG, SUMMARY, Episodes
from uppertail.records import distributions as recorded
from uppertail.records.distributions import Distributions

CELLS = "cells"
"""The folder of a study's runs, within its own."""


@dataclasses.dataclass(frozen=True, eq=False)
class FoundRun:
    """A run, read from its folder.

    Args:
        folder: the folder.
        summary: its summary.json.
        episodes: the episodes of each seed.
        distributions: its recorded distributions; None: it recorded none.
        log: the lines of its log; empty if there is none.
        config: its config.yaml; None if there is none.
    """

    folder: Path
    summary: dict[str, Any]
    episodes: list[Episodes]
    distributions: Distributions | None
    log: list[dict[str, Any]]
    config: str | None

    @property
    def method(self) -> str:
        """The names of its distribution and its policy."""
        return f"{self.summary['distribution']['name']}, {self.summary['policy']['name']}"

    @property
    def seeds(self) -> list[int]:
        """Its seeds."""
        first = int(self.summary["settings"]["seed"])
        return list(range(first, first + len(self.episodes)))

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.folder.name


def read_runs(folders: Iterable[Path]) -> list[FoundRun]:
    """The runs in these folders: of `train`, and those of a study.

    Raises:
        InputError: one of them holds no run that has ended, or a file is damaged.
    """
    runs: list[FoundRun] = []
    for folder in dict.fromkeys(each.resolve() for each in folders):
        places = _places(folder)
        if not places:
            raise InputError(
                f"{folder} is not the folder of a run that wrote its results: give one with a {SUMMARY}, as `train` "
                "and `study` write it."
            )
        runs += [_read(place) for place in places]
    return runs


def _places(folder: Path) -> list[Path]:
    """The folder of each run."""
    if (folder / SUMMARY).is_file():
        return [folder]
    return [path.parent for path in sorted((folder / CELLS).glob(f"*/{SUMMARY}"))]


def _read(folder: Path) -> FoundRun:
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        _ = [summary[part]["name"] for part in ("env", "distribution", "policy")], summary["settings"]["seed"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: train again, or leave its folder out.") from error
    path = folder / EPISODES
    try:
        with np.load(path, allow_pickle=False) as arrays:
            episodes = Episodes.of_arrays(dict(arrays))
    except Exception as error:  # a damaged file raises many kinds of errors
        raise InputError(f"{path} is missing or damaged: train again, or leave its folder out.") from error
    config = folder / CONFIG
    return FoundRun(
        folder,
        summary,
        episodes,
        recorded.read(folder),
        _log(folder / LOG),
        config.read_text(encoding="utf-8") if config.is_file() else None,
    )


def _log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, up to the first that cannot be read."""
    lines: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            lines.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            break
    return lines
