"""Environments of Gymnasium, stepped in Python or compiled, against Gymnasium itself."""

import copy
import functools
import math
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from choosing import chosen
from uppertail.encodings import (
    Encoding,
    HashedStates,
    Image,
    Numbers,
    OneHot,
    Preferences,
    RandomFeatures,
    Scalar,
    States,
    Thermometer,
    Vector,
    VectorSettings,
)
from uppertail.environments import FromGymnasium, Gym, HostStep, builder_of
from uppertail.environments.actions import Actions
from uppertail.environments.finite import FiniteState
from uppertail.environments.gymnasium.adapter import Adapter, SideBySide
from uppertail.environments.gymnasium.vector import HostEnvironments, episode_seed
from uppertail.environments.interface import Interface
from uppertail.environments.random_policy import MEASURED_EPISODES, MEASURED_STEPS, Steps, measured_range
from uppertail.environments.spaces import read_space
from uppertail.errors import InputError
from uppertail.types import ReturnRange
from worlds import measure_returns

KEY = jax.random.key(0)
INF = math.inf
SCALED = Preferences(vectors=VectorSettings(features="scaled"))
TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-"))
"""Taxi-v4; Taxi-v3 in the lowest Gymnasium that is supported."""

IDS = [
    *("CartPole-v1", "MountainCar-v0", "Acrobot-v1"),
    *(TAXI, "CliffWalking-v1", "FrozenLake-v1", "Blackjack-v1"),
    pytest.param(
        "LunarLander-v3", marks=pytest.mark.skipif(find_spec("Box2D") is None, reason="needs gymnasium[box2d]")
    ),
]


class Counting(gymnasium.Env[Any, Any]):
    """Ends after a number of steps; it shows the steps of the episode, and 100 for each episode before.

    The reward of a step is its number, so that no two rows of an episode are the same.
    """

    observation_space = spaces.Box(0, INF, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, steps: int = 3, terminates: bool = True, truncates: bool = False) -> None:
        self.steps, self.terminates, self.truncates = steps, terminates, truncates
        self.step_count, self.episode = 0, -1

    def _shown(self) -> np.ndarray:
        return np.array([self.step_count + 100 * self.episode], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.step_count, self.episode = 0, self.episode + 1
        return self._shown(), {}

    def step(self, action: Any) -> Any:
        assert self.step_count < self.steps, "a step beyond the episode's end"
        self.step_count += 1
        ended = self.step_count == self.steps
        return self._shown(), float(self.step_count), ended and self.terminates, ended and self.truncates, {}


class Remembering(gymnasium.Env[Any, Any]):
    """Shows what its seed drew, and all the actions of the episode so far; its seed draws how long it is, too."""

    observation_space = spaces.Dict(
        {"drawn": spaces.Box(0, 1e6, (1,), np.float32), "past": spaces.Box(-INF, INF, (2,), np.float64)}
    )
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self) -> None:
        self.drawn, self.length, self.past = np.zeros(1, np.float32), 0, np.zeros(2)

    def _shown(self) -> dict[str, Any]:
        return {"drawn": self.drawn.copy(), "past": self.past.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.drawn[0], self.length = self.np_random.integers(10**6), int(self.np_random.integers(2, 12))
        self.past = np.zeros(2)
        return self._shown(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        self.past = np.array([self.past[0] + 1, (3 * self.past[1] + action + 1) % 10_007])
        return self._shown(), float(self.np_random.random()), bool(self.past[0] >= self.length), False, {}


class Paying(gymnasium.Env[Any, Any]):
    """Pays what it is told to, whatever the action, and ends then."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(2)
    made: list["Paying"] = []  # noqa: RUF012

    def __init__(self, rewards: tuple[float, ...] = (1.0,), endless: bool = False) -> None:
        self.rewards, self.endless, self.at, self.episodes, self.steps = rewards, endless, 0, 0, 0
        Paying.made.append(self)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.episodes = 0, self.episodes + 1
        return 0, {}

    def step(self, action: Any) -> Any:
        self.at, self.steps = self.at + 1, self.steps + 1
        return (
            0,
            self.rewards[(self.at - 1) % len(self.rewards)],
            not self.endless and self.at >= len(self.rewards),
            False,
            {},
        )


class NoMetadata(Counting):
    metadata: Any = None


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Any:
    names: dict[str, Any] = {
        "Counting-v0": Counting,
        "Remembering-v0": Remembering,
        "Paying-v0": Paying,
        "NoMetadata-v0": NoMetadata,
    }
    names |= {"Vector-v0": lambda: SyncVectorEnv([Counting])}
    for name, kind in names.items():
        gymnasium.register(f"Testing/{name}", entry_point=kind)
    yield
    for name in names:
        del gymnasium.registry[f"Testing/{name}"]


# Spaces


@pytest.mark.parametrize(("name", "kind"), [("one_hot", OneHot), ("scalar", Scalar), ("thermometer", Thermometer)])
def test_a_discrete_space_is_its_states_counted_from_0(name: Any, kind: Any) -> None:
    read = read_space(np, spaces.Discrete(5, start=3))
    assert read.space.encoding(Preferences(name)) == kind(5)
    for state in (3, np.int64(5), 7):
        assert read.array(state) == state - 3
        assert read.array(state).dtype == np.int32
        assert read.array(state).shape == ()


@pytest.mark.parametrize("start", [7, 2**40, -(2**40)])
def test_a_discrete_space_may_start_anywhere_and_have_as_many_values_as_32_bits(start: int) -> None:
    read = read_space(np, spaces.Discrete(2**31 - 1, start=start))
    assert read.array(start + 2**30) == 2**30
    with pytest.raises(InputError, match=r"more than 2,147,483,647 values: .*, or use --env.encoding hashed"):
        read_space(np, spaces.Discrete(2**31, start=start))


class Noted(gymnasium.Env[Any, Any]):
    """Numbers of 64 bits that Gymnasium cannot draw, or a picture beside a number that never repeats."""

    action_space: Any = spaces.MultiBinary(7)

    def __init__(self, kind: str) -> None:
        picture = spaces.Dict(picture=spaces.Box(0, 255, (12, 12), np.uint8), charge=spaces.Box(0.0, 1.0, (1,)))
        self.observation_space: Any = picture if kind == "picture" else spaces.Box(0, 2**63 - 1, (1,), np.int64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.charge = 1.0
        return self.seen(), {}

    def seen(self) -> Any:
        self.charge -= 0.1 * float(self.np_random.random())
        charge = np.array([self.charge], np.float32)
        if isinstance(self.observation_space, spaces.Dict):
            return {"picture": np.zeros((12, 12), np.uint8), "charge": charge}
        return np.array([2**62], np.int64)

    def step(self, action: Any) -> Any:
        return self.seen(), float(action[0]), self.charge < 0, False, {}


def test_numbers_whose_bounds_are_too_far_apart_to_draw_one_are_read() -> None:
    seen = FromGymnasium(lambda: Noted("wide")).inspected
    assert seen.observed.example.shape == (1,) and seen.observed.flat_images == ()


@pytest.mark.slow
def test_an_image_that_does_not_stand_alone_is_named() -> None:
    found = chosen(FromGymnasium(lambda: Noted("picture")))
    assert found.builder.inspected.observed.flat_images == ("picture",)
    assert any(note.startswith("'picture' is read as plain numbers, each pixel by itself") for note in found.notes)


NUMBERS = {
    "Box, rank 1": spaces.Box(np.array([-1.0, -INF, 0.0]), np.array([1.0, 2.0, INF]), dtype=np.float64),
    "Box, rank 2": spaces.Box(-2.0, 3.0, (3, 2), np.float32),
    "Box, rank 3": spaces.Box(0, 9, (2, 3, 4), np.int64),
    "large, without bounds": spaces.Box(-INF, INF, (10, 10), np.float32),
    "MultiDiscrete": spaces.MultiDiscrete([3, 2, 4]),
    "MultiBinary": spaces.MultiBinary(4),
    "Tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1.0, 1.0, (2,)))),
    "Dict": spaces.Dict(
        {
            "z": spaces.Discrete(3, start=2),
            "a": spaces.Box(0.0, 5.0, (2, 2)),
            "m": spaces.Dict({"b": spaces.MultiBinary(2)}),
        }
    ),
}


@pytest.mark.parametrize("space", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("scaling", ["auto", "declared", "running"])
def test_other_spaces_are_read_as_gymnasium_flattens_them(space: spaces.Space[Any], scaling: Any) -> None:
    read, flat = read_space(np, space), spaces.flatten_space(space)
    assert isinstance(flat, spaces.Box)
    if scaling == "declared" and not (np.isfinite(flat.low) & np.isfinite(flat.high)).all():
        pytest.skip("Where a bound is infinite, declared scaling is refused.")
    encoding = read.space.encoding(Preferences(vectors=VectorSettings(scaling=scaling, features="scaled")))
    space.seed(0)
    for _ in range(5):
        sample = space.sample()
        array = read.array(sample)
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, np.asarray(spaces.flatten(space, sample), np.float32))
    assert isinstance(encoding, Vector)
    low, high = (np.asarray(bound, float).reshape(-1) for bound in (flat.low, flat.high))
    discrete = isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary)  # auto: what a Box showed so far
    declared = np.isfinite(low) & np.isfinite(high) & (scaling == "declared" or (scaling == "auto" and discrete))
    np.testing.assert_array_equal(encoding.low, np.where(declared, low, -INF))
    np.testing.assert_array_equal(encoding.high, np.where(declared, high, INF))


def test_a_bound_that_is_only_a_large_number_is_none() -> None:
    space = spaces.Box(np.array([-3.4e38, -1e9]), np.array([3.4e38, 1e9]), dtype=np.float64)
    read = read_space(np, space).space
    assert isinstance(read, Numbers)
    assert (read.low, read.high) == ((-INF, -1e9), (INF, 1e9))


@pytest.mark.parametrize(("features", "always"), [("auto", None), ("random", True), ("scaled", False)])
def test_numbers_enter_as_random_features_where_there_is_a_box(features: Any, always: bool | None) -> None:
    for name, space in NUMBERS.items():
        has_box = name not in ("MultiDiscrete", "MultiBinary")
        numbers = Preferences(
            vectors=VectorSettings(features=features, num_features=7, length_scale=0.5, feature_norm=9.0)
        )
        encoding, scaled = (read_space(np, space).space.encoding(each) for each in (numbers, SCALED))
        assert isinstance(scaled, Vector)
        random = has_box if always is None else always
        assert encoding == (RandomFeatures(scaled, 7, 0.5, 9.0) if random else scaled)


FEW = {
    "MultiDiscrete": (spaces.MultiDiscrete([3, 2, 4]), lambda a, b, c: np.array([a, b, c]), (3, 2, 4)),
    "of two axes": (spaces.MultiDiscrete(np.array([[3], [2]])), lambda a, b: np.array([[a], [b]]), (3, 2)),
    "counted from elsewhere": (
        spaces.MultiDiscrete([3, 2], start=[-1, 5]),
        lambda a, b: np.array([a - 1, b + 5]),
        (3, 2),
    ),
    "MultiBinary": (spaces.MultiBinary(3), lambda *bits: np.array(bits, np.int8), (2, 2, 2)),
    "Tuple": (spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2, start=7))), lambda a, b: (a, b + 7), (3, 2)),
    "of one value": (spaces.Tuple((spaces.Discrete(1), spaces.Discrete(2))), lambda a, b: (a, b), (1, 2)),
    "Dict": (
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Dict(c=spaces.MultiBinary(1), d=spaces.Discrete(3))}),
        lambda a, c, d: {"a": a, "b": {"c": np.array([c], np.int8), "d": d}},
        (2, 2, 3),
    ),
}
"""Spaces of few observations; what makes one of them from its integers; how many values each integer has."""


@pytest.mark.parametrize("name", FEW)
def test_few_observations_of_several_integers_are_states(name: str) -> None:
    space, observation, sizes = FEW[name]
    read = read_space(np, space, states=True)
    assert read.space == States(math.prod(sizes))
    for state, integers in enumerate(np.ndindex(*sizes)):
        array = read.array(observation(*integers))
        assert (array.item(), array.shape, array.dtype) == (state, (), np.int32)
    with pytest.raises(ValueError, match=r"(?s)^the observation .* is not in "):
        read.array(observation(*sizes))


@pytest.mark.parametrize("name", FEW)
def test_integers_in_order_are_numbers_from_0_on(name: str) -> None:
    space, observation, sizes = FEW[name]
    read = read_space(np, space, ordered=True)
    assert isinstance(read.space, Numbers)
    assert (read.space.low, read.space.high) == ((0.0,) * len(sizes), tuple(size - 1.0 for size in sizes))
    for integers in np.ndindex(*sizes):
        array = read.array(observation(*integers))
        assert (array.tolist(), array.dtype) == ([*integers], np.float32)
        for other in (read_space(np, space, states=True), read_space(np, space)):
            assert other.integers(other.array(observation(*integers))[None]).tolist() == [[*integers]]
    with pytest.raises(ValueError, match=r"(?s)^the observation .* is not in "):
        read.array(observation(*sizes))


PIXELS = spaces.Box(0, 255, (12, 10, 3), np.uint8)


@pytest.mark.parametrize(
    ("space", "seen", "words"),
    [
        (spaces.Discrete(6), 0.5, r"the observation holds 0\.5, which is not in Discrete\(6\)"),
        (spaces.Discrete(6), np.int64(2**32 + 1), r"the observation 4294967297 is not in Discrete\(6\)"),
        (spaces.MultiDiscrete([3, 2]), np.array([1.5, 0.0]), r"the observation holds 1\.5, which is not in"),
        (PIXELS, np.full(PIXELS.shape, 0.25), r"the observation holds 0\.25, which is not in Box\(0, 255"),
        (PIXELS, np.full(PIXELS.shape, 300), "the observation holds 300, which is not in Box"),
        (PIXELS, np.zeros((3, 12, 10), np.uint8), r"has the shape \(3, 12, 10\), but its space says \(12, 10, 3\)"),
    ],
    ids=["half", "beyond 32 bits", "halves", "shares", "no byte", "axes"],
)
def test_what_would_become_another_observation_is_refused(space: Any, seen: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_space(np, space).array(seen)


@pytest.mark.parametrize("seen", [np.ones((12, 10, 1)), np.ones((12, 10), int), np.ones((12, 10), bool)], ids=str)
def test_an_image_may_have_another_type_and_axes_of_one(seen: Any) -> None:
    read = read_space(np, spaces.Box(0, 255, (12, 10), np.uint8)).array(seen)
    assert (read.shape, read.dtype, read.min()) == ((12, 10), np.uint8, 1)


class Showing(gymnasium.Env[Any, Any]):
    """Shows one and the same observation of a space."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], shown: Any) -> None:
        self.observation_space, self.shown = space, shown

    def reset(self, **_: Any) -> Any:
        return self.shown, {}

    def step(self, action: Any) -> Any:
        return self.shown, 0.0, True, False, {}


@pytest.mark.parametrize(
    ("space", "settings", "expected"),
    [
        (spaces.MultiDiscrete([64, 64]), {}, States),
        (spaces.MultiDiscrete([64, 65]), {}, Numbers),
        (spaces.MultiBinary(12), {}, States),
        (spaces.MultiBinary(13), {}, Numbers),
        (spaces.MultiDiscrete([4, 4]), {"features": "scaled"}, Numbers),
        (spaces.MultiDiscrete([4, 4]), {"features": "random"}, Numbers),
        (spaces.MultiDiscrete([4, 4]), {"left_out": (0,)}, Numbers),
        (spaces.MultiDiscrete([4, 4]), {"left_out": ()}, States),
        (spaces.MultiDiscrete([4, 4]), {"radius": 0.1}, Numbers),
        (spaces.MultiDiscrete([4, 4]), {"encoding": "thermometer"}, Numbers),
        (spaces.MultiDiscrete([4, 4]), {"encoding": "hashed"}, HashedStates),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,)))), {}, Numbers),
        (spaces.Discrete(5000), {"features": "scaled"}, States),
    ],
    ids=str,
)
def test_integers_of_more_values_or_with_other_settings_are_no_state(space: Any, settings: Any, expected: Any) -> None:
    assert isinstance(FromGymnasium(lambda: Showing(space, space.sample()), **settings).observations, expected)


def test_integers_beside_a_constant_text_are_one_state() -> None:
    shown = {"a": np.array([2, 1]), "mission": "same"}
    space = spaces.Dict({"a": spaces.MultiDiscrete([4, 4]), "mission": spaces.Text(4)})
    builder = FromGymnasium(lambda: Showing(space, shown))
    assert builder.observations == States(16)
    assert builder.interface.reading.array(shown) == 2 * 4 + 1
    assert builder.interface.is_batch([shown]) and not builder.interface.is_batch(shown)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Box(0, 255, (84, 90, 3), np.uint8), Image(84, 90, 3)),
        (spaces.Box(0, 255, (4, 84, 90), np.uint8), Image(84, 90, 4, channels_first=True)),
        (spaces.Box(0, 255, (84, 90), np.uint8), Image(84, 90, 1)),
        (spaces.Box(0.0, 1.0, (10, 10, 10), np.float32), Image(10, 10, 10, peak=1.0)),
        (spaces.Box(-3.0, 2.0, (11, 10, 1), np.float32), Image(11, 10, 1, peak=3.0)),
    ],
    ids=str,
)
def test_boxes_of_many_rows_and_columns_are_images(space: spaces.Box, expected: Image) -> None:
    read = read_space(np, space)
    assert read.space.encoding(Preferences()) == expected
    space.seed(0)
    image = space.sample()
    np.testing.assert_array_equal(read.array(image), image)
    assert read.array(image).dtype == (np.uint8 if space.dtype == np.uint8 else np.float32)
    weight = jnp.ones((expected.num_features, 1))
    assert np.isfinite(expected.project(expected.init(KEY), weight, jnp.asarray(read.array(image)))).all()


@pytest.mark.parametrize(
    "space",
    [spaces.Sequence(spaces.Discrete(2)), spaces.Dict({"a": spaces.Sequence(spaces.Discrete(2))})],
)
def test_a_space_without_a_fixed_number_of_numbers_is_refused(space: spaces.Space[Any]) -> None:
    words = r"^Observations of the space .* cannot become numbers: wrap .*, or use --env.encoding hashed\.$"
    with pytest.raises(InputError, match=words):
        read_space(np, space)


@pytest.mark.parametrize("space", [spaces.Discrete(5), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2)])
def test_integers_of_another_shape_are_named(space: spaces.Space[Any]) -> None:
    with pytest.raises(ValueError, match=r"^the observation has the shape \(2, 3\), but its space says \("):
        read_space(np, space).array(np.zeros((2, 3), int))


@pytest.mark.parametrize(
    ("observation", "where"),
    [
        ({"at": (0,)}, "['at'][1]['key']"),
        ({"at": (0, {})}, "['at'][1]['key']"),
        ({"at": (0, 3)}, "['at'][1]['key']"),
        (3, "['at'][0]"),
    ],
)
def test_a_part_that_an_observation_lacks_is_named(observation: Any, where: str) -> None:
    bits = spaces.Discrete(2)
    read = read_space(np, spaces.Dict({"at": spaces.Tuple([bits, spaces.Dict({"key": bits})])}), states=True)
    assert read.array({"at": (1, {"key": 1})}) == 3
    with pytest.raises(ValueError, match=rf"^the observation has no {re.escape(where)}, which its space has$"):
        read.array(observation)
    with pytest.raises(
        ValueError, match=r"^the observation is an array and has no \['at'\]\[0\], which its space has$"
    ):
        read.array(np.zeros(2))


def test_a_part_that_is_not_in_its_space_is_named() -> None:
    space = spaces.Dict(grid=spaces.Box(0, 3, (2, 2), np.uint8), turn=spaces.Discrete(4))
    for states in (False, True):
        read = read_space(np, spaces.Dict(turn=spaces.Discrete(4)) if states else space, states=states)
        with pytest.raises(ValueError, match=r"^the observation 4 is not in Discrete\(4\), at \['turn'\]$"):
            read.array({"grid": np.zeros((2, 2), np.uint8), "turn": 4})
    with pytest.raises(ValueError, match=r"^the observation has the shape \(3, 2\), but .* \(2, 2\), at \['grid'\]$"):
        read_space(np, space).array({"grid": np.zeros((3, 2), np.uint8), "turn": 3})


def test_the_first_action_is_the_spaces_own() -> None:
    """`Remembering` asserts that it gets -1, 0 or 1."""
    for host in (Gym("Testing/Remembering-v0").open(0, 1), Gym("Testing/Remembering-v0").open(0, 2)):
        host.reset()
        first, second = (host.step(np.full(host.num_envs, action)) for action in (2, 1))
        assert first.next_observation[:, -1].tolist() == [2] * host.num_envs
        assert second.next_observation[:, -1].tolist() == [3 * 2 + 1] * host.num_envs
    assert Gym("Testing/Remembering-v0").num_actions == 3


# Stepped in Python


def finite(encoding: Encoding, observation: np.ndarray) -> bool:
    """Whether a network can take an observation."""
    weight, encoder = (
        jnp.ones((encoding.num_features, 1)),
        encoding.observe(encoding.init(KEY), jnp.asarray(observation)[None]),
    )
    return bool(jnp.isfinite(encoding.project(encoder, weight, jnp.asarray(observation))).all())


@pytest.mark.parametrize("name", IDS)
def test_every_classic_environment_builds_steps_and_resets(name: str) -> None:
    builder = Gym(name, compile="never")
    assert not builder.compiles
    host, random = builder.open(3, 1), np.random.default_rng(0)
    try:
        observation = host.reset()
        assert finite(builder.observations.encoding(builder.preferences), observation[0])
        shape, dtype, ends = observation.shape, observation.dtype, 0
        step = host.step(np.zeros(1, int))
        for _ in range(520):
            step = host.step(random.integers(builder.num_actions, size=1))
            for each in (step.observation, step.next_observation):
                assert (each.shape, each.dtype) == (shape, dtype)
            assert np.isfinite(step.reward).all()
            assert step.real.all()
            ends += int(step.terminated[0] or step.truncated[0])
        assert finite(builder.observations.encoding(builder.preferences), step.observation[0])
        assert ends >= 1 or name == "CliffWalking-v1"  # has no time limit
    finally:
        host.close()


def flattened(env: gymnasium.Env[Any, Any], observation: Any) -> np.ndarray:
    """What a network should see of an observation, by Gymnasium's own hand."""
    if isinstance(env.observation_space, spaces.Discrete):
        return np.asarray(observation)
    if isinstance(env.observation_space, spaces.Tuple):  # Blackjack's three integers are one state
        return np.ravel_multi_index(observation, (32, 11, 2))
    return np.asarray(spaces.flatten(env.observation_space, observation), np.float32)


def follow_gymnasium(host: HostEnvironments, name: str, seed: int, steps: int) -> list[int]:
    """Makes random steps, and the same in environments of our own making; how many episodes ended in each."""
    theirs = [gymnasium.make(name) for _ in range(host.num_envs)]
    episodes = [0] * host.num_envs
    random, first_action = np.random.default_rng(1), int(theirs[0].action_space.start)  # pyright: ignore[reportAttributeAccessIssue]
    where = host.reset()
    for row, env in enumerate(theirs):
        np.testing.assert_array_equal(where[row], flattened(env, env.reset(seed=episode_seed(seed, row, 0))[0]))
    for _ in range(steps):
        actions = random.integers(theirs[0].action_space.n, size=host.num_envs)  # pyright: ignore[reportAttributeAccessIssue]
        step = host.step(actions)
        assert step.real.all()
        for row, env in enumerate(theirs):
            after, reward, terminated, truncated, _ = env.step(int(actions[row]) + first_action)
            np.testing.assert_array_equal(step.next_observation[row], flattened(env, after))
            assert step.reward[row] == reward
            assert (step.terminated[row], step.truncated[row]) == (terminated, truncated and not terminated)
            if terminated or truncated:
                episodes[row] += 1
                after, _ = env.reset(seed=episode_seed(seed, row, episodes[row]))
            np.testing.assert_array_equal(step.observation[row], flattened(env, after))
    host.close()
    return episodes


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", TAXI, "Blackjack-v1", "Testing/Remembering-v0"])
@pytest.mark.parametrize("num_envs", [1, 3])
def test_steps_are_gymnasiums_with_the_true_final_observations(name: str, num_envs: int) -> None:
    episodes = follow_gymnasium(Gym(name, compile="never").open(7, num_envs), name, 7, 450)
    assert sum(episodes) >= 1


@pytest.mark.slow
def test_environments_in_processes_of_their_own_make_the_same_steps() -> None:
    episodes = follow_gymnasium(Gym("CartPole-v1", vectorization="async").open(7, 2), "CartPole-v1", 7, 60)
    assert min(episodes) >= 1


def test_every_episode_environment_and_seed_is_reset_differently() -> None:
    seeds = {episode_seed(*where) for where in np.ndindex(4, 5, 6)}
    assert len(seeds) == 4 * 5 * 6
    assert episode_seed(2**31 + 3, 0, 0) != episode_seed(3, 0, 0)  # where a run is evaluated


@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_time_limit_is_added_only_where_there_is_none(num_envs: int) -> None:
    for name, limit, expected in [("CliffWalking-v1", 5, 5), ("CartPole-v1", 5, None), ("CliffWalking-v1", None, None)]:
        host = Gym(name, compile="never").open(0, num_envs, limit)
        host.reset()
        steps = [host.step(np.zeros(num_envs, int)) for _ in range(7)]
        truncated = [number for number, step in enumerate(steps, 1) if step.truncated.any()]
        assert truncated == ([] if expected is None else [expected])
        host.close()


def test_max_episode_steps_truncates() -> None:
    builder = Gym("CartPole-v1", max_episode_steps=4)
    assert builder.time_limit == 4
    host = builder.open(0, 1)
    host.reset()
    assert [bool(host.step(np.array([step % 2])).truncated[0]) for step in range(8)] == [False] * 3 + [True] + [
        False
    ] * 3 + [True]


# Vector environments, whichever way they begin new episodes

COUNTING = Interface(read_space(np, Counting.observation_space), Actions(2))

KINDS = [(2, True, False), (3, False, True), (5, True, True), (1, True, False)]
"""Steps of an episode, whether it terminates then, whether it is truncated then."""


def vector_of(mode: AutoresetMode, vectors: type[SyncVectorEnv] = SyncVectorEnv) -> HostEnvironments:
    env = vectors([functools.partial(Counting, *kind) for kind in KINDS], autoreset_mode=mode)
    return HostEnvironments(env, COUNTING, 0)


def real_transitions(host: HostEnvironments, steps: int) -> list[list[tuple[float, ...]]]:
    """Of each environment: observation, next observation, reward, terminated, truncated of every real step."""
    where = host.reset()
    rows: list[list[tuple[float, ...]]] = [[] for _ in range(host.num_envs)]
    for _ in range(steps):
        now: HostStep = host.step(np.zeros(host.num_envs, int))
        columns = zip(where, now.next_observation, now.reward, now.terminated, now.truncated, strict=True)
        for row, column in enumerate(columns):
            if now.real[row]:
                rows[row].append(tuple(float(np.squeeze(value)) for value in column))
        where = now.observation
    return rows


def by_hand(kind: tuple[int, bool, bool], count: int) -> list[tuple[float, ...]]:
    """The transitions of `Counting`, worked out from what it says of itself."""
    length, terminates, truncates = kind
    rows = []
    for number in range(count):
        episode, step = divmod(number, length)
        last = step + 1 == length
        ends = (last and terminates, last and truncates and not terminates)
        rows.append((100.0 * episode + step, 100.0 * episode + step + 1, step + 1.0, *map(float, ends)))
    return rows


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_makes_the_steps_of_single_ones_in_every_mode(mode: AutoresetMode) -> None:
    steps = 17
    rows = real_transitions(vector_of(mode), steps)
    for row, kind in enumerate(KINDS):
        spent = -(-steps // (kind[0] + 1)) - 1 if mode is AutoresetMode.NEXT_STEP else 0  # on resets
        spent += int(mode is AutoresetMode.NEXT_STEP and steps % (kind[0] + 1) == 0)
        assert len(rows[row]) == steps - spent
        assert rows[row] == by_hand(kind, steps - spent)
        assert all(before // 100 == after // 100 for before, after, *_ in rows[row])  # none crosses an end


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_single_environment_makes_the_same_steps(kind: tuple[int, bool, bool]) -> None:
    one = SideBySide([Adapter(Counting(*kind), COUNTING.reading, np.zeros(1, np.float32))])
    host = HostEnvironments(one, COUNTING, 0, adapted=True)
    assert real_transitions(host, 17) == [by_hand(kind, 17)]


class Reusing(SyncVectorEnv):
    """Writes each step into the same arrays."""

    buffers: tuple[np.ndarray, ...] | None = None

    def step(self, actions: Any) -> Any:
        *columns, info = super().step(actions)
        dtypes = (np.float32, np.float32, bool, bool)
        now = tuple(np.asarray(column, dtype) for column, dtype in zip(columns, dtypes, strict=True))
        self.buffers = self.buffers or tuple(map(np.copy, now))
        for buffer, column in zip(self.buffers, now, strict=True):
            buffer[:] = column
        return *self.buffers, info


@pytest.mark.parametrize("kind", [SyncVectorEnv, Reusing])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_step_is_not_written_over_by_the_next(mode: AutoresetMode, kind: type[SyncVectorEnv]) -> None:
    host = vector_of(mode, kind)
    host.reset()
    kept, copies = [], []
    for _ in range(9):
        kept.append(host.step(np.zeros(len(KINDS), int)))
        copies.append(copy.deepcopy(kept[-1]))
    for before, after in zip(copies, kept, strict=True):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)


# Going back to episodes in progress


def random_steps(host: HostEnvironments, count: int, seed: int) -> list[HostStep]:
    random = np.random.default_rng(seed)
    return [host.step(random.integers(3, size=host.num_envs)) for _ in range(count)]


@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 23, 24, 25])
def test_restore_leads_back_to_the_episodes_in_progress(num_envs: int, steps: int) -> None:
    """The environments' episodes are of different lengths; the same steps follow, over the next ends too."""
    builder = Gym("Testing/Remembering-v0")
    host, again = builder.open(5, num_envs), builder.open(5, num_envs)
    where = host.reset()
    for step in random_steps(host, steps, 0):
        where = step.observation
    saved = copy.deepcopy(host.saved())
    again.reset()
    random_steps(again, 11, 9)  # whatever it did before
    np.testing.assert_array_equal(again.restore(saved), where)
    assert [array.tolist() for array in again.saved().values()] == [array.tolist() for array in saved.values()]
    ends = 0
    for ours, theirs in zip(random_steps(again, 30, 1), random_steps(host, 30, 1), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
        ends += int((ours.terminated | ours.truncated).sum())
    assert ends > num_envs


def test_what_is_saved_grows_with_the_episode_and_not_with_the_run() -> None:
    host = Gym("Testing/Remembering-v0").open(5, 3)
    host.reset()
    for step in random_steps(host, 200, 0):
        del step
        assert all(array.size <= 3 * 12 for array in host.saved().values())


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_nothing_leads_back_where_gymnasium_resets_by_itself(mode: AutoresetMode) -> None:
    """It says so, and other episodes begin."""
    host = vector_of(mode)
    host.reset()
    for _ in range(4):
        host.step(np.zeros(len(KINDS), int))
    assert host.saved() == {}
    assert (host.restore({}) % 100 == 0).all()
    assert host.step(np.zeros(len(KINDS), int)).real.all()


# What is measured of the returns


@pytest.mark.parametrize(
    ("rewards", "limit", "discount", "expected"),
    [
        # returns 1.75, 1.5, 1 and 0, a horizon of 1 + 1/2 + 1/4
        ((1.0, 1.0, 1.0), 3, 0.5, (0.0, 1.75)),
        # the same, but the horizon is 2
        ((1.0, 1.0, 1.0), None, 0.5, (0.0, 2.0)),
        # no horizon: twice the width of what was seen beyond it
        ((1.0, 1.0, 1.0), None, 1.0, (0.0, 9.0)),
        ((-1.0, -1.0), None, 1.0, (-6.0, 0.0)),
        # returns 2, 3, 4 and 0: 10 times the lowest reward is below -8, and 10 times the highest above 12
        ((-1.0, -1.0, 4.0), 10, 1.0, (-8.0, 12.0)),
        # 5 times the lowest reward is not, and the rest is the same
        ((-1.0, -1.0, 4.0), 5, 1.0, (-5.0, 12.0)),
        # returns 1.9 and 1, and a horizon of 10
        ((1.0, 1.0), None, 0.9, (0.0, 1.9 + 2 * 1.9)),
        ((0.0, 0.0), None, 1.0, (0.0, 0.0)),
    ],
)
def test_measured_returns_by_hand(
    rewards: tuple[float, ...], limit: int | None, discount: float, expected: tuple[float, float]
) -> None:
    builder = Gym("Testing/Paying-v0", kwargs={"rewards": rewards}, max_episode_steps=limit)
    measured = measure_returns(builder, discount)
    assert not measured.known
    np.testing.assert_allclose(measured[:2], expected, rtol=1e-6)


def test_what_is_paid_late_is_measured_too() -> None:
    """Of short episodes a random policy plays more than twenty: the hundredth paid, and returns were from 0 to 0."""
    over = np.ones(200, bool)
    nothing, reward = np.zeros(200), np.where(np.arange(200) == 100, 7.0, 0.0)
    steps = Steps(nothing, nothing.astype(int), reward, over, ~over, nothing)
    assert measured_range(Gym("Testing/Paying-v0"), steps, 0.9, 0.0)[:2] == (0.0, 7.0)


class Late(gymnasium.Env[int, int]):
    """Episodes of two steps, of which the fiftieth pays."""

    observation_space: Any = spaces.Discrete(2)
    action_space: Any = spaces.Discrete(2)
    episode = steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return 0, {}

    def step(self, action: int) -> Any:
        self.steps += 1
        return 1, 7.0 * (self.episode == 50), self.steps == 2, False, {}


def test_a_random_policy_goes_on_where_nothing_was_paid() -> None:
    """After twenty episodes it was said to have seen no reward, also where an action is repeated."""
    for repeats in (1, 2):
        assert measure_returns(FromGymnasium(Late, action_repeat=repeats), 0.5).high > 0


def test_measuring_ends_after_some_episodes_or_steps() -> None:
    for endless, episodes, steps in ((False, MEASURED_EPISODES, 2 * MEASURED_EPISODES), (True, 1, MEASURED_STEPS)):
        measure_returns(Gym("Testing/Paying-v0", kwargs={"rewards": (1.0, 2.0), "endless": endless}), 0.9)
        last = Paying.made[-1]
        assert last.steps == steps
        assert last.episodes - last.steps // 2 * (not endless) == 1  # one has begun that is not played
        assert last.episodes >= episodes


def test_measured_returns_are_the_same_for_every_run() -> None:
    first, second = (measure_returns(Gym("CartPole-v1"), 0.99) for _ in range(2))
    assert first == second
    assert 5 < first.high < 100


def test_returns_that_are_given_are_known_and_hold_0() -> None:
    assert Gym("CartPole-v1", returns=(5.0, 100.0)).known_returns == ReturnRange(0.0, 100.0)
    assert Gym("CartPole-v1", returns=(-5.0, -1.0)).known_returns == ReturnRange(-5.0, 0.0)
    assert Gym("CartPole-v1").known_returns is None


# Compiled


class Fixed(FrozenLakeEnv):
    """A lake that does not do what its table says, or says less than is needed."""

    def __init__(self, fault: str = "", **kwargs: Any) -> None:
        super().__init__(is_slippery=False, **kwargs)
        self.fault = fault
        if fault == "no start":
            del self.initial_state_distrib
        if fault == "other states":
            self.P = {state + 1: row for state, row in self.P.items()}
        if fault == "too few":
            self.observation_space = spaces.Discrete(17)
        if fault == "shifted":
            self.observation_space = spaces.Discrete(16, start=1)
        if fault == "other actions":
            self.P = {state: {action + 1: row[action] for action in row} for state, row in self.P.items()}
        if fault == "no ends":
            self.P = {state: {action: [(1.0, state, 0.0)] for action in row} for state, row in self.P.items()}

    def reset(self, **kwargs: Any) -> Any:
        if self.fault == "no start":
            gymnasium.Env.reset(self, seed=kwargs.get("seed"))
            self.s, self.lastaction = 0, None
            return 0, {}
        first = super().reset(**kwargs)
        if self.fault == "other starts":
            self.s = 14
            return 14, {}
        return first

    def step(self, a: Any) -> Any:
        if self.fault == "raises":
            raise RuntimeError("no ice.")
        state, reward, terminated, truncated, info = super().step(a)
        truncated = truncated or (self.fault == "truncates" and state > 3)
        return state, reward + (0.5 if self.fault == "other rewards" else 0.0), terminated, truncated, info


def lake(fault: str = "") -> gymnasium.Env[Any, Any]:
    return wrappers.TimeLimit(Fixed(fault), 50)


TABLES = {
    "FrozenLake-v1": Gym("FrozenLake-v1", kwargs={"is_slippery": False}),
    TAXI: Gym(TAXI),
    "CliffWalking-v1": Gym("CliffWalking-v1"),
}


@pytest.mark.parametrize("name", TABLES)
def test_environments_that_show_their_table_are_compiled(name: str) -> None:
    for builder in (
        TABLES[name],
        Gym(name),
        FromGymnasium(gymnasium.make(name)),
        builder_of(lambda: gymnasium.make(name)),
    ):
        assert isinstance(builder, Gym | FromGymnasium)
        assert builder.compiles
        assert builder.note is None
    never = Gym(name, compile="never")
    assert (never.compiles, never.note) == (False, None)
    assert never.observations == TABLES[name].build(KEY).observations


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Blackjack-v1"])
def test_environments_that_show_none_are_not(name: str) -> None:
    builder = Gym(name)
    assert (builder.compiles, builder.note) == (False, None)
    with pytest.raises(InputError, match=rf"^{name} cannot be compiled: it shows no table"):
        builder.build(KEY)


def test_a_fickle_taxi_is_not_compiled_and_a_rainy_one_is() -> None:
    fickle = Gym(TAXI, kwargs={"fickle_passenger": True})
    assert not fickle.compiles
    assert fickle.note == (f"{TAXI} is stepped in Python: its passengers are fickle, which the table does not show.")
    with pytest.raises(InputError, match="cannot be compiled: its passengers are fickle"):
        fickle.build(KEY)
    assert Gym(TAXI, kwargs={"is_rainy": True}).compiles
    assert Gym(TAXI, kwargs={"fickle_passenger": True}, compile="never").note is None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: wrappers.TransformReward(env, lambda reward: 2 * float(reward)),
        lambda env: wrappers.TransformObservation(env, lambda state: 15 - state, env.observation_space),
        lambda env: wrappers.TransformAction(env, lambda action: 3 - action, env.action_space),
        lambda env: wrappers.TimeLimit(wrappers.TransformReward(env, lambda reward: 2 * float(reward)), 7),
        lambda env: wrappers.ClipReward(wrappers.RecordEpisodeStatistics(env), -1, 1),
    ],
    ids=["reward", "observation", "action", "below a time limit", "above statistics"],
)
def test_a_wrapper_that_may_change_the_table_turns_compiling_off_and_says_so(wrap: Callable[[Any], Any]) -> None:
    builder = FromGymnasium(lambda: wrap(gymnasium.make("FrozenLake-v1")), id="Mine")
    assert not builder.compiles
    assert builder.note is not None
    assert builder.note.startswith("Mine is stepped in Python: its wrapper ")
    assert builder.note.endswith(" may change what the table says.")


@pytest.mark.parametrize(
    "make",
    [
        lambda: wrappers.TimeLimit(FrozenLakeEnv(is_slippery=False), 7),
        lambda: wrappers.TimeLimit(gymnasium.make("FrozenLake-v1", max_episode_steps=7), 500),
        lambda: gymnasium.make("FrozenLake-v1", max_episode_steps=7),
    ],
    ids=["without a spec", "below a longer one", "registered"],
)
def test_the_time_limit_is_the_shortest_that_is_wrapped_around(make: Callable[[], Any]) -> None:
    builder = FromGymnasium(make)
    assert builder.compiles
    assert builder.time_limit == builder.build(KEY).time_limit == 7


def test_an_environment_with_a_limit_of_its_own_is_not_said_to_have_none() -> None:
    class Limited(gymnasium.Wrapper[Any, Any, Any, Any]):
        max_steps = 9

        @property
        def unwrapped(self) -> Any:
            return self

    plain = FromGymnasium(lambda: gymnasium.make("FrozenLake-v1").unwrapped)
    limited = FromGymnasium(lambda: Limited(gymnasium.make("FrozenLake-v1").unwrapped))
    assert plain.may_go_on and not limited.may_go_on
    assert limited.time_limit is None  # nobody knows whether it keeps to it


def test_no_time_limit_is_taken_from_a_spec_that_nothing_enforces() -> None:
    assert FromGymnasium(lambda: gymnasium.make("FrozenLake-v1").unwrapped).time_limit is None


def test_wrappers_that_change_nothing_leave_it_on() -> None:
    def make() -> Any:
        return wrappers.TimeLimit(wrappers.RecordEpisodeStatistics(gymnasium.make("FrozenLake-v1")), 7)

    builder = FromGymnasium(make)
    assert builder.compiles
    assert builder.time_limit == 7
    assert builder.build(KEY).time_limit == 7


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("other rewards", "its steps are not those of the table"),
        ("no start", r"its table cannot be followed \(AttributeError: .*'initial_state_distrib'\)"),
        ("other states", r"its table cannot be followed \(KeyError: 0\)"),
        ("too few", r"its table is one of 16 states or actions, and its space Discrete\(17\)"),
        ("shifted", r"its table is one of 16 states or actions, and its space Discrete\(16, start=1\)"),
        ("other actions", r"its table cannot be followed \(KeyError: 0\)"),
        ("no ends", r"its table cannot be followed \(ValueError: could not broadcast .*\)"),
        ("other starts", "its episodes start where `initial_state_distrib` says that none does"),
        ("raises", r"its table cannot be followed \(RuntimeError: no ice\)"),
        ("truncates", "it truncates episodes by itself, which the table does not show"),
    ],
)
def test_a_table_that_cannot_stand_for_its_environment_is_not_compiled(fault: str, reason: str) -> None:
    assert FromGymnasium(lake).compiles
    builder = FromGymnasium(functools.partial(lake, fault), id="Mine")
    assert not builder.compiles
    with pytest.raises(AssertionError, match=rf"^Mine is stepped in Python: {reason}\.$"):
        raise AssertionError(builder.note)


@jax.jit
def follow_table(environment: Any, state: jax.Array, actions: jax.Array) -> Any:
    def step(state: FiniteState, action: jax.Array) -> Any:
        return environment.step(KEY, state, action)

    return jax.lax.scan(step, FiniteState(state, jnp.zeros((), jnp.int32)), actions)[1]


@pytest.mark.parametrize("name", TABLES)
def test_the_compiled_environment_steps_as_gymnasium_does(name: str) -> None:
    """States, rewards, ends and truncations of whole episodes; CliffWalking has no end that chance would find."""
    builder, random = TABLES[name], np.random.default_rng(0)
    environment, theirs = builder.build(KEY), gymnasium.make(name, **(builder.kwargs or {}))
    endings: set[tuple[bool, bool]] = set()
    for episode in range(25):
        state, _ = theirs.reset(seed=episode)
        assert float(environment.start_probability[np.flatnonzero(environment.start_state == state)[0]]) > 0
        actions = random.integers(environment.num_actions, size=210)
        ours = follow_table(environment, jnp.asarray(state, jnp.int32), jnp.asarray(actions, jnp.int32))
        observed, rewards, terminated, truncated = map(np.asarray, ours[:4])
        for step, action in enumerate(actions):
            after, reward, ends, cut, _ = theirs.step(int(action))
            assert (observed[step], rewards[step], terminated[step]) == (after, np.float32(reward), ends)
            assert truncated[step] == (cut and not ends)
            if ends or cut:
                endings.add((bool(terminated[step]), bool(truncated[step])))
                break
    assert endings >= {"FrozenLake-v1": {(True, False)}, TAXI: {(False, True)}, "CliffWalking-v1": set()}[name]


@pytest.mark.parametrize("name", TABLES)
def test_the_compiled_environment_starts_and_ends_as_registered(name: str) -> None:
    environment, bare = TABLES[name].build(KEY), gymnasium.make(name).unwrapped
    starts = np.zeros(environment.num_states)
    starts[np.asarray(environment.start_state)] = environment.start_probability
    np.testing.assert_allclose(starts, bare.initial_state_distrib, rtol=1e-6)  # pyright: ignore[reportAttributeAccessIssue]
    limit = {"FrozenLake-v1": 100, TAXI: 200, "CliffWalking-v1": 2**31 - 1}[name]
    assert environment.time_limit == limit


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FrozenLake-v1", (0, 1)),
        # 18 steps or fewer, the last of which pays 20; its masks allow no wrong place to put the passenger down
        (TAXI, (0, 20)),
        # the cliff, then 13 steps from the start
        ("CliffWalking-v1", (-100 - 13, 0)),
    ],
)
def test_the_range_leaves_out_what_only_repeated_errors_lose(name: str, expected: tuple[float, float]) -> None:
    low, high = TABLES[name].build(KEY).return_range(1.0)
    assert (float(low), float(high)) == expected


# What is given


def test_an_environment_at_hand_is_copied_for_each_seed_and_left_alone() -> None:
    env = Counting(3)
    env.reset()
    builder = builder_of(env)
    assert isinstance(builder, FromGymnasium)
    assert builder.id == "Counting"
    hosts = [builder.open(seed, 1) for seed in range(2)]
    for host in hosts:
        assert host.reset()[0, 0] == 100  # its second episode
        host.step(np.zeros(1, int))
    assert (env.episode, env.step_count) == (0, 0)


def test_the_label_of_what_is_given() -> None:
    assert FromGymnasium(gymnasium.make("CartPole-v1")).id == "CartPole-v1"
    assert FromGymnasium(Counting).id == "Counting"
    wrapper: Any = gymnasium.Wrapper  # whose `spec` is a property
    assert FromGymnasium(wrapper).id == "Wrapper"
    assert FromGymnasium(Counting, id="Mine").id == "Mine"
    assert builder_of(TABLES[TAXI]) is TABLES[TAXI]
    assert builder_of("CartPole-v1") == Gym("CartPole-v1")


def test_states_of_gymnasiums_grids_lie_in_rows() -> None:
    rows = {name: Gym(name).rows for name in ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", TAXI)}
    assert list(rows.values()) == [4, 8, 4, 1]


def test_a_vector_environment_can_be_given() -> None:
    builder = builder_of(lambda: SyncVectorEnv([functools.partial(Counting, 3)] * 2))
    assert isinstance(builder, FromGymnasium)
    assert not builder.compiles
    assert isinstance(builder.observations.encoding(builder.preferences), RandomFeatures)
    assert builder.num_actions == 2
    host = builder.open(0, 1)
    assert host.num_envs == 2
    assert host.reset().tolist() == [[0.0], [0.0]]


def refuse() -> Any:
    raise RuntimeError("no licence.")


class Uncopyable(Counting):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("not this one")


NOT_THERE = "There is no environment {!r} in Gymnasium here."


def nothing() -> Any:
    return None


def unchecked(**settings: Any) -> None:
    """CartPole with these settings, as where nothing checks types at run time."""
    builder = Gym("CartPole-v1")
    for name, value in settings.items():
        object.__setattr__(builder, name, value)
    builder.__post_init__()


ONE = gymnasium.make("CartPole-v1")

ERRORS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a typing error": (lambda: Gym("CartPol-v1").compiles, [NOT_THERE.format("CartPol-v1"), "mean CartPole-v1"]),
    "other letters": (lambda: Gym("cartpole-v1").compiles, [NOT_THERE.format("cartpole-v1"), "mean CartPole-v1?"]),
    "nothing to see": (
        lambda: Gym("Testing/Counting-v0").watched(pictures=False).close(),
        ["Testing/Counting-v0 has no render mode, but to be watched it needs human, rgb_array or ansi."],
    ),
    "another version": (lambda: Gym("CartPole-v9").compiles, [NOT_THERE.format("CartPole-v9"), "mean CartPole-v1"]),
    "another namespace": (
        lambda: Gym("No/CartPole-v1").compiles,
        [NOT_THERE.format("No/CartPole-v1"), "CartPole-v1 or"],
    ),
    "nothing like it": (lambda: Gym("Xyzzyx-v0").compiles, [NOT_THERE.format("Xyzzyx-v0"), "pprint_registry"]),
    "its module": (
        lambda: Gym("test_gymnasium:Testing/Countin-v0").compiles,
        [NOT_THERE.format("test_gymnasium:Testing/Countin-v0"), "mean test_gymnasium:Testing/Counting-v0 or "],
    ),
    "not registered": (
        lambda: Gym("test_gymnasium:refuse").compiles,
        ["Register it where it is defined: gymnasium.register('refuse-v0', entry_point='test_gymnasium:refuse')."],
    ),
    "not registered, with a version": (
        lambda: Gym("test_gymnasium:Cart-velocity-v3").compiles,
        ["gymnasium.register('Cart-velocity-v3', entry_point='test_gymnasium:Cart-velocity')."],
    ),
    "a module": (
        lambda: Gym("no_module:A-v0").compiles,
        ["A-v0 needs the module 'no_module', which is not installed: install its package, or start in"],
    ),
    "an argument": (
        lambda: Gym("FrozenLake-v1", kwargs={"map": "4x4"}).compiles,
        ["FrozenLake-v1 refuses its kwargs {'map': '4x4'} (", "give those of its constructor."],
    ),
    "a vector environment": (
        lambda: Gym("Testing/Vector-v0").compiles,
        ["Testing/Vector-v0 makes no gymnasium.Env (", "give ut.train a function that makes a vector environment."],
    ),
    "a text for a switch": (
        lambda: Gym("FrozenLake-v1", kwargs={"is_slippery": "flase"}).compiles,
        ["kwargs says is_slippery: 'flase', a text, but FrozenLake-v1 takes true or false there."],
    ),
    "its value": (
        lambda: Gym("FrozenLake-v1", kwargs={"map_name": "5x5"}).compiles,
        ["FrozenLake-v1 cannot be made (KeyError: '5x5')."],
    ),
    "bounds": (
        lambda: Gym("CartPole-v1").observations.encoding(Gym("CartPole-v1", scaling="declared").preferences),
        ["have no bounds at [1, 3], and scaling is declared: use auto or running"],
    ),
    "returns": (
        lambda: Gym("CartPole-v1", returns=(2.0, 1.0)),
        ["returns is [2.0, 1.0]: give the lowest, then the highest, within 1e+18."],
    ),
    "equal returns": (lambda: Gym("CartPole-v1", returns=(1.0, 1.0)), ["returns is [1.0, 1.0]: give the lowest, then"]),
    "no steps": (lambda: Gym("CartPole-v1", max_episode_steps=0), ["max_episode_steps is 0, but an episode needs at"]),
    "its metadata": (
        lambda: Gym("Testing/NoMetadata-v0").compiles,
        ["Testing/NoMetadata-v0 cannot be made (InvalidMetadata: Expect the environment metadata to be dict"],
    ),
    "not made": (lambda: FromGymnasium(refuse).compiles, ["refuse cannot be made (RuntimeError: no licence)."]),
    "not copied": (
        lambda: FromGymnasium(Uncopyable()).compiles,
        ["Uncopyable cannot be copied for each seed (TypeError): give a function that makes it"],
    ),
    "no environment": (
        lambda: FromGymnasium(nothing, id="Mine").compiles,
        ["Mine gives None: give a function that makes"],
    ),
    "the same again": (
        lambda: [
            same.open(seed, 1)
            for same in (FromGymnasium(lambda: wrappers.TimeLimit(ONE, 5), id="Mine"),)
            for seed in (0, 1)
        ],
        ["Mine returns the same environment again: give a function that makes a new one"],
    ),
    "a choice": (
        lambda: unchecked(features="foo"),
        ["features is 'foo': use one of auto, random, scaled, hashed or one_hot."],
    ),
    "three returns": (lambda: unchecked(returns=(1.0, 2.0, 3.0)), ["returns is (1.0, 2.0, 3.0): use a list of 2"]),
    "endless returns": (
        lambda: Gym("CartPole-v1", returns=(0.0, INF)),
        ["returns is (0.0, inf): in its list, use a finite number"],
    ),
    "endless success": (
        lambda: Gym("CartPole-v1", success=INF),
        ["success is inf: use a finite number, at most 3.4e+38, or leave it out"],
    ),
    "not given": (lambda: builder_of(3), ["environment is 3: give a builder such as Chain"]),
}


@pytest.mark.parametrize(("build", "words"), ERRORS.values(), ids=ERRORS)
def test_errors_are_sentences_that_name_the_remedy(build: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Gymnasium says it where Box2D is not installed."""

    def make(name: str) -> Any:
        raise gymnasium.error.DependencyNotInstalled(
            "Box2D is not installed, you can install it by run `pip install swig` "
            'followed by `pip install "gymnasium[box2d]"`'
        )

    monkeypatch.setattr(gymnasium, "make", make)
    with pytest.raises(InputError, match=r"^LunarLander-v3 needs packages that are not installed: ") as caught:
        _ = Gym("LunarLander-v3").compiles
    assert "`pip install 'gymnasium[box2d]'`" in str(caught.value)
