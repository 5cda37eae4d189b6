"""Where the time of training goes: each part of an iteration as a compiled program of its own, timed.

Usage: python benchmarks/breakdown.py [--out results/breakdown.json] [--hidden_layers 2]

One seed of Gaussian/UCB on the Chain of length 100, width 256, one update of 32 per 16 environment steps, as `uppertail
bench` has it; a part runs 200 times within one program, carrying on what it changes, and the median of nine programs
counts. Parts that the compiler fuses when they stand together cost a little less there. Takes about a minute.
"""

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax

import uppertail as ut
from uppertail.bench import machine
from uppertail.bench.load import Load
from uppertail.records import write_text
from uppertail.training.drivers.compiled_run import CompiledRun
from uppertail.training.method import Method
from uppertail.training.process.hardware import hardware
from uppertail.training.run import Run

AGAIN, TURNS = 200, 9
LOAD = Load()
"""That of `uppertail bench`."""


def microseconds(part: Callable[[Any, Any], Any], carried: Any) -> float:
    """Of one call of a part: (what it carries on, number of the call) -> the same, changed."""

    def again(carried: Any) -> Any:
        return jax.lax.fori_loop(0, AGAIN, lambda number, carried: part(carried, number), carried)

    program, times = jax.jit(again), []
    jax.block_until_ready(program(carried))
    for _ in range(TURNS):
        began = time.perf_counter()
        jax.block_until_ready(program(carried))
        times.append(time.perf_counter() - began)
    return round(statistics.median(times) / AGAIN * 1e6, 1)


def breakdown(hidden_layers: int) -> dict[str, float]:
    """Microseconds of each part of an iteration: 16 environment steps and an update."""
    load = dataclasses.asdict(LOAD)
    length = load.pop("length")
    settings = ut.Settings(seeds=1, episodes=10**9, hidden_layers=hidden_layers, **load)
    run = Run(ut.Chain(length), Method(ut.Gaussian(), ut.UCB()), settings)
    loop, agent, whole = run.loop, run.loop.agent, CompiledRun(run.loop)
    key, environment, state = jax.tree.map(
        lambda leaf: leaf[0], (run.keys.run, run.world.environments, run.driver.gather(run.driver.start()))
    )
    episode, fresh, records = whole.rollout(key, environment, state.agent.network, state.episode)
    buffer, stored = loop.replay.add(state.replay, fresh), jnp.asarray(loop.rollout_steps)
    batch, _, weights = loop.minibatch(key, fresh, buffer, stored)
    keys = jax.random.split(key, loop.batch_size)
    network, optimizer, remembered = state.agent
    bootstrap = jax.vmap(agent.bootstrap, in_axes=(None, None, 0, 0))
    targets = jax.vmap(agent.backup)(bootstrap(network, remembered, keys, batch), batch)

    def elsewhere(observation: Any, number: Any) -> Any:
        """Other states in every call, so that nothing can be computed once for all of them."""
        return (observation + number) % length

    def rollout(episode: Any, number: Any) -> Any:
        return whole.rollout(jax.random.fold_in(key, number), environment, network, episode)[0]

    def data(carried: Any, number: Any) -> Any:
        kept = loop.replay.add(carried[0], fresh)
        return kept, loop.minibatch(jax.random.fold_in(key, number), fresh, kept, stored).transitions

    def sweep(carried: Any, number: Any) -> Any:
        steps = fresh._replace(
            observation=elsewhere(fresh.observation, number), next_observation=elsewhere(fresh.next_observation, number)
        )
        return agent.sweep(carried, jax.random.fold_in(key, number), steps)

    def bootstraps(_: Any, number: Any) -> Any:
        moved = batch._replace(next_observation=elsewhere(batch.next_observation, number))
        return bootstrap(network, remembered, keys, moved)

    def gradient(_: Any, number: Any) -> Any:
        def loss(network: Any, action: Any, row: Any) -> Any:
            target, transition = row
            return agent.loss(network, key, target, transition._replace(action=action))

        moved = batch._replace(observation=elsewhere(batch.observation, number))
        return network.loss_and_gradient(loss, batch.action, (targets, moved), weights)[2]

    def adam(carried: Any, _: Any) -> Any:
        updates, state = agent.optimizer.update(network, carried[1], carried[0])
        return optax.apply_updates(carried[0], updates), state

    def iteration(state: Any, _: Any) -> Any:
        return whole.iterate(key, environment, state)[0]

    parts = {
        "16 environment steps, acting included": (rollout, episode),
        "keep the data, draw the minibatch": (data, (buffer, batch)),
        "back up the steps in the Graph target": (sweep, state.agent),
        "bootstrap distributions of the targets": (bootstraps, bootstraps(None, 0)),
        "loss and gradient": (gradient, network),
        "clip and Adam": (adam, (network, optimizer)),
        "a whole iteration": (iteration, state),
    }
    del records
    return {name: microseconds(*part) for name, part in parts.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Where the time of training goes.")
    parser.add_argument("--out", type=Path, default=Path("results/breakdown.json"))
    parser.add_argument("--hidden_layers", type=int, nargs="*", default=[1, 2, 3])
    given = parser.parse_args()
    found = {str(layers): breakdown(layers) for layers in given.hidden_layers}
    for layers, microseconds_of in found.items():
        print(f"{layers} hidden layers: {microseconds_of}")
    document = {"microseconds": found, "small_products_gflops": round(machine.small_products(32, 256, 2), 1)}
    write_text(given.out, json.dumps({**document, "hardware": hardware()}, indent=2) + "\n")
