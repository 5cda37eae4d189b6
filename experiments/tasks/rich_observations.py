"""States that are seen through noise or beside random bits: what tells them apart, and what does not.

    python -m experiments.tasks.rich_observations --out results/learned_features                   # everything
    python -m experiments.tasks.rich_observations --task lock_10 --method radius --first 10      # one of them

Each task and method is one JSON file of all seeds; what is there already is not run again.
"""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import uppertail as ut
from experiments.common import options, write
from uppertail.environments import FiniteMDP, RichMDP
from uppertail.parts import PRESETS
from uppertail.training.process import hardware

PAPER = {
    "distribution": ut.Gaussian(distance="cross_entropy", beta=0.0),
    "policy": ut.UCB(low=1.7, high=2.3),
    "learner": ut.GradientDescent(),
    "evidence": ut.NoEvidence(),
}
"""The parts of the preset `paper`; its settings are read from it."""


@dataclasses.dataclass(frozen=True)
class BitsChain(ut.VectorBuilder):
    """A Chain whose observation is the one-hot of its state and random bits that mean nothing."""

    length: int = 20
    bits: int = 8

    @property
    def success_return(self) -> float:
        return 1.0

    def build(self, key: PRNGKeyArray) -> RichMDP:
        return RichMDP(ut.Chain(self.length).build(key), jnp.eye(self.length), bits=self.bits, binary=True)


@dataclasses.dataclass(frozen=True)
class Hidden(ut.EnvironmentBuilder):
    """The table behind an environment, as an agent sees it that is told the state."""

    shown: Any

    @property
    def success_return(self) -> float:
        return self.shown.success_return

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        return self.shown.build(key).mdp


class Task(NamedTuple):
    """What is learned.

    Args:
        environment: where.
        episodes: how many of each seed.
        radius: a distance between that of two observations of one state and that of two states; None: there is none.
    """

    environment: Any
    episodes: int
    radius: float | None = None


TASKS = {
    "lock_5": Task(ut.RichLock(5), 500, 0.8),
    "lock_10": Task(ut.RichLock(10), 1_000, 0.9),
    "lock_25": Task(ut.RichLock(25), 1_500, 1.05),
    "lock_50": Task(ut.RichLock(50), 4_000, 1.35),
    "rich_chain_20": Task(ut.RichChain(20), 300, 0.1),
    "sea_10": Task(ut.RichSea(10), 400),
    "sea_20": Task(ut.RichSea(20, bits=16), 400),
    "bits_chain_20": Task(BitsChain(), 300),
}
METHODS = ["hidden", "radius", "wide_radius", "defaults", "paper"]
WIDE = 1.4
"""What the radius is multiplied by, to see what a poor choice costs."""


def measure(task: Task, method: str, seeds: int, first: int) -> dict[str, Any]:
    """All seeds, and what came of them."""
    environment, parts, settings = task.environment, {}, {}
    if method == "hidden":
        environment = Hidden(environment)
    elif task.radius and method in ("radius", "wide_radius"):
        radius = task.radius * (WIDE if method == "wide_radius" else 1.0)
        environment = dataclasses.replace(environment, radius=radius)
    elif method == "paper":
        environment, parts = dataclasses.replace(environment, features="scaled"), PAPER
        settings = {name: value for name, value in PRESETS["paper"].items() if name in ut.Settings.__dataclass_fields__}
    run = ut.Settings(seeds=seeds, seed=first, episodes=task.episodes, **settings)
    record = ut.train(environment, settings=run, **parts).record
    summary = record.summary()
    names = ("first_success_episode", "solved_episode", "kept", "final_greedy_return", "env", "learner", "settings")
    tenth = max(1, task.episodes // 10)
    return {
        **{name: summary[name] for name in (*names, "steps_per_second", "wall_seconds")},
        "mean_return_by_tenths": [
            [round(float(each.returns[start : start + tenth].mean()), 3) for start in range(0, task.episodes, tenth)]
            for each in record.episodes
        ],
        "hardware": hardware(),
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again."""
    name, _, method = stem.rpartition("-")
    if name not in TASKS:
        return None
    settings = stored["settings"]
    found = measure(TASKS[name]._replace(episodes=settings["episodes"]), method, 1, settings["seed"])
    names = ("first_success_episode", "solved_episode", "final_greedy_return", "mean_return_by_tenths")
    return {each: found[each] for each in names}


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "runs/learned_features", task=TASKS, method=dict.fromkeys(METHODS), seeds=5, first=0)
    for name in asked.task:
        for method in asked.method:
            path = asked.out / f"{name}-{method}.json"
            if path.exists() or ("radius" in method and TASKS[name].radius is None):
                continue
            document = measure(TASKS[name], method, asked.seeds, asked.first)
            write(path, document, indent=None)
            print(f"{name:<14} {method:<9} first {document['first_success_episode']}", flush=True)


if __name__ == "__main__":
    main()
