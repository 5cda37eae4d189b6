"""CartPole, Acrobot, MountainCar and the swing-up of a cart's pole: mean return of 100 greedy episodes of each seed.

Usage: python -m experiments.tasks.classic_control [--out results/classic_control] [--seeds 5] [--envs CartPole-v1]

They learn in the paper's form (`--preset paper`); the defaults, made for what repeats, do worse here. Python makes the
steps of the first three; the swing-up (cartpole_swingup.py) is compiled. Each environment is one run of all
seeds; those that are there already are kept. Stable-Baselines3's DQN and QR-DQN with tuned settings are in
experiments/peers/sb3.py. On two CPU cores CartPole and MountainCar take about five minutes, Acrobot a quarter of an
hour, the swing-up half an hour.
"""

from typing import Any, NamedTuple

import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.paper.form import PARTS, paper_gaussian, paper_settings, paper_ucb
from experiments.tasks.cartpole_swingup import CartpoleSwingup
from uppertail.training.method import Method
from uppertail.training.run import Run
from uppertail.training.train import drive

EPISODES = 100


class Task(NamedTuple):
    """An environment, how it is learned, and the mean return that counts as solved."""

    environment: ut.EnvironmentBuilder
    family: ut.ReturnDistribution[Any]
    policy: ut.ExplorationPolicy
    settings: dict[str, Any]
    solved: float
    network: ut.PerAction = ut.PerAction()


RATE_FALLS = {"learning_rate": 1e-3, "learning_rate_end": 0.0}
OFTEN = {"batch_size": 64, "rollout_steps": 16, "updates_per_rollout": 8}
TASKS = {
    "CartPole-v1": Task(
        ut.Gym("CartPole-v1", returns=(0.0, 100.0), length_scale=0.2, num_features=512),
        ut.Categorical(bins=51),
        paper_ucb(),
        {"steps": 100_000, "replay_size": 100_000, "discount": 0.99, **RATE_FALLS, "learning_rate": 2e-3}
        | {"batch_size": 128, "rollout_steps": 32, "updates_per_rollout": 4},
        475.0,
    ),
    "Acrobot-v1": Task(
        ut.Gym("Acrobot-v1", length_scale=0.5, num_features=1024, feature_norm=100.0, scaling="running"),
        paper_gaussian(),
        ut.UCB(low=1.0, high=1.0),
        {"steps": 60_000, "replay_size": 100_000, "discount": 0.98, **RATE_FALLS, "learning_rate": 2e-4}
        | {"batch_size": 128, "rollout_steps": 16, "updates_per_rollout": 16},
        -100.0,
        ut.PerAction(128, 2),
    ),
    "MountainCar-v0": Task(
        ut.Gym("MountainCar-v0", length_scale=0.15, num_features=1024),
        paper_gaussian(),
        ut.UCB(low=0.5, high=0.5),
        {"steps": 80_000, "replay_size": 80_000, "discount": 0.98, **RATE_FALLS, **OFTEN},
        -110.0,
    ),
    "CartpoleSwingup": Task(
        CartpoleSwingup(height_threshold=0.0, length_scale=0.2, num_features=1024),
        paper_gaussian(),
        ut.UCB(low=0.2, high=0.2),
        {"steps": 400_000, "replay_size": 400_000, "discount": 0.99, **RATE_FALLS, **OFTEN},
        CartpoleSwingup().success_return,
    ),
}
"""Settings chosen on seeds 100 to 104 (docs/decisions/0008), those of the swing-up on seeds 100 to 102."""


def solve(env: str, seed: int, seeds: int) -> dict[str, Any]:
    """Trains all seeds, and plays greedily with what they learned."""
    task = TASKS[env]
    settings = paper_settings(seed=seed, seeds=seeds, episodes=10**6, **task.settings)
    run = Run(task.environment, Method(task.family, task.policy, **{**PARTS, "network": task.network}), settings)
    result = drive(
        run, lambda progress: print(f"{env}: {progress.fraction:.0%}, return {progress.mean_return:.1f}", end="\r")
    )
    returns = run.driver.play(result.networks, ut.Greedy(), EPISODES).returns
    means = returns.mean(axis=1)
    summary = result.record.summary()
    return {
        "env": env,
        "solved_above": task.solved,
        "seeds_solved": int(np.sum(means > task.solved)),
        "mean_greedy_return": means.tolist(),
        "greedy_returns": returns.tolist(),
        "first_success_episode": summary["first_success_episode"],
        "best_training_return": [float(episodes.returns.max()) for episodes in result.record.episodes],
        "last_100_episodes": [float(episodes.returns[-100:].mean()) for episodes in result.record.episodes],
        "asked": {name: summary[name] for name in ("env", "distribution", "policy", "settings")},
        **{name: summary[name] for name in ("env_steps", "wall_seconds", "steps_per_second", "hardware")},
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    found = solve(stem.partition("-seeds-")[0], stored["asked"]["settings"]["seed"], 1)
    return {each: found[each] for each in ("mean_greedy_return", "best_training_return", "last_100_episodes")}


if __name__ == "__main__":
    given = options(__doc__, "results/classic_control", seeds=5, seed=0, envs=TASKS)
    for env in given.envs:
        path = given.out / f"{env}-seeds-{given.seed}-to-{given.seed + given.seeds - 1}.json"
        if path.exists():
            continue
        cell = solve(env, given.seed, given.seeds)
        write(path, cell)
        print(f"{env}: {cell['seeds_solved']} of {given.seeds} seeds above {cell['solved_above']}", flush=True)
