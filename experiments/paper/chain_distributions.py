"""The appendix's illustration: categorical return distributions along a Chain of length 7, at three moments."""

import dataclasses
from pathlib import Path
from typing import Any

from experiments.paper.cells import Cell, CellResult
from experiments.paper.drawing.chain_distributions import chain_distributions_figure
from experiments.paper.drawing.learned_returns import Moment
from experiments.paper.drawing.transitions import chain_walk
from experiments.paper.form import paper_settings, paper_ucb
from experiments.paper.moment_cell import moment_cell
from experiments.paper.snapshots import atoms
from uppertail.distributions import Categorical
from uppertail.environments import Chain
from uppertail.policies import Thompson
from uppertail.training.loop import seed_keys

ENVIRONMENT, DISTRIBUTION, BEHAVIOUR = Chain(length=7), Categorical(bins=7, low=-0.2, high=1.2), paper_ucb()
POLICIES = {"Thompson": Thompson(), "UCB": paper_ucb()}
SETTINGS = paper_settings(seeds=1, rollout_steps=2, updates_per_rollout=1)
"""One update per two steps, about one per early episode, so that the moments show the same as the paper's figure."""
MOMENTS = (2, 28, 68)
"""Episodes, as in the paper."""


def cells(quick: bool) -> list[Cell]:
    """One per moment; the quick version is the same."""
    del quick
    return [
        moment_cell(ENVIRONMENT, DISTRIBUTION, BEHAVIOUR, SETTINGS, episodes, POLICIES, atoms) for episodes in MOMENTS
    ]


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws the figure, and returns means and standard deviations."""
    del quick
    moments = [Moment.from_json(result.document["moment"]) for result in results.values()]
    mdp = ENVIRONMENT.build(seed_keys(SETTINGS.seed).environment)
    chain_distributions_figure(folder / "chain-distributions", mdp, moments)
    return {
        "settings": dataclasses.asdict(SETTINGS),
        "correct_actions": [action for _, action in chain_walk(mdp)],
        "moments": {
            moment.label: [
                {"state": z.state, "action": z.action, "mean": z.mean, "std": z.std, "chosen": z.chosen}
                for z in moment.returns
            ]
            for moment in moments
        },
        "hardware": next(iter(results.values())).document["hardware"],
    }


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """The mean of the action that goes on, in each state."""
    correct = summary["correct_actions"]
    return [
        {"moment": label}
        | {f"state {z['state'] + 1}": f"{z['mean']:.2f}" for z in returns if z["action"] == correct[z["state"]]}
        for label, returns in summary["moments"].items()
    ]
