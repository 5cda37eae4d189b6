"""The distances between two Gaussians, against their definitions integrated in float64."""

import itertools
import math
from collections.abc import Callable
from typing import get_args

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given

from uppertail.distributions import Gaussian
from uppertail.distributions.gaussian import GAUSSIAN_DISTANCES, GaussianDistance, GaussianReturn

DISTANCES: dict[GaussianDistance, Callable[..., jax.Array]] = {
    name: jax.jit(distance) for name, distance in GAUSSIAN_DISTANCES.items()
}
GRADIENTS = {name: jax.jit(jax.grad(distance, argnums=1)) for name, distance in GAUSSIAN_DISTANCES.items()}
UNWEIGHTED: list[GaussianDistance] = ["bhattacharyya", "hellinger", "wasserstein"]

Normal = scipy.stats.norm
every_distance = pytest.mark.parametrize("name", GAUSSIAN_DISTANCES)


def gaussian(mean: float, std: float) -> GaussianReturn:
    return GaussianReturn(jnp.asarray(mean, jnp.float32), jnp.asarray(std, jnp.float32))


gaussians = st.builds(gaussian, st.floats(-3.0, 3.0, width=32), st.floats(0.3125, 4.0, width=32))


def of_densities(
    integrand: Callable[[float, float], float], q: GaussianReturn, p: GaussianReturn, error: float = 0.0
) -> float:
    """The integral over the returns of a function of the two log-densities, in pieces around both and their overlap."""
    (m, s), (n, t) = ((float(z.mean), float(z.std)) for z in (q, p))
    middle, width = (m / s**2 + n / t**2) / (1 / s**2 + 1 / t**2), math.sqrt(2 / (1 / s**2 + 1 / t**2))
    steps = (-12, -6, -3, -1, 0, 1, 3, 6, 12)
    cuts = np.unique([c + k * w for c, w in ((m, s), (n, t), (middle, width)) for k in steps])

    def f(x: float) -> float:
        log_q, log_p = (-0.5 * ((x - c) / w) ** 2 - math.log(w * math.sqrt(2 * math.pi)) for c, w in ((m, s), (n, t)))
        return integrand(log_q, log_p)

    return sum(scipy.integrate.quad(f, a, b, epsabs=error, limit=200)[0] for a, b in itertools.pairwise(cuts))


def coupled(q: GaussianReturn, p: GaussianReturn) -> float:
    """Wasserstein-2, squared: the mean squared distance between the quantiles."""
    first, second = (Normal(float(z.mean), float(z.std)) for z in (q, p))
    cuts = [0, 1e-8, 1e-4, 0.05, 0.5, 0.95, 1 - 1e-4, 1 - 1e-8, 1]

    def square(u: float) -> float:
        return float(first.ppf(u) - second.ppf(u)) ** 2

    return sum(scipy.integrate.quad(square, a, b, limit=200)[0] for a, b in itertools.pairwise(cuts))


DEFINITIONS: dict[GaussianDistance, Callable[[GaussianReturn, GaussianReturn], float]] = {
    "cross_entropy": lambda q, p: of_densities(lambda a, b: -math.exp(a) * b, q, p),
    "kl": lambda q, p: of_densities(lambda a, b: math.exp(a) * (a - b), q, p),
    "bhattacharyya": lambda q, p: -math.log(of_densities(lambda a, b: math.exp((a + b) / 2), q, p)),
    "hellinger": lambda q, p: of_densities(lambda a, b: (math.exp(a / 2) - math.exp(b / 2)) ** 2 / 2, q, p, 1e-12),
    "wasserstein": coupled,
}


def test_every_name_has_its_distance() -> None:
    assert set(GAUSSIAN_DISTANCES) == set(get_args(GaussianDistance)) == set(DEFINITIONS)


@pytest.mark.slow
@every_distance
@given(q=gaussians, p=gaussians)
def test_a_distance_is_its_integral(name: GaussianDistance, q: GaussianReturn, p: GaussianReturn) -> None:
    np.testing.assert_allclose(DISTANCES[name](q, p), DEFINITIONS[name](q, p), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("cross_entropy", 0.5 * math.log(8 * math.pi) + 10 / 8),
        ("kl", math.log(2) + 10 / 8 - 1 / 2),
        ("bhattacharyya", 9 / 20 + 0.5 * math.log(5 / 4)),
        ("hellinger", 1 - math.sqrt(4 / 5) * math.exp(-9 / 20)),
        ("wasserstein", 10.0),
    ],
)
def test_a_distance_by_hand(name: GaussianDistance, by_hand: float) -> None:
    """From N(3, 1) to N(0, 2)."""
    np.testing.assert_allclose(DISTANCES[name](gaussian(3.0, 1.0), gaussian(0.0, 2.0)), by_hand, rtol=1e-6)


@pytest.mark.parametrize("name", ["kl", *UNWEIGHTED])
@given(q=gaussians, p=gaussians)
def test_a_distance_is_not_negative_and_nothing_between_equals(
    name: GaussianDistance, q: GaussianReturn, p: GaussianReturn
) -> None:
    assert DISTANCES[name](q, p) >= -1e-6
    np.testing.assert_allclose(DISTANCES[name](q, q), 0.0, atol=1e-6)
    assert DISTANCES[name](q, GaussianReturn(q.mean + 0.5, q.std)) > 1e-3
    assert DISTANCES[name](q, GaussianReturn(q.mean, 1.5 * q.std)) > 1e-3


@pytest.mark.parametrize("name", UNWEIGHTED)
@given(q=gaussians, p=gaussians)
def test_symmetric_distances(name: GaussianDistance, q: GaussianReturn, p: GaussianReturn) -> None:
    np.testing.assert_allclose(DISTANCES[name](q, p), DISTANCES[name](p, q), rtol=1e-6, atol=1e-7)


@given(q=gaussians, p=gaussians)
def test_kl_has_the_gradient_of_the_cross_entropy(q: GaussianReturn, p: GaussianReturn) -> None:
    for ours, expected in zip(GRADIENTS["kl"](q, p), GRADIENTS["cross_entropy"](q, p), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-7)


@given(q=gaussians, p=gaussians)
def test_hellinger_is_bounded_and_follows_from_bhattacharyya(q: GaussianReturn, p: GaussianReturn) -> None:
    hellinger, bhattacharyya = (float(DISTANCES[name](q, p)) for name in ("hellinger", "bhattacharyya"))
    assert 0 <= hellinger <= 1
    np.testing.assert_allclose(hellinger, 1 - math.exp(-bhattacharyya), rtol=1e-5, atol=1e-6)


def test_hellinger_goes_from_nothing_to_one() -> None:
    here = gaussian(0.0, 0.5)
    assert DISTANCES["hellinger"](here, here) == 0
    np.testing.assert_allclose(DISTANCES["hellinger"](here, gaussian(50.0, 0.5)), 1.0, rtol=1e-6)


@every_distance
@pytest.mark.parametrize("std", [1e-4, 0.0])
def test_a_point_as_target_gives_finite_losses_and_gradients(name: GaussianDistance, std: float) -> None:
    """A discount of 0 leaves a target no spread at all."""
    for p in (gaussian(0.0, 1.0), gaussian(0.3, 1.0), gaussian(0.3, 1e-5)):
        assert np.isfinite(DISTANCES[name](gaussian(0.3, std), p))
        assert np.isfinite(GRADIENTS[name](gaussian(0.3, std), p)).all()


MIXED_MOMENTS = (0.7, math.sqrt(0.3 * 0.25 + 0.7 * 2.25 + 0.3 * 0.7))
MEAN_STDS = (0.7, 0.3 * 0.5 + 0.7 * 1.5)


@pytest.mark.parametrize(
    ("name", "settles"),
    [("wasserstein", MEAN_STDS), ("cross_entropy", MIXED_MOMENTS), ("kl", MIXED_MOMENTS)],
    ids=["wasserstein", "cross_entropy", "kl"],
)
def test_what_a_distance_settles_on_between_two_targets(name: GaussianDistance, settles: tuple[float, float]) -> None:
    """N(0, 0.5) is the target in 3 of 10 updates and N(1, 1.5) in 7: Section 4's mean of sds, or the mixture's."""

    @jax.jit
    def average(prediction: GaussianReturn) -> jax.Array:
        distance = GAUSSIAN_DISTANCES[name]
        return 0.3 * distance(gaussian(0.0, 0.5), prediction) + 0.7 * distance(gaussian(1.0, 1.5), prediction)

    mean, std = settles
    np.testing.assert_allclose(jax.grad(average)(gaussian(mean, std)), 0.0, atol=1e-6)
    for moved in ((mean + 0.1, std), (mean - 0.1, std), (mean, std + 0.1), (mean, std - 0.1)):
        assert average(gaussian(*moved)) > average(gaussian(mean, std)) + 1e-3
    assert abs(MIXED_MOMENTS[1] - MEAN_STDS[1]) > 0.1


@every_distance
@pytest.mark.parametrize("beta", [0.5, 1.0])
@given(q=gaussians, p=gaussians)
def test_beta_weights_cross_entropy_and_kl_alone(
    name: GaussianDistance, beta: float, q: GaussianReturn, p: GaussianReturn
) -> None:
    """Value and gradient are multiplied by std_p^(2 beta), which itself has no gradient."""
    weight = 1.0 if name in UNWEIGHTED else float(p.std) ** (2 * beta)
    loss, gradient = jax.value_and_grad(Gaussian(distance=name, beta=beta).loss, argnums=1)(q, p)
    np.testing.assert_allclose(loss / weight, float(DISTANCES[name](q, p)), rtol=1e-5, atol=1e-6)
    for ours, plain in zip(gradient, GRADIENTS[name](q, p), strict=True):
        np.testing.assert_allclose(ours / weight, float(plain), rtol=1e-4, atol=1e-6)
