"""The one reader of a run's folder; it imports no class that the folder names.

Each file is checked when it is first asked for, and a damaged one is an InputError that names it.
"""

import contextlib
import dataclasses
import functools
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from uppertail.errors import InputError
from uppertail.records.checks import check_distributions, check_summary
from uppertail.records.episodes import Episodes, Success
from uppertail.records.folder import CONFIG, CURVE, DISTRIBUTIONS, EPISODES, LOG, NETWORKS, SUMMARY, digest
from uppertail.records.record import Distributions, read_summary
from uppertail.yaml_files import read_options

PLAN = "plan"  # the entry of config.yaml with what was chosen for the run
CELLS, STUDY = "cells", "study.json"  # the folder of a study's runs, within its own, and its results

REMEDY = "train again, or leave its folder out"
MOST_BYTES = 2**31  # of all arrays of a file, unpacked


@contextlib.contextmanager
def read_errors(path: Path, remedy: str) -> Iterator[None]:
    """Turns whatever goes wrong with the contents of a file into an InputError that names it and says what helps."""
    try:
        yield
    except (Exception, MemoryError) as error:  # a damaged file raises many kinds of errors
        raise InputError(f"{path} is missing or damaged: {remedy}.") from error


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; a damaged one raises many kinds of errors."""
    with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as file:
        if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
            raise ValueError("too large when unpacked")
        arrays = dict(file)
        if digest(arrays).encode() != archive.comment:
            raise ValueError("another checksum")
    return arrays


@dataclasses.dataclass(frozen=True, eq=False)
class RunFolder:
    """The files of a run. A property whose file is missing or damaged raises InputError."""

    path: Path

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        path = self.path / SUMMARY
        with read_errors(path, REMEDY):
            summary = read_summary(path)
            check_summary(summary)
        return summary

    @functools.cached_property
    def episodes(self) -> list[Episodes]:
        path = self.path / EPISODES
        with read_errors(path, REMEDY):
            episodes = Episodes.of_arrays(read_arrays(path))
        if [seed.returns.size for seed in episodes] != self.summary["episodes"]:
            raise InputError(f"{path} does not hold the episodes of its {SUMMARY}: {REMEDY}.")
        return episodes

    @functools.cached_property
    def distributions(self) -> Distributions | None:
        """Its recorded distributions; None: it recorded none."""
        path = self.path / DISTRIBUTIONS
        if not path.exists():
            return None
        with read_errors(path, "delete it, or train again to record another"):
            found = Distributions.of_arrays(read_arrays(path))
            check_distributions(found)
        if found.step.shape[1] != len(self.seeds):
            raise InputError(f"The distributions in {self.path} are not of its {len(self.seeds)} seeds: {REMEDY}.")
        return found

    @functools.cached_property
    def config(self) -> dict[str, Any] | None:
        """The options in its config.yaml, without the plan; None if there is none."""
        path = self.path / CONFIG
        options = read_options(path) if path.is_file() else None
        return options and {name: value for name, value in options.items() if name != PLAN}

    @functools.cached_property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log, up to the first that cannot be read; empty if there is none."""
        lines = list[dict[str, Any]]()
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
            for line in (self.path / LOG).read_text(encoding="utf-8").splitlines():
                lines.append(dict(json.loads(line, parse_int=float)))  # which no digits overflow
        return lines

    @property
    def finished(self) -> bool:
        """Whether all of its files are there, whole, and of a run that came to its end."""
        with contextlib.suppress(InputError):
            whole = all((self.path / name).is_file() for name in (CONFIG, EPISODES, SUMMARY, NETWORKS, CURVE))
            return whole and len(self.episodes) > 0 and not self.summary["interrupted"]
        return False

    @property
    def method(self) -> str:
        return f"{self.summary['distribution']['name']}, {self.summary['policy']['name']}"

    @property
    def title(self) -> str:
        """What its folder is called; that of a study's cell is written for file systems."""
        return title_of(self.path.name) if self.is_cell else self.path.name

    @property
    def is_cell(self) -> bool:
        """Whether it is a study's."""
        return self.path.parent.name == CELLS

    @property
    def seeds(self) -> list[int]:
        first = self.summary["settings"]["seed"]
        return list(range(first, first + self.summary["seeds"]))

    @property
    def success(self) -> Success:
        """When its episodes are a success; those of earlier versions were judged one by one."""
        found = self.summary["success"]
        return Success() if found is None else Success(float(found["return"]), found.get("episodes", 1))


def title_of(name: str) -> str:
    """The name of a study's cell as a table shows it; lines break between options."""
    return unquote(name).replace(",", ", ")


def find_runs(folders: Iterable[Path]) -> list[RunFolder]:
    """The runs in these folders, of `train` and of studies; a folder without any that wrote its results is refused."""
    runs: dict[Path, RunFolder] = {}
    for folder in folders:
        found = _runs_in(folder)
        if not found:
            raise InputError(
                f"{folder} is not the folder of a run that wrote its results: give one with a {SUMMARY}, as `train` "
                "and `study` write it."
            )
        runs |= {run.path: run for run in found}
    return [*runs.values()]


def _runs_in(folder: Path) -> list[RunFolder]:
    try:
        folder = folder.resolve()
        if (folder / SUMMARY).is_file():
            return [RunFolder(folder)]
        places = {path.parent.name: path.parent for path in sorted((folder / CELLS).glob(f"*/{SUMMARY}"))}
        listed = _listed(folder)
        return [RunFolder(places[name]) for name in dict.fromkeys([*listed, *places]) if name in places]
    except (OSError, RuntimeError, ValueError):  # a link to itself, an impossible name
        return []


def _listed(study: Path) -> list[str]:
    """The names of a study's cells, in its own order; none where its results cannot be read."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        return [str(cell["name"]) for cell in json.loads((study / STUDY).read_text(encoding="utf-8"))["cells"]]
    return []
