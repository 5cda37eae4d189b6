"""DQN and PPO of Stable-Baselines3, by their defaults, on the ten environments of experiments/tasks/users.py.

    python -m experiments.peers.sb3_users --out results/users/peers.json

In an environment made from experiments/peers/requirements.txt. They get as many steps as UpperTail does, and their
greedy policies play the same episodes. Environments are given as they are; what an algorithm cannot take is noted.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO

from experiments.peers.sb3 import machine
from experiments.tasks.users_environments import EPISODES, USERS

ALGORITHMS = {"DQN": DQN, "PPO": PPO}


def measure(algorithm: str, name: str, seed: int) -> dict[str, Any]:
    """One agent, trained and played; or why it cannot be trained."""
    began, env = time.perf_counter(), gymnasium.make(f"{name}-v0")
    policy = "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy"
    cell = {"algorithm": algorithm, "env": name, "seed": seed, "policy": policy, "steps": USERS[name].steps}
    try:
        agent = ALGORITHMS[algorithm](policy, env, seed=seed, device="cpu")
        agent.learn(USERS[name].steps)
    except (AssertionError, IndexError, NotImplementedError) as refused:  # of actions, of numbers in a Dict, of a Tuple
        return cell | {"greedy": None, "refused": " ".join(str(refused).split()), **machine()}
    greedy = statistics.fmean(greedy_return(agent, name, episode) for episode in EPISODES)
    return cell | {"greedy": greedy, "seconds": round(time.perf_counter() - began, 1), **machine()}


def greedy_return(agent: Any, name: str, seed: int) -> float:
    """The return of the greedy policy in one of the compared episodes."""
    env = gymnasium.make(f"{name}-v0")
    seen, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        action, _ = agent.predict(seen, deterministic=True)
        action = int(action) if isinstance(env.action_space, spaces.Discrete) else action
        seen, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    return total


def main() -> None:
    """Trains all agents, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/users/peers.json"))
    parser.add_argument("--env", nargs="+", choices=USERS, default=list(USERS))
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    cells = [(algorithm, name, seed) for name in asked.env for algorithm in ALGORITHMS for seed in range(asked.seeds)]
    rows = []
    for cell in cells:
        rows.append(row := measure(*cell))
        print(*cell, row["greedy"], row.get("refused", ""), flush=True)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps({"runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
