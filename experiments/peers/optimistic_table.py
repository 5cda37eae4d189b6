"""Optimistic dynamic programming on the remembered graph: what a table does where the package learns a network.

Usage: python -m experiments.peers.optimistic_table [--task DeepSea-50] [--learner spread] [--out DIR]

After each episode every transition seen so far is backed up until nothing changes, weighted by how often it was seen.
The agent takes the action of the highest score, at random among equal ones; an action not tried yet keeps its first
score. Learners:

    spread      mean 0 and std 1.31 of the range of returns at first; r + discount * mean', discount * std'; score
                mean + c * std, c = 2: Gaussian and UCB without a network
    optimistic  a plain table Q that starts at the highest return; score Q
    count       MBIE-EB (Strehl and Littman, 2008): r + bonus / sqrt(n) + discount * Q'; score Q; discount < 1

Kept is each seed's first success. Seed k has the table of `uppertail train --seed k`.
"""

import argparse
import functools
import itertools
import time
from typing import Any

import jax
import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.records import describe, median_episode
from uppertail.training.loop import seed_keys
from uppertail.training.process import hardware

LEARNERS = ("spread", "optimistic", "count")
TASKS = {
    **{f"Chain-{length}": ut.Chain(length) for length in (100, 1000)},
    **{f"DeepSea-{size}": ut.DeepSea(size) for size in (10, 20, 50)},
}

FIRST_STD, TERMINAL_STD = float(np.log1p(np.e)), 1e-4
"""Gaussian's defaults, in units of the range of returns."""


class Agent:
    """One learner on one table: mean and std of each state and action, n and sum of rewards of each outcome.

    Args:
        mdp: the environment, whose arrays are NumPy's.
        span: lowest and highest return.
        rng: draws c, ties and the environment's chance.
        options: learner, low, high, bonus, discount.
    """

    def __init__(
        self, mdp: ut.FiniteMDP, span: tuple[float, float], rng: np.random.Generator, options: argparse.Namespace
    ) -> None:
        self.mdp, self.rng, self.options, self.unit = mdp, rng, options, span[1] - span[0]
        shape = np.shape(mdp.next_state)
        spread = options.learner == "spread"
        bonuses = options.bonus / (1 - options.discount) if options.learner == "count" else 0.0  # all that may follow
        first = 0.0 if spread else span[1] + bonuses
        std = self.unit * FIRST_STD if spread else 0.0
        self.terminal_std = self.unit * TERMINAL_STD if spread else 0.0
        self.table = np.full(shape[:2], first), np.full(shape[:2], std), np.zeros(shape), np.zeros(shape)

    def c(self, shape: tuple[int, ...]) -> Any:
        """How many standard deviations count, for each of these decisions."""
        low, high = self.options.low, self.options.high
        return low if low == high else self.rng.uniform(low, high, shape)

    def draw(self, probability: np.ndarray) -> int:
        """An index drawn by its probability."""
        return 0 if probability.size == 1 else int(np.argmax(self.rng.random() < np.cumsum(probability)))

    def episode(self, ties: np.ndarray) -> float:
        """Plays one episode and remembers it; its undiscounted return. `ties` has a random number for each action."""
        mdp, (mean, std, n, reward_sum) = self.mdp, self.table
        state, total, ended, steps = mdp.start_state[self.draw(mdp.start_probability)], 0.0, False, 0
        while not ended and steps < mdp.time_limit:
            scores = mean[state] + self.c(mean[state].shape) * std[state]
            action = np.argmax(np.where(scores == scores.max(), ties[steps], -1.0))
            outcome = self.draw(mdp.probability[state, action])
            here = state, action, outcome
            noise = 0.0 if mdp.reward_std is None else self.rng.normal(scale=mdp.reward_std[here])
            reward = float(mdp.reward[here]) + float(noise)
            n[here] += 1
            reward_sum[here] += reward
            state, ended, total, steps = mdp.next_state[here], bool(mdp.terminated[here]), total + reward, steps + 1
        return total

    def back_up(self) -> None:
        """Backs up all that was seen until nothing changes, at most as often as an episode may have steps."""
        mean, std, n, reward_sum = self.table
        pairs = np.nonzero(n.sum(axis=2))
        seen = n[pairs].sum(axis=1)
        weight = n[pairs] / seen[:, None]
        reward = reward_sum[pairs] / np.maximum(n[pairs], 1)
        if self.options.learner == "count":
            reward = reward + (self.options.bonus / np.sqrt(seen))[:, None]
        after, ended = self.mdp.next_state[pairs], self.mdp.terminated[pairs]
        c = self.c((*after.shape, mean.shape[1]))  # one plan for all sweeps
        for _ in range(min(self.mdp.time_limit, mean.shape[0])):
            best = np.argmax(mean[after] + c * std[after], axis=2)
            means = reward + self.options.discount * np.where(ended, 0.0, mean[after, best])
            stds = self.options.discount * np.where(ended, self.terminal_std, std[after, best])
            new = np.sum(weight * means, axis=1)
            wide = np.sqrt(np.sum(weight * (stds**2 + (means - new[:, None]) ** 2 * bool(self.terminal_std)), axis=1))
            if np.array_equal(new, mean[pairs]) and np.array_equal(wide, std[pairs]):
                return
            mean[pairs], std[pairs] = new, wide


@functools.partial(jax.jit, static_argnums=(2, 3))
def tie_breaks(run: jax.Array, episode: int, steps: int, actions: int) -> jax.Array:
    """Random numbers for each step and action of an episode; keys are split as in the first results."""
    step_key = jax.random.split(jax.random.split(jax.random.fold_in(run, episode))[0], 3)[2]
    choice = jax.vmap(lambda step: jax.random.split(jax.random.fold_in(step_key, step))[0])(jax.numpy.arange(steps))
    return jax.vmap(lambda key: jax.random.uniform(jax.random.split(key)[1], (actions,)))(choice)


def first_success(builder: Any, seed: int, options: argparse.Namespace) -> int | None:
    """The first episode of a seed that succeeds; None if none of them does."""
    keys = seed_keys(seed)
    mdp = jax.device_get(builder.build(keys.environment))
    low, high = (float(bound) for bound in mdp.return_range(options.discount))
    enough, agent = builder.success_return, Agent(mdp, (low, high), np.random.default_rng(seed), options)
    for episode in range(options.episodes):
        if agent.episode(np.asarray(tie_breaks(keys.run, episode, mdp.time_limit, mdp.num_actions))) >= enough:
            return episode + 1
        agent.back_up()
    return None


def measure(task: str, learner: str, seed: int, seeds: int) -> dict[str, Any]:
    """The first success of each seed."""
    given = argparse.Namespace(learner=learner, low=2.0, high=2.0, bonus=0.1, discount=0.999, episodes=10_000)
    began, builder = time.perf_counter(), TASKS[task]
    found = [first_success(builder, each, given) for each in range(seed, seed + seeds)]
    return {
        "env": describe(builder),
        **vars(given),
        "seed": seed,
        "seeds": seeds,
        "first_success_episode": found,
        "median_first_success": median_episode(found),
        "seconds": round(time.perf_counter() - began, 1),
        "hardware": hardware(),
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    task, _, learner = stem.rpartition("-")
    return {"first_success_episode": measure(task, learner, stored.get("seed", 0), 1)["first_success_episode"]}


if __name__ == "__main__":
    usual = {"task": ["Chain-100", "DeepSea-20", "DeepSea-50"]}
    asked = options(
        __doc__, "runs/optimistic_table", usual, task=TASKS, learner=dict.fromkeys(LEARNERS), seed=0, seeds=10
    )
    for task, learner in itertools.product(asked.task, asked.learner):
        if not (path := asked.out / f"{task}-{learner}.json").exists():
            write(path, found := measure(task, learner, asked.seed, asked.seeds), indent=1)
            print(f"{task} {learner}: {found['first_success_episode']}", flush=True)
