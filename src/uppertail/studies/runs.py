"""Finished runs as groups that can be compared: one method's, in one or several environments."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from uppertail.analysis.survival import Times
from uppertail.records import FINAL_WINDOW, RunFolder
from uppertail.studies.settings import ENVIRONMENT

FIRST_SUCCESS, SOLVED, FINAL_RETURN = "first_success", "solved", "final_return"
TIMES = {FIRST_SUCCESS: "first_success_episode", SOLVED: "solved_episode"}
"""The metrics that are counted in episodes, and their entries in summary.json."""


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
        times = {}
        for metric, key in TIMES.items():
            reached = [episode for run in each for episode in run.summary[key]]
            at = [float(end if episode is None else episode) for episode, end in zip(reached, last, strict=True)]
            times[metric] = Times(np.array(at), np.array([episode is not None for episode in reached]))
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
