"""A peer's training loop on the randomized Chain, timed: DQN of Stable-Baselines3, QR-DQN of sb3-contrib.

`bench.py` runs this file with the interpreter of an environment made from experiments/peers/requirements.txt, where
UpperTail is not installed. For each line of its input it prints a line of JSON, the rate of one fresh agent.
"""

import argparse
import json
import platform
import sys
import time
from importlib.metadata import version
from typing import Any

import torch
from chain import Chain  # beside this file
from sb3_contrib import QRDQN
from stable_baselines3 import DQN

ALGORITHMS: dict[str, Any] = {"DQN": DQN, "QRDQN": QRDQN}
LEARNING_STARTS = 1_000


def agent(options: argparse.Namespace, seed: int) -> Any:
    """An untrained agent; its policy encodes a discrete observation one-hot."""
    return ALGORITHMS[options.algorithm](
        "MlpPolicy",
        Chain(options.length, seed),
        seed=seed,
        device="cpu",
        batch_size=options.batch_size,
        train_freq=options.rollout_steps,
        gradient_steps=options.updates_per_rollout,
        learning_starts=LEARNING_STARTS,
        buffer_size=options.replay_size,
        policy_kwargs={"net_arch": [options.width] * options.hidden_layers},
    )


def main() -> None:
    """Warms up, then times a fresh agent for every line of the input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", choices=ALGORITHMS, required=True)
    for name in ("length", "width", "hidden_layers", "batch_size", "rollout_steps", "updates_per_rollout"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("replay_size", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    agent(options, 0).learn(LEARNING_STARTS + 500)
    versions = {name: version(name) for name in ("torch", "stable_baselines3", "sb3_contrib", "gymnasium", "numpy")}
    print(json.dumps({"versions": {"python": platform.python_version(), **versions}}), flush=True)
    for seed, _ in enumerate(sys.stdin):
        fresh = agent(options, seed)
        fresh.learn(LEARNING_STARTS)  # until then it only acts at random
        before = fresh.num_timesteps
        began = time.perf_counter()
        fresh.learn(options.steps, reset_num_timesteps=False)
        seconds = time.perf_counter() - began
        print(json.dumps({"steps_per_second": (fresh.num_timesteps - before) / seconds}), flush=True)


if __name__ == "__main__":
    main()
