"""MiniGrid by Stable-Baselines3's DQN and PPO and sb3-contrib's QR-DQN, in the environments of tasks/minigrid_runs.py.

Usage: python -m experiments.peers.minigrid_peers [--out results/minigrid/peers_greedy.json] [--seeds 5]
[--steps 200000] [--envs ...] [--algorithms DQN "DQN, shorter" QRDQN PPO] in an environment made from
experiments/peers/requirements.txt.

They see the number of the observation, one-hot, so that they tell apart what UpperTail does. They are paid 1 for the
goal at any time, as UpperTail is paid 0.1, in place of MiniGrid's reward, which falls with the steps. Discount and
width are those of tasks/minigrid_runs.py. Minibatches (128; there 256) and, without PPO, updates (one in 8 steps;
there one in 4) are not. Random actions of DQN and QR-DQN fall to 0.05 in half of the steps ("shorter": in a tenth).
QR-DQN has 50 quantiles: its default of 200 compares 16 times as many pairs in an update.

Random actions do not count against a peer: every 500 steps its greedy policy (of PPO: the likeliest actions) plays one
episode. The run ends once such an episode is near the best return, or at its limit. Cells that are in the file already
are kept. results/minigrid/peers.json is by this script at commit 0fad840, which judged training episodes; its cells
"DQN, own reward" are by commit 890f142.
"""

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.wrappers import TransformReward
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback

from experiments.tasks.minigrid_marks import EVERY, SHARE, STEPS, own_returns
from experiments.tasks.minigrid_tasks import IDS, Numbered, best, made

SHARED: dict[str, Any] = {"gamma": 0.95, "policy_kwargs": {"net_arch": [64]}}
OFF_POLICY: dict[str, Any] = {
    **SHARED,
    "learning_rate": 5e-4,
    "batch_size": 128,
    "train_freq": 8,
    "gradient_steps": 1,
    "learning_starts": 1000,
    "target_update_interval": 500,
    "exploration_fraction": 0.5,
    "exploration_final_eps": 0.05,
}
ON_POLICY: dict[str, Any] = {**SHARED, "n_steps": 1024, "batch_size": 128, "ent_coef": 0.01}
ALGORITHMS: dict[str, tuple[type[DQN] | type[QRDQN] | type[PPO], dict[str, Any]]] = {
    "DQN": (DQN, OFF_POLICY),
    "DQN, shorter": (DQN, {**OFF_POLICY, "exploration_fraction": 0.1}),
    "QRDQN": (QRDQN, {**OFF_POLICY, "policy_kwargs": {**SHARED["policy_kwargs"], "n_quantiles": 50}}),
    "PPO": (PPO, ON_POLICY),
}
"""Each one's class, and all that was chosen for it; the rest is its default."""


class Played(BaseCallback):
    """Plays an episode of the greedy policy every few steps, and stops a run whose greedy policy is near the best.

    One episode says all: neither the layout nor the policy draws anything.

    Args:
        env: an environment for these episodes alone, with the numbers of training.
        bound: the return that counts as solved, in the environment's own returns.
        limit: steps after which an episode is truncated.
    """

    def __init__(self, env: Numbered, bound: float, limit: int) -> None:
        super().__init__()
        self.env, self.bound, self.limit = env, bound, limit
        self.returns, self.episodes = list[float](), 0

    def _on_step(self) -> bool:
        self.episodes += sum("episode" in info for info in self.locals["infos"])
        if self.num_timesteps % EVERY:
            return True
        self.returns.append(self.play())
        return self.returns[-1] < self.bound

    def play(self) -> float:
        """The return of one episode."""
        (observation, _), over, reward, steps = self.env.reset(), False, 0.0, 0
        while not over:
            action, _ = self.model.predict(np.array(observation), deterministic=True)
            observation, reward, terminated, truncated, _ = self.env.step(int(action))
            over, steps = terminated or truncated, steps + 1
        return own_returns(np.array(reward), np.array(steps), self.limit).item()


def train(algorithm: str, name: str, seed: int, steps: int) -> dict[str, Any]:
    """One agent."""
    reached, began = best(name, seed), time.perf_counter()
    numbered = Numbered(made(name, seed))
    played = Played(Numbered(made(name, seed), numbered.numbers), SHARE * reached.ret, reached.limit)
    make, settings = ALGORITHMS[algorithm]
    memory = {} if make is PPO else {"buffer_size": steps}
    env = TransformReward(numbered, np.sign)
    agent = make("MlpPolicy", env, seed=seed, device="cpu", **memory, **copy.deepcopy(settings))  # it may change them
    agent.learn(steps, callback=played)
    solved = played.returns[-1] >= played.bound
    return {
        "algorithm": algorithm,
        "env": name,
        "seed": seed,
        "best_return": reached.ret,
        "solved_episode": played.episodes if solved else None,
        "solved_step": len(played.returns) * EVERY if solved else None,
        "limit": steps,
        "greedy_returns": np.round(played.returns, 4).tolist(),
        "settings": settings,
        "wall_seconds": round(time.perf_counter() - began, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MiniGrid, by Stable-Baselines3 and sb3-contrib.")
    parser.add_argument("--out", type=Path, default=Path("results/minigrid/peers_greedy.json"))
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
