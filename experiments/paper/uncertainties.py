"""What is not known and what is chance, along a run: an ensemble's two spreads beside the exact one, and calibration.

The paper has no such figure. The policy is uniform from beginning to end, so the exact distribution of the return, and
how much of its variance is the environment's chance, is known (`exact/returns.py`, `sources.py`): the spread
between members should vanish, and the spread within should become the exact one.
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from experiments.paper.against_exact import reachable_states
from experiments.paper.calibration import INTERVALS, coverage, crps, reliability
from experiments.paper.cells import Cell, CellResult, Report
from experiments.paper.drawing.uncertainties import uncertainties_figure
from experiments.paper.form import PARTS, paper_gaussian, paper_settings
from experiments.paper.sources import sources
from experiments.paper.stages import Stage, stages
from uppertail.analysis.statistics import mean_interval
from uppertail.distributions import Categorical, ReturnDistribution, spread
from uppertail.environments import Chain, EnvironmentBuilder, FrozenLake, Toy
from uppertail.exact import exact_returns, uniform_policy
from uppertail.networks import Ensemble
from uppertail.policies import EpsilonGreedy
from uppertail.records import describe
from uppertail.training.method import Method
from uppertail.training.process import hardware
from uppertail.types import PyTree

UNIFORM = EpsilonGreedy(epsilon=1.0)
NETWORK = Ensemble(width=64, hidden_layers=1, members=10)
ENVIRONMENTS: dict[str, tuple[EnvironmentBuilder, int]] = {
    "Toy": (Toy(), 64_000),
    "Chain 7, slip 0.1": (Chain(length=7, slip=0.1), 128_000),
    "FrozenLake 4x4, slippery": (FrozenLake(map_name="4x4", is_slippery=True), 128_000),
}
"""Each with the environment steps per seed."""

FAMILIES: dict[str, ReturnDistribution[Any]] = {
    "Gaussian": paper_gaussian(beta=0.0),
    "Categorical": Categorical(bins=51),
}
SETTINGS = paper_settings(
    seeds=5,
    steps=64_000,
    episodes=10**6,
    learning_rate=5e-3,
    learning_rate_end=0.0,
    batch_size=64,
    rollout_steps=32,
    updates_per_rollout=4,
)
"""`steps` are those of each environment; the learning rate falls to 0 over them."""

QUICK_SEEDS, QUICK_SHARE, QUICK_FAMILIES = 2, 0.25, ("Categorical",)
STAGES = 8
DRAWS = 4000
LEVELS = np.linspace(0.05, 0.95, 19)
CERTAIN = 0.01
"""How far beyond an interval counts as inside, in units of the range of the exact returns from the start."""


def cells(quick: bool) -> list[Cell]:
    """One per environment and family."""
    return [
        _cell(name, label, max(STAGES, round(steps * (QUICK_SHARE if quick else 1.0))), quick)
        for name, (_, steps) in ENVIRONMENTS.items()
        for label in (QUICK_FAMILIES if quick else FAMILIES)
    ]


def _cell(name: str, label: str, steps: int, quick: bool) -> Cell:
    (environment, _), family = ENVIRONMENTS[name], FAMILIES[label]
    seeds = QUICK_SEEDS if quick else SETTINGS.seeds
    settings = dataclasses.replace(SETTINGS, steps=steps, seeds=seeds)
    asked = {
        "env": describe(environment),
        "distribution": describe(family),
        "network": describe(NETWORK),
        "policy": describe(UNIFORM),
        "settings": dataclasses.asdict(settings),
        "draws": DRAWS,
    }

    def compute(report: Report) -> CellResult:
        method = Method(family, UNIFORM, **{**PARTS, "network": NETWORK})
        along = stages(environment, method, settings, STAGES, report)
        by_seed = [_of_seed(along, seed) for seed in range(settings.seeds)]
        document = {"env": name, "family": label, "steps": [stage.step for stage in along], "seeds": by_seed}
        return CellResult({**document, "hardware": hardware()})

    return Cell(f"{name}-{label}".replace(", ", "-").replace(" ", "-"), asked, compute)


def _of_seed(along: list[Stage], seed: int) -> dict[str, Any]:
    """Variances along the run, means over the pairs that the policy reaches; calibration at its end."""
    at = along[-1].snapshot
    mdp, family, discount = at.environment(seed), at.agent.family, float(at.agent.discount)
    exact, parts = exact_returns(mdp, uniform_policy(mdp), discount), sources(mdp, uniform_policy(mdp), discount)
    pairs = [(s, a) for s, a in exact if s in reachable_states(mdp)]
    where = tuple(np.array(pairs).T)

    def of_stage(at: Stage) -> dict[str, float]:
        spreads = jax.vmap(lambda z: spread(family, z))(at.snapshot.returns(seed))
        means = {name: float(np.mean(np.square(getattr(spreads, name))[where])) for name in ("between", "within")}
        wrong = np.asarray(spreads.mean, np.float64)[where] - np.array([exact[pair].mean for pair in pairs])
        return {**means, "squared_error": float(np.mean(wrong**2))}

    drawn = mixture_draws(family, at.returns(seed), DRAWS)
    tolerance = CERTAIN * max(float(np.ptp(z.atoms)) for z in exact.values())
    scores = [crps(exact[pair], drawn[pair]) for pair in pairs]
    return {
        "along": [of_stage(stage) for stage in along],
        "exact": {name: float(np.mean(getattr(parts, name)[where])) for name in ("chance", "choices", "total")},
        "coverage": [
            float(np.mean([coverage(exact[pair], drawn[pair], level, tolerance) for pair in pairs]))
            for level in INTERVALS
        ],
        "crps": {name: float(np.mean([getattr(each, name) for each in scores])) for name in ("learned", "best")},
        "reliability": np.mean([reliability(exact[pair], drawn[pair], LEVELS) for pair in pairs], axis=0).tolist(),
    }


def mixture_draws(family: ReturnDistribution[Any], z: PyTree, count: int) -> Float[np.ndarray, "states actions draws"]:
    """Draws from the mixture over members, equally many from each; `z` has leading axes [states, members, actions]."""
    shape = jax.tree.leaves(z)[0].shape[:3]
    each = -(-count // shape[1])
    keys = jax.random.split(jax.random.key(0), (*shape, each))
    draw = jax.vmap(family.sample, in_axes=(0, None))
    drawn = jax.jit(jax.vmap(jax.vmap(jax.vmap(draw))))(keys, z)
    return np.asarray(jnp.moveaxis(drawn, 1, 2), np.float64).reshape(shape[0], shape[2], -1)


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws both spreads along the runs and the reliability at their end; returns the table of calibration."""
    del quick
    documents = [result.document for result in results.values()]
    uncertainties_figure(folder / "uncertainties", documents, LEVELS)
    return {
        "policy": "uniform",
        "discount": SETTINGS.discount,
        "intervals": list(INTERVALS),
        "rows": [{"cell": name, **_summary(result.document)} for name, result in results.items()],
    }


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    """Means over seeds with their 95% intervals."""
    seeds, first, last = document["seeds"], 0, -1
    over = {
        "between_before": [seed["along"][first]["between"] for seed in seeds],
        "between": [seed["along"][last]["between"] for seed in seeds],
        "within": [seed["along"][last]["within"] for seed in seeds],
        "exact": [seed["exact"]["total"] for seed in seeds],
        "exact_chance": [seed["exact"]["chance"] for seed in seeds],
        "squared_error": [seed["along"][last]["squared_error"] for seed in seeds],
        "crps": [seed["crps"]["learned"] for seed in seeds],
        "crps_of_exact": [seed["crps"]["best"] for seed in seeds],
    }
    covered = {f"inside_{level}": [seed["coverage"][i] for seed in seeds] for i, level in enumerate(INTERVALS)}
    numbers = {name: mean_interval(values) for name, values in {**over, **covered}.items()}
    about = {name: document[name] for name in ("env", "family", "hardware")}
    return {**about, "seeds": len(seeds), "steps": document["steps"][-1], **numbers}


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """Variances and calibration at the end, means over seeds."""
    names = {"between_before": "between, start", "between": "between", "within": "within", "exact": "exact"}
    inside = {f"inside_{level}": f"in {level:.0%}" for level in INTERVALS}
    scores = {"crps": "CRPS", "crps_of_exact": "of exact"}
    return [
        {"environment": row["env"], "family": row["family"]}
        | {text: f"{row[key][0]:.3g}" for key, text in {**names, **inside, **scores}.items()}
        for row in summary["rows"]
    ]
