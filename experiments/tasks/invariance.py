"""Classic control, changed as a stranger's task would be: other units, directions, numbers, rewards, limits and steps.

Usage: python -m experiments.tasks.invariance [--out results/invariance] [--envs CartPole-v1] [--changes rotated]

Each run is by the defaults. Returns are those of the unchanged task: rewards are brought back to its scale, and where
steps are half as long, each counts half. Each environment and change is one run of all seeds; those that are there
already are kept. On two busy CPU cores a run of two seeds on CartPole takes half a minute.
"""

import functools
import warnings
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

import uppertail as ut
from experiments.common import options, write

LIMITS = {"CartPole-v1": 500, "MountainCar-v0": 200, "Acrobot-v1": 500}
STEP = {"CartPole-v1": "tau", "Acrobot-v1": "dt"}
"""The attribute that has the length of a step, where there is one."""
LAST = 30  # episodes that are judged


class Change(NamedTuple):
    """What is different.

    Args:
        scale: of the observations.
        rotated: whether they are turned by a fixed matrix.
        constants: numbers that are drawn anew for each episode.
        fresh: numbers that are drawn anew for each step.
        slow: numbers that wander by themselves.
        reward_scale: of the rewards.
        reward_offset: added to each reward before it is scaled.
        limit: share of the time limit.
        step: length of a step, in those of the unchanged task.
        shift: added to each number that is shown.
    """

    scale: float = 1.0
    rotated: bool = False
    constants: int = 0
    fresh: int = 0
    slow: int = 0
    reward_scale: float = 1.0
    reward_offset: float = 0.0
    limit: float = 1.0
    step: float = 1.0
    shift: float = 0.0


CHANGES = {
    "nothing": Change(),
    "scaled": Change(scale=1_000.0),
    "shifted": Change(shift=100.0),
    "rotated": Change(rotated=True),
    "constants": Change(constants=6),
    "noise": Change(fresh=2, slow=2),
    "rewards-scaled": Change(reward_scale=100.0),
    "rewards-higher": Change(reward_offset=0.5),
    "rewards-lower": Change(reward_offset=-0.5),
    "limit-halved": Change(limit=0.5),
    "step-halved": Change(step=0.5),
    "all-but-rotated": Change(1_000.0, False, 6, 2, 2, 100.0, 0.5),
    "all": Change(1_000.0, True, 6, 2, 2, 100.0, 0.5),
}
"""Rewards move by half of what a step pays, since by more than that another policy would be best."""


class Changed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that shows and pays what it did, changed."""

    def __init__(self, env: gymnasium.Env[Any, Any], change: Change) -> None:
        super().__init__(env)
        own = np.prod(env.observation_space.shape or ())
        count = int(own) + change.constants + change.fresh + change.slow
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(count, count)))[0]
        self.change, self.matrix = change, change.scale * (turn if change.rotated else np.eye(count))
        self.observation_space = spaces.Box(-np.inf, np.inf, (count,), np.float32)

    def reset(self, **options: Any) -> Any:
        seen, info = self.env.reset(**options)
        random = self.env.unwrapped.np_random
        self.constants, self.slow = random.uniform(-1, 1, self.change.constants), random.normal(size=self.change.slow)
        return self._shown(seen), info

    def step(self, action: Any) -> Any:
        seen, reward, *rest = self.env.step(action)
        self.slow = 0.98 * self.slow + 0.2 * self.env.unwrapped.np_random.normal(size=self.change.slow)
        paid = self.change.reward_scale * (float(reward) + self.change.reward_offset)
        return self._shown(seen), paid, *rest

    def _shown(self, seen: np.ndarray) -> np.ndarray:
        fresh = self.env.unwrapped.np_random.normal(size=self.change.fresh)
        shown = self.matrix @ np.concatenate([seen, self.constants, fresh, self.slow])
        return (shown + self.change.shift).astype(np.float32)


def make(env: str, change: Change) -> gymnasium.Env[Any, Any]:
    """An environment as it is changed; half as long steps are given twice as many."""
    made = gymnasium.make(env, max_episode_steps=round(LIMITS[env] * change.limit / change.step))
    if change.step != 1.0:
        setattr(made.unwrapped, STEP[env], getattr(made.unwrapped, STEP[env]) * change.step)
    return Changed(made, change)


def solve(env: str, name: str, seed: int, seeds: int, episodes: int) -> dict[str, Any]:
    """Trains all seeds of one task by the defaults."""
    change = CHANGES[name]
    builder = ut.FromGymnasium(functools.partial(make, env, change), id=f"{env}-{name}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = ut.train(builder, settings=ut.Settings(seed=seed, seeds=seeds, episodes=episodes))
    returns = [
        (np.asarray(each.returns) / change.reward_scale - change.reward_offset * np.asarray(each.lengths)) * change.step
        for each in result.record.episodes
    ]
    summary = result.record.summary()
    return {
        "env": env,
        "change": name,
        "settings": {"seed": seed, "seeds": seeds, "episodes": episodes},
        "last_returns": [float(each[-LAST:].mean()) for each in returns],
        "returns": [np.round(each, 2).tolist() for each in returns],
        "chosen": {each: summary["env"][each] for each in ("left_out", "features", "action_repeat")},
        "learner": summary["learner"],
        "notes": [str(each.message) for each in caught],
        **{each: summary[each] for each in ("env_steps", "wall_seconds", "hardware")},
    }


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    settings = stored["settings"]
    found = solve(stored["env"], stored["change"], settings["seed"], 1, settings["episodes"])
    return {each: found[each] for each in ("last_returns", "returns")}


if __name__ == "__main__":
    given = options(__doc__, "results/invariance", seeds=2, seed=200, episodes=60, envs=LIMITS, changes=CHANGES)
    for env in given.envs:
        for name in given.changes:
            path = given.out / f"{env}-{name}.json"
            if path.exists() or (CHANGES[name].step != 1.0 and env not in STEP):
                continue
            cell = solve(env, name, given.seed, given.seeds, given.episodes)
            write(path, cell)
            print(f"{env}, {name}: {cell['last_returns']}, {cell['wall_seconds']:.0f} s", flush=True)
