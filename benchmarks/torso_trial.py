"""Least squares on the last hidden layer of a torso that learns by gradients: a trial, in a plain loop of one seed.

    python benchmarks/torso_trial.py --out results/learned_features              # everything
    python benchmarks/torso_trial.py --task sea_5 --aim inverse --seed 0 1 2     # some of it

The rule is that of docs/least-squares.md for vectors (lambda of 1e-3 and 0.1, a start of 0.29, c = 2, a greedy mean)
on one layer of 128 ReLU units, divided by its norm. Whenever a tenth of all transitions is new, the torso takes 100
steps of Adam on minibatches of 64, and all features and statistics are computed anew. What it learns from, its aim:

    none            the torso stays as it was drawn
    value           the targets of the least squares: mean and spread
    observation     the next observation, and the reward
    inverse         the action, from the hidden layers before and after (E3B)
    features        the hidden layer after, and the reward
    coins           coins that were tossed for the transition (CFN, Lobel et al. 2023)
    random          0 by temporal differences, from a random network (UVU, arXiv 2505.21119)
    coins_width     coins; their root mean square is also the share of the start that is left
    random_width    random; likewise

With the last two, a spread is the share of the start, plus the rest of the share times the spread that was backed up.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import uppertail as ut
from common import options, write
from uppertail.training.process import hardware

TASKS = {"sea_10": (ut.RichSea(10), 100), "sea_5": (ut.RichSea(5), 100), "lock_5": (ut.RichLock(5), 400)}
"""Where, and for how many episodes."""

UNITS, STEPS, BATCH, SHARE, COINS = 128, 100, 64, 0.1, 8
MEAN, SPREAD, START, C, DISCOUNT, SWEEPS = 1e-3, 0.1, 0.29, 2.0, 0.995, 10
ADAM = optax.adam(1e-3)
RESET = eqx.filter_jit(lambda world, key: world.reset(key))
STEP = eqx.filter_jit(lambda world, key, state, action: world.step(key, state, action))


class Rows(NamedTuple):
    """Transitions, and what their minibatches need besides."""

    shown: Any
    action: Any
    reward: Any
    shown_next: Any
    goes_on: Any
    coins: Any
    targets: Any = ()  # of the least squares: mean and spread, less the start
    following: Any = ()  # the action of the policy in the next state


class Net(NamedTuple):
    """A torso and the heads of its aim: [actions, units, outputs], but two layers for inverse dynamics."""

    torso: Any
    heads: Any


def hidden(torso: Any, observations: Any) -> Any:
    """The last hidden layer, divided by its norm; of arrays of NumPy or JAX."""
    units = (observations @ torso[0] + torso[1]).clip(0)
    return units / ((units * units).sum(axis=-1, keepdims=True) + 1e-6) ** 0.5


def outputs(net: Net, observations: Any) -> Any:
    """The outputs of all heads, [rows, actions, outputs]."""
    return jnp.einsum("rf,afo->rao", hidden(net.torso, observations), net.heads)


def of_action(values: Any, action: Any) -> Any:
    """What belongs to the action of each row."""
    return jnp.take_along_axis(values, action[:, None, None], axis=1)[:, 0]


def rewarded(later: Any, batch: Rows) -> Any:
    """What comes after, 0 after an end, and the reward."""
    return jnp.concatenate([later * batch.goes_on[:, None], batch.reward[:, None]], axis=1)


def random_goal(net: Net, prior: Net, batch: Rows) -> Any:
    """The temporal-difference target of what is learned plus the random network, without a reward; less the latter."""
    later = outputs(net, batch.shown_next) + outputs(prior, batch.shown_next)
    kept = DISCOUNT * batch.goes_on[:, None] * of_action(later, batch.following)
    return kept - of_action(outputs(prior, batch.shown), batch.action)


GOALS: dict[str, Callable[[Net, Net, Rows], Any]] = {
    "value": lambda net, prior, batch: batch.targets / START,
    "observation": lambda net, prior, batch: rewarded(batch.shown_next, batch),
    "features": lambda net, prior, batch: rewarded(hidden(net.torso, batch.shown_next), batch),
    "coins": lambda net, prior, batch: batch.coins - of_action(outputs(prior, batch.shown), batch.action),
    "random": random_goal,
}
"""What the heads of an aim should give, from the network, the random network and a minibatch."""

WIDTH = "_width"
AIMS = ["none", "observation", "inverse", "features", "value", "coins_width", "random_width", "coins", "random"]


def loss(net: Net, prior: Net, aim: str, batch: Rows) -> Any:
    """How far the heads of this aim are from their goals."""
    before = hidden(net.torso, batch.shown)
    if aim == "inverse":
        first, second = net.heads
        both = jnp.concatenate([before, hidden(net.torso, batch.shown_next)], axis=1)
        scores = (both @ first).clip(0) @ second
        return jnp.mean(batch.goes_on * optax.softmax_cross_entropy_with_integer_labels(scores, batch.action))
    goals = jax.lax.stop_gradient(GOALS[aim](net, prior, batch))
    predictions = jnp.einsum("rf,rfo->ro", before, net.heads[batch.action])
    return jnp.mean(jnp.sum((goals - predictions) ** 2, axis=1))


@eqx.filter_jit
def train(net: Net, optimizer: Any, prior: Net, aim: str, batches: Rows) -> Any:
    """Gradient steps on minibatches, [steps, batch]."""

    def one(carry: Any, batch: Rows) -> Any:
        net, optimizer = carry
        changes, optimizer = ADAM.update(jax.grad(loss)(net, prior, aim, batch), optimizer)
        return (optax.apply_updates(net, changes), optimizer), None

    return jax.lax.scan(one, (net, optimizer), batches)[0]


def drawn(key: Any, numbers: int, heads: Any) -> Net:
    """A network with a new torso."""
    wide_key, bias_key = jax.random.split(key)
    wide = jax.random.normal(wide_key, (numbers, UNITS)) / np.sqrt(numbers / 2)
    return Net((wide, jax.random.uniform(bias_key, (UNITS,), minval=-0.5, maxval=0.5)), heads)


class Trial:
    """One seed: its data, its torso, and the least squares on them."""

    def __init__(self, world: Any, aim: str, seed: int) -> None:
        self.aim, self.by_width, self.world = aim.removesuffix(WIDTH), aim.endswith(WIDTH), world
        self.actions, numbers = world.num_actions, len(world.observations.low)
        keys = jax.random.split(jax.random.key(seed), 4)
        size = {"value": 2, "observation": numbers + 1, "features": UNITS + 1}.get(self.aim, COINS)
        heads = jnp.zeros((self.actions, UNITS, size))
        if self.aim == "inverse":
            heads = jax.random.normal(keys[0], (2 * UNITS, 64)) / UNITS**0.5, jnp.zeros((64, self.actions))
        self.net = drawn(keys[1], numbers, heads)
        self.prior = drawn(keys[2], numbers, jax.random.normal(keys[3], (self.actions, UNITS, COINS)))
        self.optimizer, self.random = ADAM.init(self.net), np.random.default_rng(seed)
        self.rows: list[Rows] = []
        self.least, self.trained = np.zeros((self.actions, UNITS, 2)), 0
        self.inverse = np.stack([np.stack([np.eye(UNITS) / each] * self.actions) for each in (MEAN, SPREAD)])
        self.start = np.array([0.0, 0.0 if self.by_width else START])

    def episode(self) -> float:
        """Plays one episode, learns from it, and gives its return."""
        state, now = RESET(self.world, jax.random.key(self.random.integers(2**31)))
        total = 0.0
        while True:
            here = self.features(np.asarray(now.observation)[None])
            best = self.values(*here)[0] @ [1.0, C]
            action = int(self.random.choice(np.flatnonzero(best >= best.max() - 1e-9)))
            key, coins = jax.random.key(self.random.integers(2**31)), self.random.choice([-1.0, 1.0], COINS)
            state, after = STEP(self.world, key, state, jnp.array(action))
            row = Rows(now.observation, action, after.reward, after.observation, ~after.terminated, coins)
            self.rows.append(Rows(*(np.asarray(each) for each in row)))
            moved = self.inverse[:, action] @ here[0][0]
            self.inverse[:, action] -= np.einsum("pi,pj,p->pij", moved, moved, 1 / (1 + moved @ here[0][0]))
            total, now = total + float(after.reward), after
            if after.terminated or after.truncated:
                break
        self.learn()
        return total

    def features(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hidden layers of the torso and of the random network."""
        return tuple(hidden([np.asarray(each) for each in net.torso], observations) for net in (self.net, self.prior))

    def values(self, features: np.ndarray, of_prior: np.ndarray) -> np.ndarray:
        """Mean and spread of each action."""
        values = self.start + np.einsum("rf,afo->rao", features, self.least, optimize=True)
        values = np.clip(values, [-1.0, 0.0], [1.0, START])
        if self.by_width:
            pairs = (features, self.net.heads), (of_prior, self.prior.heads)
            learned = sum(np.einsum("rf,afo->rao", each, np.asarray(heads), optimize=True) for each, heads in pairs)
            share = np.minimum(np.sqrt(np.mean(learned**2, axis=-1)), 1.0)
            values[..., 1] = share * START + (1 - share) * values[..., 1]
        return values

    def targets(self, data: Rows, after: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Targets less the start: the greedy mean, the spread that mean + c spread leaves; and the policy's actions."""
        mean, spread = np.moveaxis(self.values(*after), -1, 0)
        bounds, kept = mean + C * spread, DISCOUNT * data.goes_on
        greedy, bound = mean.max(axis=1), bounds.max(axis=1)
        backed_up = np.stack([data.reward + kept * greedy, kept * np.maximum(bound - greedy, 0) / C], axis=1)
        return backed_up - self.start, bounds.argmax(axis=1)

    def learn(self) -> None:
        """Steps of the torso, if enough data are new; then sweeps."""
        count = len(self.rows)
        data = Rows(*(np.stack(column) for column in list(zip(*self.rows, strict=True))[:6]))
        own = [np.flatnonzero(data.action == one) for one in range(self.actions)]
        before, after = (self.features(each) for each in (data.shown, data.shown_next))
        if self.aim != "none" and count - self.trained >= max(SHARE * count, 32):
            self.trained, chosen = count, self.random.integers(0, count, (STEPS, BATCH))
            targets, following = self.targets(data, after)
            batches = jax.tree.map(lambda leaf: leaf[chosen], Rows(*data[:6], targets, following))
            self.net, self.optimizer = train(self.net, self.optimizer, self.prior, self.aim, batches)
            before, after = (self.features(each) for each in (data.shown, data.shown_next))
            for one, rows in enumerate(own):
                square = before[0][rows].T.astype(float) @ before[0][rows]
                self.inverse[:, one] = [np.linalg.inv(square + prior * np.eye(UNITS)) for prior in (MEAN, SPREAD)]
        for _ in range(SWEEPS):
            targets, _ = self.targets(data, after)
            for one, rows in enumerate(own):
                sums = before[0][rows].T @ targets[rows]
                self.least[one] = np.stack([self.inverse[place, one] @ sums[:, place] for place in (0, 1)], axis=1)


def measure(task: str, aim: str, seed: int) -> dict[str, Any]:
    """One seed of one aim."""
    (environment, episodes), began = TASKS[task], time.process_time()
    trial = Trial(environment.build(jax.random.key(seed)), aim, seed)
    returns = np.array([trial.episode() for _ in range(episodes)])
    good = np.flatnonzero(returns >= environment.success_return)
    return {
        "seed": seed,
        "first_success_episode": int(good[0]) + 1 if good.size else None,
        "successes_in_the_last_fifty": int((good >= episodes - 50).sum()),
        "processor_seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "runs/learned_features", task=TASKS, aim=dict.fromkeys(AIMS), seed=[0, 1, 2])
    for task in asked.task:
        for aim in asked.aim:
            if not (path := asked.out / f"torso-{task}-{aim}.json").exists():
                seeds = [measure(task, aim, seed) for seed in asked.seed]
                write(path, {"episodes": TASKS[task][1], "seeds": seeds, "hardware": hardware()}, indent=None)
                print(f"{task:<8} {aim:<12} first {[each['first_success_episode'] for each in seeds]}", flush=True)


if __name__ == "__main__":
    main()
