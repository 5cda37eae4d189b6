"""Fig. 1 and its full-page version: Gaussian return distributions on the Toy, from wide to narrow."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from uppertail.analysis.exact import exact_returns, optimal_policy
from uppertail.analysis.moments import Moment
from uppertail.analysis.statistics import mean_interval
from uppertail.analysis.toy_figure import toy_figure
from uppertail.distributions import Gaussian
from uppertail.environments import FiniteMDP, Toy
from uppertail.experiments.cells import Cell, CellResult, Report
from uppertail.experiments.reproduction import Figure
from uppertail.experiments.snapshots import DECISIONS, Snapshot, action_probabilities, curve, learned_returns, snapshot
from uppertail.policies import UCB, Thompson
from uppertail.training.results import hardware
from uppertail.training.settings import Settings
from uppertail.training.train import described

ENVIRONMENT, BEHAVIOUR = Toy(), Thompson()
DISTRIBUTION = Gaussian(std_bias=4.0, beta=0.0, scale=1.0)
"""The paper's loss, in its unit of return; an initial sd of 4, since the returns reach 4."""

POLICIES = {"Thompson": Thompson(), "UCB": UCB()}
SETTINGS = Settings(seeds=10, hidden_layers=1, rollout_steps=2, updates_per_rollout=3)
"""Three updates per episode of two steps, so that 64 episodes are part of the way, as in the paper."""

QUICK_SETTINGS = dataclasses.replace(SETTINGS, seeds=3)
PARTWAY, CONVERGED = 64, 500
"""Episodes; the paper says 64, and "some additional time" for the converged distributions: 500 on other seeds."""

LEFT_HALF = (0, 1)


def cells(quick: bool) -> list[Cell]:
    """One per moment."""
    settings = QUICK_SETTINGS if quick else SETTINGS
    return [_moment(episodes, settings) for episodes in (0, PARTWAY, CONVERGED)]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws both figures of the first seed, and returns how far all seeds are from the truth."""
    mdp = ENVIRONMENT.build(jax.random.key(0))
    exact = {pair: z.mean for pair, z in _optimal_returns(mdp).items()}
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


def _moment(episodes: int, settings: Settings) -> Cell:
    asked = {
        "distribution": described(DISTRIBUTION),
        "behaviour": described(BEHAVIOUR),
        "policies": {label: described(policy) for label, policy in POLICIES.items()},
        "decisions": DECISIONS,
        "settings": {**dataclasses.asdict(settings), "episodes": episodes},
    }

    def compute(report: Report) -> CellResult:
        at = snapshot(ENVIRONMENT, DISTRIBUTION, BEHAVIOUR, settings, episodes, report)
        label = f"after {episodes:,} episodes" if episodes else "at initialisation"
        moment = Moment(label, learned_returns(at, 0, POLICIES, curve))
        return CellResult({"moment": moment.to_json(), **_against_truth(at, settings), "hardware": hardware()})

    return Cell(f"episodes-{episodes}", asked, compute)


def _against_truth(at: Snapshot, settings: Settings) -> dict[str, Any]:
    """For each seed the largest error of a mean, and how often each policy takes the optimal path."""
    errors, stds = [], []
    optimal_path: dict[str, list[float]] = {label: [] for label in POLICIES}
    for seed in range(settings.seeds):
        exact = _optimal_returns(at.environment(seed))
        family, z = at.agent.family, at.returns(seed)
        mean, std = (jax.vmap(jax.vmap(moment))(z) for moment in (family.mean, family.std))
        errors.append(max(abs(float(mean[pair]) - truth.mean) for pair, truth in exact.items()))
        stds.append(float(np.max(std)))
        for label, policy in POLICIES.items():
            chosen = action_probabilities(policy, family, z)
            optimal_path[label].append(_along_the_optimal_path(at.environment(seed), exact, chosen))
    return {
        "largest_error_of_a_mean": errors,
        "largest_std": stds,
        "probability_of_the_optimal_path": optimal_path,
        "probability_of_the_optimal_path_interval": {
            label: mean_interval(shares) for label, shares in optimal_path.items()
        },
    }


def _along_the_optimal_path(mdp: FiniteMDP, exact: Any, chosen: Float[np.ndarray, "states actions"]) -> float:
    """How often a policy takes the best action in each state from the start to the end of the episode."""
    state, probability, over = int(mdp.start_state[0]), 1.0, False
    while not over:
        best = max(range(mdp.num_actions), key=lambda action, state=state: exact[state, action].mean)
        probability *= float(chosen[state, best])
        over, state = bool(mdp.terminated[state, best, 0]), int(mdp.next_state[state, best, 0])
    return probability


def _optimal_returns(mdp: FiniteMDP) -> Any:
    return exact_returns(mdp, optimal_policy(mdp, SETTINGS.discount), SETTINGS.discount)


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


FIGURE = Figure("toy", cells, finish, table)
