"""Runs that differ only in numbers share their compiled programs."""

import dataclasses
from collections import OrderedDict
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.environments import FiniteMDP
from uppertail.environments.base import StateBuilder
from uppertail.schema import traced
from uppertail.training import programs
from uppertail.training.programs import filled, split

TINY = ut.Settings(seeds=1, episodes=10, replay_size=64)


@dataclasses.dataclass(frozen=True)
class Marked:
    weight: float = traced(1.0)
    count: int | None = traced(None)
    kind: str = "a"


@dataclasses.dataclass(frozen=True)
class Around:
    parts: tuple[Marked, ...]
    fixed: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.parts[0].weight < 9:
            raise ValueError(self.parts[0].weight)


def test_marked_numbers_are_taken_out_and_put_back_and_all_else_stays() -> None:
    parts = Around((Marked(3.0), Marked(4.0, 5, "b")))
    skeleton, numbers = split(parts)
    assert [(number, number.dtype) for number in numbers] == [(3.0, np.float32), (4.0, np.float32), (5, np.int32)]
    assert hash(skeleton) == hash(split(Around((Marked(1.0), Marked(7.0, 9, "b"))))[0])
    assert skeleton == split(Around((Marked(1.0), Marked(7.0, 9, "b"))))[0]
    for other in (Around((Marked(3.0), Marked(4.0, None, "b"))), Around((Marked(3.0), Marked(4.0, 5, "c")))):
        assert skeleton != split(other)[0]
    assert skeleton != split(dataclasses.replace(parts, fixed=2.5))[0]
    assert filled(skeleton, numbers) == parts
    assert filled(skeleton, [100.0, 1.0, 2]).parts[0].weight == 100.0  # nothing is checked again
    assert parts == Around((Marked(3.0), Marked(4.0, 5, "b")))


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> Any:
    """How many programs XLA has compiled, or read from a disk, until now: all, not only those that runs count.

    What other tests have compiled is forgotten.
    """
    monkeypatch.setattr(programs, "_kept", OrderedDict())
    jax.clear_caches()
    count = [0]

    def listen(event: str, duration_secs: float, **kwargs: Any) -> None:
        count[0] += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield count
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
@pytest.mark.parametrize("environment", [ut.Toy(), ut.Gym("CartPole-v1", compile="never")], ids=["compiled", "host"])
def test_eight_learning_rates_are_one_compilation(environment: Any, compiles: list[int]) -> None:
    learned, made = [], []
    for rate in (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1):
        settings = dataclasses.replace(TINY, learning_rate=rate, episodes=10 + int(100 * rate), steps=64)
        policy = ut.UCB(1.0 + rate, 2.0 + rate)
        result = ut.train(environment, ut.Gaussian(std_bias=1 + rate), policy, settings, learner=ut.GradientDescent())
        made.append((result.record.compilations, compiles[0]))
        learned.append(float(np.asarray(jax.tree.leaves(result.networks)[0]).sum()))
    assert made[0][1] > 5
    anew = int(isinstance(environment, ut.Toy))  # the environments, which may follow from what is no setting
    assert [count for count, _ in made[1:]] == [0] * 7  # these are found on the disk
    assert [count - made[0][1] for _, count in made] == [anew * run for run in range(8)]  # and nothing else
    assert len(set(learned)) == 8  # and yet each learned at its own rate


@pytest.mark.slow
def test_least_squares_shares_its_program_for_every_lambda_discount_and_epsilon() -> None:
    values = []
    for number in (1, 2, 3):
        settings = ut.Settings(seeds=1, episodes=5, discount=1.0 - 0.1 * number)
        learner = ut.LeastSquares(0.01 * number, mean_prior_count=0.1 * number, tolerance=1e-4 * number)
        result = ut.train(ut.Chain(3), policy=ut.EpsilonGreedy(0.2 * number), settings=settings, learner=learner)
        assert number == 1 or result.record.compilations == 0
        table: Any = result.networks
        values.append(table.values.tolist())
    assert values[0] != values[1] != values[2]


@dataclasses.dataclass(frozen=True)
class Stubborn(ut.ExplorationPolicy):
    """A user's policy, whose number is a constant of its program: Python decides on it."""

    action: float = 0.0

    def scores(self, key: Any, decision: Any) -> Any:
        return jnp.zeros(2).at[int(self.action)].set(1.0)


class Unhashable(Stubborn):
    """Another, whose programs cannot be found again."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Stubborn, Unhashable])
def test_a_users_own_number_is_a_constant_of_its_program(kind: type[Stubborn]) -> None:
    settings = ut.Settings(seeds=1, episodes=5)
    records = [ut.train(ut.Toy(), policy=kind(action), settings=settings).record for action in (0.0, 1.0, 0.0)]
    first, other, again = (record.episodes[0].returns.tolist() for record in records)
    assert first == again != other


def test_environments_that_a_function_or_an_id_makes_are_not_taken_for_one_another() -> None:
    """Lakes that lambdas of one line make: the second run got the first one's table, of other states."""

    def lake(side: int) -> Any:
        rows = ["S" + "F" * (side - 1), *["F" * side] * (side - 2), "F" * (side - 1) + "G"]
        return lambda: gymnasium.make("FrozenLake-v1", desc=rows, is_slippery=False)

    def sizes(*environments: Any) -> list[int]:
        tables: list[Any] = [ut.train(each, seeds=1, steps=64).networks for each in environments]
        return [each.values.shape[1] for each in tables]

    assert sizes(lake(2), lake(3), lake(2)) == [4, 9, 4]
    ids = []
    try:
        for side in (2, 3):
            gymnasium.register("Again-v0", lake(side))
            ids += sizes("Again-v0")
            del gymnasium.registry["Again-v0"]
    finally:
        gymnasium.registry.pop("Again-v0", None)
    assert ids == [4, 9]


@dataclasses.dataclass(frozen=True)
class Always(ut.ExplorationPolicy):
    """One action, of which `==` knows nothing."""

    number: int = dataclasses.field(default=0, compare=False)

    def scores(self, key: Any, decision: Any) -> Any:
        return jnp.where(jnp.arange(decision.num_actions) == self.number, 1.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Pays(StateBuilder):
    """One state, whose second action pays what was read elsewhere when it was made."""

    read: dataclasses.InitVar[float] = 1.0

    def __post_init__(self, read: float) -> None:
        super().__post_init__()
        object.__setattr__(self, "pay", read)

    def build(self, key: Any) -> FiniteMDP:
        reward = jnp.array([[[0.0], [self.pay]]])  # pyright: ignore[reportAttributeAccessIssue]
        zero = jnp.zeros((1, 2, 1), jnp.int32)
        return FiniteMDP(zero, reward, zero == 0, jnp.ones((1, 2, 1)), 5)


@pytest.mark.filterwarnings("ignore:All .* episodes returned 0")  # of a stubborn policy
def test_parts_that_differ_in_what_is_not_compared_are_not_taken_for_one_another() -> None:
    """The second run took the actions of the first one's policy, in the first one's environment."""

    def earned(pay: float, action: int) -> set[float]:
        run = ut.train(Pays(pay), policy=Always(action), seeds=1, steps=64)
        return {*run.record.episodes[0].returns[1:].tolist()}

    assert [earned(1.0, 1), earned(5.0, 1), earned(5.0, 0), earned(1.0, 1)] == [{1.0}, {5.0}, {0.0}, {1.0}]
