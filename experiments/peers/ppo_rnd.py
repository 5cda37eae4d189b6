"""PPO with random network distillation (Burda et al. 2018, arXiv 1810.12894) where each episode has a new layout.

    python -m experiments.peers.ppo_rnd --out results/ppo_rnd                                  # everything
    python -m experiments.peers.ppo_rnd --bonus 0 --seed 0 --frames 200000                     # some of it

A baseline for docs/minigrid.md, all of it compiled; needs xminigrid. The grids are XLand-MiniGrid's port of DoorKey,
which has MiniGrid's layouts, step limit and reward, but no action `done`. The view is made MiniGrid's here: walls hide
what is behind them, and the agent sees what it carries. Settings are PPO's usual ones. The bonus is the error of a
predictor of the random network at the next view (after an end: the first one of the next episode), over the running
spread of its discounted sums. It has a value of its own, which goes on over ends, and its advantage counts `bonus`
times; 0 is PPO alone.
"""

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.nn import log_softmax, one_hot, relu
from xminigrid.core.constants import NUM_COLORS, NUM_TILES
from xminigrid.core.observation import minigrid_field_of_view
from xminigrid.registration import make

from experiments.common import options, write
from uppertail.networks.layers import patches
from uppertail.training.process import hardware

ENVS, STEPS, EPOCHS, BATCHES = 8, 128, 4, 4
RATE, DISCOUNT, LAMBDA, CLIP, ENTROPY, VALUE, LARGEST = 2.5e-4, 0.99, 0.95, 0.2, 0.01, 0.5, 0.5
VIEW, UNITS = 7, 64
CHUNK = 10  # iterations of one entry of a curve
ADAM = optax.chain(optax.clip_by_global_norm(LARGEST), optax.adam(RATE, eps=1e-5))


class Body(eqx.Module):
    """Two convolutions of a view, the second with a stride of 2; then a dense layer that also knows the direction."""

    kernels: list[Any]
    biases: list[Any]
    dense: eqx.nn.Linear

    def __init__(self, key: Any) -> None:
        keys, glorot = jax.random.split(key, 3), jax.nn.initializers.glorot_uniform()
        sizes = [(9 * (NUM_TILES + NUM_COLORS), 16), (9 * 16, 32)]
        self.kernels = [glorot(each, size) for each, size in zip(keys[:2], sizes, strict=True)]
        self.biases = [jnp.zeros(size[1]) for size in sizes]
        self.dense = eqx.nn.Linear(32 * (VIEW // 2 + 1) ** 2 + 4, UNITS, key=keys[2])

    def __call__(self, view: tuple[Any, Any]) -> Any:
        fields, direction = view
        kinds = [one_hot(fields[..., 0], NUM_TILES), one_hot(fields[..., 1], NUM_COLORS)]
        values = jnp.concatenate(kinds, axis=-1)
        for kernels, bias, stride in zip(self.kernels, self.biases, (1, 2), strict=True):
            values = relu(patches(values, stride) @ kernels + bias)
        return relu(self.dense(jnp.concatenate([values.reshape(-1), one_hot(direction, 4)])))


class Networks(eqx.Module):
    """The policy, the values of reward and bonus, and the predictor of the random network."""

    body: Body
    actor: eqx.nn.Linear
    critic: eqx.nn.Linear
    predictor: tuple[Body, eqx.nn.Linear, eqx.nn.Linear]

    def __init__(self, key: Any, actions: int) -> None:
        keys = jax.random.split(key, 6)
        self.body, self.actor = Body(keys[0]), eqx.nn.Linear(UNITS, actions, key=keys[1])
        self.critic = eqx.nn.Linear(UNITS, 2, key=keys[2])
        hidden, last = (eqx.nn.Linear(UNITS, UNITS, key=each) for each in keys[3:5])
        self.predictor = Body(keys[5]), hidden, last

    def __call__(self, view: Any) -> tuple[Any, Any]:
        units = self.body(view)
        return log_softmax(self.actor(units)), self.critic(units)

    def error(self, target: tuple[Body, eqx.nn.Linear], view: Any) -> Any:
        """How far the predictor is from the random network."""
        (body, hidden, last), (random_body, random_last) = self.predictor, target
        return jnp.mean((last(relu(hidden(body(view)))) - random_last(random_body(view))) ** 2)


class State(NamedTuple):
    """What an iteration hands to the next."""

    networks: Networks
    adam: Any
    worlds: Any  # time steps of all environments
    returns: Any  # of the episodes that go on
    sums: Any  # discounted bonus of each environment
    moments: Any  # number, mean and squared deviations of these sums
    key: Any


class Rows(NamedTuple):
    """A rollout, [steps, environments], or a minibatch of it."""

    view: Any
    action: Any
    score: Any  # log-probability of the action
    values: Any
    reward: Any
    ended: Any


def look(now: Any) -> tuple[Any, Any]:
    """The fields in front of the agent, with what it carries at its own place, and its direction."""
    agent = now.state.agent
    fields = minigrid_field_of_view(now.state.grid, agent, VIEW, VIEW)
    return fields.at[VIEW - 1, VIEW // 2].set(agent.pocket), agent.direction


def play(world: Any, state: State) -> tuple[State, Rows, Any, Any]:
    """A rollout: its rows, the views after them, and the sum and number of returns of episodes that ended."""
    env, params = world

    def step(carry: Any, key: Any) -> tuple[Any, Any]:
        worlds, returns, view = carry
        scores, values = jax.vmap(state.networks)(view)
        action_key, reset_key = jax.random.split(key)
        action = jax.random.categorical(action_key, scores)
        after = jax.vmap(env.step, (None, 0, 0))(params, worlds, action)
        ended, returns = after.last(), returns + after.reward
        fresh = jax.vmap(env.reset, (None, 0))(params, jax.random.split(reset_key, ENVS))
        pick = jax.vmap(lambda end, new, old: jax.tree.map(lambda one, other: jnp.where(end, one, other), new, old))
        worlds = pick(ended, fresh, after)
        score = jnp.take_along_axis(scores, action[:, None], 1)[:, 0]
        rows, later = Rows(view, action, score, values, after.reward, ended), jax.vmap(look)(worlds)
        return (worlds, jnp.where(ended, 0.0, returns), later), (rows, later, returns * ended)

    key, own = jax.random.split(state.key)
    start = state.worlds, state.returns, jax.vmap(look)(state.worlds)
    (worlds, returns, _), (rows, later, done) = jax.lax.scan(step, start, jax.random.split(own, STEPS))
    state = state._replace(worlds=worlds, returns=returns, key=key)
    return state, rows, later, (jnp.sum(done), jnp.sum(rows.ended))


def scaled(state: State, errors: Any) -> tuple[State, Any]:
    """The bonus: errors over the running spread of their discounted sums."""

    def add(total: Any, error: Any) -> tuple[Any, Any]:
        return (total := DISCOUNT * total + error), total

    sums, everywhere = jax.lax.scan(add, state.sums, errors)
    (number, mean, squares), new = state.moments, everywhere.size
    shift = jnp.mean(everywhere) - mean
    squares = squares + jnp.var(everywhere) * new + shift**2 * number * new / (number + new)
    moments = number + new, mean + shift * new / (number + new), squares
    return state._replace(sums=sums, moments=moments), errors / jnp.sqrt(squares / moments[0] + 1e-8)


def advantages(rows: Rows, bonus: Any, last: Any) -> Any:
    """Generalized advantage estimates of reward and bonus, [steps, environments, 2]; only the reward knows ends."""
    paid = jnp.stack([rows.reward, bonus], axis=-1)
    goes_on = jnp.stack([1.0 - rows.ended, jnp.ones(bonus.shape)], axis=-1)
    errors = paid + DISCOUNT * goes_on * jnp.concatenate([rows.values[1:], last[None]]) - rows.values

    def add(total: Any, row: Any) -> tuple[Any, Any]:
        error, on = row
        return (total := error + DISCOUNT * LAMBDA * on * total), total

    return jax.lax.scan(add, jnp.zeros(last.shape), (errors, goes_on), reverse=True)[1]


def loss(networks: Networks, target: Any, batch: Any) -> Any:
    """PPO's clipped objective, both values, the entropy and the predictor."""
    rows, later, advantage, goals = batch
    scores, values = jax.vmap(networks)(rows.view)
    ratio = jnp.exp(jnp.take_along_axis(scores, rows.action[:, None], 1)[:, 0] - rows.score)
    advantage = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -jnp.sum(jnp.exp(scores) * scores, axis=1)
    distance = 0.5 * jnp.sum((values - goals) ** 2, axis=1)
    return jnp.mean(VALUE * distance - gain - ENTROPY * entropy + jax.vmap(networks.error, (None, 0))(target, later))


def iterate(world: Any, target: Any, weight: float, state: State) -> tuple[State, Any]:
    """One rollout, and all epochs on it."""
    state, rows, later, done = play(world, state)
    errors = jax.vmap(jax.vmap(state.networks.error, (None, 0)), (None, 0))(target, later)
    state, bonus = scaled(state, errors)
    last = jax.vmap(state.networks)(jax.tree.map(lambda leaf: leaf[-1], later))[1]
    gains = advantages(rows, bonus, last)
    data = rows, later, gains @ jnp.array([1.0, weight]), gains + rows.values
    data = jax.tree.map(lambda leaf: leaf.reshape(ENVS * STEPS, *leaf.shape[2:]), data)

    def update(carry: Any, chosen: Any) -> tuple[Any, None]:
        networks, adam = carry
        gradient = jax.grad(loss)(networks, target, jax.tree.map(lambda leaf: leaf[chosen], data))
        steps, adam = ADAM.update(gradient, adam)
        return (optax.apply_updates(networks, steps), adam), None

    key, own = jax.random.split(state.key)
    orders = jax.vmap(jax.random.permutation, (0, None))(jax.random.split(own, EPOCHS), ENVS * STEPS)
    start: Any = state.networks, state.adam
    (networks, adam), _ = jax.lax.scan(update, start, orders.reshape(EPOCHS * BATCHES, -1))
    return state._replace(networks=networks, adam=adam, key=key), done


def begin(world: Any, seed: int) -> tuple[Any, State]:
    """The random network of a seed, and all else before its first step."""
    env, params = world
    keys = jax.random.split(jax.random.key(seed), 5)
    target = Body(keys[0]), eqx.nn.Linear(UNITS, UNITS, key=keys[1])
    no = jnp.zeros(ENVS)
    networks: Any = Networks(keys[2], env.num_actions(params))
    worlds = jax.vmap(env.reset, (None, 0))(params, jax.random.split(keys[3], ENVS))
    moments = jnp.array(1e-4), jnp.array(0.0), jnp.array(0.0)
    return target, State(networks, ADAM.init(networks), worlds, no, no, moments, keys[4])


def measure(name: str, weight: float, seed: int, frames: int, seconds: float) -> dict[str, Any]:
    """One seed: the mean return of the episodes that ended in each chunk."""
    world = make(name)
    target, state = begin(world, seed)
    chunk = jax.jit(lambda state: jax.lax.scan(lambda s, _: iterate(world, target, weight, s), state, None, CHUNK))
    curve, began, ends = [], time.process_time(), time.monotonic() + seconds
    for done in range(CHUNK * ENVS * STEPS, frames + 1, CHUNK * ENVS * STEPS):
        if time.monotonic() > ends:
            break
        state, (total, number) = chunk(state)
        curve.append([done, round(float(total.sum() / max(number.sum(), 1)), 3), int(number.sum())])
    return {
        "settings": {"env": name, "bonus": weight, "seed": seed},
        "reached_0.9": next((done for done, mean, _ in curve if mean >= 0.9), None),
        "frames_return_episodes": curve,
        "frames_per_processor_second": round(curve[-1][0] / (time.process_time() - began)),
        "hardware": hardware(),
    }


def main() -> None:
    """Runs what is asked for."""
    usual: dict[str, Any] = {"env": ["MiniGrid-DoorKey-8x8"], "bonus": [0.5, 0.0], "seed": [0, 1, 2]}
    asked = options(__doc__, "runs/ppo_rnd", frames=512_000, seconds=3600.0, **usual)
    for name in asked.env:
        for weight in asked.bonus:
            for seed in asked.seed:
                path = asked.out / f"{name}-bonus-{weight:g}-seed-{seed}.json"
                if not path.exists():
                    write(path, document := measure(name, weight, seed, asked.frames, asked.seconds), indent=None)
                    print(path.stem, document["reached_0.9"], document["frames_return_episodes"][-1], flush=True)


if __name__ == "__main__":
    main()
