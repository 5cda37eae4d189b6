"""Freeway of MinAtar, as gymnax has it: a game that is seen as an image, learned by a network with convolutions.

    python -m experiments.tasks.minatar --out results/minatar                          # everything
    python -m experiments.tasks.minatar --policy UCB --seed 0 --seconds 300            # some of it, for so long

Needs gymnax (`pip install '.[gymnax]'`). Each policy and seed is one JSON file; what is there already is not run again.
Steps per second are those of processor time, without compilation, so that other work on the machine counts less.
"""

import dataclasses
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.training.process import hardware

POLICIES = {"UCB": ut.UCB(), "EpsilonGreedy": ut.EpsilonGreedy()}

FREEWAY = ut.Gymnax("Freeway-MinAtar", returns=(0.0, 4.0))
"""A crossing takes 27 steps or more, so returns with a discount of 0.99 are hardly above 4."""

SETTINGS = ut.Settings(
    seeds=1, steps=500_000, episodes=10**6, discount=0.99, adam_betas=(0.9, 0.999), adam_epsilon=1e-8
)

FIXED = {"random": (1 / 3, 1 / 3, 1 / 3), "up": (0.0, 1.0, 0.0)}
"""Policies that learn nothing: the probabilities of waiting, going up and going down."""

LENGTH = 2500
"""Steps of an episode."""


def fixed_returns(probabilities: tuple[float, ...], episodes: int) -> list[int]:
    """The returns of a policy that learns nothing."""
    world = FREEWAY.build(jax.random.key(0))

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        action_key, step_key = jax.random.split(key)
        action = jax.random.choice(action_key, len(probabilities), p=jnp.array(probabilities))
        state, now = world.step(step_key, state, action)
        return state, now.reward

    def episode(key: Any) -> Any:
        state, _ = world.reset(key)
        return jnp.sum(jax.lax.scan(step, state, jax.random.split(key, LENGTH))[1])

    returns = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(1), episodes))
    return np.round(returns).astype(int).tolist()


def measure(policy: str, seed: int, seconds: float) -> dict[str, Any]:
    """One seed, and what came of it."""
    began, clock = time.monotonic(), list[tuple[int, float]]()

    def on_chunk(progress: ut.Progress) -> ut.Stop | None:
        clock.append((progress.step, time.process_time()))
        return ut.Stop("time is up") if time.monotonic() - began > seconds else None

    settings = dataclasses.replace(SETTINGS, seed=seed)
    record = ut.train(FREEWAY, None, POLICIES[policy], settings, on_chunk).record
    summary = record.summary()
    (first, start), (last, end) = clock[0], clock[-1]  # the first chunk is compiled, too
    return {
        **{name: summary[name] for name in ("env_steps", "wall_seconds", "network", "settings")},
        "steps_per_processor_second": (last - first) / (end - start) if last > first else None,
        "returns": np.round(record.episodes[0].returns).astype(int).tolist(),
        "greedy_return": summary["final_greedy_return"],
        "hardware": hardware(),
    }


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "runs/minatar", policy=POLICIES, seed=[0, 1, 2, 3, 4], seconds=3600.0)
    for name, probabilities in FIXED.items():
        if not (path := asked.out / f"freeway-{name}.json").exists():
            write(path, {"returns": fixed_returns(probabilities, 100), "hardware": hardware()}, indent=None)
    for seed in asked.seed:
        for policy in asked.policy:
            if not (path := asked.out / f"freeway-{policy}-{seed}.json").exists():
                document = measure(policy, seed, asked.seconds)
                write(path, document, indent=None)
                rate, returns = document["steps_per_processor_second"], document["returns"]
                print(f"{path.stem:<25} {rate or 0:,.0f} steps/s, {len(returns)} episodes: {returns[-10:]}", flush=True)


if __name__ == "__main__":
    main()
