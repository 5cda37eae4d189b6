"""gymnax's own environments: UpperTail by its defaults, rejax's DQN on as many steps, and random actions.

Usage: python -m experiments.tasks.gymnax_table [--out results/gymnax_table.json] [--env ID ...] [--method NAME ...]
           [--seeds 3] [--steps 50000]

Needs `uppertail[gymnax]` and `pip install rejax`. Rows that are in the file stay. Of each seed it keeps the mean return
of each tenth of the training episodes, of the last hundred, and of 20 greedy episodes.
"""

import json
import time
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rejax import get_algo
from rejax.evaluate import evaluate

import uppertail as ut
from experiments.common import options, write
from experiments.speed.gymnax_speed import one_ending
from uppertail.training.process import hardware

GREEDY_EPISODES = 20

SHARED = {
    "agent": "DuelingQNetwork", "num_envs": 10, "batch_size": 100, "num_epochs": 5, "max_grad_norm": 10,
    "learning_rate": 0.001, "exploration_fraction": 0.5,
}  # fmt: skip
FOR_CART_POLE = SHARED | {"buffer_size": 50_000, "fill_buffer": 5_000, "polyak": 0.98}
NAMES = (
    "Catch-bsuite", "DiscountingChain-bsuite", "UmbrellaChain-bsuite", "DeepSea-bsuite", "FourRooms-misc",
    "CartPole-v1", "MountainCar-v0", "Acrobot-v1",
    "Breakout-MinAtar", "Asterix-MinAtar", "SpaceInvaders-MinAtar", "Freeway-MinAtar",
)  # fmt: skip
CONFIGURATIONS: dict[str, dict[str, Any]] = dict.fromkeys(NAMES, FOR_CART_POLE) | {
    "MountainCar-v0": SHARED | {
        "buffer_size": 10_000, "fill_buffer": 1_000, "target_update_freq": 200, "num_envs": 5, "learning_rate": 0.005,
        "gamma": 1.0, "agent_kwargs": {"activation": "tanh"},
    },
    "Acrobot-v1": SHARED | {"buffer_size": 10_000, "fill_buffer": 1_000, "target_update_freq": 200},
}  # fmt: skip
"""rejax's own settings for CartPole, MountainCar and Acrobot (configs/gymnax in its repository, commit d751095). It has
none for the other environments: they get those for CartPole."""


def of_rejax(name: str, steps: int, seeds: int) -> list[dict[str, Any]]:
    """Trains rejax's DQN, one seed after the other; its own evaluation takes a random action in 200."""
    env, config = one_ending(name), CONFIGURATIONS[name]
    params, envs = env.default_params, config["num_envs"]
    algorithm = get_algo("dqn").create(env=env, total_timesteps=steps, **config)

    def iterate(state: Any, _: None) -> tuple[Any, Any]:
        state = algorithm.train_iteration(state)
        buffer = state.replay_buffer
        latest = (buffer.index - envs + jnp.arange(envs)) % buffer.size
        return state, (buffer.data.reward[latest], buffer.data.done[latest])

    @jax.jit
    def train(key: Any) -> tuple[Any, Any]:
        state, made = jax.lax.scan(iterate, algorithm.init_state(key), None, steps // envs)
        limit = params.max_steps_in_episode
        return made, evaluate(algorithm.make_act(state), key, env, params, GREEDY_EPISODES, limit)[1]

    trained = (train(jax.random.key(seed)) for seed in range(seeds))
    return [judged(ended_returns(*made), float(jnp.mean(greedy))) for made, greedy in trained]


def of_uppertail(name: str, steps: int, seeds: int) -> list[dict[str, Any]]:
    """Trains all seeds with every setting at its default."""
    record = ut.train(ut.Gymnax(name), settings=ut.Settings(seeds=seeds, steps=steps, episodes=10**7)).record
    return [judged(seed.returns, greedy) for seed, greedy in zip(record.episodes, record.greedy_returns, strict=True)]


def of_chance(name: str, steps: int, seeds: int) -> list[dict[str, Any]]:
    """Plays random actions, in 20 environments side by side; `steps` and `seeds` do not matter."""
    env, envs = one_ending(name), 20
    params = env.default_params

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        keys = jax.random.split(key, envs)
        actions = jax.vmap(env.action_space(params).sample)(jax.vmap(lambda each: jax.random.fold_in(each, 1))(keys))
        _, state, reward, ended, _ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(keys, state, actions, params)
        return state, (reward, ended)

    begin, play = jax.random.split(jax.random.key(0))
    state = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(begin, envs), params)[1]
    made = jax.jit(lambda state: jax.lax.scan(step, state, jax.random.split(play, 5_000))[1])(state)
    returns = ended_returns(*made)
    return [judged(returns, float(np.mean(returns)))]


METHODS = {"UpperTail": of_uppertail, "rejax DQN": of_rejax, "random": of_chance}


def ended_returns(rewards: Any, ended: Any) -> np.ndarray:
    """The returns of the episodes that ended, in the order in which they did; both arguments are [steps, envs]."""
    rewards, ended = np.asarray(rewards, np.float64), np.asarray(ended, bool)
    running, returns = np.zeros(rewards.shape[1]), list[float]()
    for reward, over in zip(rewards, ended, strict=True):
        running += reward
        returns += running[over].tolist()
        running[over] = 0.0
    return np.array(returns)


def judged(returns: np.ndarray, greedy: float) -> dict[str, Any]:
    """What is kept of a seed."""
    tenths = [float(np.mean(part)) for part in np.array_split(returns, 10) if part.size]
    last = float(np.mean(returns[-100:])) if returns.size else None
    return {"episodes": len(returns), "tenths": tenths, "last_hundred": last, "greedy": greedy}


def main() -> None:
    """Runs what is asked for and not in the file yet."""
    asked = options(__doc__, "results/gymnax_table.json", env=CONFIGURATIONS, method=METHODS, seeds=3, steps=50_000)
    rows = json.loads(asked.out.read_text(encoding="utf-8"))["rows"] if asked.out.exists() else []
    for name in asked.env:
        for method in asked.method:
            if any((row["env"], row["method"], row["steps"]) == (name, method, asked.steps) for row in rows):
                continue
            began, processor = time.perf_counter(), time.process_time()
            seeds = METHODS[method](name, asked.steps, asked.seeds)
            seconds = round(time.perf_counter() - began), round(time.process_time() - processor)
            rows.append({"env": name, "method": method, "steps": asked.steps, "seeds": seeds, "seconds": seconds})
            write(asked.out, {"rows": rows, "gymnax": version("gymnax"), "hardware": hardware()}, indent=1)
            told = [f"{seed['tenths'][-1]:.2f} (greedy {seed['greedy']:.2f})" for seed in seeds if seed["tenths"]]
            print(f"{name:24} {method:10} {seconds} s: {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
