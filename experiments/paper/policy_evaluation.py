"""Policy evaluation as a test of the method: learned return distributions of a fixed policy, against the exact ones.

The paper has no such figure. The policy is uniform, so that the exact distributions have a spread, which comes from
the policy alone; `exact/returns.py` computes them, by enumeration or on a grid with a bound on its error.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.against_exact import against_exact
from experiments.paper.cells import Cell, CellResult, Report
from experiments.paper.drawing.policy_evaluation import evaluation_figure
from experiments.paper.form import ONE_LAYER, paper_gaussian, paper_mixture, paper_settings
from experiments.paper.snapshots import Snapshot
from experiments.paper.training_cell import whole_run
from uppertail.analysis.statistics import mean_interval
from uppertail.distributions import Categorical, Gaussian, ReturnDistribution
from uppertail.environments import Chain, EnvironmentBuilder, FrozenLake, Toy
from uppertail.policies import EpsilonGreedy
from uppertail.records import describe
from uppertail.training.process import hardware

UNIFORM = EpsilonGreedy(epsilon=1.0)
ENVIRONMENTS: dict[str, tuple[EnvironmentBuilder, int]] = {
    "Toy": (Toy(), 300_000),
    "Chain 7": (Chain(length=7), 400_000),
    "FrozenLake 4x4": (FrozenLake(map_name="4x4"), 150_000),
}
"""Each with the environment steps per seed."""

FAMILIES: dict[str, tuple[ReturnDistribution[Any], int]] = {
    "Gaussian": (paper_gaussian(beta=0.0, scale=1.0), 0),
    "Gaussian, expected sd": (Gaussian(distance="wasserstein", scale=1.0), 0),
    "Gaussian, sampled loss": (paper_gaussian(beta=0.0, scale=1.0), 4),
    "Categorical": (Categorical(bins=51), 0),
    "Categorical, sampled loss": (Categorical(bins=51), 4),
    "GaussianMixture": (paper_mixture(scale=1.0), 0),
    "GaussianMixture, sampled loss": (paper_mixture(scale=1.0), 4),
}
"""Each with the draws of its sample-based loss; 0 is the closed form.

"Expected sd" is the rule that Section 4 prints, sd = discount E over a' of sd(s', a'): the squared Wasserstein-2
distance with one sampled next action has its minimum there. Cross-entropy has it at the moments of the mixture over
next actions, which are those of the return.
"""

SETTINGS = paper_settings(
    seeds=5,
    episodes=10**6,
    learning_rate=1e-4,
    batch_size=128,
    rollout_steps=32,
    updates_per_rollout=1,
)
"""Batches of 128 and small steps, so that learned distributions vary little at the end."""

QUICK_SHARE, QUICK_FAMILIES = 0.1, ("Gaussian", "Gaussian, expected sd", "Categorical")
DRAWS = 10_000


def cells(quick: bool) -> list[Cell]:
    """One per environment and family."""
    return [
        _cell(name, label, max(1, round(steps * (QUICK_SHARE if quick else 1.0))))
        for name, (_, steps) in ENVIRONMENTS.items()
        for label in (QUICK_FAMILIES if quick else FAMILIES)
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws learned against exact moments, and returns the table of distances."""
    del quick
    evaluation_figure(folder / "policy-evaluation", [result.document for result in results.values()])
    return {
        "policy": "uniform",
        "discount": SETTINGS.discount,
        "seeds": SETTINGS.seeds,
        "rows": [{"cell": name, **_summary(result.document)} for name, result in results.items()],
    }


def _cell(name: str, label: str, steps: int) -> Cell:
    (environment, _), (family, loss_samples) = ENVIRONMENTS[name], FAMILIES[label]
    settings = dataclasses.replace(SETTINGS, steps=steps, loss_samples=loss_samples)
    asked = {
        "env": describe(environment),
        "distribution": describe(family),
        "policy": describe(UNIFORM),
        "settings": dataclasses.asdict(settings),
        "draws": DRAWS,
    }

    def compute(report: Report) -> CellResult:
        result = whole_run(environment, family, UNIFORM, settings, report, ONE_LAYER)
        at = Snapshot(result.agent, result.networks, result.environments)
        pairs = [row for seed in range(settings.seeds) for row in against_exact(at, seed, DRAWS)]
        columns = {key: [row[key] for row in pairs] for key in pairs[0]}
        cost = {"seconds": result.record.wall_seconds, "hardware": hardware()}
        return CellResult({"env": name, "family": label, "pairs": columns, **cost})

    return Cell(f"{name}-{label}".replace(", ", "-").replace(" ", "-"), asked, compute)


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    """Over states and actions, the mean and the largest; over seeds, the mean with its interval."""
    pairs = {key: np.array(column) for key, column in document["pairs"].items()}
    errors = {
        "wasserstein": pairs["wasserstein"],
        "cramer": pairs["cramer"],
        "error_of_mean": np.abs(pairs["mean"] - pairs["exact_mean"]),
        "error_of_std": np.abs(pairs["std"] - pairs["exact_std"]),
    }
    rows: dict[str, Any] = {"env": document["env"], "family": document["family"]}
    for label, error in errors.items():
        by_seed = error.reshape(len(set(document["pairs"]["seed"])), -1)
        rows[f"{label}_mean"] = mean_interval(by_seed.mean(axis=1).tolist())
        rows[f"{label}_largest"] = mean_interval(by_seed.max(axis=1).tolist())
    return {**rows, "seconds": round(document["seconds"]), "hardware": document["hardware"]}


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """Over states and actions the largest distances and errors, each the mean over seeds."""
    names = {"wasserstein": "W1", "cramer": "Cramér", "error_of_mean": "mean", "error_of_std": "sd"}
    return [
        {"environment": row["env"], "family": row["family"]}
        | {text: f"{row[f'{key}_largest'][0]:.3f}" for key, text in names.items()}
        for row in summary["rows"]
    ]
