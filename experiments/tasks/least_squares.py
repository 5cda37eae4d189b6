"""What least squares reaches, beside a plain optimistic value by the same least squares.

    python -m experiments.tasks.least_squares --out results/least_squares         # all tasks
    python -m experiments.tasks.least_squares --task chain_100 --method gaussian  # one of them

Each task and method is one JSON file of all seeds; what is there already is not run again.
Tasks where there is chance are in `experiments/tasks/uncertainties.py`.
"""

from typing import Any, NamedTuple

import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.environments import EnvironmentBuilder
from uppertail.training.process import hardware

OPTIMISTIC_START = 2.626
"""Where mean + c sd of the Gaussian starts, in units of the scale: 2 softplus(1)."""

MAIN = ["gaussian", "categorical", "optimistic_value"]
METHODS: dict[str, dict[str, Any]] = {
    "gaussian": {"distribution": ut.Gaussian()},
    "categorical": {"distribution": ut.Categorical()},
    "optimistic_value": {"distribution": ut.PointMass(start=OPTIMISTIC_START)},
}


class Task(NamedTuple):
    """What is learned.

    Args:
        environment: where.
        episodes: how many of each seed.
        seeds: how many seeds, from 0 on.
        discount: gamma.
    """

    environment: EnvironmentBuilder
    episodes: int
    seeds: int = 10
    discount: float = 0.995


TASKS = {
    "chain_100": Task(ut.Chain(100), 600),
    "deep_sea_20": Task(ut.DeepSea(20), 300),
    "deep_sea_50": Task(ut.DeepSea(50), 300),
    "deep_sea_100": Task(ut.DeepSea(100), 400, seeds=5),
    "chain_1000": Task(ut.Chain(1000), 1_300, seeds=5, discount=0.999),
}


EACH = ("first_success_episode", "solved_episode", "kept", "final_greedy_return")
"""Numbers of a run's summary that each seed has."""


def measure(task: Task, method: str) -> dict[str, Any]:
    """All seeds by least squares with its defaults, and what came of them."""
    settings = ut.Settings(seeds=task.seeds, episodes=task.episodes, discount=task.discount)
    record = ut.train(task.environment, settings=settings, learner=ut.LeastSquares(), **METHODS[method]).record
    summary, returns = record.summary(), [seed.returns for seed in record.episodes]
    told = ("env", "distribution", "policy", "learner", "settings", "env_steps", "steps_per_second", "wall_seconds")
    return {
        **{name: summary[name] for name in (*EACH, *told)},
        "mean_return_by_tens": [
            [round(float(np.mean(seed[start : start + 10])), 2) for start in range(0, seed.size, 10)]
            for seed in returns
        ],
        "hardware": hardware(),
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again."""
    name, _, method = stem.rpartition("-")
    if name not in TASKS:
        return None
    found = measure(TASKS[name]._replace(seeds=1, episodes=stored["settings"]["episodes"]), method)
    return {each: found[each][:1] for each in (*EACH, "mean_return_by_tens")}


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "runs/least_squares", {"method": MAIN}, task=TASKS, method=METHODS, seeds=0)
    for name in asked.task:
        for method in asked.method:
            path = asked.out / f"{name}-{method}.json"
            if path.exists():
                continue
            task = TASKS[name]
            document = measure(task._replace(seeds=asked.seeds or task.seeds), method)
            write(path, document, indent=None)
            print(f"{name:<16} {method:<17} first {document['first_success_episode']}", flush=True)


if __name__ == "__main__":
    main()
