"""What least squares reaches, beside a plain optimistic value by the same least squares.

    python -m experiments.tasks.least_squares --out results/least_squares                    # all tasks, no ablation
    python -m experiments.tasks.least_squares --task chain_100 --method gaussian             # one of them
    python -m experiments.tasks.least_squares --task mountain_car --method one_sweep --seeds 3  # fewer

Each task and method is one JSON file of all seeds; what is there already is not run again.
Tasks where there is chance are in `experiments/tasks/uncertainties.py`.
"""

import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.environments import EnvironmentBuilder
from uppertail.learners.least_squares import VECTORS
from uppertail.training.process import hardware

OPTIMISTIC_START = 2.626
"""Where mean + c sd of the Gaussian starts, in units of the scale: 2 softplus(1)."""

MAIN = ["gaussian", "categorical", "optimistic_value"]
METHODS: dict[str, dict[str, Any]] = {
    "gaussian": {"distribution": ut.Gaussian()},
    "categorical": {"distribution": ut.Categorical()},
    "optimistic_value": {"distribution": ut.PointMass(start=OPTIMISTIC_START)},
    "optimistic_value_narrow": {"distribution": ut.PointMass(start=(VECTORS.start_width or 1.0) * OPTIMISTIC_START)},
    "value_epsilon_greedy": {"distribution": ut.PointMass(), "policy": ut.EpsilonGreedy()},
    "wide_start": {"learner": ut.LeastSquares(start_width=1.0)},
    "small_lambda": {"learner": ut.LeastSquares(spread_prior_count=1e-3)},
    "policy_mean": {"learner": ut.LeastSquares(greedy_mean=False)},
    "one_sweep": {"learner": ut.LeastSquares(sweeps=1)},
    "thompson": {"policy": ut.Thompson()},
    "steps_of_adam": {"learner": ut.GradientDescent(), "evidence": ut.NoEvidence()},
}
"""The methods of the tables, then ablations of the first: no spread, from the narrower start of vectors or by random
actions, what the start is worth, one lambda for both, the policy's next action for the mean, too, one sweep, draws in
place of the bound, and gradient descent on random features."""


class Task(NamedTuple):
    """What is learned.

    Args:
        environment: where.
        episodes: how many of each seed.
        seeds: how many seeds, from 0 on.
        discount: gamma.
        together: whether one compiled run trains all seeds. Vectors are faster seed by seed: a run solves when any of
            its seeds is due.
    """

    environment: EnvironmentBuilder
    episodes: int
    seeds: int = 10
    discount: float = 0.995
    together: bool = True


TASKS = {
    "chain_100": Task(ut.Chain(100), 600),
    "deep_sea_20": Task(ut.DeepSea(20), 300),
    "deep_sea_50": Task(ut.DeepSea(50), 300),
    "rich_chain_20": Task(ut.RichChain(20, dim=32), 300, together=False),
    "rich_chain_50": Task(ut.RichChain(50, dim=64), 150, seeds=5, together=False),
    "rich_chain_100": Task(ut.RichChain(100, dim=128), 300, seeds=3, together=False),
    "mountain_car": Task(ut.Gym("MountainCar-v0"), 100, together=False),
    "cart_pole": Task(ut.Gym("CartPole-v1"), 100, together=False),
    "acrobot": Task(ut.Gym("Acrobot-v1"), 100, together=False),
    "deep_sea_100": Task(ut.DeepSea(100), 400, seeds=5),
    "chain_1000": Task(ut.Chain(1000), 1_300, seeds=5, discount=0.999),
}


EACH = ("first_success_episode", "solved_episode", "kept", "final_greedy_return")
"""Numbers of a run's summary that each seed has."""


def measure(task: Task, method: str) -> dict[str, Any]:
    """All seeds by least squares with its defaults, and what came of them."""
    settings = ut.Settings(seeds=task.seeds, episodes=task.episodes, discount=task.discount)
    alone = [dataclasses.replace(settings, seeds=1, seed=seed) for seed in range(task.seeds)]
    runs = [settings] if task.together else alone
    parts = {"learner": ut.LeastSquares(), **METHODS[method]}
    records = [ut.train(task.environment, settings=each, **parts).record for each in runs]
    summaries = [record.summary() for record in records]
    returns = [seed.returns for record in records for seed in record.episodes]
    return {
        **{name: list(itertools.chain(*(_of_seeds(each[name]) for each in summaries))) for name in EACH},
        **{name: summaries[0][name] for name in ("env", "distribution", "policy", "learner", "settings")},
        "env_steps": sum(each["env_steps"] for each in summaries),
        "steps_per_second": float(np.median([each["steps_per_second"] for each in summaries])),
        "wall_seconds": sum(each["wall_seconds"] for each in summaries),
        "first_better_episode": [int(np.argmax(each > each[0])) + 1 for each in returns],
        "mean_return_by_tens": [
            [round(float(np.mean(seed[start : start + 10])), 2) for start in range(0, seed.size, 10)]
            for seed in returns
        ],
        "hardware": hardware(),
    }


def _of_seeds(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


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
