"""What a study asks of the run folders of its cells, and their seeds as samples that can be compared."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from uppertail import records
from uppertail.analysis.survival import Times
from uppertail.errors import InputError
from uppertail.records import FINAL_WINDOW, RunFolder
from uppertail.studies.cells import ENVIRONMENT, flat

FIRST_SUCCESS, SOLVED, FINAL_RETURN = "first_success", "solved", "final_return"
TIMES = {FIRST_SUCCESS: "first_success_episode", SOLVED: "solved_episode"}
"""The metrics that are counted in episodes, and their entries in summary.json."""

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


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The results of one method's seeds in one environment.

    Args:
        times: first success and solved, in episodes; a seed that never got there is censored at its last one.
        final_return: mean return of each seed's last 100 episodes; seeds that finished none are left out.
    """

    times: Mapping[str, Times]
    final_return: Float[np.ndarray, " seeds"]

    @classmethod
    def of(cls, runs: Iterable[RunFolder]) -> "Sample":
        """The seeds of one or several runs."""
        each = list(runs)
        last = [max(1, seed.returns.size) for run in each for seed in run.episodes]
        times = {
            metric: Times.of([episode for run in each for episode in run.summary[key]], last)
            for metric, key in TIMES.items()
        }
        ends = [seed.returns[-FINAL_WINDOW:] for run in each for seed in run.episodes if seed.returns.size]
        return cls(times, np.array([end.mean(dtype=np.float64) for end in ends], np.float64))


def key(settings: Any) -> str:
    """Settings as one text: the same for the same settings."""
    return json.dumps(settings, sort_keys=True, default=str)


def labels(keys: Iterable[str]) -> dict[str, str]:
    """Names for environments, by their keys from `key`: their class, and the settings in which they differ."""
    each = {name: json.loads(name) for name in keys}
    options = list(dict.fromkeys(option for settings in each.values() for option in settings))
    varying = [option for option in options if len({key(s.get(option)) for s in each.values()}) > 1]
    return {
        name: " ".join(
            str(value) if option == ENVIRONMENT else f"{option}={value}"
            for option, value in settings.items()
            if option == ENVIRONMENT or option in varying
        )
        for name, settings in each.items()
    }
