"""Units, directions and zero points of observations and rewards change neither what is chosen nor what is learned."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.defaults import Draft, Facts, decide
from uppertail.encodings import Preferences
from uppertail.environments import Steps, random_steps
from uppertail.training.method import Method, resolved
from uppertail.types import POLICY_CHOICE, ReturnRange, Transition

TASKS = {name: ut.Gym(name) for name in ("CartPole-v1", "MountainCar-v0")}


@pytest.fixture(scope="module")
def walks() -> dict[str, Steps]:
    return {name: random_steps(builder, observed=True) for name, builder in TASKS.items()}


def plan(name: str, steps: Steps) -> tuple[Any, ...]:
    builder = TASKS[name]
    facts = Facts(builder)
    facts.steps = steps
    draft, entries, notes = decide(facts, Draft(builder, builder.observations, ut.Gaussian(), ut.UCB()), None)
    entries.pop("env.origins", None)  # what is subtracted is what was added
    builder = draft.with_value("env.origins", None).builder
    return builder, draft.learner, {each: entry.value for each, entry in entries.items()}, notes


def turn(count: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).normal(size=(count, count)))[0]


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(
    ("seen", "paid"),
    [
        (lambda shown: 1_000 * shown, 1.0),
        (lambda shown: 1e-3 * shown, 1.0),
        (lambda shown: shown + 5, 1.0),
        (lambda shown: shown * (np.arange(shown.shape[1]) + 1), 1.0),
        (lambda shown: shown @ turn(shown.shape[1]), 1.0),
        (lambda shown: 1_000 * shown @ turn(shown.shape[1]) - 70, 1.0),
        (lambda shown: shown, 100.0),
        (lambda shown: shown, 1e-3),
    ],
    ids=["larger", "smaller", "shifted", "other units", "turned", "all of it", "rewards x 100", "rewards / 1000"],
)
def test_the_same_is_chosen(walks: dict[str, Steps], name: str, seen: Callable[..., Any], paid: float) -> None:
    steps = walks[name]
    here, after = (seen(np.asarray(each, np.float64)) for each in (steps.observation, steps.next_observation))
    changed = steps._replace(observation=here, next_observation=after, reward=paid * steps.reward)
    assert plan(name, changed) == plan(name, steps)


@pytest.mark.slow
def test_the_same_is_learned_in_other_units_of_observations() -> None:
    """By the defaults: a network beside kernel counts. Units are powers of two, by which float32 multiplies exactly."""
    random, count = np.random.default_rng(0), 64
    here, after = random.normal(size=(2, count, 3)).astype(np.float32)
    action, over = jnp.asarray(random.integers(2, size=count)), jnp.asarray(random.uniform(size=count) < 0.1)
    reward, chosen = jnp.asarray(here[:, 0] + np.asarray(action)), jnp.full(count, POLICY_CHOICE, jnp.int32)
    encoding = ut.Numbers((-np.inf,) * 3, (np.inf,) * 3).encoding(Preferences())
    small = ut.Settings(rollout_steps=count, updates_per_rollout=1, batch_size=8, replay_size=count)
    method, settings = resolved(Method(ut.Gaussian().fit(ReturnRange(-2.0, 3.0))), small, encoding)
    learner = method.learns(method.encoding(encoding), settings)

    @jax.jit
    def predicted(here: Any, after: Any) -> Any:
        data = Transition(here, action, reward, over, after, chosen)
        state, _ = learner.learn(jax.random.key(1), learner.init(jax.random.key(0), here[:1], 2), data, jnp.asarray(0))
        return jax.vmap(lambda each: learner.agent.returns(state.network, each))(here)

    plain, *others = (predicted(jnp.asarray(unit * here), jnp.asarray(unit * after)) for unit in (1.0, 1024.0, 2**-10))
    assert np.ptp(plain.mean) > 0.3, "something was learned"
    for other in others:
        np.testing.assert_allclose(other.mean, plain.mean, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(other.std, plain.std, rtol=1e-4, atol=1e-4)
