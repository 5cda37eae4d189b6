"""Masks of allowed actions: what is not allowed is never taken, never backed up and never shown."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import uppertail as ut
from uppertail.agent import Agent
from uppertail.cli import main
from uppertail.distributions.gaussian import GaussianReturn
from uppertail.encodings import Numbers, OneHot
from uppertail.environments import build_repeated
from uppertail.environments.base import StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.random_policy import random_steps, table_steps
from uppertail.errors import InputError
from uppertail.exact import optimal_policy, uniform_policy
from uppertail.policies import Decision
from uppertail.policies.base import FirstGreedy, highest
from uppertail.types import POLICY_CHOICE, TimeStep, Transition

pytestmark = pytest.mark.filterwarnings("ignore:The greedy policy of seed")  # it is not what is asked for here

LENGTH, RIGHT, LEFT, TRAP = 6, 0, 1, 2
BAIT = 1000.0  # what the trap would pay
KEY = jax.random.key(0)
SMALL = ut.Settings(seeds=2, steps=512, episodes=10**6, discount=0.9)


def allowed_at(place: Any) -> Any:
    """To the right always, to the left not at the left end, into the trap never."""
    return [True, place > 0, False]


class Line(gymnasium.Env[Any, Any]):
    """A line whose right end pays 1; its left end has no left, and its trap must not be entered."""

    action_space = spaces.Discrete(3, start=5)
    observation_space = spaces.Discrete(LENGTH)
    place = steps = 0
    strict = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.steps = 0
        return self.shown(), self.info()

    def step(self, action: Any) -> Any:
        number = int(action) - 5
        assert allowed_at(self.place)[number] or not self.strict, f"action {number} in {self.place}"
        self.place, self.steps = max(0, self.place + {RIGHT: 1, LEFT: -1, TRAP: 0}[number]), self.steps + 1
        over = self.place == LENGTH - 1
        return self.shown(), float(over), over, not over and self.steps >= 3 * LENGTH, self.info()

    def shown(self) -> Any:
        return self.place

    def info(self) -> dict[str, Any]:
        return {"action_mask": np.array(allowed_at(self.place), np.int8)}


class NumberLine(Line):
    observation_space = spaces.Box(0.0, np.full(2, LENGTH, np.float32))

    def shown(self) -> Any:
        return np.array([self.place, 1.0], np.float32)


def line_table(mask: bool = True) -> FiniteMDP:
    place = np.arange(LENGTH)
    after = np.stack([np.minimum(place + 1, LENGTH - 1), np.maximum(place - 1, 0), place], axis=1)[..., None]
    reward, over = np.zeros(after.shape, np.float32), np.zeros(after.shape, bool)
    reward[LENGTH - 2, RIGHT], over[LENGTH - 2, RIGHT] = 1.0, True
    reward[:, TRAP], over[:, TRAP] = BAIT, True
    masks = jnp.array([allowed_at(each) for each in place]) if mask else None
    return FiniteMDP(
        jnp.asarray(after, jnp.int32),
        jnp.asarray(reward),
        jnp.asarray(over),
        jnp.ones(after.shape),
        3 * LENGTH,
        action_mask=masks,
    )


@dataclasses.dataclass(frozen=True)
class Lines(StateBuilder):
    def build(self, key: Any) -> FiniteMDP:
        return line_table()


class VectorLine(ut.Environment):
    """The compiled line, shown as a vector; `shape` says what is wrong with its masks."""

    table: FiniteMDP
    shape: str = eqx.field(static=True, default="")

    @property
    def observations(self) -> Numbers:
        return Numbers((0.0, 0.0), (1.0, 1.0))

    @property
    def num_actions(self) -> int:
        return 3

    def reset(self, key: Any) -> Any:
        state, now = self.table.reset(key)
        return state, self.shown(now, "reset")

    def step(self, key: Any, state: Any, action: Any) -> Any:
        state, now = self.table.step(key, state, action)
        return state, self.shown(now, "step")

    def shown(self, now: TimeStep, when: str) -> TimeStep:
        mask: Any = None if when == self.shape else now.action_mask
        if mask is not None:
            mask = {"short": mask[:2], "nothing": mask & False}.get(self.shape, mask)
        seen = jnp.stack([now.observation.astype(jnp.float32) / LENGTH, jnp.ones(())])
        return now._replace(observation=seen, action_mask=mask)


@dataclasses.dataclass(frozen=True)
class VectorLines(ut.VectorBuilder):
    shape: str = ""

    def build(self, key: Any) -> VectorLine:
        return VectorLine(line_table(), self.shape)


# One state


BEST_IS_FORBIDDEN = GaussianReturn(jnp.array([[0.1, 0.2, 9.0], [0.2, 0.1, 9.0]]), jnp.array([[0.5, 0.5, 9.0]] * 2))
MASK = jnp.array([True, True, False])
POLICIES = [
    ut.UCB(),
    ut.UCB(low=1.0),
    ut.Thompson(),
    ut.EpsilonGreedy(1.0),
    ut.EpsilonGreedy(0.0),
    ut.Softmax(),
    ut.UCB(power=1.0),
    ut.DoubleUCB(),
    ut.MemberThompson(),
    ut.MemberThompson(draws=2),
    ut.PosteriorSampling(),
    ut.Greedy(),
    FirstGreedy(),
]


def chosen(policy: Any, mask: Any) -> np.ndarray:
    decision = Decision(ut.Gaussian(), BEST_IS_FORBIDDEN, action_mask=mask)
    return np.asarray(jax.vmap(lambda key: policy.first_action(key, decision))(jax.random.split(KEY, 200)))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_no_policy_takes_what_is_not_allowed(policy: Any) -> None:
    assert set(chosen(policy, MASK).tolist()) <= {0, 1}
    assert set(chosen(policy, jnp.array([False, True, False])).tolist()) == {1}
    np.testing.assert_array_equal(chosen(policy, jnp.ones(3, bool)), chosen(policy, None))


def test_random_actions_are_spread_over_the_allowed_ones() -> None:
    assert np.bincount(chosen(ut.EpsilonGreedy(1.0), MASK)).tolist() == pytest.approx([100, 100], abs=25)


@pytest.mark.parametrize("score", [jnp.nan, -jnp.inf, jnp.inf])
def test_even_without_a_usable_score_an_allowed_action_wins(score: float) -> None:
    scores = jnp.array([5.0, score, 7.0])
    assert int(highest(KEY, scores, jnp.array([False, True, False]))) == 1


def agent_of(policy: Any, greedy_mean: bool = False) -> Agent:
    return Agent(ut.Gaussian(), policy, OneHot(5), 0.9, greedy_mean=greedy_mean, has_masks=True)


@pytest.mark.parametrize("greedy_mean", [False, True])
@pytest.mark.parametrize("policy", [ut.UCB(), ut.Greedy(), ut.EpsilonGreedy(1.0)], ids=str)
def test_what_is_not_allowed_is_never_backed_up(policy: Any, greedy_mean: bool) -> None:
    z, zero = GaussianReturn(jnp.array([0.1, 0.2, 9.0]), jnp.array([0.5, 0.5, 9.0])), jnp.zeros((), jnp.int32)
    no, unknown = jnp.zeros((), bool), jnp.asarray(POLICY_CHOICE)
    transition = Transition(zero, zero, jnp.zeros(()), no, zero, unknown, next_action_mask=MASK)
    found = agent_of(policy, greedy_mean).bootstrap(KEY, z, transition)
    assert float(found.mean) < 1 and float(found.std) < 1
    everything = agent_of(ut.UCB(), greedy_mean).bootstrap(KEY, z, transition._replace(next_action_mask=None))
    assert float(everything.mean) == 9


# Compiled environments


TABLES: dict[str, dict[str, Any]] = {
    "table": {},
    "posterior": {"policy": ut.PosteriorSampling()},
    "counts": {"learner": ut.GradientDescent()},
    "network": {"learner": ut.GradientDescent(), "evidence": ut.NoEvidence()},
}
VECTORS: dict[str, dict[str, Any]] = {
    "kernel counts": {"learner": ut.GradientDescent(), "evidence": ut.KernelCounts()},
    "features": {"learner": ut.GradientDescent(), "evidence": ut.NoEvidence()},
    "imitation": {"learner": ut.Imitation(), "policy": ut.Softmax(), "distribution": ut.PointMass()},
}


def require_no_trap(result: Any) -> None:
    """Neither in training nor in the evaluation was the bait taken, nor was it expected."""
    assert max(seed.returns.max() for seed in result.record.episodes) == 1.0
    assert max(result.record.greedy_returns) <= 1.0


@pytest.mark.parametrize("name", ["table", *(pytest.param(name, marks=pytest.mark.slow) for name in [*TABLES][1:])])
def test_a_state_whose_trap_was_never_tried_keeps_no_optimism(name: str) -> None:
    result = ut.train(Lines(), settings=SMALL, **TABLES[name])
    require_no_trap(result)
    if name in ("table", "posterior"):  # these are certain as soon as all that is allowed was tried
        assert result.record.greedy_returns == [1.0, 1.0]
        start = result.distribution(0)
        assert start.std[RIGHT] < 1e-2 and start.mean[RIGHT] == pytest.approx(0.9 ** (LENGTH - 2), abs=1e-2)
        assert start.std[TRAP] > 0.1 and start.std[LEFT] > 0.1
    assert result.act(0, action_mask=[1, 0, 0]) == RIGHT
    np.testing.assert_array_equal(result.act([0, 3], action_mask=[[1, 0, 0], [0, 1, 0]]), [RIGHT, LEFT])
    assert result.act(3, explore=True, key=0, action_mask=np.array([0, 1, 0])) == LEFT


@pytest.mark.slow
@pytest.mark.parametrize("name", VECTORS)
def test_every_learner_of_vectors_honors_masks(name: str) -> None:
    result = ut.train(VectorLines(features="scaled", left_out=()), settings=SMALL, **VECTORS[name])
    require_no_trap(result)
    if name != "imitation":
        assert result.distribution(np.array([0.0, 1.0], np.float32)).mean[RIGHT] < 2


def test_exploring_costs_no_more_than_without_the_actions_that_are_not_allowed() -> None:
    """The optimistic table tries each allowed action of a state, and needs the episodes that it needs without traps."""
    result = ut.train(Lines(), settings=dataclasses.replace(SMALL, seeds=4))
    for seed in result.record.episodes:
        assert seed.returns[5:].min() == 1.0 and seed.lengths[20:].max() == LENGTH - 1


def test_an_action_is_repeated_as_long_as_it_is_allowed() -> None:
    environment = build_repeated(VectorLines(action_repeat=4), KEY)
    state, _ = environment.reset(KEY)
    state, now = environment.step(KEY, state, jnp.asarray(RIGHT))
    assert int(state.state) == 4
    state, now = environment.step(KEY, state, jnp.asarray(LEFT))
    state, now = environment.step(KEY, state._replace(state=jnp.asarray(2)), jnp.asarray(LEFT))
    assert (int(state.state), np.asarray(now.action_mask).tolist()) == (0, [True, False, False])


def test_the_range_of_returns_and_the_exact_policies_leave_out_what_is_not_allowed() -> None:
    masked, plain = line_table(), line_table(mask=False)
    assert float(masked.return_range(0.9)[1]) == 1.0 and float(plain.return_range(0.9)[1]) == BAIT
    np.testing.assert_allclose(uniform_policy(masked)[0], [1, 0, 0])
    assert optimal_policy(masked, 0.9)[:-1, RIGHT].tolist() == [1.0] * (LENGTH - 1)
    assert optimal_policy(plain, 0.9)[0, TRAP] == 1.0


def test_the_random_policy_before_a_run_takes_only_what_is_allowed() -> None:
    assert table_steps(line_table()).reward.max() == 1.0
    steps = random_steps(VectorLines(), observed=True)
    assert steps.reward.max() == 1.0 and not (np.asarray(steps.action) == TRAP).any()
    assert not (np.asarray(steps.action)[np.asarray(steps.observation)[:, 0] == 0] == LEFT).any()


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("short", r"action_mask is an array of bool\[2\]: give one truth value for each of the 3 actions"),
        ("step", "one gives an action_mask: give it in both"),
        ("nothing", "allows no action where an episode goes on"),
    ],
)
def test_a_wrong_mask_of_a_compiled_environment_is_refused(shape: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ut.train(VectorLines(shape=shape), settings=SMALL)


# Environments that Python steps


@pytest.mark.parametrize("num_envs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_gymnasium_is_never_asked_for_what_is_not_allowed(num_envs: int) -> None:
    result = ut.train(
        ut.FromGymnasium(Line, returns=(0, 1)), settings=dataclasses.replace(SMALL, num_envs=num_envs, seeds=1)
    )
    assert result.record.failed is None and result.record.greedy_returns == [1.0]
    assert result.act(0, action_mask=Line().reset()[1]["action_mask"]) == 5 + RIGHT


class FromTheMiddle(Line):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 2
        return self.shown(), self.info()


@pytest.mark.slow
@pytest.mark.parametrize("records", [True, False])
def test_inspect_shows_of_a_table_that_python_steps_what_is_allowed_where_episodes_begin(
    records: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gymnasium.register("FromTheMiddle-v0", lambda **_: FromTheMiddle())
    record = ["--record", "distributions"] if records else []
    asked = ["--env", "Gym", "--env.id", "FromTheMiddle-v0", "--steps", "256", "--seeds", "1", "--quiet"]
    try:
        assert main(["train", *asked, *record, "--out", str(tmp_path / "run")]) == 0
        capsys.readouterr()
        assert main(["inspect", str(tmp_path / "run"), "--json"]) == 0
    finally:
        del gymnasium.registry["FromTheMiddle-v0"]
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == (2 if records else None)  # without a recording the first observation is shown
    assert [action["mean"] is None for action in found["actions"]] == [False, False, True]
    assert [action["greedy"] for action in found["actions"]] == [True, False, False]
    if records:
        assert all(place["other_upper"] < 2 for place in found["path"])


@pytest.mark.slow
def test_the_path_of_a_network_shows_what_is_allowed() -> None:
    settings = dataclasses.replace(SMALL, seeds=1, steps=128)
    env = ut.FromGymnasium(NumberLine, features="scaled", left_out=(), action_repeat=1)
    recorded = ut.train(env, settings=settings, record="distributions").distributions
    assert recorded is not None and recorded.allowed is not None
    at_the_end = recorded.allowed[-1, 0].tolist()
    assert at_the_end == [allowed_at(float(name.split()[0])) for name in recorded.names["states"]]


@pytest.mark.slow
def test_a_network_beside_counts_learns_where_masks_are_given() -> None:
    settings = dataclasses.replace(SMALL, seeds=1, steps=128)
    result = ut.train(ut.FromGymnasium(NumberLine, features="scaled", left_out=(), action_repeat=1), settings=settings)
    assert result.record.asked["learner"]["name"] == "GradientDescent" and result.record.failed is None


def test_measuring_takes_only_what_is_allowed_and_repeats_as_long_as_it_is() -> None:
    for builder in (ut.FromGymnasium(Line), ut.FromGymnasium(NumberLine, action_repeat=3)):
        assert random_steps(builder, observed=True).reward.max() == 1.0


class ByMethod(Line):
    """The line, whose method says what is allowed; at the end of an episode it must not be asked."""

    def info(self) -> dict[str, Any]:
        return {}

    def action_masks(self) -> list[bool]:
        assert self.place < LENGTH - 1
        return allowed_at(self.place)


class InObservation(ByMethod):
    """The same as a part of its observation."""

    action_masks: Any = None
    observation_space: Any = spaces.Dict({"place": Line.observation_space, "action_mask": spaces.MultiBinary(3)})

    def shown(self) -> Any:
        return {"place": self.place, "action_mask": np.array(allowed_at(self.place), np.int8)}


class OfPairs(ByMethod):
    """The same, where an action is a pair: what to do, and a number of which the second is never allowed."""

    action_space: Any = spaces.MultiDiscrete([3, 2], start=[5, 0])

    def step(self, action: Any) -> Any:
        assert action[1] == 0
        return Line.step(self, action[0])

    def action_masks(self) -> list[bool]:
        return [*super().action_masks(), True, False]


class PairsInObservation(InObservation):
    """A pair again, whose values a part of the observation allows."""

    action_space: Any = OfPairs.action_space
    observation_space: Any = spaces.Dict({"place": Line.observation_space, "action_mask": spaces.MultiBinary(5)})
    step = OfPairs.step

    def shown(self) -> Any:
        return {"place": self.place, "action_mask": np.array([*allowed_at(self.place), True, False], np.int8)}


@pytest.mark.parametrize("env", [ByMethod, InObservation, OfPairs, PairsInObservation])
def test_masks_are_read_in_the_forms_of_other_libraries(env: Any) -> None:
    """An action that is not allowed would raise; ignoring masks, it does."""
    host = ut.FromGymnasium(env).open(0, 1)
    host.reset()
    assert host.action_mask is not None and np.flatnonzero(host.action_mask[0]).tolist() == [0]
    host.close()
    result = ut.train(env, settings=dataclasses.replace(SMALL, seeds=1))
    assert result.record.greedy_returns == [1.0]
    if env is InObservation:
        first = env().reset()[0]
        assert result.act(first) == 5 + RIGHT
        two = result.act([first, first | {"action_mask": np.array([0, 1, 0])}])
        assert np.asarray(two).tolist() == [5 + RIGHT, 5 + LEFT]
        assert result.act(first, action_mask=[0, 1, 0]) == 5 + LEFT, "what is given goes before"
    if env is OfPairs:
        masks = [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0]]
        two = result.act([0, 3], action_mask=masks)
        assert np.asarray(two).tolist() == [[5 + RIGHT, 0], [5 + LEFT, 0]], "of values"
        assert np.asarray(result.act(3, action_mask=[0, 0, 1, 0, 0, 0])).tolist() == [5 + LEFT, 0], "of combinations"
    if env is PairsInObservation:
        assert np.asarray(result.act(env().reset()[0])).tolist() == [5 + RIGHT, 0]
    with pytest.raises(InputError, match="AssertionError"):
        ut.train(ut.FromGymnasium(env, action_masks=False), settings=SMALL)


def masks_of(env: Any, action: Any = 0) -> tuple[Any, Any]:
    """What is allowed at the first reset and after a step, by the infos."""
    made = ut.FromGymnasium(lambda: env).make()
    return made.reset(seed=0)[1].get("action_mask"), made.step(action)[4].get("action_mask")


@pytest.mark.parametrize("several", [spaces.MultiBinary((2, 2)), spaces.MultiDiscrete(np.full((2, 2), 2))])
def test_several_integers_are_allowed_by_their_values_in_any_shape(several: Any) -> None:
    class Switches(ByMethod):
        action_space: Any = several

        def step(self, action: Any) -> Any:
            return 1, 0.0, False, False, {}

        def action_masks(self) -> Any:
            return [1, 0, 1, 1, 1, 1, 0, 1]  # the first is off, the last on

    first, later = masks_of(Switches())
    allowed = [number for number in range(16) if number < 8 and number % 2]
    assert np.flatnonzero(first).tolist() == np.flatnonzero(later).tolist() == allowed


def test_a_method_of_two_pairs_is_about_values_and_not_about_combinations() -> None:
    """Two integers with two values each have four values and four combinations."""

    class Two(ByMethod):
        action_space: Any = spaces.MultiDiscrete([2, 2])

        def action_masks(self) -> Any:
            return [1, 0, 0, 1]

    assert ut.FromGymnasium(Two).make().reset(seed=0)[1]["action_mask"].tolist() == [False, True, False, False]


@pytest.mark.parametrize("kind", ["none", "missing", "argument", "number"])
def test_what_is_no_mask_is_left_alone(kind: str) -> None:
    class Other(Line):
        def info(self) -> Any:
            return {}

        def action_masks(self, *needed: Any) -> Any:
            if kind == "missing":
                raise NotImplementedError
            return None

    if kind == "argument":
        Other.action_masks = lambda self, state: [True] * 3  # pyright: ignore[reportAttributeAccessIssue]
    if kind == "number":
        Other.action_masks = 7  # pyright: ignore[reportAttributeAccessIssue]
    Other.strict = False
    host = ut.FromGymnasium(Other).open(0, 1)
    host.reset()
    assert host.action_mask is None and host.step(np.array([RIGHT])).next_action_mask is None
    host.close()


@pytest.mark.parametrize("kind", ["one number", "levels"])
def test_a_part_that_cannot_be_a_mask_is_observed(kind: str) -> None:
    """One number is no mask, and an environment whose actions are a Box does not know into what levels it is cut."""

    class Other(InObservation):
        strict = False
        part = spaces.Discrete(3) if kind == "one number" else spaces.MultiBinary(2)
        observation_space: Any = spaces.Dict({"place": Line.observation_space, "action_mask": part})
        if kind == "levels":
            action_space: Any = spaces.Box(0.0, 1.0, (1,))

        def step(self, action: Any) -> Any:
            return super().step(5 if kind == "levels" else action)

        def shown(self) -> Any:
            return {"place": self.place, "action_mask": 1 if kind == "one number" else np.ones(2, np.int8)}

    host = ut.FromGymnasium(Other).open(0, 1)
    host.reset()
    assert host.action_mask is None
    host.close()


def test_a_mask_of_another_length_is_refused() -> None:
    """A part was taken for what is observed, and actions that it does not allow were taken."""

    class Part(InObservation):
        observation_space: Any = spaces.Dict({"place": Line.observation_space, "action_mask": spaces.MultiBinary(4)})

        def shown(self) -> Any:
            return {"place": self.place, "action_mask": np.ones(4, np.int8)}

    class Short(ByMethod):
        def action_masks(self) -> Any:
            return [True, True]

    class Words(ByMethod):
        def action_masks(self) -> Any:
            return ["yes", "no", "no"]

    with pytest.raises(InputError, match=r"part action_mask of its observation has 4 values, not 3: .*masks false"):
        ut.train(Part, settings=SMALL)
    with pytest.raises(InputError, match=r"action_masks\(\) gives 2 values, not 3: .*--env.action_masks false"):
        ut.train(Short, settings=SMALL)
    with pytest.raises(InputError, match="has other values than 0 and 1"):
        ut.train(Words, settings=SMALL)


def test_a_table_is_stepped_where_a_method_says_what_is_allowed() -> None:
    class Lake(FrozenLakeEnv):
        def action_masks(self) -> list[bool]:
            return [True] * 4

    builder = ut.FromGymnasium(Lake)
    assert not builder.compiles and "its table does not have what its action_masks() says" in str(builder.note)


@pytest.mark.parametrize("limit", [None, 30])
def test_what_an_info_allows_goes_before_other_forms(limit: int | None) -> None:
    class Both(Line):
        def action_masks(self) -> Any:
            raise AssertionError

    wrapped = lambda: Both() if limit is None else gymnasium.wrappers.TimeLimit(Both(), limit)  # noqa: E731
    assert ut.train(wrapped, settings=dataclasses.replace(SMALL, seeds=1)).record.greedy_returns == [1.0]


def vector_of(mode: AutoresetMode) -> Any:
    return SyncVectorEnv([Line, Line], autoreset_mode=mode)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_masks_of_a_vector_environment_are_those_of_the_next_action(mode: AutoresetMode) -> None:
    host = ut.FromGymnasium(lambda: vector_of(mode)).open(0, 2)
    observation, random = host.reset(), np.random.default_rng(0)
    for _ in range(100):
        assert host.action_mask is not None
        where = observation[..., None] if observation.ndim == 1 else observation
        expected = np.array([allowed_at(place) for place in where.ravel()])
        np.testing.assert_array_equal(host.action_mask, expected)
        now = host.step(np.array([random.choice(np.flatnonzero(mask)) for mask in host.action_mask]))
        after = np.array([allowed_at(place) for place in now.next_observation.ravel()])
        np.testing.assert_array_equal(now.next_action_mask, after)
        observation = now.observation
    host.close()


APART = """
import numpy, uppertail
from gymnasium.envs.toy_text.taxi import TaxiEnv

if __name__ == "__main__":
    host, own = uppertail.Gym("Taxi-v4", vectorization="async").open(0, 2), TaxiEnv()
    random, observation = numpy.random.default_rng(0), host.reset()
    for _ in range(250):  # beyond the time limit
        expected = numpy.array([own.action_mask(state) for state in observation])
        numpy.testing.assert_array_equal(host.action_mask, expected)
        observation = host.step(numpy.array([random.choice(numpy.flatnonzero(mask)) for mask in expected])).observation
    host.close()
    print("the same")
"""


@pytest.mark.slow
def test_masks_come_from_processes_too(tmp_path: Path) -> None:
    (program := tmp_path / "apart.py").write_text(APART)  # types are checked here in ways that cannot be pickled
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.stdout == "the same\n", done.stderr


class Flawed(Line):
    """Gives a mask of another form after so many steps of an episode, and forgives."""

    strict = False

    def __init__(self, flaw: Callable[[dict[str, Any]], dict[str, Any]], at: int = 3) -> None:
        self.flaw, self.at = flaw, at

    def info(self) -> dict[str, Any]:
        return self.flaw(super().info()) if self.steps == self.at else super().info()


FLAWS: dict[str, tuple[Any, str]] = {
    "none": (lambda info: {"action_mask": np.zeros(3)}, "allows no action where the episode has not terminated"),
    "short": (lambda info: {"action_mask": np.ones(2)}, r"has the shape \(2,\), not \(3,\)"),
    "words": (lambda info: {"action_mask": ["a", "b", "c"]}, "has other values than 0 and 1"),
    "gone": (lambda info: {}, "at some resets and steps only"),
}


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("at", [0, 3])
def test_a_wrong_mask_is_one_sentence(flaw: str, at: int) -> None:
    changed, words = FLAWS[flaw]
    with pytest.raises(InputError, match=words):
        ut.train(ut.FromGymnasium(lambda: Flawed(changed, at), returns=(0, 1)), settings=SMALL)


@pytest.mark.parametrize("at", [0, 3])
def test_each_environment_beside_others_has_to_give_its_mask(at: int) -> None:
    changed, words = FLAWS["gone"]
    two = [Line, lambda: Flawed(changed, at)]
    with pytest.raises(InputError, match=words):
        ut.train(ut.FromGymnasium(lambda: SyncVectorEnv(two), returns=(0, 1)), settings=SMALL, num_envs=2)


def test_an_episode_in_progress_goes_on_with_its_masks_and_another_one_with_its_own() -> None:
    builder = ut.FromGymnasium(Line, returns=(0, 1))
    host, again = builder.open(0, 1), builder.open(0, 1)
    host.reset()
    for action in (RIGHT, RIGHT, LEFT, LEFT):
        host.step(np.array([action]))
    assert again.restore(host.saved()).tolist() == [0] and again.action_mask.tolist() == [[True, False, False]]  # pyright: ignore
    again.step(np.array([RIGHT]))
    again.begin_another(1)
    assert again.action_mask.tolist() == [[True, False, False]]  # pyright: ignore[reportOptionalMemberAccess]


# What a user sees


@pytest.fixture(scope="module")
def learned() -> Any:
    return ut.train(Lines(), settings=SMALL)


@pytest.mark.parametrize(
    ("observation", "mask", "words"),
    [
        (
            0,
            None,
            r"give action_mask, too, a 0 or 1 for each of the 3 actions, as its reset and step gave it "
            r'\(info\["action_mask"\], a part of the observation, or its action_masks\(\)\)',
        ),
        (0, [1, 0], r"give an array of 0 and 1 of the shape \(3,\)"),
        (0, [1, 0, 2], r"give an array of 0 and 1 of the shape \(3,\)"),
        ([0, 1], [1, 0, 0], r"of the shape \(2, 3\)"),
        (0, [0, 0, 0], "allows no action"),
    ],
)
def test_acting_needs_a_mask_of_the_right_shape(learned: Any, observation: Any, mask: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        learned.act(observation, action_mask=mask)


@pytest.mark.slow
def test_a_mask_may_be_given_where_the_environment_gives_none() -> None:
    result = ut.train(ut.Toy(), settings=ut.Settings(seeds=1, episodes=64))
    assert [result.act(0, action_mask=mask) for mask in ([1, 0], [0, 1])] == [0, 1]


def test_taxi_is_compiled_with_its_masks_and_they_can_be_left_out() -> None:
    taxi = ut.Gym("Taxi-v4").build(KEY)
    assert taxi.action_mask is not None
    own: Any = TaxiEnv()
    np.testing.assert_array_equal(taxi.action_mask, [own.action_mask(state) for state in range(500)])
    plain = ut.Gym("Taxi-v4", action_masks=False)
    assert plain.compiles and plain.build(KEY).action_mask is None
    host = ut.Gym("Taxi-v4", action_masks=False, compile="never").open(0, 1)
    host.reset()
    assert host.action_mask is None
    host.close()


class Tabled(Line):
    """The line with a table, and masks that may be those of other states."""

    def __init__(self, **settings: Any) -> None:
        table, self.shift = line_table(), settings.get("shift", 0)
        arrays = (np.asarray(each)[..., 0] for each in (table.next_state, table.reward, table.terminated))
        after, reward, over = arrays
        self.P = {
            state: {
                action: [(1.0, int(after[state, action]), float(reward[state, action]), bool(over[state, action]))]
                for action in range(3)
            }
            for state in range(LENGTH)
        }
        self.initial_state_distrib = np.eye(LENGTH)[0]

    action_space = spaces.Discrete(3)

    def step(self, action: Any) -> Any:
        after, reward, over, _, info = super().step(int(action) + 5)
        return after, reward, over, False, info

    def action_mask(self, state: int) -> np.ndarray:
        return np.array(allowed_at(state - self.shift), np.int8)


gymnasium.register("MaskedLine-v0", Tabled, max_episode_steps=3 * LENGTH)


def test_a_table_whose_masks_are_not_those_of_its_states_is_stepped_in_python() -> None:
    assert ut.Gym("MaskedLine-v0").compiles
    other = ut.Gym("MaskedLine-v0", kwargs={"shift": 1})
    assert other.table_error == "its masks of allowed actions are not those of its states"


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_a_report_shows_only_what_is_allowed(capsys: pytest.CaptureFixture[str], refused: Any) -> None:
    settings = ["--seeds", "1", "--steps", "256", "--episodes", "1000000", "--discount", "0.9", "--quiet"]
    recorded = ["--record", "distributions", "--out", "run"]
    assert main(["train", "--env", "Gym", "--env.id", "MaskedLine-v0", *settings, *recorded]) == 0
    capsys.readouterr()
    assert main(["inspect", "run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["mean"] is None for row in shown["actions"]] == [False, True, True]
    assert [row["greedy"] for row in shown["actions"]] == [True, False, False]
    assert [each["action"] for each in shown["path"]] == [RIGHT] * (LENGTH - 1)
    assert main(["inspect", "run"]) == 0
    assert main(["report", "run", "--out", "report.html"]) == 0 and Path("report.html").exists()
    assert main(["evaluate", "run", "--episodes", "3"]) == 0
    assert main(["export", "run", "--to", "policy.npz"]) == 0
