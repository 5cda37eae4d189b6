"""Stochastic environments: who finds what pays on average, and who chases the spread of chance.

    python -m experiments.tasks.uncertainties --out results/uncertainties                     # all by gradients
    python -m experiments.tasks.uncertainties --env risky_arm --method double --seeds 3       # one of them, fewer seeds

Each environment and method is one training run of all seeds, written to one JSON file; what is there already is not run
again. Along the run, every 1,024 steps at the most, the greedy policy of every seed is judged by exact dynamic
programming: its mean undiscounted return within the time limit, as a share of the best (docs/uncertainties.md).
"""

import dataclasses
import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.horizon import best_return, greedy_policy, mean_return
from uppertail.agent import Agent
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.exact import optimal_policy
from uppertail.records import describe
from uppertail.training.method import Method
from uppertail.training.process import hardware
from uppertail.training.run import Run

ENSEMBLE = ut.Ensemble(width=16)
SOLVED: dict[str, dict[str, Any]] = {
    "least_squares": {},
    "posterior": {"policy": ut.PosteriorSampling()},
    "optimistic_value": {"distribution": ut.PointMass(start=2.626)},
}
"""The default learner; the same with draws from the posterior in place of the upper bound; and a plain value by the
same least squares from the same optimistic start."""

METHODS: dict[str, dict[str, Any]] = {
    **SOLVED,
    "ucb": {"policy": ut.UCB(), "learner": ut.GradientDescent()},
    "paper": {
        "distribution": ut.Gaussian(distance="cross_entropy"),
        "policy": ut.UCB(),
        "learner": ut.GradientDescent(),
    },
    "member": {"policy": ut.MemberThompson(within=2.0), "network": ENSEMBLE},
    "member_half": {"policy": ut.MemberThompson(within=0.5), "network": ENSEMBLE},
    "double": {"policy": ut.DoubleUCB(jitter=0.0), "network": ENSEMBLE},
    "boot_dqn": {"distribution": ut.PointMass(), "policy": ut.MemberThompson(), "network": ENSEMBLE},
}
"""By gradients: ucb: on a spread that leaves out the environment's chance; paper: on a spread learned by
cross-entropy, which holds all of it; member: one member for an episode, and optimism on its spread; member_half: with
less of it; double: optimism on both spreads; boot_dqn: bootstrapped DQN with randomized priors."""

AVERAGED: dict[str, Any] = {
    "replay": ut.Uniform(),
    "target": ut.Online(),
    "learning_rate": 3e-3,
    "learning_rate_end": 0.0,
}
"""What all methods by gradients share where there is chance: all outcomes of a run are replayed, and steps are smaller
and fall, so that noise averages (docs/decisions/0014)."""

CERTAIN_ENSEMBLE = dataclasses.replace(ENSEMBLE, share=1.0, prior_scale=0.01)
CERTAIN = {name: {"network": CERTAIN_ENSEMBLE} for name, method in METHODS.items() if "network" in method}
"""What differs where nothing is left to chance: one visit tells all, so every member learns from it."""


class Task(NamedTuple):
    """What is learned.

    Args:
        environment: where.
        steps: environment steps of each seed.
        chance: whether anything in it is left to chance.
        margin: how far below the greedy policy of exact values a learned one may be, in units of return; None: 5% below
            the best.
    """

    environment: EnvironmentBuilder
    steps: int
    chance: bool = True
    margin: float | None = None


TASKS = {
    "risky_arm": Task(ut.RiskyArm(), 16_384),
    "noisy_chain_20": Task(ut.Chain(20, slip=0.05, reward_std=0.5), 16_384),
    "deep_sea_10": Task(ut.DeepSea(10, stochastic=True), 16_384),
    "lake_4x4": Task(ut.FrozenLake(map_name="4x4", is_slippery=True), 65_536, margin=0.02),
    "deep_sea_20": Task(ut.DeepSea(20, stochastic=True), 65_536),
    "lake_8x8": Task(ut.FrozenLake(map_name="8x8", is_slippery=True), 524_288, margin=0.02),
    "chain_100": Task(ut.Chain(100), 12_288, chance=False),
    "certain_deep_sea_20": Task(ut.DeepSea(20), 4_096, chance=False),
    "certain_deep_sea_50": Task(ut.DeepSea(50), 20_480, chance=False),
    "deep_sea_30": Task(ut.DeepSea(30, stochastic=True), 131_072),
}

LOOKS = 100
"""Moments at which greedy policies are judged, at the most."""


def measure(task: Task, method: str, seed: int, seeds: int) -> dict[str, Any]:
    """One training run, and what its greedy policies are worth along it."""
    averaged = {**AVERAGED, "replay_size": task.steps} if task.chance else CERTAIN.get(method, {})
    asked = {**METHODS[method], **({} if method in SOLVED else averaged)}
    names = Method().parts
    parts = {name: asked.pop(name) for name in names if name in asked}
    settings = ut.Settings(seed=seed, seeds=seeds, episodes=10**9, steps=task.steps, **asked)
    run = Run(task.environment, Method.of(**parts), settings)
    tables = [jax.tree.map(lambda leaf, k=k: leaf[k], run.driver.environments) for k in range(seeds)]
    looks, shares = along(run, tables)
    best = [best_return(mdp) for mdp in tables]
    marks = [mark_of(task, mdp, run.settings.discount_per_step) for mdp in tables]
    good = shares * best >= np.array(marks)
    ends = [each.end_steps for each in run.ledger.episodes]
    returns = [each.returns for each in run.ledger.episodes]
    return {
        "env": describe(task.environment),
        "parts": {name: part and describe(part) for name, part in run.method.parts.items()},
        "settings": dataclasses.asdict(settings),
        "best_return": best,
        "good_return": marks,
        "good_seeds": int(good[-1].sum()),
        "share_of_best": shares[-1].round(4).tolist(),
        "good_from_episode": [stays_from(good[:, k], looks, ends[k]) for k in range(seeds)],
        "success_return": run.builder.success_return,
        "first_success_episode": [each.first_success(run.builder.criterion) for each in run.ledger.episodes],
        "episodes": [each.size for each in returns],
        "share_while_training": [round(float(each.mean() / b), 3) for b, each in zip(best, returns, strict=True)],
        "regret": [round(float(b * each.size - each.sum()), 1) for b, each in zip(best, returns, strict=True)],
        "took_the_sure_arm": [_sure(task.environment, each[-100:]) for each in returns],
        "curve": {"step": looks, "share_of_best": shares.round(3).tolist()},
        "training_seconds": round(run.ledger.programs.training, 1),
        "load": os.getloadavg()[0],
        "hardware": hardware(),
    }


def along(run: Run, tables: list[FiniteMDP]) -> tuple[list[int], Float[np.ndarray, "looks seeds"]]:
    """Drives a run to its end: the steps at which it was looked at, and what greedy policies then were worth."""
    best, agent, looks, shares = [best_return(mdp) for mdp in tables], run.loop.agent, list[int](), list[list[float]]()
    of_all = jax.jit(jax.vmap(lambda network: means(agent, network, tables[0].num_states)))
    state, apart = run.driver.start(), run.settings.steps / LOOKS if run.settings.steps else 0
    while not run.ledger.over:
        state, records, metrics = run.driver.advance(state, run.ledger.finished)
        run.ledger.extend(records, metrics, run.start_returns(state))
        if run.ledger.over or run.ledger.step >= (looks[-1] if looks else 0) + apart:
            q = np.asarray(of_all(run.driver.gather(state, jax.vmap(run.loop.result))))
            looks.append(run.ledger.step)
            shares.append([mean_return(m, greedy_policy(q[k])) / best[k] for k, m in enumerate(tables)])
    run.close()
    return looks, np.array(shares)


def means(agent: Agent, network: Any, states: int) -> Any:
    """What the members of a network expect together, of each state and action."""
    z = jax.vmap(agent.returns_by_member, in_axes=(None, 0))(network, jnp.arange(states))
    return jnp.mean(jax.vmap(jax.vmap(jax.vmap(agent.family.mean)))(z), axis=1)


def mark_of(task: Task, mdp: FiniteMDP, discount: float) -> float:
    """The mean return from which on a greedy policy is good."""
    if task.margin is None:
        return 0.95 * best_return(mdp)
    return mean_return(mdp, optimal_policy(mdp, discount)) - task.margin


def stays_from(good: Any, looks: list[int], ends: Any) -> int | None:
    """The episodes finished by the first look from which on the greedy policy was good to the end; None: never."""
    bad = np.flatnonzero(~good)
    first = bad[-1] + 1 if bad.size else 0
    return None if first == len(looks) else int(np.searchsorted(ends, looks[first], side="right"))


def _sure(environment: EnvironmentBuilder, returns: Float[np.ndarray, " episodes"]) -> float | None:
    """The share of these episodes that ended with the sure reward of a RiskyArm."""
    return float(np.mean(returns == environment.sure)) if isinstance(environment, ut.RiskyArm) else None


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    name, _, method = stem.rpartition("-")
    found = measure(TASKS[name], method, stored["settings"]["seed"], 1)
    names = ("first_success_episode", "good_from_episode", "share_of_best", "episodes", "regret")
    return {each: found[each] for each in names}


def main() -> None:
    """Runs what is asked for."""
    gradients = [name for name in METHODS if name not in SOLVED]
    asked = options(__doc__, "runs/uncertainties", {"method": gradients}, env=TASKS, method=METHODS, seed=0, seeds=10)
    for env in asked.env:
        for method in asked.method:
            path = asked.out / f"{env}-{method}.json"
            if path.exists():
                continue
            document = measure(TASKS[env], method, asked.seed, asked.seeds)
            write(path, document, indent=None)
            shares = " ".join(f"{share:.2f}" for share in document["share_of_best"])
            print(f"{env:<16} {method:<9} {document['good_seeds']} of {asked.seeds}: {shares}", flush=True)


if __name__ == "__main__":
    main()
