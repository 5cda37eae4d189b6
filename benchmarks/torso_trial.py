"""Least squares on the last hidden layer of a torso that learns by gradients: a trial, in a plain loop of one seed.

    python benchmarks/torso_trial.py --out results/learned_features              # everything
    python benchmarks/torso_trial.py --task sea_5 --aim inverse --seed 0 1 2     # some of it

The rule is that of docs/least-squares.md for vectors (lambda of 1e-3 and 0.1, a start of 0.29, c = 2, a greedy mean)
on one layer of 128 ReLU units, divided by its norm. Whenever a tenth of all transitions is new, the torso takes 100
steps of Adam on minibatches of 64, and all features and statistics are computed anew. What it learns from, its aim:

    none         the torso stays as it was drawn
    value        the targets of the least squares: mean and spread
    observation  the next observation, and the reward
    inverse      the action, from the hidden layers before and after
"""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import uppertail as ut
from common import options, write
from uppertail.training.process import hardware

AIMS = ["none", "value", "observation", "inverse"]
TASKS = {"lock_5": (ut.RichLock(5), 600), "sea_5": (ut.RichSea(5), 200)}
"""Where, and for how many episodes."""

UNITS, STEPS, BATCH, RATE, SHARE = 128, 100, 64, 1e-3, 0.1
MEAN, SPREAD, START, C, DISCOUNT, SWEEPS = 1e-3, 0.1, np.array([0.0, 0.29]), 2.0, 0.995, 10
HORIZON_BOUNDS = [-1.0, 0.0], [1.0, 0.29]


def hidden(torso: Any, observations: Any) -> Any:
    """The last hidden layer, divided by its norm."""
    units = jax.nn.relu(observations @ torso[0] + torso[1][None])
    return units * jax.lax.rsqrt(jnp.sum(units * units, axis=-1, keepdims=True) + 1e-6)


def loss(weights: Any, aim: str, batch: Any) -> Any:
    """How far the heads of this aim are from their goals."""
    torso, heads = weights
    shown, action, reward, shown_next, goes_on, targets = batch
    before, after = hidden(torso, shown), hidden(torso, shown_next)
    if aim == "inverse":
        first, second = heads
        scores = jax.nn.relu(jnp.concatenate([before, after], axis=1) @ first) @ second
        return jnp.mean(goes_on * optax.softmax_cross_entropy_with_integer_labels(scores, action))
    goals = targets / START[1]
    if aim == "observation":
        goals = jnp.concatenate([shown_next * goes_on[:, None], reward[:, None]], axis=1)
    predictions = jnp.einsum("rf,rfo->ro", before, heads[action])
    return jnp.mean(jnp.sum((goals - predictions) ** 2, axis=1))


def heads_of(aim: str, key: Any, actions: int, numbers: int) -> Any:
    """The heads of an aim before they learn."""
    if aim == "inverse":
        return jax.random.normal(key, (2 * UNITS, 64)) / UNITS**0.5, jnp.zeros((64, actions))
    return jnp.zeros((actions, UNITS, {"value": 2, "observation": numbers + 1}.get(aim, 1)))


class Trial:
    """One seed: its data, its torso, and the least squares on them."""

    def __init__(self, world: Any, aim: str, seed: int) -> None:
        self.aim, self.actions, self.world = aim, world.num_actions, world
        numbers = len(world.observations.low)
        keys = jax.random.split(jax.random.key(seed), 3)
        width = jax.random.normal(keys[0], (numbers, UNITS)) / np.sqrt(numbers / 2)
        self.torso = width, jax.random.uniform(keys[1], (UNITS,), minval=-0.5, maxval=0.5)
        self.heads, self.adam = heads_of(aim, keys[2], self.actions, numbers), optax.adam(RATE)
        self.optimizer, self.random = self.adam.init((self.torso, self.heads)), np.random.default_rng(seed)
        self.rows: list[tuple] = []
        self.weights, self.trained = np.zeros((self.actions, UNITS, 2)), 0
        self.inverse = np.stack([np.stack([np.eye(UNITS) / each] * self.actions) for each in (MEAN, SPREAD)])
        self.features = np.zeros((2, 0, UNITS), np.float32)
        self.hidden, self.reset = jax.jit(hidden), eqx.filter_jit(world.reset)
        self.step = eqx.filter_jit(world.step)
        self.steps = jax.jit(self._steps)

    def episode(self) -> float:
        """Plays one episode, learns from it, and gives its return."""
        state, now = self.reset(jax.random.key(self.random.integers(2**31)))
        total, here = 0.0, self.hidden(self.torso, now.observation[None])
        while True:
            mean, spread = np.moveaxis(self.values(np.asarray(here))[0], -1, 0)
            best = mean + C * spread
            action = int(self.random.choice(np.flatnonzero(best >= best.max() - 1e-9)))
            state, after = self.step(jax.random.key(self.random.integers(2**31)), state, jnp.array(action))
            there = self.hidden(self.torso, after.observation[None])
            row = now.observation, action, after.reward, after.observation, 1.0 - float(after.terminated)
            self.rows.append(tuple(np.asarray(each) for each in row))
            self.features = np.concatenate([self.features, np.stack([here, there])], axis=1)
            for place in (0, 1):
                moved = self.inverse[place, action] @ np.asarray(here)[0]
                self.inverse[place, action] -= np.outer(moved, moved) / (1 + np.asarray(here)[0] @ moved)
            total, now, here = total + float(after.reward), after, there
            if after.terminated or after.truncated:
                break
        self.learn()
        return total

    def values(self, features: np.ndarray) -> np.ndarray:
        """Mean and spread of each action."""
        return np.clip(START + np.einsum("rf,afo->rao", features, self.weights, optimize=True), *HORIZON_BOUNDS)

    def targets(self, data: list[np.ndarray]) -> np.ndarray:
        """Targets less the start: the greedy mean, and the spread that mean + c spread of the policy leaves."""
        mean, spread = np.moveaxis(self.values(self.features[1]), -1, 0)
        greedy, bound = mean.max(axis=1), (mean + C * spread).max(axis=1)
        kept = DISCOUNT * data[4]
        return np.stack([data[2] + kept * greedy, kept * np.maximum(bound - greedy, 0) / C], axis=1) - START

    def learn(self) -> None:
        """Steps of the torso, if enough data are new; then sweeps."""
        data = [np.stack(column) for column in zip(*self.rows, strict=True)]
        count, action = len(self.rows), data[1]
        if self.aim != "none" and count - self.trained >= max(SHARE * count, 32):
            rows = self.random.integers(0, count, (STEPS, BATCH))
            batches = tuple(jnp.asarray(each[rows], jnp.float32) for each in (*data, self.targets(data)))
            batches = (batches[0], batches[1].astype(jnp.int32), *batches[2:])
            self.torso, self.heads, self.optimizer = self.steps((self.torso, self.heads, self.optimizer), batches)
            self.features = np.stack([np.asarray(self.hidden(self.torso, data[place])) for place in (0, 3)])
            self.trained = count
            for one in range(self.actions):
                own = self.features[0][action == one].astype(float)
                for place, prior in enumerate((MEAN, SPREAD)):
                    self.inverse[place, one] = np.linalg.inv(own.T @ own + prior * np.eye(UNITS))
        for _ in range(SWEEPS):
            targets = self.targets(data)
            for one in range(self.actions):
                sums = self.features[0][action == one].T @ targets[action == one]
                self.weights[one] = np.stack([self.inverse[place, one] @ sums[:, place] for place in (0, 1)], axis=1)

    def _steps(self, carry: Any, batches: Any) -> Any:
        def one(carry: Any, batch: Any) -> Any:
            torso, heads, optimizer = carry
            gradient = jax.grad(loss)((torso, heads), self.aim, batch)
            steps, optimizer = self.adam.update(gradient, optimizer)
            return (*optax.apply_updates((torso, heads), steps), optimizer), None

        return jax.lax.scan(one, carry, batches)[0]


def measure(task: str, aim: str, seed: int) -> dict[str, Any]:
    """One seed of one aim."""
    (environment, episodes), began = TASKS[task], time.perf_counter()
    trial = Trial(environment.build(jax.random.key(seed)), aim, seed)
    returns = np.array([trial.episode() for _ in range(episodes)])
    good = np.flatnonzero(returns >= environment.success_return)
    return {
        "seed": seed,
        "first_success_episode": int(good[0]) + 1 if good.size else None,
        "successes_in_the_last_fifty": int((good >= episodes - 50).sum()),
        "wall_seconds": time.perf_counter() - began,
    }


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "runs/learned_features", task=TASKS, aim=dict.fromkeys(AIMS), seed=[0, 1, 2])
    for task in asked.task:
        for aim in asked.aim:
            path = asked.out / f"torso-{task}-{aim}.json"
            if path.exists():
                continue
            seeds = [measure(task, aim, seed) for seed in asked.seed]
            write(path, {"episodes": TASKS[task][1], "seeds": seeds, "hardware": hardware()}, indent=None)
            print(f"{task:<8} {aim:<12} first {[each['first_success_episode'] for each in seeds]}", flush=True)


if __name__ == "__main__":
    main()
