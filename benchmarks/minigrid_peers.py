"""MiniGrid by DQN of Stable-Baselines3 and QR-DQN of sb3-contrib, in the environments of benchmarks/minigrid_runs.py.

Usage: python benchmarks/minigrid_peers.py [--out results/minigrid/peers.json] [--seeds 5] [--steps 200000] [--envs ...]
[--algorithms DQN QRDQN] in an environment made from benchmarks/peers.txt.

Both see the number of the observation, one-hot, so that they tell apart what UpperTail does. Discount and width are
those of benchmarks/minigrid_runs.py. Batch (128; there 256) and updates (one in 8 steps; there one in 4) are not.
SETTINGS has all that was chosen, the rest is their default; exploration ends at 0.05 after half of the steps. A run
ends when it is solved, or at its limit. Cells that are in the file already are kept.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from minigrid_marks import LAST, SHARE, solved_at
from minigrid_tasks import IDS, STEPS, Numbered, best, made
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

ALGORITHMS: dict[str, type[DQN] | type[QRDQN]] = {"DQN": DQN, "QRDQN": QRDQN}
SETTINGS: dict[str, Any] = {
    "gamma": 0.95,
    "learning_rate": 5e-4,
    "batch_size": 128,
    "train_freq": 8,
    "gradient_steps": 1,
    "learning_starts": 1000,
    "target_update_interval": 500,
    "exploration_fraction": 0.5,
    "exploration_final_eps": 0.05,
    "policy_kwargs": {"net_arch": [64]},
}


class Returns(BaseCallback):
    """Keeps the return and length of each episode, and stops a run that is solved.

    Args:
        bound: what the last episodes have to reach.
    """

    def __init__(self, bound: float) -> None:
        super().__init__()
        self.bound, self.returns, self.lengths = bound, list[float](), list[int]()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.returns.append(float(info["episode"]["r"]))
                self.lengths.append(int(info["episode"]["l"]))
        return len(self.returns) < LAST or float(np.mean(self.returns[-LAST:])) < self.bound


def train(algorithm: str, name: str, seed: int, steps: int) -> dict[str, Any]:
    """One agent."""
    reached, began = best(name, seed), time.perf_counter()
    callback = Returns(SHARE * reached.ret)
    env = Numbered(made(name, seed))
    agent = ALGORITHMS[algorithm]("MlpPolicy", env, buffer_size=steps, seed=seed, device="cpu", **SETTINGS)
    agent.learn(steps, callback=callback)
    solved = solved_at(np.array(callback.returns), np.array(callback.lengths), reached.ret)
    return {
        "algorithm": algorithm,
        "env": name,
        "seed": seed,
        "best_return": reached.ret,
        "solved_episode": solved and solved[0],
        "solved_step": solved and solved[1],
        "env_steps": agent.num_timesteps,
        "limit": steps,
        "returns": np.round(callback.returns, 4).tolist(),
        "lengths": callback.lengths,
        "settings": SETTINGS,
        "wall_seconds": round(time.perf_counter() - began, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MiniGrid, by Stable-Baselines3 and sb3-contrib.")
    parser.add_argument("--out", type=Path, default=Path("results/minigrid/peers.json"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--envs", nargs="+", choices=IDS, default=list(IDS))
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = json.loads(given.out.read_text())["runs"] if given.out.exists() else []
    done = {(row["algorithm"], row["env"], row["seed"]) for row in rows}
    cells = [(kind, name, seed) for seed in range(given.seeds) for name in given.envs for kind in given.algorithms]
    for kind, name, seed in (cell for cell in cells if cell not in done):
        rows.append(row := train(kind, name, seed, given.steps))
        partial = given.out.with_suffix(".partial")
        partial.write_text(json.dumps({"runs": rows}) + "\n")
        partial.replace(given.out)
        print(f"{kind}, {name}, seed {seed}: solved at {row['solved_step']}, {row['wall_seconds']} s", flush=True)
