"""Calls of `run.act` per second from Python on CartPole-v1: one observation a call, and 1,000 a call.

Usage: python -m experiments.speed.acting [--out results/acting.json] [--passes 9] [--calls 5000]

Trains one seed for 2,048 steps with every setting at its default (a network beside kernel counts). One call of each
kind compiles it; then passes over observations of random episodes are timed, and medians count. Takes about a minute.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.training.process import hardware

BATCH = 1000
SETTINGS = ut.Settings(seeds=1, steps=2048, episodes=10**6)


def observed(count: int) -> np.ndarray:
    """Observations of episodes whose actions are drawn at random, [count, 4]."""
    env = gymnasium.make("CartPole-v1")
    env.action_space.seed(0)
    found, over = [env.reset(seed=0)[0]], False
    while len(found) < count:
        if over:
            observation, over = env.reset()[0], False
        else:
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated
        found.append(observation)
    return np.stack(found)


def rate(act: Callable[[Any], Any], inputs: np.ndarray) -> float:
    """Calls per second over these inputs, one call for each."""
    began = time.perf_counter()
    for each in inputs:
        act(each)
    return len(inputs) / (time.perf_counter() - began)


def measure(passes: int, calls: int) -> dict[str, Any]:
    """All passes, one kind after the other in turns."""
    run, seen = ut.train(ut.Gym("CartPole-v1"), settings=SETTINGS), observed(calls)
    batches = np.stack([seen[:BATCH]] * 20)
    for warm in (seen[0], batches[0]):
        run.act(warm)
    alone, together = [], []
    for _ in range(passes):
        alone.append(round(rate(run.act, seen)))
        together.append(round(rate(run.act, batches) * BATCH))
    return {
        "setting": {"env": "CartPole-v1", "seed": SETTINGS.seed, "steps": SETTINGS.steps, "calls": calls},
        "median_observations_per_second": {
            "one a call": statistics.median(alone),
            f"{BATCH:,} a call": statistics.median(together),
        },
        "all": {"one a call": alone, f"{BATCH:,} a call": together},
        "hardware": hardware(),
        "load_average": [round(each, 1) for each in os.getloadavg()],
    }


if __name__ == "__main__":
    given = options(__doc__, "results/acting.json", passes=9, calls=5000)
    result = measure(given.passes, given.calls)
    write(given.out, result)
    print(result["median_observations_per_second"])
