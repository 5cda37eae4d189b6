"""Plays a peer in the tables of all seeds at once, or trains one of our learners there; both are judged alike."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import uppertail as ut
from experiments.chance.mbie_eb import MBIEEB
from experiments.chance.peer import Peer, World
from experiments.chance.psrl import PSRL
from experiments.chance.q_learning import QLearning
from experiments.chance.rmax import RMax
from experiments.chance.tasks import Judge, Measured, Task, tables
from experiments.chance.ucrl2 import MBIE, UCRL2
from experiments.tasks.uncertainties import SOLVED, means, stays_from
from uppertail.training.loop import seed_keys
from uppertail.training.method import Method
from uppertail.training.run import Run

LOOKS = 20  # moments of a run at which greedy policies are judged
PLAN_EVERY = 4  # steps between two plans, as our learners on tables have it
BLOCK = 1024  # steps for which random numbers are drawn at once

PEERS: dict[str, Callable[..., Peer]] = {
    "mbie_eb": MBIEEB,
    "mbie": MBIE,
    "rmax": RMax,
    "ucrl2": UCRL2,
    "psrl": PSRL,
    "q_learning": QLearning,
}
OURS: dict[str, dict[str, Any]] = SOLVED


class Seen(NamedTuple):
    """What a run of all seeds gave.

    Args:
        returns, ends: of each seed's finished episodes: undiscounted returns, and the steps at which they ended.
        left: rewards since the last of them.
        looks: steps of the looks.
        worth: what the greedy policies then were worth, [looks, seeds].
    """

    returns: list[np.ndarray]
    ends: list[np.ndarray]
    left: np.ndarray
    looks: list[int]
    worth: np.ndarray


def play(peer: Peer, mdps: list[ut.FiniteMDP], judges: list[Judge], steps: int, seeds: list[int]) -> Seen:
    """Lets a peer act for so many steps of each seed. The same seed draws the same, however many run beside it."""
    world, count, limit = peer.world, len(seeds), mdps[0].time_limit
    cumulative = np.cumsum(world.probability, axis=3)
    starts = np.stack([np.asarray(mdp.start_state) for mdp in mdps])
    start_chances = np.cumsum([np.asarray(mdp.start_probability) for mdp in mdps], axis=1)
    rngs, row, actions = [np.random.default_rng([seed, 1]) for seed in seeds], np.arange(count), peer.q.shape[2]
    last = cumulative.shape[3] - 1

    def begun(draw: np.ndarray) -> np.ndarray:
        return starts[row, np.minimum((draw[:, None] >= start_chances).sum(axis=1), starts.shape[1] - 1)]

    state, elapsed, total = begun(np.array([rng.random() for rng in rngs])), np.zeros(count, int), np.zeros(count)
    ended = np.ones(count, bool)
    found: list[list[tuple[float, int]]] = [[] for _ in seeds]
    looks, worth = [math.ceil(steps * look / LOOKS) for look in range(1, LOOKS + 1)], []
    for step in range(steps):
        if step % BLOCK == 0:
            uniform = np.stack([rng.random((BLOCK, actions + 2)) for rng in rngs], axis=1)
            normal = np.stack([rng.standard_normal(BLOCK) for rng in rngs], axis=1)
        if step % PLAN_EVERY == 0:
            peer.plan(ended)
            ended = np.zeros(count, bool)
        now, scores = uniform[step % BLOCK], peer.q[row, state]
        action = np.argmax(np.where(scores == scores.max(axis=1, keepdims=True), now[:, 2:], -1.0), axis=1)
        outcome = np.minimum((now[:, :1] >= cumulative[row, state, action]).sum(axis=1), last)
        where = (row, state, action, outcome)
        reward = world.reward[where] + world.reward_std[where] * normal[step % BLOCK]
        after, terminated = world.next_state[where], world.terminated[where]
        peer.observe(where, reward, after, terminated)
        total, elapsed = total + reward, elapsed + 1
        over = terminated | (elapsed >= limit)
        for seed in np.flatnonzero(over):
            found[seed].append((total[seed], step + 1))
        ended |= over
        state = np.where(over, begun(now[:, 1]), after) if over.any() else after
        total, elapsed = np.where(over, 0.0, total), np.where(over, 0, elapsed)
        if step + 1 in looks:
            worth.append([judge.worth(q) for judge, q in zip(judges, peer.greedy(), strict=True)])
    columns = [np.array(each, float).reshape(-1, 2).T for each in found]
    return Seen([each[0] for each in columns], [each[1] for each in columns], total, looks, np.array(worth))


def learn(task: Task, changes: dict[str, Any], judges: list[Judge], seeds: list[int]) -> Seen:
    """Trains one of our learners for the task's steps, all seeds side by side."""
    names = Method().parts
    method = Method.of(**{name: changes.get(name) for name in names})
    settings = {name: value for name, value in changes.items() if name not in names}
    settings = ut.Settings(seed=seeds[0], seeds=len(seeds), episodes=10**9, steps=task.steps, **settings)
    run = Run(Measured(of=task.environment) if task.measured else task.environment, method, settings)
    agent, states, driver = run.loop.agent, judges[0].mdp.num_states, run.driver
    of_all = jax.jit(jax.vmap(lambda network: means(agent, network, states)))
    state, looks, worth, left = driver.start(), list[int](), list[list[float]](), np.zeros(0)
    rollout = run.settings.steps_per_rollout
    while not run.ledger.over:
        next_look = task.steps * (len(looks) + 1) / LOOKS
        count = max(1, min(driver.iterations, math.ceil((next_look - run.ledger.step) / rollout)))
        state, records, metrics = driver.advance(state, run.ledger.finished, count)
        run.ledger.extend(records, metrics, run.start_returns(state))
        left = np.where(records.ended[:, -1, -1], 0.0, records.ret[:, -1, -1])
        if run.ledger.over or run.ledger.step >= next_look:
            q = np.asarray(of_all(driver.gather(state, jax.vmap(run.loop.result))), np.float64)
            looks.append(run.ledger.step)
            worth.append([judge.worth(each) for judge, each in zip(judges, q, strict=True)])
    run.close()
    episodes = run.ledger.episodes
    return Seen([e.returns for e in episodes], [e.end_steps for e in episodes], left, looks, np.array(worth))


def measure(task: Task, method: str, seeds: list[int], discount: float, options: dict[str, Any]) -> dict[str, Any]:
    """One method on one task: what it earned while learning, and when its greedy policy was good for good."""
    mdps, began = tables(task, seeds, seed_keys), time.perf_counter()
    judges = [Judge(mdp, task.margin, discount) for mdp in mdps]
    if method in OURS:
        seen = learn(task, {**OURS[method], "discount": discount, **options}, judges, seeds)
    else:
        rngs = [np.random.default_rng([seed, 0]) for seed in seeds]
        seen = play(PEERS[method](World.of(mdps, discount), discount, rngs, **options), mdps, judges, task.steps, seeds)
    best, good = np.array([judge.best for judge in judges]), seen.worth >= [judge.mark for judge in judges]
    earned = [float(returns.sum(dtype=np.float64)) for returns in seen.returns]
    episodes = [returns.size for returns in seen.returns]
    total = [float(each + left) for each, left in zip(earned, seen.left, strict=True)]
    return {
        "best_return": best.tolist(),
        "good_return": [judge.mark for judge in judges],
        "episodes": episodes,
        "return_while_learning": total,
        "normalized_regret": [normalized(each, judge, task.steps) for each, judge in zip(total, judges, strict=True)],
        "share_while_learning": [e / (b * n) if n else None for e, b, n in zip(earned, best, episodes, strict=True)],
        "regret": [b * n - e for e, b, n in zip(earned, best, episodes, strict=True)],
        "greedy_share": (seen.worth[-1] / best).tolist(),
        "good_seeds": int(good[-1].sum()),
        "good_from_episode": [stays_from(each, seen.looks, ends) for each, ends in zip(good.T, seen.ends, strict=True)],
        "good_from_step": [good_from(each, seen.looks) for each in good.T],
        "looks": seen.looks,
        "greedy_shares": (seen.worth / best).round(4).tolist(),
        "seconds": round(time.perf_counter() - began, 1),
    }


def good_from(good: np.ndarray, looks: list[int]) -> int | None:
    """The first look from which on the greedy policy was good to the end; None: never."""
    bad = np.flatnonzero(~good)
    first = bad[-1] + 1 if bad.size else 0
    return looks[first] if first < len(looks) else None


def normalized(earned: float, judge: Judge, steps: int) -> float | None:
    """Colosseum's regret per step in a task that never ends: 0 is the best policy's, 1 the worst's; else None.

    Of the rewards that were earned; Colosseum takes the mean rewards of the policies that earned them.
    """
    if judge.rates is None:
        return None
    low, high = judge.rates
    return (high - earned / steps) / (high - low)
