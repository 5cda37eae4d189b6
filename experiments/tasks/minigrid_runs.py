"""MiniGrid, one set of settings for all of it: episodes and steps until the returns of training are near the best.

Usage: python -m experiments.tasks.minigrid_runs [--out results/minigrid] [--seeds 5] [--seed 0] [--steps 200000]
[--envs ...] [--c 0.45]

Needs `uppertail[minigrid]`. The settings are those of `--preset minigrid`: seed k has layout k, the same in every
episode; the whole grid is in view, hashed, and so one-hot, as for the peers. MiniGrid pays less the later the goal is
reached, and shows no clock; training is paid the same at any time (docs/minigrid.md), and the marks are of the
environment's own returns. A run ends when the mean of the last 100 episodes over all seeds leaves none of them
below its mark, or at its limit of steps; files that are there already are kept. Stable-Baselines3's DQN and PPO and
sb3-contrib's QR-DQN in the same environments: experiments/peers/minigrid_peers.py.
"""

from typing import Any

import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks.minigrid_marks import LAST, SHARE, STEPS, own_returns, solved_at
from experiments.tasks.minigrid_tasks import IDS, PREFIX, VERSION, Best, best

C = 0.45
"""UCB's c. What was never tried then looks worth 0.59 of the prize, which a way of 11 steps is worth, too: a longer one
is left for what is untried along it, a shorter one is taken again (docs/minigrid.md)."""

PRIZE = 0.1
"""What reaching the goal pays in training, at any time; MiniGrid itself pays 1 - 0.9 * steps / limit, never less."""

PAID_ALIKE = {"class_path": "ClipReward", "init_args": {"max_reward": PRIZE}}
"""The wrapper that sees to it."""

SETTINGS: dict[str, Any] = {"discount": 0.95}
"""All others at their defaults. With 0.99 errors of the network hide what a step costs (docs/minigrid.md)."""


class Watch:
    """Stops a run once the last episodes of every seed are near the best.

    Args:
        name: the environment.
        goals: the best of each seed's layout.
    """

    def __init__(self, name: str, goals: list[Best]) -> None:
        self.name, self.limit = name, goals[0].limit
        returns = [goal.ret for goal in goals]
        most_lost = (1 - SHARE) * min(returns) / len(returns)  # lost by one seed alone, it is still at its mark
        self.bound = float(np.mean(returns)) - most_lost

    def __call__(self, progress: ut.Progress) -> ut.Stop | None:
        if min(progress.episodes) < LAST:
            return None
        own = progress.mean_return / PRIZE - 0.9 * progress.mean_length / self.limit  # at most the mean of own returns
        print(f"{self.name}: step {progress.step}, return {own:.2f} at least", flush=True)
        return ut.Stop("solved") if own >= self.bound else None


def solve(name: str, seed: int, seeds: int, steps: int, c: float) -> dict[str, Any]:
    """Trains all seeds; returns when each was solved."""
    goals = [best(name, layout) for layout in range(seed, seed + seeds)]
    builder = ut.Gym(
        f"{PREFIX}{name}-v0",
        wrappers=["minigrid.wrappers.FullyObsWrapper", PAID_ALIKE],
        encoding="hashed",
        reset_seed="run",
        returns=(0.0, PRIZE),
    )
    settings = ut.Settings(seed=seed, seeds=seeds, episodes=10**6, steps=steps, **SETTINGS)
    result = ut.train(builder, ut.Gaussian(), ut.UCB(low=c, high=c), settings, on_chunk=Watch(name, goals))
    summary, episodes = result.record.summary(), result.record.episodes
    returns = [own_returns(each.returns, each.lengths, goals[0].limit) for each in episodes]
    solved = [solved_at(own, each.lengths, goal.ret) for own, each, goal in zip(returns, episodes, goals, strict=True)]
    return {
        "env": name,
        "minigrid": VERSION,
        "solved_when": f"the mean return of {LAST} training episodes reaches {SHARE} of the best",
        "seeds": list(range(seed, seed + seeds)),
        "best_return": [each.ret for each in goals],
        "best_steps": [each.steps for each in goals],
        "solved_episode": [each and each[0] for each in solved],
        "solved_step": [each and each[1] for each in solved],
        "first_reward_episode": [int(np.argmax(own > 0)) + 1 if (own > 0).any() else None for own in returns],
        "returns": [np.round(own, 4).tolist() for own in returns],
        "lengths": [each.lengths.tolist() for each in episodes],
        "asked": {part: summary[part] for part in ("env", "distribution", "policy", "settings")},
        **{fact: summary[fact] for fact in ("env_steps", "wall_seconds", "steps_per_second", "hardware")},
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again until it is solved."""
    if "asked" not in stored:
        return None
    found = solve(stored["env"], stored["seeds"][0], 1, STEPS, stored["asked"]["policy"]["low"])
    return {each: found[each] for each in ("best_return", "solved_episode", "solved_step", "returns", "lengths")}


if __name__ == "__main__":
    given = options(__doc__, "results/minigrid", seeds=5, seed=0, steps=STEPS, c=C, envs=dict.fromkeys(IDS))
    for name in given.envs:
        path = given.out / f"{name}-seeds-{given.seed}-to-{given.seed + given.seeds - 1}.json"
        if path.exists():
            continue
        cell = solve(name, given.seed, given.seeds, given.steps, given.c)
        write(path, cell, indent=None)
        print(f"{name}: solved at steps {cell['solved_step']} of {cell['env_steps']}", flush=True)
