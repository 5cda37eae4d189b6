"""A cell that is one moment of a training run: all return distributions of its first seed, as they are drawn."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from experiments.paper.cells import Cell, CellResult, Report
from experiments.paper.drawing.learned_returns import Moment
from experiments.paper.form import PARTS
from experiments.paper.snapshots import DECISIONS, Shape, Snapshot, learned_returns, snapshot
from uppertail.distributions import ReturnDistribution
from uppertail.environments import EnvironmentBuilder
from uppertail.policies import ExplorationPolicy
from uppertail.records import describe
from uppertail.training.process import hardware
from uppertail.training.settings import Settings
from uppertail.types import PyTree


def moment_cell(
    environment: EnvironmentBuilder,
    distribution: ReturnDistribution[Any],
    behaviour: ExplorationPolicy,
    settings: Settings,
    episodes: int,
    policies: Mapping[str, ExplorationPolicy],
    shape: Callable[[Any, PyTree], Shape],
    numbers: Callable[[Snapshot], dict[str, Any]] = lambda at: {},
    parts: Mapping[str, Any] = PARTS,
) -> Cell:
    """The moment after a number of episodes of a run.

    Args:
        environment: the environment of the run.
        distribution: the family that it learns.
        behaviour: the policy that it follows.
        settings: how it is trained; its limit of episodes is not used.
        episodes: when the moment is; 0 is before the first step.
        policies: policies whose action probabilities are drawn.
        shape: what is drawn of a distribution.
        numbers: further numbers about the moment, for JSON.
        parts: of gradient descent.
    """
    asked = {
        "env": describe(environment),
        "distribution": describe(distribution),
        "policy": describe(behaviour),
        "policies": {label: describe(policy) for label, policy in policies.items()},
        "decisions": DECISIONS,
        "settings": {**dataclasses.asdict(settings), "episodes": episodes},
    }

    def compute(report: Report) -> CellResult:
        at = snapshot(environment, distribution, behaviour, settings, episodes, report, parts)
        label = f"after {episodes:,} episodes" if episodes else "at initialisation"
        moment = Moment(label, learned_returns(at, 0, policies, shape))
        return CellResult({"moment": moment.to_json(), **numbers(at), "hardware": hardware()})

    return Cell(f"episodes-{episodes}", asked, compute)
