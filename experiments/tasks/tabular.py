"""FrozenLake 8x8, Taxi and CliffWalking: is the greedy policy that was learned optimal, from every start?

Usage: python -m experiments.tasks.tabular [--out results/tabular] [--seeds 5] [--seed 0] [--variants chosen]

The optimum is computed from Gymnasium's own table, in float64 and without this project's code, and the learned policy
is followed through that table exactly, from each state in which an episode may start. All three take eight minutes
on one CPU core.
"""

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.paper.form import PARTS, paper_gaussian, paper_settings, paper_ucb

ENVIRONMENTS = {
    "FrozenLake-8x8": ut.Gym("FrozenLake-v1", kwargs={"map_name": "8x8", "is_slippery": False}, max_episode_steps=200),
    "Taxi": ut.Gym("Taxi-v4", action_masks=False),
    "CliffWalking": ut.Gym("CliffWalking-v1", max_episode_steps=200),
}
"""CliffWalking has no time limit of its own. The paper's agents know no masks of allowed actions."""

FAMILY = ut.Gaussian(distance="wasserstein")
SETTINGS = paper_settings(
    steps=150_000,
    episodes=10**6,
    discount=0.95,
    learning_rate=2e-3,
    learning_rate_end=0.0,
    batch_size=128,
    rollout_steps=32,
    updates_per_rollout=4,
    replay_size=150_000,
)
"""Chosen on seeds 100 to 104 (docs/decisions/0007); one set for all three."""

VARIANTS: dict[str, tuple[ut.Gaussian, dict[str, Any]]] = {
    "chosen": (FAMILY, {}),
    "cross-entropy": (paper_gaussian(), {}),
    "constant-learning-rate": (FAMILY, {"learning_rate_end": None}),
    "replay-of-20000": (FAMILY, {"replay_size": 20_000}),
    "discount-0.99": (FAMILY, {"discount": 0.99}),
}
"""What is changed of it, one thing at a time."""


@dataclasses.dataclass(frozen=True)
class Table:
    """The deterministic table of a Gymnasium environment."""

    next_state: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    start: np.ndarray

    @classmethod
    def of(cls, builder: ut.Gym) -> "Table":
        """Read from Gymnasium itself."""
        env: Any = gymnasium.make(builder.id, **(builder.kwargs or {})).unwrapped
        rows = [[env.P[s][a] for a in range(len(env.P[s]))] for s in range(len(env.P))]
        assert all(len(entry) == 1 for row in rows for entry in row), "the environment is not deterministic"
        _, next_state, reward, terminated = np.moveaxis(np.array([[entry[0] for entry in row] for row in rows]), -1, 0)
        start = np.asarray(env.initial_state_distrib, float)
        return cls(next_state.astype(int), reward, terminated.astype(bool), start)

    def optimum(self, time_limit: int) -> np.ndarray:
        """The highest undiscounted return from each state, within the time limit."""
        value = np.zeros(len(self.start))
        for _ in range(time_limit):
            value = (self.reward + np.where(self.terminated, 0.0, value[self.next_state])).max(axis=1)
        return value

    def followed(self, actions: np.ndarray, time_limit: int) -> np.ndarray:
        """The undiscounted return of a policy from each state."""
        state, going, total = np.arange(len(actions)), np.ones(len(actions), bool), np.zeros(len(actions))
        for _ in range(time_limit):
            action = actions[state]
            total += going * self.reward[state, action]
            going &= ~self.terminated[state, action]
            state = self.next_state[state, action]
        return total


def solve(builder: ut.Gym, family: ut.Gaussian, settings: ut.Settings) -> dict[str, Any]:
    """Trains all seeds, and holds their greedy policies against the optimum."""
    result = ut.train(builder, family, paper_ucb(), settings, **{**PARTS, "network": ut.PerAction()})
    table, limit = Table.of(builder), builder.max_episode_steps or builder.time_limit or 0
    starts = np.flatnonzero(table.start)
    optimum = table.optimum(limit)[starts]
    mean_optimum = float(optimum @ table.start[starts])
    states = jnp.arange(len(table.start))

    def means(network: Any) -> jax.Array:
        return jax.vmap(lambda state: jax.vmap(result.agent.family.mean)(result.agent.returns(network, state)))(states)

    greedy = np.asarray(jax.jit(jax.vmap(means))(result.networks)).argmax(axis=-1)
    followed = [table.followed(actions, limit)[starts] for actions in greedy]
    return {
        "optimal_return": mean_optimum,
        "greedy_return": [float(returns @ table.start[starts]) for returns in followed],
        "share_of_starts_optimal": [float(np.mean(np.isclose(returns, optimum))) for returns in followed],
        "start_states": len(starts),
        "seeds_at_the_optimum": sum(bool(np.allclose(returns, optimum)) for returns in followed),
        "last_100_episodes": [float(seed.returns[-100:].mean()) for seed in result.record.episodes],
        **{name: result.record.summary()[name] for name in ("env", "distribution", "policy", "settings")},
        **{name: result.record.summary()[name] for name in ("env_steps", "wall_seconds", "steps_per_second")},
        "hardware": result.record.hardware,
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    settings = dataclasses.replace(SETTINGS, seeds=1, seed=stored["settings"]["seed"])
    found = solve(ENVIRONMENTS[stem.partition("-seeds-")[0]], FAMILY, settings)
    return {each: found[each] for each in ("greedy_return", "share_of_starts_optimal", "last_100_episodes")}


if __name__ == "__main__":
    given = options(__doc__, "results/tabular", seeds=5, seed=0, variants=["chosen"])
    for variant in given.variants:
        family, changed = VARIANTS[variant]
        settings = dataclasses.replace(SETTINGS, seeds=given.seeds, seed=given.seed, **changed)
        for name, builder in ENVIRONMENTS.items():
            path = given.out / variant / f"{name}-seeds-{given.seed}-to-{given.seed + given.seeds - 1}.json"
            cell = solve(builder, family, settings)
            write(path, cell)
            print(
                f"{variant}, {name}: {cell['seeds_at_the_optimum']} of {given.seeds} seeds at the optimum", flush=True
            )
