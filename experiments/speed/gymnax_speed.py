"""Environment steps per second on gymnax's compiled MountainCar, learning included, beside rejax's DQN.

Usage: python -m experiments.speed.gymnax_speed [--out results/gymnax_speed.json] [--turns 3] [--steps 20000]

Needs `uppertail[gymnax]` and `pip install rejax`. *Equal load*: rejax's DQN and a Gaussian by gradient descent have the
same two hidden layers of 64 on the car's two numbers, and one update of 32 transitions per 4 steps of each seed. All
take turns, and medians count; compilation does not.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnax
import jax
from rejax import get_algo

import uppertail as ut
from experiments.common import options, write
from uppertail.training.method import Method
from uppertail.training.process import hardware
from uppertail.training.run import Run

ID, WIDTH, BATCH, STEPS_PER_UPDATE = "MountainCar-v0", 64, 32, 4


def one_ending(name: str) -> Any:
    """An environment as rejax 0.1.3 steps it: one sign of an episode's end, where gymnax 1.0 has two."""
    env = gymnax.make(name)[0]
    kind = type(env)

    def step(self: Any, *arguments: Any) -> Any:
        observation, state, reward, terminated, truncated, info = kind.step(self, *arguments)
        return observation, state, reward, terminated | truncated, info

    env.__class__ = type(kind.__name__, (kind,), {"step": step})
    return env


def rejax_dqn(seeds: int, steps: int) -> Callable[[], int]:
    """Trains for so many steps of each seed, after compilation; returns the steps of all seeds."""
    algorithm = get_algo("dqn").create(
        env=one_ending(ID), total_timesteps=steps, eval_freq=steps, skip_initial_evaluation=True,
        num_envs=STEPS_PER_UPDATE, num_epochs=1, batch_size=BATCH, fill_buffer=BATCH, buffer_size=50_000,
    ).replace(eval_callback=lambda *_: ())  # fmt: skip
    keys = jax.random.split(jax.random.key(0), seeds)
    train = jax.jit(jax.vmap(algorithm.train)).lower(keys).compile()

    def turn() -> int:
        jax.block_until_ready(train(keys))
        return seeds * steps

    return turn


def ours(builder: ut.Gymnax, parts: dict[str, Any], seeds: int, steps: int, **settings: Any) -> Callable[[], int]:
    """Goes on with the runs of all seeds, after compilation and a first chunk."""
    run = Run(builder, Method.of(**parts), ut.Settings(seeds=seeds, episodes=10**6, **settings))
    state = [run.driver.advance(run.driver.start())[0]]

    def turn() -> int:
        done = 0
        while done < seeds * steps:
            state[0], record, _ = run.driver.advance(state[0])
            done += run.builder.repeats * record.ended.size
        return done

    return turn


def measure(seeds: int, steps: int, turns: int) -> dict[str, Any]:
    """The median rate of each, in environment steps of all seeds per second."""
    plain = ut.Gymnax(ID, features="scaled", scaling="running")
    equal = {"learner": ut.GradientDescent(), "evidence": ut.NoEvidence(), "network": ut.PerAction(WIDTH, 2)}
    who = {
        "rejax DQN, equal load": rejax_dqn(seeds, steps),
        "Gaussian by gradient descent, equal load": ours(plain, equal, seeds, steps, batch_size=BATCH),
    }
    rates: dict[str, list[float]] = {name: [] for name in who}
    for _ in range(turns):
        for name, turn in who.items():
            began = time.perf_counter()
            rates[name].append(turn() / (time.perf_counter() - began))
            print(f"{name:45} {rates[name][-1]:10,.0f} steps/s", flush=True)
    return {name: {"steps_per_second": round(statistics.median(each)), "turns": each} for name, each in rates.items()}


if __name__ == "__main__":
    given = options(__doc__, "results/gymnax_speed.json", turns=3, steps=20_000, seeds=10)
    rates = measure(given.seeds, given.steps, given.turns)
    write(given.out, {"seeds": given.seeds, "steps": given.steps, "rates": rates, "hardware": hardware()})
