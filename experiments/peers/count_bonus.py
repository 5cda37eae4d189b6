"""A table with a count bonus (MBIE-EB, Strehl and Littman 2008) on the tasks of `uncertainties.py`, judged as there.

    python -m experiments.peers.count_bonus --env lake_4x4 --out results/least_squares/chance
    python -m experiments.peers.count_bonus --env lake_4x4 --seed 100 --seeds 4 --bonus 0.3    # tuning

The bonus is in units of the range of returns. After each episode the greedy policy of the same data without the bonus
is judged, at most 100 times in a run.
"""

import argparse
import time
from typing import Any

import jax
import numpy as np

from experiments.common import options, write
from experiments.peers.optimistic_table import Agent
from experiments.tasks.horizon import best_return, greedy_policy, mean_return
from experiments.tasks.uncertainties import LOOKS, TASKS, mark_of, stays_from
from uppertail.defaults import DISCOUNT
from uppertail.records import describe
from uppertail.training.loop import seed_keys
from uppertail.training.process import hardware

SWEEPS = 50  # each as many backups as there are states, so that values of a slippery lake settle


def played(mdp: Any, steps: int, mark: float, seed: int, bonus: float) -> dict[str, Any]:
    """One seed: from which episode on its greedy policy was good, and what its episodes earned."""
    low, high = (float(bound) for bound in mdp.return_range(DISCOUNT))
    options = argparse.Namespace(learner="count", low=0.0, high=0.0, bonus=bonus * (high - low), discount=DISCOUNT)
    random = np.random.default_rng(seed)
    agent, plain = (Agent(mdp, (low, high), random, options) for _ in range(2))
    plain.options = argparse.Namespace(**vars(options) | {"learner": "optimistic"})
    returns, ends, looks, good = list[float](), [0], list[int](), list[bool]()
    while ends[-1] < steps:
        before = agent.table[2].sum()
        returns.append(agent.episode(random.random((mdp.time_limit, mdp.num_actions))))
        agent.back_up()
        ends.append(ends[-1] + int(agent.table[2].sum() - before))
        if ends[-1] >= (looks[-1] if looks else 0) + max(steps / LOOKS, 1024):
            plain.table = plain.table[0], plain.table[1], agent.table[2], agent.table[3]
            for _ in range(SWEEPS):
                plain.back_up()
            looks.append(ends[-1])
            good.append(mean_return(mdp, greedy_policy(plain.table[0])) >= mark)
    first = stays_from(np.array(good), looks, np.array(ends[1:]))
    return {"good": good[-1], "from": first, "share": round(float(np.mean(returns)) / best_return(mdp), 3)}


def measure(name: str, seed: int, seeds: int, bonus: float) -> dict[str, Any]:
    """All seeds of a task."""
    task, began, found = TASKS[name], time.perf_counter(), list[dict[str, Any]]()
    for each in range(seed, seed + seeds):
        mdp = jax.device_get(task.environment.build(seed_keys(each).environment))
        found.append(played(mdp, task.steps, mark_of(task, mdp, DISCOUNT), each, bonus))
    return {
        "env": describe(task.environment),
        "bonus": bonus,
        "seed": seed,
        "good_seeds": sum(each["good"] for each in found),
        "good_from_episode": [each["from"] for each in found],
        "share_while_training": [each["share"] for each in found],
        "seconds": round(time.perf_counter() - began, 1),
        "hardware": hardware(),
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    found = measure(stem.rpartition("-")[0], stored["seed"], 1, stored["bonus"])
    return {name: found[name] for name in ("good_from_episode", "share_while_training")}


def main() -> None:
    """Runs what is asked for."""
    chance = [name for name, task in TASKS.items() if task.chance]
    asked = options(__doc__, "runs/count_bonus", {"env": chance}, env=TASKS, bonus=0.1, seed=0, seeds=10)
    for name in asked.env:
        if not (path := asked.out / f"{name}-count_bonus.json").exists():
            write(path, found := measure(name, asked.seed, asked.seeds, asked.bonus), indent=None)
            print(f"{name}: {found['good_seeds']} of {asked.seeds} good", flush=True)


if __name__ == "__main__":
    main()
