"""MiniGrid with a new layout in each episode, by imitation of the best episodes: steps until 100 episodes earn enough.

Usage: python -m experiments.tasks.minigrid_imitation [--out results/minigrid_imitation] [--seeds 5] [--seed 0]
[--steps 1000000] [--envs MultiRoom-N4-S5-v0]

Needs `uppertail[minigrid]`. The settings are those of the preset minigrid_imitation. Files that are there already are
kept, and curves.png and curves.svg drawn anew.
"""

import json
from typing import Any

import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.minigrid_layouts import curve, draw, reached
from experiments.tasks.minigrid_tasks import PREFIX, VERSION

GOALS = {"KeyCorridorS3R3-v0": 0.7, "DoorKey-8x8-v0": 0.9}
OTHERWISE = 0.6
"""The mean return of 100 training episodes that has to be reached, by environment."""

POINTS = 400
"""Points of each seed's curve that are kept."""


def learn(name: str, seed: int, seeds: int, steps: int) -> dict[str, Any]:
    """Trains all seeds; returns what each earned."""
    env = ut.Gym(PREFIX + name, features="one_hot", values=11, returns=(0.0, 1.0))
    settings = ut.Settings(seed=seed, seeds=seeds, episodes=10**6, steps=steps)
    result = ut.train(env, ut.PointMass(), ut.Softmax(), settings, learner=ut.Imitation())
    summary, episodes = result.record.summary(), result.record.episodes
    goal = GOALS.get(name, OTHERWISE)
    return {
        "env": name,
        "minigrid": VERSION,
        "seeds": list(range(seed, seed + seeds)),
        "steps_each": steps,
        "goal": goal,
        "reached_step": [reached(each.returns, each.end_steps, goal) for each in episodes],
        "last_tenth": [round(float(each.returns[each.end_steps > 0.9 * steps].mean()), 3) for each in episodes],
        "greedy": [round(each, 3) for each in result.record.greedy_returns],
        "curves": [thinned(each.returns, each.lengths) for each in episodes],
        "asked": {part: summary[part] for part in ("env", "distribution", "policy", "learner", "settings")},
        **{fact: summary[fact] for fact in ("env_steps", "wall_seconds", "steps_per_second", "hardware")},
    }


def thinned(returns: np.ndarray, lengths: np.ndarray) -> tuple[list[int], list[float]]:
    """Some points of a seed's curve."""
    steps, means = curve(returns.tolist(), lengths.tolist())
    places = np.unique(np.linspace(0, max(len(means) - 1, 0), min(POINTS, len(means))).astype(int))
    return steps[places].tolist(), np.round(means[places], 3).tolist()


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    found = learn(stored["env"], stored["seeds"][0], 1, stored["steps_each"])
    return {each: found[each] for each in ("reached_step", "last_tenth", "greedy")}


if __name__ == "__main__":
    given = options(
        __doc__, "results/minigrid_imitation", seeds=5, seed=0, steps=1_000_000, envs=["MultiRoom-N4-S5-v0"]
    )
    for name in given.envs:
        path = given.out / f"{name}-seeds-{given.seed}-to-{given.seed + given.seeds - 1}.json"
        if not path.exists():
            cell = learn(name, given.seed, given.seeds, given.steps)
            write(path, cell, indent=None)
            print(path.stem, cell["reached_step"], cell["last_tenth"], cell["greedy"], cell["wall_seconds"], flush=True)
    draw([json.loads(path.read_text()) for path in sorted(given.out.glob("*-seeds-*.json"))], given.out / "curves")
