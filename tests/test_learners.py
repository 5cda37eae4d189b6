"""Laws of every learner, on states and vectors: of the unseen, of ends, of order, of units, of a resumed run.

Transitions are between five places; a sixth is never seen, and no action 2 is ever taken.
"""

import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.encodings import Preferences
from uppertail.parts import PARTS
from uppertail.training.checkpoint import from_named, to_named
from uppertail.training.method import Method, resolved
from uppertail.types import POLICY_CHOICE, Transition

PLACES, ACTIONS, STEPS, ROUNDS = 6, 3, 8, 4
CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5], [0, 0.5]], np.float32)
SPACES = {"states": ut.States(PLACES), "vectors": ut.Numbers((-1.0, -1.0), (2.0, 2.0))}
SMALL: dict[str, Any] = {"updates_per_rollout": 1, "batch_size": 8, "replay_size": 64}


class Case(NamedTuple):
    """A learner on one kind of observations, and what holds for it."""

    builder: ut.LearnerBuilder
    space: str
    is_wide: bool = True  # what was never seen stays as it was at first
    is_closed: bool = True  # it fits all data, in closed form: their order does not matter
    parts: Mapping[str, Any] = types.MappingProxyType({})


GRADIENTS = ut.GradientDescent()
CASES = {
    "table": Case(ut.LeastSquares(), "states"),
    "certain table": Case(ut.LeastSquares(stochastic=False), "states"),
    "network beside counts": Case(GRADIENTS, "states", is_closed=False),
    "network": Case(GRADIENTS, "states", is_wide=False, is_closed=False, parts={"evidence": ut.NoEvidence()}),
    "network of vectors": Case(GRADIENTS, "vectors", is_wide=False, is_closed=False),
    "imitation": Case(
        ut.Imitation(),
        "states",
        is_wide=False,
        is_closed=False,
        parts={"distribution": ut.PointMass(), "policy": ut.Softmax()},
    ),
}
WIDE, CLOSED = ([name for name, case in CASES.items() if getattr(case, law)] for law in ("is_wide", "is_closed"))
VALUES = [name for name in CASES if name != "imitation"]  # whose predictions are returns


def over(names: Iterable[str]) -> pytest.MarkDecorator:
    """A test for each of these cases."""
    return pytest.mark.parametrize("name", [*names])


def test_every_learner_has_a_case() -> None:
    assert {type(case.builder).__name__ for case in CASES.values()} == set(PARTS["learner"].kinds)


def learner_of(case: Case, unit: float = 1.0) -> Any:
    """The learner of a run whose returns are from 0 to `unit`."""
    encoding = SPACES[case.space].encoding(Preferences())
    settings = ut.Settings(rollout_steps=STEPS, discount=0.9, **SMALL if case.builder.uses_gradients else {})
    method, settings = resolved(Method.of(learner=case.builder, **case.parts), settings, encoding)
    family = method.distribution.fit(ut.types.ReturnRange(0.0, unit))
    return method.__class__(**{**vars(method), "distribution": family}).learns(method.encoding(encoding), settings)


def shown(case: Case, places: Any) -> jax.Array:
    """What these places show."""
    return jnp.asarray(CORNERS[places] if case.space == "vectors" else np.asarray(places, np.int32))


def rollouts(case: Case, unit: float = 1.0) -> list[Transition]:
    """So many rollouts of all places but the last; all that ends pays, and an action leads to the same each time."""
    random, made = np.random.default_rng(1), list[Transition]()
    for _ in range(ROUNDS):
        place, action = random.integers(PLACES - 1, size=STEPS), random.integers(ACTIONS - 1, size=STEPS)
        ends, after = place + action == PLACES - 1, (place + action) % (PLACES - 1)
        reward = jnp.asarray(unit * ends * place / PLACES, jnp.float32)
        choice = jnp.full(STEPS, POLICY_CHOICE, jnp.int32)
        seen = shown(case, place), jnp.asarray(action, jnp.int32), reward, jnp.asarray(ends), shown(case, after)
        made.append(Transition(*seen, choice))
    return made


@functools.cache
def compiled(name: str, unit: float = 1.0) -> tuple[Any, Any, Any]:
    """A learner, its state before a rollout, and what it learns."""
    learner = learner_of(CASES[name], unit)
    before = jax.jit(learner.init, static_argnums=2)(jax.random.key(0), shown(CASES[name], [0]), ACTIONS)
    return learner, before, jax.jit(learner.learn)


def learned(name: str, data: list[Transition], unit: float = 1.0, state: Any = None, first: int = 0) -> Any:
    """The state after these rollouts, and the last metrics."""
    _, before, learn = compiled(name, unit)
    state, metrics = before if state is None else state, None
    for number, fresh in enumerate(data, first):
        state, metrics = learn(jax.random.key(number), state, fresh, jnp.asarray(number, jnp.int32))
    return state, metrics


def predicted(name: str, state: Any, unit: float = 1.0) -> tuple[np.ndarray, ...]:
    """Mean and standard deviation of each action's return in each place."""
    agent = compiled(name, unit)[0].agent
    z = jax.vmap(lambda observation: agent.returns(state.network, observation))(shown(CASES[name], np.arange(PLACES)))
    return tuple(np.asarray(jax.vmap(jax.vmap(each))(z)) for each in (agent.family.mean, agent.family.std))


@over(CASES)
def test_metrics_are_finite_or_say_that_there_are_none(name: str) -> None:
    state, metrics = learned(name, rollouts(CASES[name]))
    assert np.isfinite(metrics.outside).all() and np.shape(metrics.loss) == (compiled(name)[0].updates,)
    assert all(np.isfinite(each).all() for each in predicted(name, state))


@over(WIDE)
def test_what_was_never_seen_is_as_wide_as_at_first(name: str) -> None:
    before, after = (predicted(name, state) for state in (compiled(name)[1], learned(name, rollouts(CASES[name]))[0]))
    for first, now in zip(before, after, strict=True):
        np.testing.assert_allclose(now[-1], first[-1], rtol=1e-5)
        np.testing.assert_allclose(now[:, -1], first[:, -1], rtol=1e-5)
    assert (after[1][:-1, :-1] < before[1][:-1, :-1]).any(), "what was seen is narrower"


@over(VALUES)
def test_an_end_takes_nothing_from_where_it_leads(name: str) -> None:
    """Where all ends show another place, which would be worth more, the same is learned."""
    case = CASES[name]
    data, place = rollouts(case), shown(case, [2])[0]
    elsewhere = [
        each._replace(
            next_observation=jnp.where(each.terminated.reshape(-1, *[1] * place.ndim), place, each.next_observation)
        )
        for each in data
    ]
    found = (predicted(name, learned(name, each)[0]) for each in (data, elsewhere))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@over(CLOSED)
def test_the_order_of_data_does_not_matter(name: str) -> None:
    data = rollouts(CASES[name])
    every = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *data)
    order = np.random.default_rng(2).permutation(STEPS * ROUNDS)
    other = [jax.tree.map(lambda leaf, rows=rows: leaf[rows], every) for rows in np.split(order, ROUNDS)]
    settled = [data[-1]] * 4  # the same again, until sweeps have come to an end
    found = (predicted(name, learned(name, [*each, *settled])[0]) for each in (data, other))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)


@over(VALUES)
def test_the_unit_of_rewards_does_not_matter(name: str) -> None:
    """A power of two, by which float32 multiplies exactly."""
    unit = 1024.0
    plain, large = (predicted(name, learned(name, rollouts(CASES[name], each), each)[0], each) for each in (1.0, unit))
    for ours, theirs in zip(plain, large, strict=True):
        np.testing.assert_allclose(theirs / unit, ours, rtol=1e-4, atol=1e-5)


@over(CASES)
def test_a_resumed_learner_goes_on_bit_for_bit(name: str) -> None:
    data = rollouts(CASES[name])
    whole, _ = learned(name, data)
    half, _ = learned(name, data[:2])
    stored = {key: array.copy() for key, array in to_named(half).items()}
    resumed, _ = learned(name, data[2:], state=from_named(compiled(name)[1], stored), first=2)
    jax.tree.map(np.testing.assert_array_equal, to_named(resumed), to_named(whole))
