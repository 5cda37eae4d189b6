"""Vectors of numbers by how near they are to landmarks among the observations of the run."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings.base import Encoding
from uppertail.encodings.vector import Bounds, Vector

SCALES = (1.0, 2.0, 4.0, 8.0)
"""The length scales of the kernel, in units of the finest one."""

UNEXPLAINED = 0.005
"""An observation becomes a landmark if the landmarks so far leave more than this share of its kernel unexplained."""

GROWTH = 0.15
"""Bounds that are exceeded grow by this share of their span: landmarks are seldom chosen again for small steps."""

COARSER = 1.2
"""What the length scale is multiplied by when there is no room for another landmark."""


class Places(NamedTuple):
    """The landmarks of a run.

    Args:
        points: observations that are landmarks, in the order in which they became one.
        inverse: the inverse of the Cholesky factor of their kernel matrix; rows without a landmark are 0.
        used: how many landmarks there are.
        length_scale: the finest length scale.
        version: changes whenever the features of all observations change; a further landmark only adds one.
        bounds: of what was observed.
    """

    points: Float[Array, "features entries"]
    inverse: Float[Array, "features features"]
    used: Int[Array, ""]
    length_scale: Float[Array, ""]
    version: Int[Array, ""]
    bounds: Bounds


@dataclasses.dataclass(frozen=True)
class Landmarks(Encoding):
    """Nystrom features (Williams and Seeger 2001): their products are the kernel, as far as landmarks explain it.

    The kernel is the mean of four Gaussian ones, exp(- distance^2 / (2 scale^2)), with the root mean square over the
    scaled numbers as distance. Landmarks are chosen as in kernel recursive least squares (Engel, Mannor and Meir
    2004): an observation becomes one if the others do not explain it. Far from all landmarks the features are 0, so
    what least squares predicts there is the wide start. When no room is left, length scales grow, and fewer landmarks
    are needed: the resolution is the finest that the features allow.

    Args:
        vector: how the numbers are brought to a common scale first.
        most: the most landmarks, which is the number of features.
        length_scale: the finest length scale before it has to grow.
    """

    vector: Vector
    most: int
    length_scale: float

    @property
    def num_features(self) -> int:
        return self.most

    def init(self, key: PRNGKeyArray) -> Places:
        return Places(
            points=jnp.zeros((self.most, self.vector.num_features)),
            inverse=jnp.zeros((self.most, self.most)),
            used=jnp.zeros((), jnp.int32),
            length_scale=jnp.asarray(self.length_scale, jnp.float32),
            version=jnp.zeros((), jnp.int32),
            bounds=self.vector.init(key),
        )

    def observe(self, encoder: Places, observations: Float[Array, "batch entries"]) -> Places:
        bounds = self._wider(encoder.bounds, observations)
        beyond = (bounds.low < encoder.bounds.low) | (bounds.high > encoder.bounds.high)
        grew = jnp.any((beyond & ~self.vector.bounded)[self.vector.kept])
        places = self._chosen_again(encoder._replace(bounds=bounds), grew & (encoder.used > 0))
        places = self._with_all(places, observations)
        full = places.used == self.most
        coarser = places._replace(length_scale=places.length_scale * jnp.where(full, COARSER, 1.0))
        return self._chosen_again(coarser, full)

    def _wider(self, before: Bounds, observations: Float[Array, "batch entries"]) -> Bounds:
        """Bounds that hold these observations."""
        exact = self.vector.observe(before, observations)
        more = jnp.where(jnp.isfinite(before.low), GROWTH * (before.high - before.low), 0.0)
        return Bounds(
            jnp.where(exact.low < before.low, jnp.minimum(exact.low, before.low - more), before.low),
            jnp.where(exact.high > before.high, jnp.maximum(exact.high, before.high + more), before.high),
        )

    def _with_all(self, before: Places, observations: Float[Array, "batch entries"]) -> Places:
        """The landmarks with those of the observations that they do not explain; usually they explain all."""

        def with_next(carry: tuple[Places, Bool[Array, " batch"]]) -> tuple[Places, Bool[Array, " batch"]]:
            row = jnp.argmax(carry[1])
            return self._with(carry[0], observations[row]), carry[1].at[row].set(False)

        features = jax.vmap(self.features, in_axes=(None, 0))(before, observations)
        waiting = 1.0 - jnp.sum(jnp.square(features), axis=1) > UNEXPLAINED
        return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), with_next, (before, waiting))[0]

    def _with(self, places: Places, observation: Float[Array, " entries"]) -> Places:
        """The landmarks with this observation among them, if they do not explain it and there is room."""
        features = self.features(places, observation)
        unexplained = 1.0 - features @ features
        row = jnp.where((unexplained > UNEXPLAINED) & (places.used < self.most), places.used, self.most)
        root = jnp.sqrt(jnp.maximum(unexplained, UNEXPLAINED))
        inverse = (-(features @ places.inverse) / root).at[row].set(1.0 / root, mode="drop")
        return places._replace(
            points=places.points.at[row].set(observation, mode="drop"),
            inverse=places.inverse.at[row].set(inverse, mode="drop"),
            used=places.used + (row < self.most).astype(jnp.int32),
        )

    def _chosen_again(self, places: Places, again: Bool[Array, ""]) -> Places:
        """The landmarks chosen again among themselves, where bounds or length scales have changed."""
        begun = places._replace(
            inverse=jnp.where(again, 0.0, places.inverse),
            used=jnp.where(again, 0, places.used),
            version=places.version + again.astype(jnp.int32),
        )
        candidates = jnp.where(again, places.used, 0)
        return jax.lax.fori_loop(0, candidates, lambda row, begun: self._with(begun, places.points[row]), begun)

    def features(self, encoder: Places, observation: Float[Array, " entries"]) -> Float[Array, " features"]:
        """The inverse Cholesky factor times the kernel of the observation and each landmark."""
        return encoder.inverse @ self._kernel(encoder, observation)

    def feature(
        self, encoder: Places, place: Int[Array, ""], observation: Float[Array, " entries"]
    ) -> Float[Array, ""]:
        return encoder.inverse[place] @ self._kernel(encoder, observation)

    def first_changed(self, before: Places, after: Places) -> Int[Array, ""]:
        return jnp.where(before.version == after.version, before.used, 0)

    def _kernel(self, encoder: Places, observation: Float[Array, " entries"]) -> Float[Array, " features"]:
        """The kernel of the observation and each landmark. With |x - y|^2 = |x|^2 - 2 x y + |y|^2, batches are fast."""
        landmarks = jax.vmap(self.vector.scaled, in_axes=(None, 0))(encoder.bounds, encoder.points)
        here = self.vector.scaled(encoder.bounds, observation)
        products = jnp.matmul(landmarks, here, precision="highest")
        square = jnp.sum(jnp.square(landmarks), axis=1) - 2 * products + jnp.sum(jnp.square(here))
        distance = jnp.maximum(square, 0.0) / self.vector.kept.size / jnp.square(encoder.length_scale)
        return sum((jnp.exp(-distance / (2 * scale**2)) for scale in SCALES), jnp.zeros(self.most)) / len(SCALES)

    def seen_bounds(self, encoder: Places) -> tuple[Array, Array]:
        return self.vector.seen_bounds(encoder.bounds)

    def used(self, encoder: Places) -> Int[Array, ""]:
        return encoder.used

    def version(self, encoder: Places) -> Int[Array, ""]:
        return encoder.version
