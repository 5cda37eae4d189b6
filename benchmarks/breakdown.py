"""Where the time of training goes: each part of an iteration as a compiled program of its own, timed.

Usage: python benchmarks/breakdown.py [--out results/breakdown.json] [--hidden_layers 2]

One seed of Gaussian/UCB on the Chain of length 100, width 256, one update of 32 per 16 environment steps, as
`make bench` has it; a part runs 200 times within one program, carrying on what it changes, and the median of nine
programs counts. Parts that the compiler fuses when they stand together cost a little less there. Takes about a minute.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import uppertail as ut
from common import options, write
from contest import machine
from contest.load import Load
from uppertail.training.drivers.compiled_run import CompiledRun
from uppertail.training.method import Method
from uppertail.training.process import hardware
from uppertail.training.run import Run

AGAIN, TURNS = 200, 9
LOAD = Load()
"""That of `make bench`."""


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


class Iteration:
    """A run that has begun, and each part of its next iteration: 16 environment steps and an update.

    A part takes what it carries on and the number of its call, and gives the former, changed.
    """

    def __init__(self, hidden_layers: int) -> None:
        load = dataclasses.asdict(LOAD)
        self.length = load.pop("length")
        settings = ut.Settings(seeds=1, episodes=10**9, hidden_layers=hidden_layers, **load)
        run = Run(ut.Chain(self.length), Method(ut.Gaussian(), ut.UCB()), settings)
        self.loop, self.agent, self.whole = run.loop, run.loop.agent, CompiledRun(run.loop)
        begun = (run.keys.run, run.driver.environments, run.driver.gather(run.driver.start()))
        self.key, self.environment, self.state = jax.tree.map(lambda leaf: leaf[0], begun)
        self.network, self.optimizer, self.remembered = self.state.agent
        self.fresh = self.whole.rollout(self.key, self.environment, self.network, self.state.episode)[1]
        self.buffer, self.stored = (
            self.loop.replay.add(self.state.replay, self.fresh),
            jnp.asarray(self.loop.rollout_steps),
        )
        self.batch, _, self.weights = self.loop.minibatch(self.key, self.fresh, self.buffer, self.stored)
        self.targets = jax.vmap(self.agent.backup)(self.bootstrap(self.batch), self.batch)

    def bootstrap(self, transitions: Any) -> Any:
        """The distributions that the targets of a batch bootstrap from."""
        keys = jax.random.split(self.key, self.loop.batch_size)
        each = jax.vmap(self.agent.bootstrap, in_axes=(None, None, 0, 0))
        return each(self.network, self.remembered, keys, transitions)

    def elsewhere(self, observation: Any, number: Any) -> Any:
        """Other states in every call, so that nothing can be computed once for all of them."""
        return (observation + number) % self.length

    def rollout(self, episode: Any, number: Any) -> Any:
        key = jax.random.fold_in(self.key, number)
        return self.whole.rollout(key, self.environment, self.network, episode)[0]

    def data(self, carried: Any, number: Any) -> Any:
        kept, key = self.loop.replay.add(carried[0], self.fresh), jax.random.fold_in(self.key, number)
        return kept, self.loop.minibatch(key, self.fresh, kept, self.stored).transitions

    def sweep(self, carried: Any, number: Any) -> Any:
        steps = self.fresh._replace(
            observation=self.elsewhere(self.fresh.observation, number),
            next_observation=self.elsewhere(self.fresh.next_observation, number),
        )
        return self.agent.sweep(carried, jax.random.fold_in(self.key, number), steps)

    def bootstraps(self, _: Any, number: Any) -> Any:
        return self.bootstrap(self.batch._replace(next_observation=self.elsewhere(self.batch.next_observation, number)))

    def gradient(self, _: Any, number: Any) -> Any:
        def loss(network: Any, action: Any, row: Any) -> Any:
            target, transition = row
            return self.agent.loss(network, self.key, target, transition._replace(action=action))

        moved = self.batch._replace(observation=self.elsewhere(self.batch.observation, number))
        return self.network.loss_and_gradient(loss, self.batch.action, (self.targets, moved), self.weights)[2]

    def adam(self, carried: Any, _: Any) -> Any:
        updates, state = self.agent.optimizer.update(self.network, carried[1], carried[0])
        return optax.apply_updates(carried[0], updates), state

    def everything(self, state: Any, _: Any) -> Any:
        return self.whole.iterate(self.key, self.environment, state)[0]


def breakdown(hidden_layers: int) -> dict[str, float]:
    """Microseconds of each part of an iteration."""
    run = Iteration(hidden_layers)
    parts = {
        "16 environment steps, acting included": (run.rollout, run.state.episode),
        "keep the data, draw the minibatch": (run.data, (run.buffer, run.batch)),
        "back up the steps in the Graph target": (run.sweep, run.state.agent),
        "bootstrap distributions of the targets": (run.bootstraps, run.bootstrap(run.batch)),
        "loss and gradient": (run.gradient, run.network),
        "clip and Adam": (run.adam, (run.network, run.optimizer)),
        "a whole iteration": (run.everything, run.state),
    }
    return {name: microseconds(*part) for name, part in parts.items()}


if __name__ == "__main__":
    given = options(__doc__, "results/breakdown.json", hidden_layers=[1, 2, 3])
    found = {str(layers): breakdown(layers) for layers in given.hidden_layers}
    for layers, microseconds_of in found.items():
        print(f"{layers} hidden layers: {microseconds_of}")
    document = {"microseconds": found, "small_products_gflops": round(machine.small_products(32, 256, 2), 1)}
    write(given.out, {**document, "hardware": hardware()})
