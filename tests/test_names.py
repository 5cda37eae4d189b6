"""Names in grids, such as kinds of tiles: which numbers are names, and how a network learns them beside counts."""

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from choosing import chosen
from exported import policies_of
from uppertail.agent import Agent
from uppertail.encodings import Preferences, VectorSettings
from uppertail.environments import Actions, Interface
from uppertail.environments.spaces import read_space
from uppertail.evidence import MixedNetwork
from uppertail.export.program import program_of
from uppertail.training.method import Method
from uppertail.training.player import Player
from uppertail.training.run import Run
from worlds import transitions


class Tiles(gymnasium.Env[Any, Any]):
    """Codes of tiles, which never repeat."""

    action_space: Any = spaces.Discrete(2)

    def __init__(self, space: Any) -> None:
        self.observation_space: Any = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, self.np_random.random() < 0.1, False, {}


class Rare(spaces.Box):
    """Large numbers, of which none is drawn."""

    def sample(self, *_: Any, **__: Any) -> Any:
        return np.zeros(self.shape, self.dtype)


class Asked(gymnasium.Env[Any, Any]):
    """Each action is paid for the tiles of one of five kinds; ten steps, a new grid after each."""

    action_space: Any = spaces.Discrete(5)
    observation_space: Any = spaces.Box(0, 5, (3, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.shown(), {}

    def shown(self) -> np.ndarray:
        self.view = self.np_random.integers(5, size=(3, 3), dtype=np.uint8)
        return self.view

    def step(self, action: Any) -> Any:
        paid = float((self.view == action).sum())
        self.steps += 1
        return self.shown(), paid, False, self.steps == 10, {}


@dataclasses.dataclass(frozen=True)
class Own(ut.UCB):
    """A policy with a memory of its own."""

    def begin(self, key: Any, decision: ut.Decision) -> Any:
        return jnp.zeros(())


class Flicker(gymnasium.Env[Any, Any]):
    """A walk through 25 places of a grid, above which three tiles flicker."""

    action_space: Any = spaces.Discrete(4)
    observation_space: Any = spaces.Box(0, 10, (6, 5), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.steps = np.zeros(2, int), 0
        return self.shown(), {}

    def shown(self) -> np.ndarray:
        view = np.zeros((6, 5), np.uint8)
        view[0, :3] = self.np_random.integers(10, size=3)
        view[1 + self.place[0], self.place[1]] = 10
        return view

    def step(self, action: Any) -> Any:
        moved = self.place + [(0, 1), (1, 0), (0, -1), (-1, 0)][int(action)]
        self.place, self.steps = np.clip(moved, 0, 4), self.steps + 1
        over = bool((self.place == 4).all())
        return self.shown(), float(over), over, self.steps == 60, {}


class Walls(gymnasium.Env[Any, Any]):
    """A walk through 16 places, from one of them or of four, and walls that are not shown: the same ones, or others."""

    action_space: Any = spaces.Discrete(4)
    observation_space: Any = spaces.Box(0, 10, (4, 4), np.uint8)

    def __init__(self, others: bool, begins: bool = True) -> None:
        self.others, self.begins, self.walls = others, begins, np.random.default_rng(0).random((4, 4)) < 0.3

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.steps = np.array([0, self.np_random.integers(4 if self.begins else 1)]), 0
        if self.others:
            self.walls = self.np_random.random((4, 4)) < 0.3
        return self.shown(), {}

    def shown(self) -> np.ndarray:
        view = np.zeros((4, 4), np.uint8)
        view[tuple(self.place)] = 10
        return view

    def step(self, action: Any) -> Any:
        moved = np.clip(self.place + [(0, 1), (1, 0), (0, -1), (-1, 0)][int(action)], 0, 3)
        self.place, self.steps = self.place if self.walls[tuple(moved)] else moved, self.steps + 1
        over = bool((self.place == 3).all())
        return self.shown(), float(over), over, self.steps == 60, {}


VIEW, SHADES = (spaces.Box(0, most, (3, 3, 2), np.uint8) for most in (10, 200))
COMPASS = spaces.Discrete(4)


@pytest.mark.parametrize(
    ("space", "shown", "named"),
    [
        (VIEW, "observation", True),
        (spaces.Dict(view=VIEW, compass=COMPASS, level=spaces.Box(0, 15, (1,), np.int64)), "view", True),
        (spaces.Dict(view=VIEW, money=Rare(0, 16, (1,), np.int64)), "view", False),
        (spaces.Dict(view=VIEW, speed=spaces.Box(0.0, 1.0, (1,))), "view", False),
        (spaces.Dict(view=VIEW, speed=spaces.Box(0.0, 9.0, (1,))), "view", False),
        (spaces.Box(0, 1, (3, 6), np.uint8), "observation", False),
        (spaces.Dict(view=VIEW, speed=spaces.Box(-1, 1, (1,), np.int64)), "view", False),
        (spaces.Dict(compass=COMPASS, view=spaces.Box(0, 255, (12, 12, 3), np.uint8)), "view", False),
        (spaces.Dict(compass=COMPASS, view=spaces.Box(0, 15, (12, 12), np.uint8)), "view", True),
        (SHADES, "observation", False),
        (spaces.Box(0, 10, (18,), np.uint8), "", False),
        (spaces.Box(0.0, 10.0, (3, 3)), "", False),
        (spaces.Box(0, 255, (12, 12), np.uint8), "", False),
    ],
    ids=["alone", "beside", "many", "fractions beside", "more", "0 or 1", "below 0", "image beside", "large", "shades",
         "no grid", "fractions", "image"],
)  # fmt: skip
def test_a_grid_of_few_whole_numbers_shows_names(space: Any, shown: str, named: bool) -> None:
    builder = ut.FromGymnasium(lambda: Tiles(space), left_out=())
    assert builder.inspected.observed.flat_images == ((shown,) if shown else ())
    found = chosen(builder)
    assert found.builder.features == ("one_hot" if named else "auto")
    said = {"names, such as kinds of tiles: whole numbers below 16": named, "plain numbers, each pixel": not named}
    for words, expected in said.items():
        count = sum(note.startswith(f"'{shown}' is read as {words}") for note in found.notes)
        assert count == (expected and bool(shown))


class Shifted(Tiles):
    """The same and `more`, so that some are outside of what the space says."""

    def __init__(self, more: int) -> None:
        super().__init__(spaces.Box(0, 10, (3, 3, 2), np.int8))
        self.more = more

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        seen, told = super().reset(seed=seed)
        return seen + self.more, told

    def step(self, action: Any) -> Any:
        seen, *told = super().step(action)
        return seen + self.more, *told


@pytest.mark.parametrize(("more", "features"), [(0, "one_hot"), (2, "one_hot"), (-1, "auto")])
def test_a_number_below_0_is_no_name(more: int, features: str) -> None:
    """It would have the input of 0."""
    assert chosen(ut.FromGymnasium(lambda: Shifted(more), left_out=())).builder.features == features


def test_names_are_sought_beside_counts_and_what_is_given_stays() -> None:
    names = ut.FromGymnasium(Asked)
    found = chosen(names)
    values = {name: found.entries[name].value for name in ("discount", "policy.power", "evidence", "env.action_repeat")}
    assert values == {"discount": 0.95, "policy.power": 1.0, "evidence": "PixelCounts", "env.action_repeat": 1}
    assert found.builder.left_out is None, "a name that tells nothing may tell what to do in another layout"
    given = chosen(names, policy=ut.UCB(power=0.0), discount=0.99, evidence=ut.PixelCounts(0.1))
    assert given.builder.features == "one_hot" and not {"policy.power", "discount", "evidence"} & {*given.entries}
    assert "policy.power" not in chosen(names, policy=Own()).entries, "a policy of the user's has a memory of its own"
    assert chosen(names.with_settings(features="scaled")).builder.features == "scaled"
    numbers = names.with_settings(left_out=())
    changes: list[dict[str, Any]] = [{"values": 3}, {"left_out": (0,)}, {"stack": 2}]
    for settings in changes:
        assert chosen(numbers.with_settings(**settings)).builder.features == "auto"
    others: list[dict[str, Any]] = [{"evidence": ut.KernelCounts()}, {"learner": ut.LeastSquares()}]
    for parts in others:
        assert chosen(numbers, **parts).builder.features == "auto"
    asked = chosen(names.with_settings(features="one_hot"))
    assert asked.entries["evidence"].value == "PixelCounts", "names that are given are learned the same way"
    assert "evidence" not in chosen(names.with_settings(features="one_hot"), ut.Imitation()).entries


def test_a_grid_that_repeats_but_for_noise_is_a_table() -> None:
    found = chosen(ut.FromGymnasium(Flicker))
    assert found.builder.left_out == (0, 1, 2) and found.builder.features == "hashed"


@pytest.mark.parametrize(("others", "begins"), [(False, True), (True, True), (True, False)])
def test_a_grid_that_repeats_has_names_where_layouts_differ(others: bool, begins: bool) -> None:
    """With one beginning, and walls that cannot be seen, it is hidden what differs: a table averages over it."""
    found = chosen(ut.FromGymnasium(lambda: Walls(others, begins)))
    assert found.builder.features == ("one_hot" if others and begins else "hashed")
    reason = found.entries["env.features"].reason
    assert ("equal actions led elsewhere" in reason) is (others and begins)


class Obstacles(gymnasium.Env[Any, Any]):
    """Six tiles of three kinds, drawn anew in each step: one action is paid for those of a kind, or for the whole."""

    action_space: Any = spaces.Discrete(2)
    observation_space: Any = spaces.Box(0, 10, (1, 6), np.uint8)

    def __init__(self, whole: bool) -> None:
        self.whole, self.drawn = whole, np.random.default_rng(0).random((3,) * 6)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.shown(), {}

    def shown(self) -> np.ndarray:
        self.view = self.np_random.integers(3, size=(1, 6), dtype=np.uint8)
        return self.view

    def step(self, action: Any) -> Any:
        of_view = self.drawn[tuple(self.view[0])] if self.whole else (self.view == 2).mean()
        paid = float(of_view) * (action == 0)
        return self.shown(), paid, self.np_random.random() < 0.1, False, {}


@pytest.mark.parametrize("whole", [False, True])
def test_a_grid_that_repeats_has_names_where_they_tell_more_than_the_whole(whole: bool) -> None:
    found = chosen(ut.FromGymnasium(lambda: Obstacles(whole)))
    assert found.builder.features == ("hashed" if whole else "one_hot")


def test_a_run_and_one_that_goes_on_learn_names_as_planned() -> None:
    run = Run(ut.FromGymnasium(Asked), Method(), ut.Settings(seeds=1))
    again = Run(ut.FromGymnasium(Asked), Method(), ut.Settings(seeds=1), run.plan)
    for each in (run, again):
        assert "9 numbers, read as names; a step is discounted by 0.95 (--discount)" in each.opening
        assert each.method.evidence == ut.PixelCounts(0.3) and each.method.policy == ut.UCB(power=1.0)
        assert each.settings.updates_per_rollout == each.settings.rollout_steps == 4
        assert each.method.network == ut.Twin(normalization="none")


def of_names(values: int = 4) -> Any:
    """Three planes of numbers, of which the last are 0 or 1, and stay as they are."""
    highest = np.broadcast_to(np.array([3, 3, 1], np.uint8), (4, 4, 3))
    space = spaces.Box(np.zeros_like(highest), highest, dtype=np.uint8)
    reading = read_space(np, space)
    vectors = VectorSettings(features="one_hot", values=values)
    return space, reading, reading.space.encoding(Preferences(vectors=vectors))


def seen_in(space: Any, reading: Any, count: int, seed: int = 0) -> np.ndarray:
    space.seed(seed)
    return np.stack([reading.array(space.sample()) for _ in range(count)])


def test_a_share_of_names_is_the_mean_over_subsets_of_numbers() -> None:
    """By hand: of each subset, how often the action was taken where its numbers were the same."""
    space, reading, encoding = of_names()
    evidence = ut.PixelCounts(0.5, subsets=12, chance=0.1).init(jax.random.key(0), encoding, 2, 50)
    subsets = np.asarray(evidence.weights) > 0
    assert subsets.shape == (12, 48)
    seen, actions = seen_in(space, reading, 30), np.random.default_rng(0).integers(2, size=30)
    evidence = evidence.observe(transitions(seen, actions.tolist(), seen))
    for asked in (*seen[:3], *seen_in(space, reading, 3, seed=1)):
        same = np.array([[(each[subset] == asked[subset]).all() for each in seen] for subset in subsets])
        counts = np.array([(same & (actions == action)).sum(axis=1) for action in range(2)])
        expected = (0.5 / (0.5 + counts)).mean(axis=1)
        assert evidence.share(jnp.asarray(asked)).tolist() == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.mark.parametrize("values", [3, 4], ids=["the highest beyond its places", "all with a place"])
def test_critics_of_names_beside_counts_leave_with_what_was_seen(values: int) -> None:
    (space, reading, encoding), family = of_names(values), ut.Gaussian(center=0.5)
    twin: Any = ut.Twin(width=8).init(jax.random.key(0), encoding, 3, family.num_outputs)
    heads, offsets = (jax.random.normal(jax.random.key(5), each.shape) for each in (twin.heads, twin.offsets))
    evidence = ut.PixelCounts(0.01, subsets=9, chance=0.1).init(jax.random.key(1), encoding, 3, 8)
    network: Any = MixedNetwork(dataclasses.replace(twin, heads=heads, offsets=offsets), evidence)
    seen = seen_in(space, reading, 7)
    network = network.experience(transitions(seen, [at % 3 for at in range(7)], seen))
    player = Player(Agent(family, ut.UCB(), encoding, 0.9), network, Interface(reading, Actions(3)))
    space.seed(0)
    asked = np.stack([space.sample() for _ in range(30)])
    expected, program = player.returns(asked).mean, program_of(player)
    assert len(set(expected.argmax(axis=1))) > 1  # or it would be no test
    for policy in policies_of(program):
        actions, means, *_ = policy(asked)
        np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-5)
        best = np.take_along_axis(expected, np.asarray(actions)[:, None], axis=1)[:, 0]  # of equal ones, any
        np.testing.assert_allclose(best, expected.max(axis=1), atol=1e-5)


@pytest.mark.slow
def test_what_a_name_asks_for_is_learned_by_default() -> None:
    """Nine tiles hold 1.8 of a kind in the mean, and 3.6 of the most frequent one."""
    with pytest.warns(UserWarning, match="names, such as kinds of tiles"):
        result = ut.train(ut.FromGymnasium(Asked), seeds=1, steps=2_000)
    paid = result.episodes["return"]
    assert np.mean(paid[-20:]) > 32.0 > 24.0 > np.mean(paid[:5])
    assert result.record.summary()["policy"]["power"] == 1.0
