"""A cell that is one training run, and the numbers that are reported about it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.paper.cells import Cell, CellResult, Report
from experiments.paper.form import PARTS
from uppertail.analysis.statistics import mean_interval, share_interval
from uppertail.distributions import ReturnDistribution
from uppertail.environments import EnvironmentBuilder
from uppertail.policies import ExplorationPolicy
from uppertail.records import Episodes, arrays_of, describe, episode_text, median_episode
from uppertail.training.results import TrainingResult
from uppertail.training.settings import Settings
from uppertail.training.train import train

KEPT = 0.9
"""A seed has kept its solution if its final success rate is at least this."""


def training_cell(
    name: str,
    environment: EnvironmentBuilder,
    distribution: ReturnDistribution[Any],
    policy: ExplorationPolicy,
    settings: Settings,
    parts: Mapping[str, Any] = PARTS,
) -> Cell:
    """One method on one environment, all seeds; in the paper's form, or with other parts."""
    asked = {
        "env": describe(environment),
        "distribution": describe(distribution),
        "policy": describe(policy),
        "settings": dataclasses.asdict(settings),
        "parts": {name: describe(part) for name, part in parts.items()},
    }

    def compute(report: Report, settings: Settings = settings) -> CellResult:
        record = whole_run(environment, distribution, policy, settings, report, parts).record
        return CellResult(record.summary(), arrays_of(record.episodes))

    alone = dataclasses.replace(settings, seeds=1)
    return Cell(name, asked, compute, lambda report: compute(report, alone))


def whole_run(
    environment: EnvironmentBuilder,
    distribution: ReturnDistribution[Any],
    policy: ExplorationPolicy,
    settings: Settings,
    report: Report,
    parts: Mapping[str, Any] = PARTS,
) -> TrainingResult:
    """Trains a run to its end.

    Raises:
        KeyboardInterrupt: Ctrl-C; an experiment needs the whole run.
    """
    result = train(environment, distribution, policy, settings, report, **parts)
    if result.record.interrupted:
        raise KeyboardInterrupt
    return result


def numbers(result: CellResult) -> dict[str, Any]:
    """The numbers of a training run; [mean, low, high] where there is a 95% interval over its seeds."""
    document, seeds = result.document, Episodes.of_arrays(result.arrays)
    solved = [episode is not None for episode in document["solved_episode"]]
    kept = [rate >= KEPT for rate in document["final_success_rate"]]
    return {
        "seeds": len(seeds),
        "solved": sum(solved),
        "solved_share": share_interval(solved),
        "solved_at": median_episode(document["solved_episode"]),
        "first_success": median_episode(document["first_success_episode"]),
        "times_floor": document.get("first_success_over_floor"),
        "final_success_rate": mean_interval(document["final_success_rate"]),
        "kept": sum(kept),
        "kept_share": share_interval(kept),
        "mean_return": mean_interval([float(np.mean(seed.returns)) for seed in seeds]),
        "greedy_return": mean_interval(document["final_greedy_return"]),
        "env_steps": document["env_steps"],
        "seconds": round(document["wall_seconds"]),
        "hardware": document["hardware"],
    }


def training_row(row: dict[str, Any]) -> dict[str, str]:
    """These numbers as a row to print, the method first."""
    mean, low, high = row["mean_return"]
    return {
        "method": row["method"],
        "solved": f"{row['solved']}/{row['seeds']}",
        "at": episode_text(row["solved_at"]),
        "mean return": f"{mean:.2f} [{low:.2f}, {high:.2f}]",
        "at end": f"{row['final_success_rate'][0]:.2f}",
    }
