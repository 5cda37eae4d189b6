"""What a network beside kernel counts reaches by the defaults, beside the same network without a part of it.

    python -m experiments.tasks.evidence --out results/evidence                           # all tasks, the defaults
    python -m experiments.tasks.evidence --task CartPole-v1 --method optimistic_value     # one of them
    python -m experiments.tasks.evidence --task LunarLander-v3 --seeds 3                  # fewer seeds
    python -m experiments.tasks.evidence --task LunarLander-v3 --processes 5              # seeds side by side

Each task and method is one JSON file of all seeds, which are trained one after another, or side by side in processes;
what is there already is not run again. LunarLander needs `gymnasium[box2d]`, the tasks of dm_control its package, and
mazes gymnasium-robotics.
"""

import concurrent.futures
import functools
import itertools
import multiprocessing
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.bonus import Bonus, CountsAlone
from experiments.tasks.bootstrapped import Bootstrapped, NoCounts
from experiments.tasks.distillation import Distillation
from experiments.tasks.half_evidence import ActingAlone, TargetsAlone
from uppertail.records import RunRecord
from uppertail.training.process import hardware


class Task(NamedTuple):
    """What is learned.

    Args:
        episodes: how many of each seed.
        seeds: how many seeds.
        judged: the first and the last episode of the mean that the page shows.
        goal: the mean of `window` episodes in a row that is sought; None: none is.
        window: how many.
        options: what is not open in the environment.
        bound: where one optimistic value starts, in ranges of returns above 0: where the bound of the Gaussian does.
    """

    episodes: int
    seeds: int = 10
    judged: tuple[int, int] = (51, 100)
    goal: float | None = None
    window: int = 10
    options: dict[str, Any] | None = None
    bound: float = 1.08


def maze(start: list[int], goal: list[int]) -> dict[str, Any]:
    """A maze with one start and one goal, near the middle of these cells; an episode ends at the goal, which pays 1."""
    return {"kwargs": {"continuing_task": False}, "reset_options": {"reset_cell": start, "goal_cell": goal}}


TASKS = {
    "CartPole-v1": Task(100),
    "MountainCar-v0": Task(100, bound=0.08),
    "Acrobot-v1": Task(100, bound=0.08),
    "LunarLander-v3": Task(400, seeds=5, judged=(301, 400), goal=200.0, window=100, bound=0.4),
    "dm_control/pendulum-swingup-v0": Task(40, judged=(31, 40), goal=800.0),
    "dm_control/cartpole-swingup_sparse-v0": Task(80, judged=(71, 80), goal=500.0),
    "dm_control/cartpole-swingup-v0": Task(60, judged=(51, 60), goal=800.0),
    "dm_control/ball_in_cup-catch-v0": Task(50, seeds=3, judged=(41, 50), goal=900.0),
    "dm_control/acrobot-swingup-v0": Task(200, seeds=2, judged=(191, 200), goal=300.0),
    "MountainCarContinuous-v0": Task(40, judged=(21, 40), goal=93.0, bound=0.5),
    "Pendulum-v1": Task(100, judged=(91, 100), options={"levels": 5}, bound=0.08),
    "PointMaze_UMaze-v3": Task(40, judged=(21, 40), goal=0.95, window=20, options=maze([1, 1], [3, 1])),
    "PointMaze_Medium-v3": Task(80, judged=(61, 80), goal=0.95, window=20, options=maze([1, 1], [6, 6])),
}
METHODS: dict[str, Callable[[Task], dict[str, Any]]] = {
    "gaussian": lambda task: {},
    "optimistic_value": lambda task: {
        "distribution": ut.PointMass(start=task.bound), "learner": ut.GradientDescent(),
    },
    "no_evidence": lambda task: {
        "policy": ut.EpsilonGreedy(), "distribution": ut.PointMass(), "learner": ut.GradientDescent(),
        "evidence": ut.KernelCounts(reach=1_000.0),  # everything is near
    },
    "count_bonus": lambda task: {
        "policy": ut.EpsilonGreedy(), "distribution": ut.PointMass(), "learner": Bonus(),
        "evidence": CountsAlone(),
    },
    "distillation": lambda task: {
        "policy": ut.EpsilonGreedy(), "distribution": ut.PointMass(), "learner": Bonus(),
        "evidence": Distillation(),
    },
    "bootstrapped": lambda task: {
        "policy": ut.MemberThompson(), "distribution": ut.PointMass(), "learner": ut.GradientDescent(),
        "network": Bootstrapped(), "evidence": NoCounts(),
    },
    "acting_alone": lambda task: {"learner": ut.GradientDescent(), "evidence": ActingAlone()},
    "targets_alone": lambda task: {"learner": ut.GradientDescent(), "evidence": TargetsAlone()},
}  # fmt: skip
"""The defaults; one optimistic value with the task's bound, on the same network and evidence; the same network without
the start, by epsilon-greedy; the same again with a bonus as reward, by the counts or by distillation; bootstrapped DQN;
and the defaults with evidence in acting alone, or in targets alone."""

FIRST = 9100
"""The first seed: none of them chose anything."""


def trained(name: str, method: str, seed: int) -> RunRecord:
    """The record of one seed."""
    task = TASKS[name]
    settings = ut.Settings(seeds=1, seed=seed, episodes=task.episodes)
    return ut.train(ut.Gym(id_of(name), **(task.options or {})), settings=settings, **METHODS[method](task)).record


def measure(name: str, method: str, seeds: int, processes: int = 1) -> dict[str, Any]:
    """All seeds, one after another or side by side."""
    task, each, spawn = TASKS[name], range(FIRST, FIRST + seeds), multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, spawn) as pool:
        run = map if processes == 1 else pool.map
        records = list(run(functools.partial(trained, name, method), each))
    returns, summary = [record.episodes[0].returns for record in records], records[0].summary()
    first, last = task.judged
    return {
        "task": name, "method": method, "judged_episodes": task.judged, "goal": task.goal, "window": task.window,
        "seeds": [*each],
        "returns": [np.round(every, 2).tolist() for every in returns],
        "judged": [float(every[first - 1 : last].mean()) for every in returns],
        "reached": [reached(every, task) for every in returns],
        "greedy": [record.summary()["final_greedy_return"][0] for record in records],
        "env_steps": [record.env_steps[0] for record in records],
        "training_seconds": [round(record.training_seconds, 1) for record in records],
        **{name: summary[name] for name in ("env", "distribution", "policy", "learner", "settings")},
        "hardware": hardware(),
    }  # fmt: skip


def id_of(name: str) -> str:
    """The id of a task, with the package that registers it."""
    return f"gymnasium_robotics:{name}" if name.startswith("PointMaze") else name


def reached(returns: np.ndarray, task: Task) -> int | None:
    """The last episode of the first window whose mean is the goal; None: there is none."""
    if task.goal is None or len(returns) < task.window:
        return None
    means = np.convolve(returns, np.full(task.window, 1 / task.window), "valid")
    found = np.flatnonzero(means >= task.goal)
    return int(found[0]) + task.window if found.size else None


def file_of(name: str, method: str) -> str:
    """The file of a result."""
    return f"{name.replace('/', '_')}-{method}.json"


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again."""
    found = measure(stored["task"], stored["method"], 1)
    return {each: found[each] for each in ("returns", "judged", "greedy")}


def main() -> None:
    """Runs what is asked for."""
    asked = options(
        __doc__, "results/evidence", {"method": ["gaussian"]}, task=TASKS, method=METHODS, seeds=0, processes=1
    )
    for name, method in itertools.product(asked.task, asked.method):
        if (path := asked.out / file_of(name, method)).exists():
            continue
        document = measure(name, method, asked.seeds or TASKS[name].seeds, asked.processes)
        write(path, document, indent=None)
        print(f"{name:<40} {method:<17} {[round(each, 1) for each in document['judged']]}", flush=True)


if __name__ == "__main__":
    main()
