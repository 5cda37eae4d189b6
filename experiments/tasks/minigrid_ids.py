"""MiniGrid's smaller environments, a new layout in each episode: what two presets and the defaults learn.

Usage: python -m experiments.tasks.minigrid_ids [--out results/minigrid_ids] [--seeds 5] [--seed 0] [--only LavaGapS5]
       python -m experiments.tasks.minigrid_ids --only Unlock --preset default --seed 3 --seeds 1 --steps 60000

Needs `uppertail[minigrid]`. The settings are those of the presets minigrid_imitation and minigrid_layouts; by default
an environment has its id alone, and on some the same is learned without a part of it. Files that are there already are
kept.
"""

import dataclasses
from typing import Any

import gymnasium
import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.bonus import Bonus, PixelsAlone
from experiments.tasks.distillation import DistilledPixels
from experiments.tasks.minigrid_layouts import VIEWS, reached
from experiments.tasks.minigrid_marks import own_returns
from experiments.tasks.minigrid_runs import PAID_ALIKE, PRIZE, SETTINGS, C
from experiments.tasks.minigrid_tasks import PREFIX, VERSION

GOAL = 0.8
"""The mean return of 100 training episodes that has to be reached: no less than 0.8 of the best, which is below 1."""

RUNS = {
    "LavaGapS5": {"layouts": 10_000, "default": 10_000},
    "LavaGapS7": {"layouts": 10_000, "imitation": 20_000, "default": 15_000},
    "Unlock": {"layouts": 15_000, "imitation": 60_000, "default": 30_000},
    "Dynamic-Obstacles-5x5": {"imitation": 20_000, "default": 10_000},
    "Dynamic-Obstacles-6x6": {"imitation": 20_000, "default": 8_000},
    "Dynamic-Obstacles-Random-6x6": {"imitation": 20_000, "default": 6_000},
    "FourRooms": {"layouts": 10_000, "imitation": 40_000},
}
"""Steps of each seed, by environment and preset; default: none."""

COMPARED = ("LavaGapS5", "Dynamic-Obstacles-Random-6x6")

_BY_CHANCE = {"policy": ut.EpsilonGreedy(), "distribution": ut.PointMass()}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "categorical": {"distribution": ut.Categorical(), "learner": ut.GradientDescent()},
    "quantile": {"distribution": ut.Quantile(), "learner": ut.GradientDescent()},
    "no_visits": {"policy": ut.UCB(power=0.0)},
    "optimistic_value": {"distribution": ut.PointMass(start=1.08), "learner": ut.GradientDescent()},
    "no_evidence": {**_BY_CHANCE, "learner": ut.GradientDescent(), "evidence": PixelsAlone()},
    "count_bonus": {**_BY_CHANCE, "learner": Bonus(), "evidence": PixelsAlone()},
    "distillation": {**_BY_CHANCE, "learner": Bonus(), "evidence": DistilledPixels()},
}
"""The defaults, and what is compared with them: other families; a spread that does not fall with the visits of an
episode; one optimistic value that starts where the Gaussian's bound does, on the same network and evidence; the same
network by epsilon-greedy, without the start; and the same again with a bonus as reward, by the counts or by
distillation."""

for _name in COMPARED:
    RUNS[_name] |= dict.fromkeys(METHODS, RUNS[_name]["default"])

RANDOM_EPISODES = 200


def trained(name: str, preset: str, settings: ut.Settings) -> ut.TrainingResult:
    """A run by a preset, or by defaults, or by them with a part changed."""
    if preset in METHODS:
        return ut.train(ut.Gym(name), settings=settings, **METHODS[preset])
    if preset == "imitation":
        env = ut.Gym(name, features="one_hot", values=11, returns=(0.0, 1.0))
        return ut.train(env, ut.PointMass(), ut.Softmax(), settings, learner=ut.Imitation())
    env = ut.Gym(name, wrappers=[PAID_ALIKE], encoding="hashed", returns=(0.0, PRIZE), **VIEWS["objects"])
    settings = dataclasses.replace(settings, rollout_steps=16, **SETTINGS)
    return ut.train(env, ut.Gaussian(), ut.UCB(C, C, power=1.0), settings, learner=ut.LeastSquares(sweeps=2))


def random_return(name: str) -> float:
    """The mean return of random actions."""
    env, total = gymnasium.make(name), 0.0
    env.action_space.seed(0)
    for episode in range(RANDOM_EPISODES):
        env.reset(seed=episode)
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, over = total + float(reward), terminated or truncated
    return total / RANDOM_EPISODES


def learn(name: str, preset: str, steps: int, seed: int, seeds: int) -> dict[str, Any]:
    """Trains all seeds; returns what each earned, by MiniGrid's own returns."""
    full_name = f"{PREFIX}{name}-v0"
    result = trained(full_name, preset, ut.Settings(seed=seed, seeds=seeds, episodes=10**6, steps=steps))
    summary, episodes = result.record.summary(), result.record.episodes
    limit = gymnasium.make(full_name).unwrapped.max_steps  # pyright: ignore[reportAttributeAccessIssue]
    own, unit = [each.returns for each in episodes], 1.0
    if preset == "layouts":
        own, unit = [own_returns(each.returns, each.lengths, limit) for each in episodes], PRIZE
    last = [returns[each.end_steps > 0.9 * steps] for returns, each in zip(own, episodes, strict=True)]
    return {
        "env": name,
        "minigrid": VERSION,
        "preset": preset,
        "seeds": list(range(seed, seed + seeds)),
        "steps_each": steps,
        "random": round(random_return(full_name), 3),
        "reached_step": [reached(each, of.end_steps, GOAL) for each, of in zip(own, episodes, strict=True)],
        "last_tenth": [round(float(np.mean(returns)), 3) for returns in last],
        "greedy": [round(each / unit, 3) for each in result.record.greedy_returns],
        "asked": {part: summary[part] for part in ("env", "distribution", "policy", "learner", "settings")},
        **{fact: summary[fact] for fact in ("env_steps", "wall_seconds", "steps_per_second", "hardware")},
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    found = learn(stored["env"], stored["preset"], stored["steps_each"], stored["seeds"][0], 1)
    return {each: found[each] for each in ("reached_step", "last_tenth", "greedy")}


if __name__ == "__main__":
    every = [*dict.fromkeys(preset for runs in RUNS.values() for preset in runs)]
    given = options(__doc__, "results/minigrid_ids", seeds=5, seed=0, steps=0, only=[*RUNS], preset=every)
    for name, preset in ((each, preset) for each in given.only for preset in RUNS[each] if preset in given.preset):
        path = given.out / f"{name}-{preset}-seeds-{given.seed}-to-{given.seed + given.seeds - 1}.json"
        if not path.exists():
            cell = learn(name, preset, given.steps or RUNS[name][preset], given.seed, given.seeds)
            write(path, cell, indent=None)
            print(path.stem, cell["random"], cell["last_tenth"], cell["greedy"], cell["wall_seconds"], flush=True)
