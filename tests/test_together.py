"""Numbers that tell something only together with another one, or by their size, are kept; noise is left out."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from choosing import chosen
from uppertail.defaults.facts import Facts
from uppertail.defaults.left_out import telling_together
from uppertail.environments import Steps

SIGNS = {
    "a product": lambda one, other, action: (one * other > 0) == action,
    "a product with a constant of the episode": lambda one, cue, action: (one * cue > 0) == action,
    "a size": lambda one, other, action: (abs(one) > 0.5) == action,
    "a wave": lambda one, other, action: (np.sin(15 * one) > 0) == action,
    "a code": lambda one, other, action: (round(20 * one) % 2) == action,
}


class Valves(gymnasium.Env[Any, int]):
    """Two numbers decide which action is paid; a third is moved by actions, and a fourth is noise."""

    observation_space: Any = spaces.Box(-9, 9, (4,))
    action_space: Any = spaces.Discrete(2)

    def __init__(self, kind: str) -> None:
        self.paid, self.is_cue, self.is_code = SIGNS[kind], "constant" in kind, kind == "a code"

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.moved, self.cue = 0.0, self.np_random.uniform(-1, 1)
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        self.one, other = self.np_random.uniform(-1, 1, 2)
        self.one = round(20 * self.one) / 20 if self.is_code else self.one
        self.other = self.cue if self.is_cue else other
        return np.array([self.one, self.other, self.moved, self.np_random.normal()], np.float32)

    def step(self, action: int) -> Any:
        paid = float(self.paid(self.one, self.other, action))
        self.moved += 0.1 * (action - 0.5)
        return self.seen(), paid, False, False, {}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "kept"), [*zip(SIGNS, ([0, 1], [0, 1], [0], [0], [0]), strict=True)])
def test_what_tells_by_its_size_or_with_another_is_kept(kind: str, kept: list[int]) -> None:
    """On regressions alone each tells nothing: the policy was blind for what is paid, at half of the best return."""
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Valves(kind), 10))
    facts = Facts(builder)
    assert not {*kept} & {*facts.irrelevant.tolist(), *facts.idle.tolist()}
    assert 3 in facts.irrelevant
    assert not {*kept} & {*(chosen(builder).builder.left_out or ())}


class Among(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Numbers among fresh noise and slow noise."""

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int) -> None:
        super().__init__(env)
        self.random, self.slow = np.random.default_rng(seed), np.zeros(2)
        self.observation_space = spaces.Box(-np.inf, np.inf, (env.observation_space.shape[0] + 4,))  # pyright: ignore

    def observation(self, observation: np.ndarray) -> np.ndarray:
        self.slow = 0.95 * self.slow + 0.3 * self.random.normal(size=2)
        return np.concatenate([observation, self.random.normal(size=2), self.slow]).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "size"), [("CartPole-v1", 4), ("Acrobot-v1", 6)])
def test_noise_beside_what_is_not_linear_is_still_left_out(name: str, size: int, seed: int) -> None:
    facts = Facts(ut.FromGymnasium(lambda: Among(gymnasium.make(name), seed), features="scaled"))
    assert facts.irrelevant.tolist() == [size, size + 1]
    assert (name == "Acrobot-v1") or facts.idle.tolist() == [size + 2, size + 3]


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "limit"), [(30, 50), (0, 1_000)], ids=["many numbers", "long episodes"])
def test_what_tells_with_another_is_kept_among_many_and_in_long_episodes(extra: int, limit: int) -> None:
    """Of 34 numbers none was asked for, and of few episodes none could be: what decides was left out."""

    class Sensors(gymnasium.ObservationWrapper[Any, Any, Any]):
        observation_space: Any = spaces.Box(-np.inf, np.inf, (4 + extra,))

        def observation(self, observation: Any) -> Any:
            return np.concatenate([observation, self.np_random.normal(size=extra)]).astype(np.float32)

    facts = Facts(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Sensors(Valves("a product")), limit)))
    assert facts.irrelevant.tolist() == [*range(3, 4 + extra)]


def test_where_it_takes_too_long_to_tell_all_numbers_are_kept() -> None:
    random = np.random.default_rng(0)
    seen, none = random.normal(size=(600, 400)), np.zeros(600, bool)
    steps = Steps(seen, random.integers(2, size=600), random.normal(size=600), none, np.arange(600) % 20 == 19, seen)
    assert telling_together(steps, np.arange(380)).size == 380
    assert telling_together(steps, np.arange(0)).size == 0


def test_a_clock_and_a_constant_tell_nothing_more_than_in_other_episodes() -> None:
    random = np.random.default_rng(0)
    clock, paid, action = np.tile(np.arange(10.0), 50), random.normal(size=500), random.integers(2, size=500)
    seen = np.column_stack([clock, np.ones(500), random.normal(size=500)])
    steps = Steps(seen, action, paid, np.zeros(500, bool), clock == 9, seen)
    assert telling_together(steps, np.array([0, 1])).size == 0
    seen = np.tile(seen, 11)
    assert telling_together(steps._replace(observation=seen, next_observation=seen), np.array([0])).size == 0
