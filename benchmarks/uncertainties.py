"""Stochastic environments: who finds what pays on average, and who chases the spread of chance.

    python benchmarks/uncertainties.py --out results/uncertainties                     # everything
    python benchmarks/uncertainties.py --env risky_arm --method double --seeds 3       # one of them, fewer seeds

Each environment and method is one training run of all seeds, written to one JSON file; what is there already is not run
again. The greedy policy of every seed is judged by exact dynamic programming: `share_of_best` is its mean undiscounted
return as a share of the best that any policy can have within the time limit.
"""

import argparse
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uppertail as ut
from uppertail.analysis.horizon import best_return, greedy_policy, mean_return

ENVIRONMENTS: dict[str, tuple[Any, int]] = {
    "risky_arm": (ut.RiskyArm(), 1000),
    "noisy_chain_20": (ut.Chain(20, slip=0.05, reward_std=0.5), 3000),
    "deep_sea_10": (ut.DeepSea(10, stochastic=True), 3000),
    "lake_4x4": (ut.FrozenLake(map_name="4x4", is_slippery=True), 3000),
    "deep_sea_20": (ut.DeepSea(20, stochastic=True), 5000),
    "lake_8x8": (ut.FrozenLake(map_name="8x8", is_slippery=True), 5000),
}
"""Each with the episodes of a run."""

ENSEMBLE = ut.Ensemble(width=64)
SINGLE = ut.PerAction(width=64)
PAPER = {"distribution": ut.Gaussian(distance="cross_entropy"), "policy": ut.UCB(), "network": SINGLE}
METHODS: dict[str, dict[str, Any]] = {
    "double": {"distribution": ut.Gaussian(), "policy": ut.DoubleUCB(), "network": ENSEMBLE},
    "paper": PAPER,
    "boot_dqn": {
        "distribution": ut.PointMass(),
        "policy": ut.MemberThompson(),
        "network": ENSEMBLE,
        "on_policy": "none",
    },
    "ucb": {"distribution": ut.Gaussian(), "policy": ut.UCB(), "network": SINGLE},
    "member_ucb": {"distribution": ut.Gaussian(), "policy": ut.MemberUCB(), "network": ENSEMBLE},
}
"""paper: UCB on a spread learned by cross-entropy, which holds all of it; ucb: on one that leaves out the environment's
chance (this project's default); boot_dqn: bootstrapped DQN with randomized priors; double: both spreads."""

NEAR = ("lake_4x4", "lake_8x8")
"""Judged by a distance of 0.02 from the best instead of 0.95 of it."""


def measure(env: str, method: str, seed: int, seeds: int) -> dict[str, Any]:
    """One training run, and what its greedy policies are worth."""
    environment, episodes = ENVIRONMENTS[env]
    parts = dict(METHODS[method])
    settings = ut.Settings(seed=seed, seeds=seeds, episodes=episodes, on_policy=parts.pop("on_policy", "fresh"))
    result = ut.train(environment, settings=settings, replay=ut.Uniform(), **parts)
    record = result.record
    tables = [jax.tree.map(lambda leaf, k=k: leaf[k], result.environments) for k in range(seeds)]
    best = [best_return(mdp) for mdp in tables]
    worth = [mean_return(mdp, greedy_policy(means(result, k))) for k, mdp in enumerate(tables)]
    good = [w >= b - 0.02 if env in NEAR else w >= 0.95 * b for w, b in zip(worth, best, strict=True)]
    return {
        "env": record.environment,
        "method": method,
        "parts": {name: getattr(record, name) for name in ("distribution", "policy", "network", "replay")},
        "settings": dataclasses.asdict(settings),
        "good_seeds": sum(good),
        "best_return": best,
        "greedy_return": worth,
        "share_of_best": [w / b for w, b in zip(worth, best, strict=True)],
        "mean_return": [float(np.mean(each.returns)) for each in record.episodes],
        "mean_return_of_last_100": [float(np.mean(each.returns[-100:])) for each in record.episodes],
        "took_the_sure_arm": [_sure(environment, each.returns[-100:]) for each in record.episodes],
        "env_steps": record.env_steps,
        "seconds": {"wall": record.wall_seconds, "training": record.training_seconds},
        "hardware": record.hardware,
    }


def means(result: ut.TrainingResult, seed: int) -> np.ndarray:
    """What the members of one seed's network expect together, of each state and action."""
    agent, network = result.agent, result.network(seed)
    states = jnp.arange(result.environments.next_state.shape[1])
    z = jax.jit(jax.vmap(agent.returns_by_member, in_axes=(None, 0)))(network, states)
    return np.asarray(jax.vmap(jax.vmap(jax.vmap(agent.family.mean)))(z)).mean(axis=1)


def _sure(environment: Any, returns: np.ndarray) -> float | None:
    """Of the last 100 episodes, the share that ended with the sure reward of a RiskyArm."""
    return float(np.mean(returns == environment.sure)) if isinstance(environment, ut.RiskyArm) else None


def main() -> None:
    """Runs what is asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--env", choices=list(ENVIRONMENTS), default=None)
    options.add_argument("--method", choices=list(METHODS), default=None)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--out", type=Path, default=Path("runs/uncertainties"))
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for env in [asked.env] if asked.env else ENVIRONMENTS:
        for method in [asked.method] if asked.method else METHODS:
            path = asked.out / f"{env}-{method}.json"
            if path.exists():
                continue
            document = measure(env, method, asked.seed, asked.seeds)
            document["load"] = os.getloadavg()[0]
            path.write_text(json.dumps(document, indent=1) + "\n")
            shares = " ".join(f"{share:.2f}" for share in document["share_of_best"])
            print(f"{env:<16} {method:<12} {document['good_seeds']} of {asked.seeds}: {shares}", flush=True)


if __name__ == "__main__":
    main()
