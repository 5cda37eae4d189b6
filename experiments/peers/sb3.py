"""The peers: DQN of Stable-Baselines3 and QR-DQN of sb3-contrib on classic control, one CPU thread.

Usage: python -m experiments.peers.sb3 all [--out results/classic_control/peers.json], in an environment made from
experiments/peers/requirements.txt; `train` runs one agent and `throughput` times the training loop (see --help).

The settings are the tuned ones of rl-baselines3-zoo, the same for both algorithms but for the number of quantiles.
`all` keeps the cells that are there already.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN

ALGORITHMS: dict[str, type[DQN] | type[QRDQN]] = {"DQN": DQN, "QRDQN": QRDQN}
KEYS = ("steps", "learning_rate", "batch_size", "buffer_size", "learning_starts", "gamma", "target_update_interval")
KEYS += ("train_freq", "gradient_steps", "exploration_fraction", "exploration_final_eps", "n_quantiles")
TUNED: dict[str, tuple[float, ...]] = {
    "CartPole-v1": (50_000, 2.3e-3, 64, 100_000, 1000, 0.99, 10, 256, 128, 0.16, 0.04, 10),
    "MountainCar-v0": (120_000, 4e-3, 128, 10_000, 1000, 0.98, 600, 16, 8, 0.2, 0.07, 25),
    "Acrobot-v1": (100_000, 6.3e-4, 128, 50_000, 0, 0.99, 250, 4, -1, 0.12, 0.1, 25),
}
FIRST_EVALUATION_SEED = 1_000_000  # far from the seeds of training; the same starts for every agent
LOAD = {"width": 256, "hidden_layers": 2, "batch_size": 32, "train_freq": 16, "gradient_steps": 1}  # of `throughput`


def tuned(algorithm: str, env: str) -> dict[str, Any]:
    """The settings of one cell, as they are recorded."""
    settings: dict[str, Any] = dict(zip(KEYS, TUNED[env], strict=True)) | {"net_arch": [256, 256]}
    return {key: value for key, value in settings.items() if key != "n_quantiles" or algorithm == "QRDQN"}


def build(algorithm: str, env: str, seed: int, settings: dict[str, Any]) -> DQN | QRDQN:
    """An untrained agent."""
    network = {key: settings[key] for key in ("net_arch", "n_quantiles") if key in settings}
    rest = {key: value for key, value in settings.items() if key not in network and key != "steps"}
    return ALGORITHMS[algorithm]("MlpPolicy", env, policy_kwargs=network, seed=seed, device="cpu", **rest)


def timed(agent: DQN | QRDQN, steps: int) -> dict[str, Any]:
    """Trains the agent and says how long that took; whole rollouts may make a few steps more than were asked for."""
    before, wall, processor = agent.num_timesteps, time.perf_counter(), time.process_time()
    agent.learn(steps, reset_num_timesteps=False)
    seconds, made = time.perf_counter() - wall, agent.num_timesteps - before
    return {
        "env_steps": made,
        "wall_seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time() - processor, 2),
        "steps_per_second": round(made / seconds, 1),
    }


def greedy_returns(agent: DQN | QRDQN, env: str, episodes: int) -> list[float]:
    """The return of every greedy episode, in an environment of its own."""
    world = gymnasium.make(env)
    returns = [0.0] * episodes
    for episode in range(episodes):
        observation, _ = world.reset(seed=FIRST_EVALUATION_SEED + episode)
        over = False
        while not over:
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = world.step(int(action))
            returns[episode] += float(reward)
            over = terminated or truncated
    return returns


def machine() -> dict[str, Any]:
    """Versions and processor."""
    packages = ("torch", "stable_baselines3", "sb3_contrib", "gymnasium", "numpy")
    return {
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "cpu": {"machine": platform.machine(), "count": os.cpu_count(), "threads": torch.get_num_threads()},
    }


def train(options: argparse.Namespace) -> None:
    """Trains one agent, plays greedily and prints one line of JSON."""
    cell = {"algorithm": options.algorithm, "env": options.env, "seed": options.seed}
    agent = build(**cell, settings=(settings := tuned(options.algorithm, options.env)))
    times, returns = timed(agent, settings["steps"]), greedy_returns(agent, options.env, options.episodes)
    played = {"mean_greedy_return": statistics.fmean(returns), "greedy_returns": returns}
    print(json.dumps({**cell, "settings": settings, **times, **played, **machine()}))


def train_all(options: argparse.Namespace) -> None:
    """Trains every agent that is not in the file yet, each in a process of its own, seed by seed."""
    out: Path = options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = json.loads(out.read_text())["runs"] if out.exists() else []
    done = {(row["algorithm"], row["env"], row["seed"]) for row in rows}
    cells = [(name, env, seed) for seed in range(options.seeds) for env in TUNED for name in ALGORITHMS]
    for name, env, seed in (cell for cell in cells if cell not in done):
        command = [sys.executable, __file__, "train", "--algorithm", name, "--env", env, "--seed", str(seed)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows.append(row := json.loads(printed.splitlines()[-1]))
        partial = out.with_suffix(".partial")
        partial.write_text(json.dumps({"runs": rows}, indent=1) + "\n")
        partial.replace(out)
        print(f"{name}, {env}, seed {seed}: {row['mean_greedy_return']:.1f}, {row['wall_seconds']:.0f} s", flush=True)


def throughput(options: argparse.Namespace) -> None:
    """Times the training loop of an agent that has begun to learn, and prints one line of JSON."""
    load = {key: getattr(options, key) for key in LOAD} | {"learning_starts": 1_000}
    settings = {key: value for key, value in load.items() if key not in ("width", "hidden_layers")}
    settings["net_arch"] = [options.width] * options.hidden_layers
    agent = build(options.algorithm, options.env, 0, settings)
    agent.learn(1_500)  # until it learns it acts at random; then all is warm
    times = timed(agent, options.steps)
    load["updates_per_step"] = options.gradient_steps / options.train_freq
    print(json.dumps({"algorithm": options.algorithm, "env": options.env, **load, **times, **machine()}))


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Peers from Stable-Baselines3 and sb3-contrib on classic control.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", help="one agent")
    one.add_argument("--algorithm", choices=ALGORITHMS, required=True)
    one.add_argument("--env", choices=TUNED, required=True)
    one.add_argument("--seed", type=int, required=True)
    one.add_argument("--episodes", type=int, default=100, help="greedy episodes at the end")
    every = commands.add_parser("all", help="all agents, one process after another")
    every.add_argument("--out", type=Path, default=Path("results/classic_control/peers.json"))
    every.add_argument("--seeds", type=int, default=5)
    speed = commands.add_parser("throughput", help="steps per second of the training loop alone")
    speed.add_argument("--algorithm", choices=ALGORITHMS, default="DQN")
    speed.add_argument("--env", default="CartPole-v1")
    speed.add_argument("--steps", type=int, required=True)
    for name, default in LOAD.items():
        speed.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = parse()
    {"train": train, "all": train_all, "throughput": throughput}[arguments.command](arguments)
