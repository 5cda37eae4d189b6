"""Actions of several numbers that are too many to learn each by itself: what is learned for their parts is combined."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from uppertail.cli import main
from uppertail.defaults.facts import Facts
from uppertail.encodings import OneHot
from uppertail.encodings.standardized import Standardized
from uppertail.encodings.vector import Vector
from uppertail.environments.actions import list_actions
from uppertail.errors import InputError
from uppertail.loader import load
from uppertail.networks import parts_of_actions
from uppertail.types import Transition

SIZES = (3, 3, 2)
ACTIONS = [*itertools.product(*map(range, SIZES))]


class Dials(gymnasium.Env):
    """Four dials move four numbers, which are all to be 1; the first moves most."""

    observation_space = spaces.Box(-math.inf, math.inf, (4,), np.float32)
    action_space = spaces.Box(-1, 1, (4,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.dials, self.steps = self.np_random.uniform(-0.1, 0.1, 4), 0
        return self.dials.astype(np.float32), {}

    def step(self, action: Any) -> Any:
        self.dials, self.steps = self.dials + action * [0.5, 0.4, 0.3, 0.2], self.steps + 1
        reward = -float(np.abs(self.dials - 1).mean())
        return self.dials.astype(np.float32), reward, False, self.steps == 10, {}


@pytest.mark.parametrize(
    ("space", "levels", "sizes"),
    [
        (spaces.Box(-1, 1, (3,)), None, None),  # 27 actions
        (spaces.Box(-1, 1, (4,)), None, (3, 3, 3, 3)),
        (spaces.Box(-1, 1, (7,)), 2, (2,) * 7),
        (spaces.MultiDiscrete([5, 2, 9]), None, (5, 2, 9)),
        (spaces.MultiBinary(10), None, (2,) * 10),
    ],
    ids=str,
)
def test_many_combinations_have_parts(space: Any, levels: int | None, sizes: Any) -> None:
    listed = list_actions(space, levels)
    assert listed.sizes == sizes and listed.own is not None
    if sizes:
        parts = parts_of_actions(sizes)
        assert parts.shape == (listed.size, sum(sizes)) and (parts.sum(axis=1) == len(sizes)).all()
        values = np.concatenate([np.unique(column) for column in listed.own.reshape(listed.size, -1).T])
        own = listed.own.reshape(listed.size, -1)
        np.testing.assert_array_equal(values[np.nonzero(parts)[1].reshape(own.shape)], own)


def test_outputs_of_an_action_are_the_mean_of_those_of_its_parts() -> None:
    alone: Any = ut.Twin(width=8).init(jax.random.key(0), OneHot(5), sum(SIZES), 2)
    alone = dataclasses.replace(alone, heads=jax.random.normal(jax.random.key(1), alone.heads.shape))
    found, parts = alone.combining(SIZES).outputs(jnp.array(3)), np.asarray(alone.outputs(jnp.array(3)))
    begins = np.cumsum((0, *SIZES[:-1]))
    expected = [
        np.mean([parts[:, b + value] for b, value in zip(begins, values, strict=True)], 0) for values in ACTIONS
    ]
    np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-6)


def test_an_action_is_as_new_as_the_newest_of_its_parts() -> None:
    encoding = Standardized(Vector((-math.inf,) * 2, (math.inf,) * 2))
    unknown: Any = ut.KernelCounts(prior_count=0.5).init(jax.random.key(0), encoding, sum(SIZES), 8).combining(SIZES)
    here, zero = jnp.zeros((1, 2)), jnp.zeros(1)
    for action in ([0, 0, 0], [0, 1, 1]):
        number = jnp.array([ACTIONS.index(tuple(action))], jnp.int32)
        unknown = unknown.observe(Transition(here, number, zero, zero > 0, here, number))
    counts = [[2, 0, 0], [1, 1, 0], [1, 1]]
    least = [min(count[value] for count, value in zip(counts, values, strict=True)) for values in ACTIONS]
    np.testing.assert_allclose(unknown.share(here[0]), 0.5 / (0.5 + np.array(least)), rtol=1e-6)
    np.testing.assert_allclose(unknown.kept(jnp.arange(2))[0], np.concatenate(counts))  # where the first led


def test_facts_look_at_each_number_of_an_action() -> None:
    facts = Facts(ut.FromGymnasium(Dials))
    assert len(facts.by_number) == 4 and set(np.unique(facts.by_number[2].action)) == {0, 1, 2}
    np.testing.assert_array_equal(
        np.ravel_multi_index([each.action for each in facts.by_number], (3, 3, 3, 3)), facts.steps.action
    )
    assert facts.irrelevant.size == facts.idle.size == 0
    assert facts.pace() == (2, 2), "each dial may be turned back, but the others go on"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"learner": ut.LeastSquares()},
            r"^An action is one of 81 combinations of 4 numbers, and LeastSquares learns ",
        ),
        ({"network": ut.PerAction()}, r"PerActionNetwork learns each by itself: leave the network out, or let "),
    ],
)
def test_what_learns_actions_alone_is_refused(parts: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ut.train(ut.FromGymnasium(Dials), settings=ut.Settings(seeds=1, episodes=2), **parts)


@pytest.mark.slow
def test_combined_actions_are_learned_and_exported(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    gymnasium.register("Dials-v0", f"{__name__}:Dials")
    arguments = ["--env", "Gym", "--env.id", "Dials-v0", "--seeds", "2", "--episodes", "300", "--out", "run"]
    assert main(["train", *arguments]) == 0
    assert "4 numbers in [-1, 1], each cut into 3 levels, which makes 81 actions" in capsys.readouterr().err
    run = ut.load("run")
    assert min(run.record.greedy_returns) > -4  # random actions return -11, and the best about -2
    assert main(["export", "run", "--to", "policy.npz"]) == 0
    seen = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    actions, mean, _ = load(Path("policy.npz"))(seen)
    np.testing.assert_array_equal(actions, run.act(seen))
    np.testing.assert_allclose(mean, run.distribution(seen).mean, atol=1e-3)
