"""Every law over every family of return distributions, against float64 NumPy and SciPy.

The families are those of the registry with their defaults, and some with other settings.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from hypothesis import given

from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass, Quantile, ReturnDistribution
from uppertail.distributions.base import Scaled
from uppertail.distributions.gaussian import GAUSSIAN_DISTANCES
from uppertail.encodings import OneHot
from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.policies import UCB
from uppertail.training.method import Method, sanity_warnings
from uppertail.types import ReturnRange

GAUSSIANS = [
    Gaussian(),
    Gaussian(std_bias=-0.5, terminal_std=0.01, beta=0.0),
    Gaussian(beta=1.0),
    Gaussian(scale=5.0),
]
GAUSSIANS_BY_DISTANCE = [Gaussian(beta=0.0, distance=name) for name in GAUSSIAN_DISTANCES]
CATEGORICALS = [Categorical(7, -0.2, 1.2), Categorical(2, -1.0, 1.0), Categorical(31, -12.0, 3.0)]
MIXTURES = [
    GaussianMixture(),
    GaussianMixture(1),
    GaussianMixture(2, spread=0.5, std_bias=-2.0, terminal_std=0.01),
    GaussianMixture(scale=0.01),
]
BUILT_IN = [kind() for kind in PARTS["distribution"].classes.values()]
FITTED = [family.fit(ReturnRange(-0.5, 1.5)) for family in BUILT_IN]
OTHERS = [PointMass(scale=20.0), Quantile(3, scale=5.0), Quantile(2, start_std=0.0)]
RIGHT = [*FITTED, *GAUSSIANS, *CATEGORICALS, *MIXTURES, *OTHERS]
UNBOUNDED = [family for family in RIGHT if family.support[0] == -math.inf]
LINEAR = [family for family in RIGHT if family.is_linear]
EVERY = [
    *RIGHT,
    *GAUSSIANS_BY_DISTANCE,
    Gaussian(beta=0.0, distance="hellinger", scale=0.01),
    GaussianMixture(distance="l2"),
]
OPEN = [
    *BUILT_IN,
    *GAUSSIANS_BY_DISTANCE,
    GaussianMixture(2, distance="l2"),
    Categorical(31),
]
"""What is left open is set by `fit`."""
SAMPLES = 20_000

rewards = st.floats(-5.0, 5.0, width=32)
discounts = st.floats(0.0, 1.0, width=32)
seeds = st.integers(0, 2**31 - 1)


def over(families: list[Any]) -> Any:
    return pytest.mark.parametrize("family", families, ids=str)


def outputs_of(family: ReturnDistribution[Any], data: st.DataObject, size: float = 3.0) -> jax.Array:
    """Unconstrained outputs of a network for one state-action pair: of any size, now and then 0 or an extreme."""
    random = np.random.default_rng(data.draw(seeds))
    outputs = random.uniform(-size, size, family.num_outputs)
    special = random.choice([-size, 0.0, size], family.num_outputs)
    return jnp.asarray(np.where(random.random(family.num_outputs) < 0.2, special, outputs), jnp.float32)


def number(x: float) -> jax.Array:
    return jnp.asarray(x, jnp.float32)


def unit(family: ReturnDistribution[Any]) -> float:
    """Returns per unit of output."""
    return getattr(family, "scale", None) or 1.0


@functools.cache
def compiled(family: ReturnDistribution[Any]) -> SimpleNamespace:
    """The methods of a family, each compiled once for all tests."""

    def loss_of_outputs(outputs: jax.Array, target: Any) -> jax.Array:
        return family.loss(target, family.from_outputs(outputs))

    def log_density_of_outputs(outputs: jax.Array, returns: jax.Array) -> jax.Array:
        return family.log_density(family.from_outputs(outputs), returns)

    def samples(key: jax.Array, z: Any) -> jax.Array:
        return jax.vmap(family.sample, in_axes=(0, None))(jax.random.split(key, SAMPLES), z)

    return SimpleNamespace(
        from_outputs=jax.jit(family.from_outputs),
        mean=jax.jit(family.mean),
        std=jax.jit(family.std),
        backup=jax.jit(family.backup),
        loss=jax.jit(family.loss),
        density=jax.jit(family.density),
        cdf=jax.jit(family.cdf),
        log_density=jax.jit(family.log_density),
        log_density_and_gradient=jax.jit(jax.value_and_grad(log_density_of_outputs)),
        samples=jax.jit(samples),
        value_and_gradient=jax.jit(jax.value_and_grad(loss_of_outputs)),
    )


def exact(z: Any) -> SimpleNamespace:
    """Parameters in float64; `p` holds a categorical's probabilities."""
    fields = {name: np.asarray(leaf, np.float64) for name, leaf in z._asdict().items()}
    if "log_probabilities" in fields:
        fields["p"] = np.exp(fields["log_probabilities"])
    return SimpleNamespace(**fields)


def exact_centers(family: Categorical) -> np.ndarray:
    assert family.low is not None and family.high is not None
    edges = np.linspace(family.low, family.high, family.bins + 1)
    return (edges[1:] + edges[:-1]) / 2


def parts(family: ReturnDistribution[Any], z: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, means and standard deviations of a Gaussian or a mixture, in float64."""
    q = exact(z)
    if isinstance(family, Gaussian):
        return np.ones(1), q.mean[None], q.std[None]
    return q.weights, q.means, q.stds


def exact_density(family: ReturnDistribution[Any], z: Any) -> Callable[[float], float]:
    weights, means, stds = parts(family, z)
    scale = weights / (stds * math.sqrt(2 * math.pi))
    return lambda x: float(np.sum(scale * np.exp(-0.5 * ((x - means) / stds) ** 2)))


def integral(f: Callable[[float], float], means: np.ndarray, stds: np.ndarray) -> float:
    """The integral of f over the real line, in pieces around every component."""
    cuts = np.unique(np.concatenate([means + k * stds for k in (-12, -5, -2, 0, 2, 5, 12)]))
    return sum(scipy.integrate.quad(f, a, b, limit=200)[0] for a, b in itertools.pairwise(cuts))


def project(family: Categorical, points: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The projection of Bellemare et al. (2017, Algorithm 1): floor, ceiling, and a share for each."""
    centers = exact_centers(family)
    projected = np.zeros(family.bins)
    for point, share in zip(points, mass, strict=True):
        position = (min(max(point, centers[0]), centers[-1]) - centers[0]) / (centers[1] - centers[0])
        below = min(math.floor(position), family.bins - 1)
        above = min(below + 1, family.bins - 1)
        projected[below] += share * (1 - (position - below))
        projected[above] += share * (position - below)
    return projected


@pytest.mark.slow
@over(RIGHT)
@given(data=st.data(), seed=seeds)
def test_moments_match_samples(family: ReturnDistribution[Any], data: st.DataObject, seed: int) -> None:
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    draws = np.asarray(do.samples(jax.random.key(seed), z), np.float64)
    std = draws.std()
    fourth = np.mean((draws - draws.mean()) ** 4)
    assert abs(do.mean(z) - draws.mean()) <= 6 * std / math.sqrt(SAMPLES) + 1e-5 * unit(family)
    assert abs(do.std(z) ** 2 - std**2) <= 6 * math.sqrt(max(fourth - std**4, 0.0) / SAMPLES) + 1e-4 * unit(family) ** 2


@over(RIGHT)
@given(data=st.data())
def test_nothing_earned_and_nothing_discounted_changes_nothing(
    family: ReturnDistribution[Any], data: st.DataObject
) -> None:
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    same = do.backup(z, number(0.0), number(1.0))
    for before, after in zip(jax.tree.leaves(z), jax.tree.leaves(same), strict=True):
        np.testing.assert_allclose(np.exp(after), np.exp(before), rtol=1e-5, atol=1e-6)


@over(UNBOUNDED)
@given(data=st.data(), reward=rewards, discount=discounts)
def test_backup_shifts_and_scales(
    family: ReturnDistribution[Any], data: st.DataObject, reward: float, discount: float
) -> None:
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    backed_up = do.backup(z, number(reward), number(discount))
    np.testing.assert_allclose(do.mean(backed_up), reward + discount * float(do.mean(z)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(do.std(backed_up), discount * float(do.std(z)), rtol=1e-4, atol=1e-6)


@over(UNBOUNDED)
@given(data=st.data(), first=rewards, second=rewards, discount=discounts)
def test_two_backups_are_one_of_two_steps(
    family: ReturnDistribution[Any], data: st.DataObject, first: float, second: float, discount: float
) -> None:
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    gamma = number(discount)
    twice = do.backup(do.backup(z, number(first), gamma), number(second), gamma)
    once = do.backup(z, number(second + discount * first), gamma * gamma)
    for a, b in zip(jax.tree.leaves(twice), jax.tree.leaves(once), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@over(CATEGORICALS)
@given(data=st.data(), place=st.floats(0.0, 1.0), discount=discounts)
def test_categorical_backup_within_the_support(
    family: Categorical, data: st.DataObject, place: float, discount: float
) -> None:
    """The projection keeps the mean, and adds at most a quarter of a squared bin to the variance."""
    do, centers = compiled(family), exact_centers(family)
    z = do.from_outputs(outputs_of(family, data))
    reward = (1 - discount) * (centers[0] + place * (centers[-1] - centers[0]))
    backed_up = do.backup(z, number(reward), number(discount))
    span = centers[-1] - centers[0]
    np.testing.assert_allclose(do.mean(backed_up), reward + discount * float(do.mean(z)), atol=2e-6 * span)
    variance, scaled = float(do.std(backed_up)) ** 2, (discount * float(do.std(z))) ** 2
    assert scaled - 1e-5 * span**2 <= variance <= scaled + family.bin_width**2 / 4 + 1e-5 * span**2


@over([Categorical(7, -0.2, 1.2), Categorical(31, -12.0, 3.0)])
@given(data=st.data(), shift=st.integers(0, 3))
def test_categorical_backup_by_whole_bins_is_exact(family: Categorical, data: st.DataObject, shift: int) -> None:
    """Where every atom lands on an atom, mean and standard deviation move as those of any distribution."""
    do = compiled(family)
    outputs = outputs_of(family, data)
    z = do.from_outputs(jnp.where(jnp.arange(family.bins) < family.bins - 3, outputs, -jnp.inf))
    reward = shift * float(family.bin_width)
    backed_up = do.backup(z, number(reward), number(1.0))
    np.testing.assert_allclose(do.mean(backed_up), float(do.mean(z)) + reward, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(do.std(backed_up), do.std(z), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(exact(backed_up).p, np.roll(exact(z).p, shift), atol=1e-5)


@over(CATEGORICALS)
@given(data=st.data(), reward=st.floats(-20.0, 20.0, width=32), discount=discounts)
def test_categorical_projection(family: Categorical, data: st.DataObject, reward: float, discount: float) -> None:
    """Every atom is shared between its neighbours; what leaves the support stays at its edge, and no mass is lost."""
    do, centers = compiled(family), exact_centers(family)
    z = do.from_outputs(outputs_of(family, data))
    points = reward + discount * centers
    backed_up = do.backup(z, number(reward), number(discount))
    np.testing.assert_allclose(exact(backed_up).p, project(family, points, exact(z).p), atol=2e-5)
    np.testing.assert_allclose(exact(backed_up).p.sum(), 1.0, atol=1e-6)
    clipped_mean = np.sum(exact(z).p * np.clip(points, centers[0], centers[-1]))
    np.testing.assert_allclose(do.mean(backed_up), clipped_mean, atol=1e-5 * (centers[-1] - centers[0]))


@over(RIGHT)
def test_terminal_is_a_point_at_zero(family: ReturnDistribution[Any]) -> None:
    assert abs(family.mean(family.terminal())) <= 1e-6


@pytest.mark.parametrize(
    ("family", "std"),
    [
        (Gaussian(), 1e-4),
        (Gaussian(terminal_std=0.01), 0.01),
        (GaussianMixture(), 1e-4),
        (GaussianMixture(2, terminal_std=0.01), 0.01),
        (Gaussian(scale=5.0), 5e-4),
        (GaussianMixture(2, scale=0.01, terminal_std=0.01), 1e-4),
        (PointMass(), 0.0),
        (Quantile(), 0.0),
        (Categorical(7, -0.2, 1.2), 0.1),
        (Categorical(7, -0.7, 0.7), 0.0),
    ],
    ids=str,
)
def test_terminal_std(family: ReturnDistribution[Any], std: float) -> None:
    np.testing.assert_allclose(family.std(family.terminal()), std, rtol=1e-5, atol=1e-7)


def test_categorical_terminal_shares_zero_between_its_two_bins() -> None:
    np.testing.assert_allclose(exact(Categorical(7, -0.2, 1.2).terminal()).p, [0.5, 0.5, 0, 0, 0, 0, 0], atol=1e-6)


@over(EVERY)
@given(data=st.data())
def test_loss_is_stationary_at_its_target(family: ReturnDistribution[Any], data: st.DataObject) -> None:
    do = compiled(family)
    outputs = outputs_of(family, data)
    loss, gradient = do.value_and_gradient(outputs, do.from_outputs(outputs))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4 * max(1.0, abs(float(loss))))


@over([family for family in EVERY if family not in GAUSSIANS])
@given(data=st.data())
def test_loss_is_least_at_its_target(family: ReturnDistribution[Any], data: st.DataObject) -> None:
    do = compiled(family)
    outputs = outputs_of(family, data)
    target = do.from_outputs(outputs)
    least = float(do.loss(target, target))
    tolerance = 1e-5 * max(1.0, abs(least))
    assert do.loss(target, do.from_outputs(outputs_of(family, data))) >= least - tolerance
    moved = outputs.at[family.num_outputs // 2].add(1.0)  # a mean, a standard deviation or a bin
    assert do.loss(target, do.from_outputs(moved)) >= least - 1e-7
    base = jnp.zeros(family.num_outputs)
    target = do.from_outputs(base)
    for step in (0.5, -0.5):
        moved = do.from_outputs(base.at[family.num_outputs // 2].add(step))
        assert do.loss(target, moved) > do.loss(target, target) + 1e-4


@given(data=st.data())
def test_gaussian_cross_entropy_is_its_integral(data: st.DataObject) -> None:
    family = Gaussian(beta=0.0, distance="cross_entropy")
    do = compiled(family)
    target, prediction = (do.from_outputs(outputs_of(family, data)) for _ in range(2))
    density, p = exact_density(family, target), exact(prediction)

    def surprise(x: float) -> float:
        log_p = -0.5 * ((x - p.mean) / p.std) ** 2 - math.log(p.std * math.sqrt(2 * math.pi))
        return -density(x) * float(log_p)

    expected = integral(surprise, *parts(family, target)[1:])
    np.testing.assert_allclose(do.loss(target, prediction), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beta", [0.5, 1.0])
@given(data=st.data())
def test_gaussian_beta_weights_the_cross_entropy(beta: float, data: st.DataObject) -> None:
    """Value and gradient are the cross-entropy's times std^(2 beta): the weight itself has no gradient."""
    weighted, plain = (compiled(Gaussian(beta=each, distance="cross_entropy")) for each in (beta, 0.0))
    outputs = outputs_of(Gaussian(), data)
    target = plain.from_outputs(outputs_of(Gaussian(), data))
    weight = float(plain.std(plain.from_outputs(outputs))) ** (2 * beta)
    loss, gradient = plain.value_and_gradient(outputs, target)
    weighted_loss, weighted_gradient = weighted.value_and_gradient(outputs, target)
    np.testing.assert_allclose(weighted_loss, weight * float(loss), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted_gradient, weight * np.asarray(gradient, np.float64), rtol=1e-4, atol=1e-6)


@over(CATEGORICALS)
@given(data=st.data())
def test_categorical_cross_entropy_is_its_sum(family: Categorical, data: st.DataObject) -> None:
    do = compiled(family)
    target, prediction = (do.from_outputs(outputs_of(family, data)) for _ in range(2))
    surprise = -sum(q * math.log(p) for q, p in zip(exact(target).p, exact(prediction).p, strict=True))
    np.testing.assert_allclose(do.loss(target, prediction), surprise, rtol=1e-5)


@over(MIXTURES)
@given(data=st.data(), narrow=st.sampled_from([1.0, 0.1, 0.003]))
def test_cramer_distance_is_its_integral(family: GaussianMixture, data: st.DataObject, narrow: float) -> None:
    do = compiled(family)
    target, prediction = (do.from_outputs(outputs_of(family, data)) for _ in range(2))
    target = do.backup(target, number(0.3), number(narrow))

    def below(z: Any) -> Callable[[float], float]:
        weights, means, stds = parts(family, z)
        return lambda x: float(np.sum(weights * scipy.special.ndtr((x - means) / stds)))

    q, p = below(target), below(prediction)
    _, means, stds = map(np.concatenate, zip(parts(family, target), parts(family, prediction), strict=True))
    distance = 2 * integral(lambda x: (q(x) - p(x)) ** 2, means, stds) / unit(family)
    np.testing.assert_allclose(do.loss(target, prediction), distance, atol=1e-5 * (1 + np.ptp(means) / unit(family)))


@pytest.mark.slow
@over([dataclasses.replace(family, distance="l2") for family in MIXTURES])
@given(data=st.data(), narrow=st.sampled_from([1.0, 0.1, 0.003]))
def test_l2_distance_is_its_integral(family: GaussianMixture, data: st.DataObject, narrow: float) -> None:
    """Also where a backed-up target is far sharper than the prediction; returns in units of the scale."""
    do = compiled(family)
    target, prediction = (do.from_outputs(outputs_of(family, data)) for _ in range(2))
    target = do.backup(target, number(0.3), number(narrow))
    q, p = exact_density(family, target), exact_density(family, prediction)
    _, means, stds = map(np.concatenate, zip(parts(family, target), parts(family, prediction), strict=True))
    distance = unit(family) * integral(lambda x: (q(x) - p(x)) ** 2, means, stds)
    sharpness = unit(family) * integral(lambda x: q(x) ** 2 + p(x) ** 2, means, stds)
    np.testing.assert_allclose(do.loss(target, prediction), distance, atol=1e-5 * sharpness, rtol=1e-4)


@over([*GAUSSIANS, *MIXTURES])
@given(data=st.data())
def test_moments_and_mass_are_their_integrals(family: ReturnDistribution[Any], data: st.DataObject) -> None:
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    density, (_, means, stds) = exact_density(family, z), parts(family, z)
    mean = integral(lambda x: x * density(x), means, stds)
    variance = integral(lambda x: (x - mean) ** 2 * density(x), means, stds)
    np.testing.assert_allclose(integral(density, means, stds), 1.0, rtol=1e-6)
    np.testing.assert_allclose(do.mean(z), mean, rtol=1e-5, atol=1e-5 * unit(family))
    np.testing.assert_allclose(do.std(z), math.sqrt(variance), rtol=1e-5)


@over([*GAUSSIANS, *MIXTURES])
@given(data=st.data())
def test_density(family: ReturnDistribution[Any], data: st.DataObject) -> None:
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    mean, std = float(do.mean(z)), float(do.std(z))
    points = (mean + std * np.linspace(-4, 4, 41)).astype(np.float32)
    expected = [exact_density(family, z)(float(x)) for x in points]
    np.testing.assert_allclose(do.density(z, jnp.asarray(points)), expected, rtol=2e-3, atol=1e-5 / unit(family))


@over([*GAUSSIANS, *MIXTURES, *CATEGORICALS])
@given(data=st.data())
def test_density_integrates_to_one(family: ReturnDistribution[Any], data: st.DataObject) -> None:
    """The density itself, summed over a fine grid."""
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    low, high = (
        (family.low, family.high) if isinstance(family, Categorical) else (-40.0 * unit(family), 40.0 * unit(family))
    )
    assert low is not None and high is not None
    count = 8000 - 8000 % (family.bins if isinstance(family, Categorical) else 1)
    points = low + (high - low) * (np.arange(count) + 0.5) / count
    density = np.asarray(do.density(z, jnp.asarray(points, jnp.float32)), np.float64)
    np.testing.assert_allclose(density.sum() * (high - low) / count, 1.0, rtol=2e-3)


@over(CATEGORICALS)
@given(data=st.data())
def test_categorical_density_is_a_histogram(family: Categorical, data: st.DataObject) -> None:
    assert family.low is not None and family.high is not None
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    for offset in (-0.45, 0.0, 0.45):
        points = jnp.asarray(exact_centers(family) + offset * family.bin_width, jnp.float32)
        np.testing.assert_allclose(do.density(z, points), exact(z).p / family.bin_width, rtol=1e-5)
    outside = jnp.asarray([family.low - 0.01, family.high + 0.01, family.low - 100.0, family.high + 100.0])
    np.testing.assert_array_equal(do.density(z, outside), 0.0)


@given(data=st.data())
def test_categorical_mean_and_std(data: st.DataObject) -> None:
    family = CATEGORICALS[2]
    do, centers = compiled(family), exact_centers(family)
    z = do.from_outputs(outputs_of(family, data))
    mean = np.sum(exact(z).p * centers)
    np.testing.assert_allclose(do.mean(z), mean, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(do.std(z), np.sqrt(np.sum(exact(z).p * (centers - mean) ** 2)), rtol=1e-4)


def test_categorical_samples_follow_the_probabilities() -> None:
    family = CATEGORICALS[0]
    z = family.from_outputs(jnp.linspace(-1.0, 1.0, 7))
    draws = np.asarray(compiled(family).samples(jax.random.key(0), z))
    bins = np.round((draws - exact_centers(family)[0]) / family.bin_width).astype(int)
    np.testing.assert_allclose(draws, exact_centers(family)[bins], atol=1e-6)
    p = exact(z).p
    assert scipy.stats.chisquare(np.bincount(bins, minlength=7), SAMPLES * p / p.sum()).pvalue > 1e-4


def test_outputs_of_zero_start_wide() -> None:
    """Section 5 and Implementation Details: a standard deviation of about 1.3, means spread out, bins all alike."""
    gaussian = Gaussian().from_outputs(jnp.zeros(2))
    assert gaussian.mean == 0
    np.testing.assert_allclose(gaussian.std, math.log1p(math.e), rtol=1e-6)
    mixture = GaussianMixture().from_outputs(jnp.zeros(15))
    np.testing.assert_allclose(mixture.weights, 0.2, rtol=1e-6)
    np.testing.assert_allclose(mixture.means, [-2.0, -1.0, 0.0, 1.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(mixture.stds, math.log1p(math.e), rtol=1e-6)
    np.testing.assert_allclose(exact(CATEGORICALS[0].from_outputs(jnp.zeros(7))).p, 1 / 7, rtol=1e-6)


@over([family for family in EVERY if not isinstance(family, Quantile)])
@given(data=st.data())
def test_outputs_become_valid_parameters(family: ReturnDistribution[Any], data: st.DataObject) -> None:
    """Against float64: weights and probabilities by a softmax, standard deviations by a softplus, times the scale."""
    outputs, scale = outputs_of(family, data), unit(family)
    z, x = exact(compiled(family).from_outputs(outputs)), np.asarray(outputs, np.float64)

    def softmax(y: np.ndarray) -> np.ndarray:
        return np.exp(y) / np.exp(y).sum()

    if isinstance(family, Gaussian):
        bias = 1.0 if family.std_bias is None else family.std_bias
        expected = {"mean": scale * x[0], "std": scale * np.log1p(np.exp(x[1] + bias))}
    elif isinstance(family, Categorical):
        expected = {"p": softmax(x)}
    elif isinstance(family, GaussianMixture):
        m = family.components
        expected = {
            "weights": softmax(x[:m]),
            "means": scale * (x[m : 2 * m] + np.linspace(-family.spread, family.spread, m)),
            "stds": scale * np.log1p(np.exp(x[2 * m :] + family.std_bias)),
        }
    else:
        expected = {"mean": scale * x[0]}
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(z, name), value, rtol=1e-5, atol=1e-6 * (1.0 if name == "p" else scale))


@pytest.mark.slow
@over(FITTED)
def test_a_family_is_a_static_argument_and_lifts_over_a_batch(family: ReturnDistribution[Any]) -> None:
    assert hash(family) == hash(dataclasses.replace(family))  # pyright: ignore[reportArgumentType]
    outputs = jax.random.normal(jax.random.key(0), (3, family.num_outputs))

    @functools.partial(jax.jit, static_argnums=0)
    def losses(family: ReturnDistribution[Any], outputs: jax.Array) -> jax.Array:
        z = jax.vmap(family.from_outputs)(outputs)
        target = jax.vmap(family.backup, in_axes=(0, None, None))(z, number(0.5), number(0.9))
        return jax.vmap(family.loss)(jax.lax.stop_gradient(target), z)

    do = compiled(family)
    for row, loss in zip(outputs, losses(family, outputs), strict=True):
        z = do.from_outputs(row)
        np.testing.assert_allclose(loss, do.loss(do.backup(z, number(0.5), number(0.9)), z), rtol=1e-4, atol=1e-6)
    gradient = jax.grad(lambda x: jnp.sum(losses(family, x)))(outputs)
    assert gradient.shape == outputs.shape and np.isfinite(gradient).all()


@over(EVERY)
@pytest.mark.parametrize("ends", [True, False], ids=["terminal", "bootstrap"])
@given(data=st.data())
def test_extreme_outputs_give_finite_losses_and_gradients(
    family: ReturnDistribution[Any], ends: bool, data: st.DataObject
) -> None:
    """Bins without probability in the target included. A prediction's standard deviation goes down to about 1e-6."""
    do = compiled(family)
    narrowest = jnp.full(family.num_outputs, -50.0)
    if isinstance(family, Gaussian | GaussianMixture):
        narrowest = narrowest.at[-family.num_outputs // (2 if isinstance(family, Gaussian) else 3) :].set(-14.0)
    outputs, bootstrap = (jnp.maximum(outputs_of(family, data, size=50.0), narrowest) for _ in range(2))
    z = family.terminal() if ends else do.from_outputs(bootstrap)
    loss, gradient = do.value_and_gradient(outputs, do.backup(z, number(0.3), number(0.995)))
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()


def test_bins_without_probability_in_the_target_leave_no_mark() -> None:
    family = CATEGORICALS[0]
    target = family.terminal()
    assert np.isneginf(target.log_probabilities).any()
    loss, gradient = compiled(family).value_and_gradient(jnp.array([50.0, 50.0, 0.0, -50.0, 50.0, 0.0, 3.0]), target)
    assert np.isfinite(loss) and np.isfinite(gradient).all()
    dead = family.from_outputs(jnp.array([0.0, 0.0, -jnp.inf, -jnp.inf, -jnp.inf, -jnp.inf, -jnp.inf]))
    np.testing.assert_allclose(family.loss(target, dead), math.log(2), rtol=1e-6)


def test_fit_reaches_beyond_the_returns() -> None:
    family = Categorical().fit(ReturnRange(0.0, 1.0))
    assert family.low is not None and family.high is not None
    assert family.bins == 7
    np.testing.assert_allclose([family.low, family.high], [-0.2, 1.2], rtol=1e-12)
    np.testing.assert_allclose(family.centers, [-0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1], atol=1e-6)
    np.testing.assert_allclose(family.bin_width, 0.2, rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "returns", "edges"),
    [
        (Categorical(31), ReturnRange(-10.0, 2.0), (-12.4, 4.4)),
        (Categorical(low=-3.0), ReturnRange(0.0, 1.0), (-3.0, 1.2)),
        (Categorical(high=3.0), ReturnRange(0.0, 1.0), (-0.2, 3.0)),
        (Categorical(low=0.0, high=1.0), ReturnRange(0.0, 1.0), (0.0, 1.0)),
        (Categorical(), ReturnRange(0.0, 0.0), (-0.2, 0.2)),
    ],
    ids=str,
)
def test_fit_fills_only_what_is_open(family: Categorical, returns: ReturnRange, edges: tuple[float, float]) -> None:
    fitted = family.fit(returns)
    assert fitted.low is not None and fitted.high is not None
    np.testing.assert_allclose([fitted.low, fitted.high], edges, rtol=1e-9)


SCALED: list[Callable[..., Any]] = [type(family) for family in BUILT_IN if isinstance(family, Scaled)]


@pytest.mark.parametrize("build", SCALED)
def test_fit_sets_an_open_scale_to_the_range_of_the_returns(build: Callable[..., Any]) -> None:
    for low, high, scale in ((-100.0, 300.0, 400.0), (0.0, 1e-3, 1e-3), (0.0, 0.0, 1.0)):
        assert build().fit(ReturnRange(low, high)).scale == scale
    assert build(scale=3.0).fit(ReturnRange(-100.0, 300.0)).scale == 3.0


@pytest.mark.parametrize("build", [Gaussian, Quantile])
def test_fit_sets_an_open_center_to_the_middle_of_the_returns(build: Callable[..., Any]) -> None:
    assert build().fit(ReturnRange(-100.0, 300.0)) == build(scale=400.0, center=100.0)
    assert build(scale=3.0, center=7.0).fit(ReturnRange(-100.0, 300.0)) == build(scale=3.0, center=7.0)


@over([family for family in UNBOUNDED if isinstance(family, Scaled)])
@given(data=st.data())
def test_an_open_scale_is_one(family: Any, data: st.DataObject) -> None:
    one, left_open = (compiled(dataclasses.replace(family, scale=scale)) for scale in (1.0, None))
    outputs, other = outputs_of(family, data), outputs_of(family, data)
    for ours, expected in zip(left_open.from_outputs(outputs), one.from_outputs(outputs), strict=True):
        np.testing.assert_array_equal(ours, expected)
    target = one.backup(one.from_outputs(other), number(0.3), number(0.9))
    for ours, expected in zip(
        left_open.value_and_gradient(outputs, target), one.value_and_gradient(outputs, target), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)
    terminals = (dataclasses.replace(family, scale=scale).terminal() for scale in (None, 1.0))
    for ours, expected in zip(*terminals, strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.slow
@over(OPEN)
@given(
    data=st.data(), reward=st.floats(-0.5, 1.5, width=32), discount=st.floats(0.0625, 1.0, width=32), ends=st.booleans()
)
def test_the_unit_of_the_rewards_does_not_matter(
    family: Any, data: st.DataObject, reward: float, discount: float, ends: bool
) -> None:
    """All rewards times 1,000: the same loss and gradient for the network, and returns times 1,000."""
    outputs, bootstrap = outputs_of(family, data), outputs_of(family, data)

    def learn(by: float) -> tuple[Any, ...]:
        fitted = family.fit(ReturnRange(-0.5 * by, 1.5 * by))
        do = compiled(fitted)
        z = fitted.terminal() if ends else do.from_outputs(bootstrap)
        target = do.backup(z, number(by * reward), number(discount))
        moments = [float(moment) / by for moment in (do.mean(target), do.std(target), do.std(do.from_outputs(outputs)))]
        return *do.value_and_gradient(outputs, target), moments

    loss, gradient, moments = learn(1.0)
    scaled_loss, scaled_gradient, scaled_moments = learn(1000.0)
    # the two round a return differently: a narrow target among wide predictions shows it most
    np.testing.assert_allclose(scaled_loss, loss, rtol=1e-4, atol=2e-5)
    size = max(1.0, float(np.abs(gradient).max()))
    np.testing.assert_allclose(scaled_gradient, gradient, rtol=1e-4, atol=2e-5 * size)
    np.testing.assert_allclose(scaled_moments, moments, rtol=1e-4, atol=2e-5)


@over([family for family in BUILT_IN if family.has_density])
@given(data=st.data(), place=st.floats(0.0625, 0.9375, width=32))
def test_a_density_is_per_unit_of_return(family: Any, data: st.DataObject, place: float) -> None:
    """So a negative log-likelihood moves by log k where all rewards are multiplied by k, and its gradient stays."""
    outputs = outputs_of(family, data)
    (one, gradient), (other, scaled_gradient) = (
        compiled(family.fit(ReturnRange(0.0, by))).log_density_and_gradient(outputs, number(by * place))
        for by in (1.0, 1024.0)
    )
    np.testing.assert_allclose(other, float(one) - math.log(1024), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scaled_gradient, gradient, rtol=1e-4, atol=1e-5)


@over(CATEGORICALS)
@given(data=st.data())
def test_categorical_log_density_of_a_center(family: Categorical, data: st.DataObject) -> None:
    """What a draw has: log p_i - log(bin width), at exactly the center."""
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    at_centers = do.log_density(z, jnp.asarray(family.centers))
    np.testing.assert_allclose(
        at_centers, exact(z).log_probabilities - math.log(family.bin_width), rtol=1e-5, atol=1e-6
    )


def test_a_component_without_weight_leaves_no_mark_on_the_density() -> None:
    """A weight that underflows to 0: its logarithm has no gradient, and the others' is right."""
    family = GaussianMixture(2, spread=0.0)

    def log_density(outputs: jax.Array) -> jax.Array:
        return family.log_density(family.from_outputs(outputs), number(0.5))

    value, gradient = jax.value_and_grad(log_density)(jnp.array([0.0, -200.0, 0.2, 3.0, 0.0, 0.0]))
    std = math.log1p(math.e)
    np.testing.assert_allclose(value, scipy.stats.norm.logpdf(0.5, 0.2, std), rtol=1e-5)
    np.testing.assert_allclose(gradient[:4], [0.0, 0.0, 0.3 / std**2, 0.0], atol=1e-6)
    assert np.isfinite(gradient).all()


@over(FITTED)
def test_only_a_family_without_a_spread_is_said_to_hinder_a_policy_that_explores_by_it(
    family: ReturnDistribution[Any],
) -> None:
    warnings = [*sanity_warnings(Method(family, UCB()), OneHot(3))]
    assert [line.split(" has none")[0] for line in warnings] == (
        [] if family.has_spread else [f"UCB explores by the spread of the return, and {type(family).__name__}"]
    )


@over(FITTED)
def test_a_family_says_whether_it_has_a_density_and_a_spread(family: ReturnDistribution[Any]) -> None:
    has_density = type(family).log_density is not ReturnDistribution.log_density
    begun = family.from_outputs(jnp.zeros(family.num_outputs))
    assert (family.has_density, family.has_spread) == (has_density, float(family.std(begun)) > 0)
    if not has_density:
        with pytest.raises(TypeError, match=f"{type(family).__name__} has no density"):
            family.density(begun, jnp.zeros(1))


@pytest.mark.slow
@over(RIGHT)
@given(data=st.data(), seed=seeds)
def test_a_cdf_is_the_share_of_draws(family: ReturnDistribution[Any], data: st.DataObject, seed: int) -> None:
    """Within 6 standard errors, at the draws themselves; half a draw's mass counts where returns are discrete."""
    do = compiled(family)
    z = do.from_outputs(outputs_of(family, data))
    draws = np.sort(np.asarray(do.samples(jax.random.key(seed), z)))
    for level in (0.02, 0.5, 0.9):
        point = draws[int(level * SAMPLES)]
        below, upto = np.mean(draws < point), np.mean(draws <= point)
        probability, error = float(do.cdf(z, jnp.asarray(point))), 6 * 0.5 / math.sqrt(SAMPLES)
        assert below - error <= probability <= upto + error


# What least squares needs of a linear family


@over(LINEAR)
@given(data=st.data(), share=st.floats(0.0, 1.0, width=32))
def test_means_of_coordinates_are_distributions(
    family: ReturnDistribution[Any], data: st.DataObject, share: float
) -> None:
    """Coordinates determine the distribution, and the mean return of their weighted mean is that of the returns."""
    z, other = (compiled(family).from_outputs(outputs_of(family, data)) for _ in range(2))
    for each in (z, other):
        again = family.from_coordinates(family.coordinates(each))
        for ours, expected in zip(again, each, strict=True):
            by_unit = np.exp(ours / unit(family)), np.exp(expected / unit(family))  # of log-probabilities, too
            np.testing.assert_allclose(*by_unit, rtol=1e-4, atol=1e-6)
    mixed = share * family.coordinates(z) + (1 - share) * family.coordinates(other)
    mean = share * float(family.mean(z)) + (1 - share) * float(family.mean(other))
    np.testing.assert_allclose(family.mean(family.from_coordinates(mixed)), mean, rtol=1e-4, atol=1e-5 * unit(family))
    assert len(family.is_mean) == family.num_outputs == mixed.size


@over(LINEAR)
@given(data=st.data(), reward=rewards, discount=discounts, share=st.floats(0.0, 1.0, width=32))
def test_the_backup_of_a_mean_is_the_mean_of_the_backups(
    family: ReturnDistribution[Any], data: st.DataObject, reward: float, discount: float, share: float
) -> None:
    """In coordinates a backup is affine: so the least squares of backed-up targets are those of their mean."""
    do = compiled(family)
    z, other = (do.from_outputs(outputs_of(family, data)) for _ in range(2))
    mixed = family.from_coordinates(share * family.coordinates(z) + (1 - share) * family.coordinates(other))
    of_mean, of_one, of_other = (
        np.asarray(family.coordinates(do.backup(each, number(reward), number(discount)))) for each in (mixed, z, other)
    )
    np.testing.assert_allclose(of_mean, share * of_one + (1 - share) * of_other, rtol=1e-4, atol=2e-5 * unit(family))


# Quantiles


@pytest.mark.parametrize("count", [2, 5, 32])
def test_quantiles_begin_as_those_of_a_normal_distribution(count: int) -> None:
    family = Quantile(count, start_std=0.7, scale=10.0)
    levels = (np.arange(count) + 0.5) / count
    begun = family.from_outputs(jnp.zeros(count))
    np.testing.assert_allclose(begun.quantiles, 7.0 * scipy.stats.norm.ppf(levels), rtol=1e-5, atol=1e-5)
    for family, std in ((Quantile(count, scale=1.0), 1.3), (Quantile(count, scale=1.0).as_wide_as_returns(), 0.29)):
        np.testing.assert_allclose(family.begin, std * scipy.stats.norm.ppf(levels), rtol=1e-5, atol=1e-6)


@given(data=st.data())
def test_quantiles_are_sorted_and_their_loss_is_the_wasserstein_distance(data: st.DataObject) -> None:
    """Of order 2 between two sets of equally likely returns, by the best of all assignments of one to the other."""
    family = Quantile(5, scale=2.0)
    z, other = (compiled(family).from_outputs(outputs_of(family, data)) for _ in range(2))
    assert (np.diff(z.quantiles) >= 0).all()
    p, q = (np.asarray(each.quantiles, np.float64) / 2.0 for each in (z, other))
    best = min(np.mean((p[list(order)] - q) ** 2) for order in itertools.permutations(range(5)))
    np.testing.assert_allclose(compiled(family).loss(z, other), best, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Gaussian(terminal_std=0.0), ["terminal_std is 0.0", "above 0", "1e-4"]),
        (lambda: Gaussian(terminal_std=-1.0), ["terminal_std is -1.0", "above 0"]),
        (lambda: Gaussian(terminal_std=math.nan), ["terminal_std is nan", "finite number"]),
        (lambda: Gaussian(beta=-0.1), ["beta is -0.1", "[0, 1]", "0 is the paper's"]),
        (lambda: Gaussian(beta=1.1), ["beta is 1.1", "[0, 1]"]),
        (lambda: Gaussian(beta=math.nan), ["beta is nan", "finite number"]),
        (lambda: Gaussian(scale=0.0), ["scale is 0.0", "above 0", "leave it out"]),
        (lambda: Gaussian(scale=math.inf), ["scale is inf", "finite"]),
        (lambda: GaussianMixture(scale=-1.0), ["scale is -1.0", "above 0"]),
        (lambda: PointMass(scale=math.nan), ["scale is nan", "finite number"]),
        (lambda: Categorical(bins=1), ["bins is 1: use a number from 2 to 4096; the paper uses 7 or 31."]),
        (lambda: Categorical(low=-math.inf), ["low is -inf", "finite"]),
        (lambda: Categorical(high=math.nan), ["high is nan", "finite"]),
        (lambda: Categorical(low=1.0, high=1.0), ["low (1.0)", "high (1.0)", "swap"]),
        (lambda: Categorical(low=2.0, high=1.0), ["low (2.0)", "high (1.0)", "swap"]),
        (lambda: Quantile(1), ["quantiles is 1", "from 2 to 4096"]),
        (lambda: Quantile(start_std=-1.0), ["start_std is -1.0", "0 or more"]),
        (lambda: Quantile(scale=0.0), ["scale is 0.0", "above 0"]),
        (lambda: GaussianMixture(components=0), ["components is 0: use a number from 1 to 256; the paper uses 5."]),
        (lambda: GaussianMixture(spread=-1.0), ["spread is -1.0", "0 or more"]),
        (lambda: GaussianMixture(spread=math.nan), ["spread is nan", "finite number"]),
        (lambda: GaussianMixture(terminal_std=0.0), ["terminal_std is 0.0", "above 0", "1e-4"]),
        (
            lambda: Categorical(low=0.5).fit(ReturnRange(0.0, 1.0)),
            ["[0.5, 1.2]", "from 0 to 1", "--distribution.low -0.2 and --distribution.high 1.2"],
        ),
        (
            lambda: Categorical(high=0.5).fit(ReturnRange(0.0, 1.0)),
            ["[-0.2, 0.5]", "from 0 to 1", "--distribution.low -0.2 and --distribution.high 1.2"],
        ),
        (
            lambda: Categorical(low=5.0).fit(ReturnRange(0.0, 1.0)),
            ["[5, 1.2]", "from 0 to 1", "--distribution.low -0.2 and --distribution.high 1.2"],
        ),
        (lambda: Categorical().bin_width, ["low and high", "fit()"]),
        (lambda: Categorical(low=0.0).terminal(), ["low and high", "fit()"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(build: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        build()
    for word in words:
        assert word in str(error.value)


def test_an_unknown_distance_is_refused() -> None:
    """As where nothing checks types at run time."""
    family = Gaussian()
    object.__setattr__(family, "distance", "euclid")
    with pytest.raises(InputError, match=r"distance is 'euclid': use one of cross_entropy, kl, .* or wasserstein"):
        family.__post_init__()


def test_a_start_of_a_width_that_is_asked_for() -> None:
    families: list[ReturnDistribution[Any]] = [Gaussian(scale=4.0), Quantile(scale=4.0, quantiles=256)]
    for start in (each.starting_at(0.75) for each in families):
        z = start.from_outputs(jnp.zeros(start.num_outputs))
        np.testing.assert_allclose(start.std(z), 3.0, rtol=0.02)
    chosen = Gaussian(scale=4.0, std_bias=0.5)
    assert chosen.starting_at(0.75) == chosen and PointMass().starting_at(0.75) == PointMass()
