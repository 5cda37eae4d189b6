"""Counts of random subsets of pixels: evidence where images never repeat."""

import dataclasses
import math
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt16, UInt32

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.evidence.base import Evidence, EvidenceBuilder
from uppertail.evidence.kernel_counts import centered
from uppertail.hashing import mixed
from uppertail.networks import Twin, parts_of_actions
from uppertail.replay.base import written
from uppertail.schema import settle, traced
from uppertail.targets import RunningMean
from uppertail.types import PyTree, Transition

CELLS = 1 << 14
"""Places for the contents of each subset."""

SIDE = 16
"""Blocks along the longer side of an image, at most: of each block, its darkest and its brightest shade count."""

SHADE = 0.5
"""Shades that differ by so much of the brightest pixel are told apart by each subset; nearer ones by fewer."""


def blocks(encoding: Encoding, observation: Array) -> Float[Array, " shades"]:
    """The darkest and the brightest shade of each block of an image; of one pixel, its shade; of names, the numbers."""
    pixels, size = encoding.pixels(observation), side(encoding)
    if size == 1:
        return pixels
    image = split(jnp, pixels.reshape(encoding.pixel_shape or (1, 1, 1)), size)
    return jnp.concatenate([jnp.ravel(image.min(axis=(1, 3))), jnp.ravel(image.max(axis=(1, 3)))])


def split(xp: Any, image: Any, size: int) -> Any:
    """An image in blocks, [rows of blocks, size, columns of blocks, size, channels]; its edges fill the last ones."""
    rows, columns, channels = image.shape
    image = xp.pad(image, ((0, -rows % size), (0, -columns % size), (0, 0)), "edge")
    return image.reshape(image.shape[0] // size, size, image.shape[1] // size, size, channels)


def side(encoding: Encoding) -> int:
    """The pixels of a side of a block."""
    rows, columns, _ = encoding.pixel_shape or (1, 1, 1)
    return -(-max(rows, columns) // SIDE)


def num_shades(encoding: Encoding) -> int:
    """How many `blocks` tells."""
    rows, columns, channels = encoding.pixel_shape or (1, 1, 1)
    size = side(encoding)
    return math.ceil(rows / size) * math.ceil(columns / size) * channels * (1 if size == 1 else 2)


class PixelEvidence(Evidence):
    """u(s, a), the mean over subsets of lambda / (lambda + n), with n how often a was taken where they looked the same.

    The contents of a subset are hashed; it holds pixels, or of a larger image shades of blocks. Where each stored
    transition leads, its hashes are kept beside it.
    """

    encoding: Encoding = eqx.field(static=True)
    num_parts: int = eqx.field(static=True)  # actions, or all values of all numbers that actions are made of
    capacity: int = eqx.field(static=True)  # of the replay buffer, in whose rows the transitions are
    weights: UInt32[Array, "subsets pixels"]  # of the hashes; 0: the pixel is not in the subset
    visits: Float[Array, "subsets cells parts"]  # n
    leads_to: UInt16[Array, "rows subsets"]  # cells
    added: Int[Array, ""]  # transitions that there ever were
    prior_count: Float[Array, ""]  # lambda
    here: UInt16[Array, " subsets"] | None = None  # cells that are asked about; None: those of the observation
    sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def combining(self, sizes: tuple[int, ...]) -> Self:
        return dataclasses.replace(self, sizes=sizes)

    def start(self, family: Any) -> PyTree:
        return centered(family)

    def cells(self, observation: Array) -> UInt16[Array, " subsets"]:
        """The cell of each subset's contents."""
        offset = (self.weights >> 8).astype(jnp.float32) * 2.0**-24  # where each subset's shades begin (random binning)
        shades = jnp.floor(blocks(self.encoding, observation)[None] / SHADE + offset)
        codes = jnp.sum(self.weights * shades.astype(jnp.int32).astype(jnp.uint32), axis=1, dtype=jnp.uint32)
        return (mixed(codes) % CELLS).astype(jnp.uint16)

    def share(self, observation: Array) -> Float[Array, " actions"]:
        here = self.cells(observation) if self.here is None else self.here
        visits = self.visits[jnp.arange(here.shape[0]), here]
        share = jnp.mean(self.prior_count / (self.prior_count + visits), axis=0)
        return share if self.sizes is None else jnp.max(parts_of_actions(self.sizes) * share[None], axis=1)

    def kept(self, rows: Int[Array, " count"]) -> UInt16[Array, "count subsets"]:
        return self.leads_to[rows]

    def there(self, kept: UInt16[Array, " subsets"]) -> Self:
        return dataclasses.replace(self, here=kept)

    def observe(self, fresh: Transition) -> Self:
        here, there = (jax.vmap(self.cells)(each) for each in (fresh.observation, fresh.next_observation))
        rows = (self.added + jnp.arange(count := fresh.action.shape[0])) % self.capacity
        taken = jax.nn.one_hot(fresh.action, self.num_parts)
        if self.sizes is not None:
            taken = jnp.asarray(parts_of_actions(self.sizes))[fresh.action]
        subsets = jnp.arange(here.shape[1])[None]
        return dataclasses.replace(
            self,
            visits=self.visits.at[subsets, here].add(taken[:, None]),
            leads_to=written(self.leads_to, rows, there),
            added=self.added + count,
        )


STEPS = {
    "network": Twin(),
    "target": RunningMean(0.99),
    "rollout_steps": 4,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
}
"""Small steps from replayed data alone (docs/decisions/0042)."""

UPDATES, SMALL = 8, 24 * 24
"""Updates for each action, so that what is found spreads at once, and the pixels up to which there are so many."""

OF_NAMES = {**STEPS, "network": Twin(normalization="none"), "updates_per_rollout": 1}
"""The same where numbers are names, each of which is one 1 of the input (docs/decisions/0061)."""


@dataclasses.dataclass(frozen=True)
class PixelCounts(EvidenceBuilder):
    """u(s, a), the mean over random subsets of pixels of lambda / (lambda + n(subset, a)): for images and names.

    n counts how often the action was taken where these pixels were the same. A pixel that flickers makes the subsets
    new that hold it, and the others still tell what is known. Larger images enter as blocks, 16 along the longer side,
    each with its darkest and its brightest shade, so that a subset tells as much as in a small one. Of numbers that
    are names, such as kinds of tiles (`--env.features one_hot`), a subset holds numbers in place of pixels.

    Args:
        prior_count: lambda, above 0: how many visits the wide start counts as.
        subsets: how many there are.
        chance: that a pixel is in a subset, or a shade of a block; above 0 and at most 1; 1: each different image is
            a state, up to 16 x 16 pixels.

    Examples:
        >>> ut.PixelCounts(subsets=16).chance
        0.05
    """

    by_row: ClassVar[bool] = True
    greedy_mean: ClassVar[bool] = True
    prior_count: float = traced(0.1)
    subsets: int = 32
    chance: float = 0.05

    def __post_init__(self) -> None:
        settle(self)
        if self.prior_count <= 0:
            raise InputError(f"prior_count is {self.prior_count}: use a finite number above 0, for example 0.1.")
        if self.subsets < 1:
            raise InputError(f"subsets is {self.subsets}: use a whole number, 1 or more.")
        if not 0 < self.chance <= 1:
            raise InputError(f"chance is {self.chance}: use a number above 0 and at most 1, for example 0.05.")

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        """The larger the image, the fewer updates: so an action takes about as long."""
        if encoding.image_shape is None:
            return OF_NAMES
        rows, columns, _ = encoding.image_shape
        return {**STEPS, "updates_per_rollout": max(1, min(UPDATES, UPDATES * SMALL // (rows * columns)))}

    def family(self, family: Any) -> Any:
        return family.as_wide_as_returns()

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> PixelEvidence:
        if encoding.pixel_shape is None:
            raise InputError(
                f"PixelCounts needs images or names, but observations enter as {type(encoding).__name__}: leave "
                "evidence out, or use --env.features one_hot if numbers are names."
            )
        weights_key, chosen_key = jax.random.split(key)
        shape = self.subsets, num_shades(encoding)
        weights = jax.random.bits(weights_key, shape, jnp.uint32) | 1  # odd: no value of a pixel is lost
        weights = jnp.where(jax.random.bernoulli(chosen_key, self.chance, shape), weights, 0)
        visits: Any = jnp.zeros((self.subsets, CELLS, num_actions))
        leads_to = jnp.zeros((capacity, self.subsets), jnp.uint16)
        zero = jnp.zeros((), jnp.int32)
        return PixelEvidence(
            encoding, num_actions, capacity, weights, visits, leads_to, zero, jnp.asarray(self.prior_count)
        )
