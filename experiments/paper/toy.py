"""Fig. 1 and its full-page version: Gaussian return distributions on the Toy, from wide to narrow."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from experiments.paper.cells import Cell, CellResult
from experiments.paper.drawing.learned_returns import Moment
from experiments.paper.drawing.toy import optimal_paths, toy_figure
from experiments.paper.form import ONE_LAYER, paper_gaussian, paper_settings, paper_ucb
from experiments.paper.moment_cell import moment_cell
from experiments.paper.snapshots import Snapshot, action_probabilities, curve
from uppertail.analysis.statistics import mean_interval
from uppertail.environments import FiniteMDP, Toy
from uppertail.exact import exact_returns, optimal_policy
from uppertail.policies import Thompson

ENVIRONMENT, BEHAVIOUR = Toy(), Thompson()
DISTRIBUTION = paper_gaussian(std_bias=4.0, beta=0.0, scale=1.0)
"""The paper's loss, in its unit of return; an initial sd of 4, since the returns reach 4."""

POLICIES = {"Thompson": Thompson(), "UCB": paper_ucb()}
SETTINGS = paper_settings(seeds=10, rollout_steps=2, updates_per_rollout=3)
"""Three updates per episode of two steps, so that 64 episodes are part of the way, as in the paper."""

QUICK_SETTINGS = dataclasses.replace(SETTINGS, seeds=3)
PARTWAY, CONVERGED = 64, 500
"""Episodes; the paper says 64, and "some additional time" for the converged distributions: 500 on other seeds."""

LEFT_HALF = (0, 1)


def cells(quick: bool) -> list[Cell]:
    """One per moment."""
    settings = QUICK_SETTINGS if quick else SETTINGS
    drawn = POLICIES, curve, _against_truth, ONE_LAYER
    return [
        moment_cell(ENVIRONMENT, DISTRIBUTION, BEHAVIOUR, settings, episodes, *drawn)
        for episodes in (0, PARTWAY, CONVERGED)
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws both figures of the first seed, and returns how far all seeds are from the truth."""
    mdp = ENVIRONMENT.build(jax.random.key(0))
    exact = _optimal_values(mdp)
    moments = [Moment.from_json(result.document["moment"]) for result in results.values()]
    toy_figure(folder / "toy", mdp, moments, exact, LEFT_HALF)
    toy_figure(folder / "toy-full", mdp, moments, exact)
    return {
        "settings": dataclasses.asdict(QUICK_SETTINGS if quick else SETTINGS),
        "optimal_values": [{"state": s, "action": a, "value": value} for (s, a), value in exact.items()],
        "moments": {
            name: {key: value for key, value in result.document.items() if key != "moment"}
            for name, result in results.items()
        },
    }


def _against_truth(at: Snapshot) -> dict[str, Any]:
    """For each seed the largest error of a mean, and how often each policy takes the optimal path."""
    mdp, errors, stds = at.environment(0), [], []  # nothing of the Toy is random
    values = _optimal_values(mdp)
    optimal_path: dict[str, list[float]] = {label: [] for label in POLICIES}
    for seed in range(at.num_seeds):
        family, z = at.agent.family, at.returns(seed)
        mean, std = (jax.vmap(jax.vmap(moment))(z) for moment in (family.mean, family.std))
        errors.append(max(abs(float(mean[pair]) - value) for pair, value in values.items()))
        stds.append(float(np.max(std)))
        for label, policy in POLICIES.items():
            chosen = action_probabilities(policy, family, z)
            optimal_path[label].append(_along_the_optimal_path(mdp, values, chosen))
    return {
        "largest_error_of_a_mean": errors,
        "largest_std": stds,
        "probability_of_the_optimal_path": optimal_path,
        "probability_of_the_optimal_path_interval": {
            label: mean_interval(shares) for label, shares in optimal_path.items()
        },
    }


def _along_the_optimal_path(
    mdp: FiniteMDP, values: dict[tuple[int, int], float], chosen: Float[np.ndarray, "states actions"]
) -> float:
    """How often a policy takes the best action in each state from the start to the end of the episode."""
    return math.prod(float(chosen[pair]) for pair in optimal_paths(mdp, values))


def _optimal_values(mdp: FiniteMDP) -> dict[tuple[int, int], float]:
    returns = exact_returns(mdp, optimal_policy(mdp, SETTINGS.discount_per_step), SETTINGS.discount_per_step)
    return {pair: z.mean for pair, z in returns.items()}


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """For each moment the worst seed: largest error of a mean, probability of the optimal path."""
    return [
        {
            "moment": name,
            "error of a mean": f"{max(moment['largest_error_of_a_mean']):.3f}",
            **{
                f"path, {label}": f"{min(shares):.3f}"
                for label, shares in moment["probability_of_the_optimal_path"].items()
            },
        }
        for name, moment in summary["moments"].items()
    ]
