"""Cartpole swing-up: the motion against the equations of a rod on a cart, solved apart, and bsuite's rules by hand."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from experiments.tasks.cartpole_swingup import CartpoleState, CartpoleSwingup, SwingUp
from uppertail.errors import InputError

KEY = jax.random.key(0)
CART, POLE, HALF = 1.0, 0.1, 0.5


@functools.cache
def built(**settings: float) -> SwingUp:
    return CartpoleSwingup(**settings).build(KEY)  # pyright: ignore[reportArgumentType]


def pose(
    x: float = 0.0, x_dot: float = 0.0, theta: float = math.pi, theta_dot: float = 0.0, steps: int = 0
) -> CartpoleState:
    return CartpoleState(
        jnp.float32(x), jnp.float32(x_dot), jnp.float32(theta), jnp.float32(theta_dot), jnp.int32(steps)
    )


def accelerations(theta: float, theta_dot: float, force: float) -> tuple[float, float]:
    """Of the cart and of the pole: Lagrange's two equations, the rod's inertia m (2 l)^2 / 12 about its middle."""
    inertia = POLE * (2 * HALF) ** 2 / 12 + POLE * HALF**2
    mass = np.array([[CART + POLE, POLE * HALF * math.cos(theta)], [POLE * HALF * math.cos(theta), inertia]])
    forces = [force + POLE * HALF * theta_dot**2 * math.sin(theta), POLE * 9.8 * HALF * math.sin(theta)]
    x, turning = np.linalg.solve(mass, forces)
    return x, turning


def test_motion_is_that_of_a_rod_on_a_cart() -> None:
    random = np.random.default_rng(0)
    for action in (0, 1, 2):
        for _ in range(20):
            x, x_dot, theta_dot = random.normal(size=3)
            theta = random.uniform(0, 2 * math.pi)
            after, _ = built().step(KEY, pose(x, x_dot, theta, theta_dot), jnp.int32(action))
            pushed, turned = accelerations(theta, theta_dot, 10.0 * (action - 1))
            expected = [
                x + 0.01 * x_dot,
                x_dot + 0.01 * pushed,
                (theta + 0.01 * theta_dot) % (2 * math.pi),
                theta_dot + 0.01 * turned,
            ]
            np.testing.assert_allclose([float(number) for number in after[:4]], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("where", "action", "reward"),
    [
        ({"theta": 0.0}, 1, 1.0),
        ({"theta": 0.0}, 0, 0.9),
        ({"theta": math.pi}, 1, 0.0),
        ({"theta": math.pi}, 2, -0.1),
        ({"theta": math.acos(0.5) + 0.02}, 1, 0.0),  # lower than is asked for
        ({"theta": math.acos(0.5) - 0.02}, 1, 1.0),
        ({"theta": 0.0, "theta_dot": 1.1}, 1, 0.0),  # it swings through
        ({"theta": 0.0, "x": -1.1}, 1, 0.0),  # too far from the center
        ({"theta": 0.0, "x": 0.9}, 1, 1.0),
        ({"theta": math.acos(0.5) + 0.005, "theta_dot": -0.9}, 1, 1.0),  # judged where the step ends
        ({"theta": math.acos(0.5) - 0.005, "theta_dot": 0.8}, 1, 0.0),
        ({"theta": 0.0, "x": 1.005, "x_dot": -1.0}, 1, 1.0),
    ],
)
def test_only_a_pole_that_is_upright_slow_and_central_is_paid_for(where: dict[str, float], action: int, reward: float):
    _, now = built().step(KEY, pose(**where), jnp.int32(action))  # pyright: ignore[reportArgumentType]
    assert float(now.reward) == pytest.approx(reward)


def test_the_threshold_is_the_one_that_was_asked_for() -> None:
    hard = built(height_threshold=0.9)
    for beside, reward in ((0.02, 0.0), (-0.02, 1.0)):
        assert float(hard.step(KEY, pose(theta=math.acos(0.9) + beside), jnp.int32(1))[1].reward) == reward


def test_an_episode_terminates_after_its_time_or_where_the_track_ends() -> None:
    seconds = steps = 0
    while seconds <= 10.0:  # as bsuite adds them up
        seconds, steps = seconds + 0.01, steps + 1
    for made, over in ((steps - 2, False), (steps - 1, True)):
        _, now = built().step(KEY, pose(steps=made), jnp.int32(1))
        assert bool(now.terminated) == over
        assert not bool(now.truncated)
    assert bool(built().step(KEY, pose(x=2.99, x_dot=2.0), jnp.int32(1))[1].terminated)
    assert bool(built().step(KEY, pose(x=-2.99, x_dot=-2.0), jnp.int32(1))[1].terminated)
    assert not bool(built().step(KEY, pose(x=2.97, x_dot=2.0), jnp.int32(1))[1].terminated)


def test_an_observation_has_bsuites_eight_numbers() -> None:
    _, now = built().step(KEY, pose(1.5, 0.6, 0.3, 2.0, steps=499), jnp.int32(1))
    after = built().step(KEY, pose(1.5, 0.6, 0.3, 2.0, steps=499), jnp.int32(1))[0]
    theta = 0.3 + 0.01 * 2.0
    x = 1.5 + 0.01 * 0.6
    expected = [x / 3, float(after.x_dot) / 3, math.sin(theta), math.cos(theta), float(after.theta_dot), 0.5, -1, -1]
    np.testing.assert_allclose(now.observation, expected, rtol=1e-5)
    for theta_dot, signs in ((0.0, [1.0, 1.0]), (2.0, [1.0, -1.0])):
        central = built().step(KEY, pose(0.5, 0.0, math.pi, theta_dot), jnp.int32(1))[1]
        assert central.observation[6:].tolist() == signs


@pytest.mark.parametrize("n", [0, 10, 19])
def test_it_is_bsuites_own_where_that_is_installed(n: int) -> None:
    theirs = pytest.importorskip("bsuite.experiments.cartpole_swingup.cartpole_swingup")
    physics, random = pytest.importorskip("bsuite.environments.cartpole"), np.random.default_rng(n)
    environment, ours = theirs.CartpoleSwingup(height_threshold=n / 20), built(height_threshold=n / 20)
    for _ in range(100):
        x, x_dot, theta_dot = random.normal(size=3)
        theta, steps, action = random.uniform(0, 2 * math.pi), int(random.integers(1_000)), int(random.integers(3))
        environment._state = physics.CartpoleState(x, x_dot, theta, theta_dot, steps * 0.01)
        environment._reset_next_step = False
        expected = environment.step(action)
        _, now = ours.step(KEY, pose(x, x_dot, theta, theta_dot, steps), jnp.int32(action))
        np.testing.assert_allclose(now.observation, expected.observation[0], atol=1e-5)
        assert (float(now.reward), bool(now.terminated)) == (pytest.approx(expected.reward), expected.last())


@pytest.mark.slow
def test_it_is_trained_recorded_and_played() -> None:
    settings = ut.Settings(seeds=2, episodes=10, steps=64, batch_size=16, replay_size=128)
    with pytest.warns(UserWarning, match="no episode ended in 64 steps: train longer"):
        result = ut.train(CartpoleSwingup(), ut.Gaussian(), ut.UCB(), settings, record="distributions")
    assert result.record.env_steps == [64, 64]
    assert np.isfinite(result.record.greedy_returns).all()
    assert result.distributions is not None


def test_an_episode_starts_near_hanging_still_and_differs_each_time() -> None:
    starts, first = jax.vmap(built().reset)(jax.random.split(KEY, 2_000))
    numbers = np.stack([starts.x, starts.x_dot, starts.theta - math.pi, starts.theta_dot])
    assert np.abs(numbers).max() <= 0.05 + 1e-6
    np.testing.assert_allclose(numbers.std(axis=1), 0.05 / math.sqrt(3), rtol=0.05)
    np.testing.assert_allclose(numbers.mean(axis=1), 0.0, atol=0.003)
    assert not first.terminated.any()
    assert np.asarray(first.observation[:, 5]).max() == 0


def energy_controller(now: CartpoleState) -> jax.Array:
    """Pumps energy into the pole until it is as high as upright, then balances by a linear law."""
    upright = (now.theta + math.pi) % (2 * math.pi) - math.pi
    energy = 0.5 * (4 / 3) * HALF * now.theta_dot**2 + 9.8 * (jnp.cos(now.theta) - 1)
    pumping = jnp.sign(energy * now.theta_dot * jnp.cos(now.theta)) * 10 - 2 * now.x - 2 * now.x_dot
    balancing = 60 * upright + 12 * now.theta_dot + 2 * now.x + 4 * now.x_dot
    force = jnp.where(jnp.abs(upright) < 0.35, balancing, pumping)
    return jnp.where(jnp.abs(force) < 2, 1, jnp.where(force > 0, 2, 0)).astype(jnp.int32)


def test_the_pole_can_be_swung_up_and_standing_still_is_free() -> None:
    def episode(
        act: Callable[[CartpoleState], jax.Array], key: jax.Array
    ) -> tuple[CartpoleState, jax.Array, jax.Array]:
        def step(carry: Any, _: None) -> tuple[Any, jax.Array]:
            state, ret, over = carry
            after, now = built().step(KEY, state, act(state))
            return (after, ret + jnp.where(over, 0.0, now.reward), over | now.terminated), after.x

        return jax.lax.scan(step, (built().reset(key)[0], 0.0, False), length=1_001)[0]

    _, ret, over = jax.jit(functools.partial(episode, energy_controller))(KEY)
    assert over
    assert float(ret) > CartpoleSwingup().success_return
    _, ret, over = jax.jit(functools.partial(episode, lambda state: jnp.int32(1)))(KEY)
    assert over
    assert float(ret) == 0


def test_returns_lie_in_the_range_that_families_are_fitted_to() -> None:
    low, high = built().return_range(0.99)
    assert float(high) == pytest.approx(sum(0.99**k for k in range(1_001)), rel=1e-5)
    assert float(low) == pytest.approx(-0.1 * float(high), rel=1e-5)
    assert float(built().return_range(1.0)[1]) == 1_001


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"height_threshold": 1.0}, "height_threshold is 1.0, but it is the cosine"),
        ({"height_threshold": 1 - 1e-9}, "in 32 bits"),
        ({"num_features": 0}, "num_features is 0: use 1 or more"),
    ],
)
def test_bad_settings_get_a_sentence(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        built_encoding(CartpoleSwingup(**settings))  # pyright: ignore[reportArgumentType]


def built_encoding(builder: CartpoleSwingup) -> None:
    builder.build(KEY).observations.encoding(builder.preferences)
