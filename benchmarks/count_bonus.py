"""A table with a count bonus (MBIE-EB, Strehl and Littman 2008) on the tasks of `uncertainties.py`, judged as there.

    python benchmarks/count_bonus.py --env lake_4x4 --out results/least_squares/chance
    python benchmarks/count_bonus.py --env lake_4x4 --seed 100 --seeds 4 --bonus 0.3    # tuning

After each episode the greedy policy of the same data without the bonus is judged, at most 100 times in a run.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import uppertail as ut
from horizon import best_return, greedy_policy, mean_return
from optimistic_table import Agent
from uncertainties import LOOKS, TASKS, mark_of, stays_from
from uppertail.records import describe
from uppertail.training.loop import seed_keys
from uppertail.training.process import hardware

DISCOUNT = ut.Settings().discount
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


def main() -> None:
    """Runs what is asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--env", choices=list(TASKS), required=True)
    options.add_argument("--bonus", type=float, default=0.1, help="in units of the range of returns")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--out", type=Path, help="a folder for the result")
    asked = options.parse_args()
    task, began, found = TASKS[asked.env], time.perf_counter(), list[dict[str, Any]]()
    for seed in range(asked.seed, asked.seed + asked.seeds):
        mdp = jax.device_get(task.environment.build(seed_keys(seed).environment))
        found.append(played(mdp, task.steps, mark_of(task, mdp, DISCOUNT), seed, asked.bonus))
    document = {
        "env": describe(task.environment),
        "bonus": asked.bonus,
        "seed": asked.seed,
        "good_seeds": sum(each["good"] for each in found),
        "good_from_episode": [each["from"] for each in found],
        "share_while_training": [each["share"] for each in found],
        "seconds": round(time.perf_counter() - began, 1),
        "hardware": hardware(),
    }
    print(json.dumps(document), flush=True)
    if asked.out:
        (asked.out / f"{asked.env}-count_bonus.json").write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
