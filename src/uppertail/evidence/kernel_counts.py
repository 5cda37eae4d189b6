"""Kernel counts of the pairs that were seen: evidence where states never repeat."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding, RandomFeatures, Vector
from uppertail.encodings.standardized import Standardized
from uppertail.errors import InputError
from uppertail.evidence.base import Evidence, EvidenceBuilder
from uppertail.networks import Twin, parts_of_actions
from uppertail.replay.base import written
from uppertail.schema import settle, traced
from uppertail.targets import RunningMean
from uppertail.types import PyTree, Transition

BLOCK = 1024
"""Pairs that are computed with at once; there is room for a whole number of blocks."""

HOPELESS, RATE = 0.01, 0.01
"""The running mean of u of the least tried action, below which nothing new is met any more, and its rate."""

FINER = 0.5
"""What the reach is multiplied by where nothing new is met and nothing was found."""


class KnownCounts(Evidence):
    """The evidence in one state, whose counts are known. An action is as new as the newest of its parts."""

    counts: Float[Array, " parts"]
    prior_count: Float[Array, ""]
    sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def share(self, observation: Array) -> Float[Array, " actions"]:
        share = self.prior_count / (self.prior_count + self.counts)
        return share if self.sizes is None else jnp.max(parts_of_actions(self.sizes) * share[None], axis=1)

    def start(self, family: Any) -> PyTree:
        return centered(family)

    def observe(self, fresh: Transition) -> Self:
        return self


class Search(NamedTuple):
    """What a run has found so far, and how much of the start it still meets."""

    paid: Float[Array, ""]  # what each step paid so far; NaN: no step was made
    found: Bool[Array, ""]  # whether steps were paid differently, or ended episodes that they had paid for
    left: Float[Array, ""]  # the running mean of u of the least tried action

    def after(self, fresh: Transition, newest: Float[Array, ""]) -> "Search":
        """The same after these transitions, that led to where the least tried actions have such a u in the mean."""
        paid = jnp.where(jnp.isnan(self.paid), fresh.reward[0], self.paid)
        found = jnp.any(fresh.reward != paid) | jnp.any(fresh.terminated & (paid != 0))
        return Search(paid, self.found | found, self.left + RATE * (newest - self.left))

    @property
    def is_hopeless(self) -> Bool[Array, ""]:
        return ~self.found & (self.left < HOPELESS)


class KernelEvidence(Evidence):
    """u(s, a) = lambda / (lambda + N(s, a)), with N(s, a) the sum over stored pairs of a of exp(- (d_i / reach)^2).

    The counts of where each stored transition leads are kept beside it, and every new pair is added to them. Where
    nothing new is met any more, and nothing was found, what was seen stands for too much: the reach is halved.
    """

    encoding: Standardized = eqx.field(static=True)
    num_parts: int = eqx.field(static=True)  # actions, or all values of all numbers that actions are made of
    capacity: int = eqx.field(static=True)  # of the replay buffer, in whose rows the transitions are
    encoder: PyTree
    places: Float[Array, "rows entries"]  # where transitions begin
    next_places: Float[Array, "rows entries"]  # where they lead
    taken: Float[Array, "rows parts"]  # 1 for the action that was taken; all 0: no transition
    counts: Float[Array, "rows parts"]  # N(s', .)
    added: Int[Array, ""]  # transitions that there ever were
    prior_count: Float[Array, ""]  # lambda
    reach: Float[Array, ""]
    search: Search
    sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def combining(self, sizes: tuple[int, ...]) -> Self:
        return dataclasses.replace(self, sizes=sizes)

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return self.there(self.counted(observation[None])[0]).share(observation)

    def start(self, family: Any) -> PyTree:
        return centered(family)

    def kept(self, rows: Int[Array, " count"]) -> Float[Array, "count parts"]:
        return self.counts[rows]

    def there(self, kept: Float[Array, " parts"]) -> KnownCounts:
        return KnownCounts(kept, self.prior_count, self.sizes)

    def observe(self, fresh: Transition) -> Self:
        encoder = self.encoding.observe(self.encoder, fresh.observation)
        rows = (self.added + jnp.arange(count := fresh.action.shape[0])) % self.capacity
        taken = self.parts_of(fresh.action)
        places, next_places, stored = written(
            (self.places, self.next_places, self.taken), rows, (fresh.observation, fresh.next_observation, taken)
        )
        new: Self = dataclasses.replace(
            self, encoder=encoder, places=places, next_places=next_places, taken=stored, added=self.added + count
        )
        is_finer, search = self.search.is_hopeless, self.search
        new = dataclasses.replace(new, reach=jnp.where(is_finer, FINER * self.reach, self.reach))
        counts_anew = is_finer | jnp.any(encoder.scale != self.encoder.scale)
        counts = jax.lax.cond(counts_anew, KernelEvidence.all_counted, lambda new: new.counted_on(fresh, taken), new)
        there = new.counted(fresh.next_observation)
        newest = jnp.mean(jnp.max(self.prior_count / (self.prior_count + there), axis=1))
        search = search._replace(left=jnp.where(is_finer, 1.0, search.left)).after(fresh, newest)
        return dataclasses.replace(new, counts=written(counts, rows, there), search=search)

    def parts_of(self, action: Int[Array, " new"]) -> Float[Array, "new parts"]:
        """1 for each action that was taken, or for each of its parts."""
        if self.sizes is None:
            return jax.nn.one_hot(action, self.num_parts)
        return jnp.asarray(parts_of_actions(self.sizes))[action]

    @property
    def per_unit(self) -> Float[Array, " entries"]:
        """What each number is multiplied by, so that the sum of squared differences is (d / reach)^2."""
        scaled = self.encoding.per_unit(self.encoder)
        return scaled / (self.reach * jnp.sqrt(jnp.maximum(jnp.sum(scaled > 0), 1)))

    @property
    def blocks(self) -> Int[Array, ""]:
        """How many blocks have transitions."""
        return -(-jnp.minimum(self.added, self.capacity) // BLOCK)

    def kernel(
        self, some: Float[Array, "some entries"], others: Float[Array, "others entries"]
    ) -> Float[Array, "some others"]:
        """exp(- (d / reach)^2), d the root mean square over the numbers that vary, in units of their scale."""
        per_unit = self.per_unit
        some, others = some * per_unit[None], others * per_unit[None]
        apart = jnp.sum(some**2, axis=1)[:, None] + jnp.sum(others**2, axis=1)[None] - 2.0 * some @ others.T
        return jnp.exp(-jnp.maximum(apart, 0.0))

    def counted(self, places: Float[Array, "places entries"]) -> Float[Array, "places parts"]:
        """N(s, .) at some places."""

        def add(number: Int[Array, ""], total: Float[Array, "places parts"]) -> Float[Array, "places parts"]:
            there, taken = (self.block(number, each) for each in (self.places, self.taken))
            return total + self.kernel(places, there) @ taken

        return jax.lax.fori_loop(0, self.blocks, add, jnp.zeros((places.shape[0], self.num_parts)))

    def all_counted(self) -> Float[Array, "rows parts"]:
        """N(s', .) of all stored transitions, anew."""
        return self.over_blocks(self.counted)

    def counted_on(self, fresh: Transition, taken: Float[Array, "new parts"]) -> Float[Array, "rows parts"]:
        """The same from the counts before, with new pairs added."""
        added = self.over_blocks(lambda there: self.kernel(there, fresh.observation) @ taken)
        return self.counts + added

    def over_blocks(self, function: Callable[[Array], Array]) -> Float[Array, "rows parts"]:
        """A function of the places where transitions lead, block by block."""

        def write(number: Int[Array, ""], result: Array) -> Array:
            there = function(self.block(number, self.next_places))
            return jax.lax.dynamic_update_slice_in_dim(result, there, number * BLOCK, 0)

        return jax.lax.fori_loop(0, self.blocks, write, jnp.zeros_like(self.counts))

    @staticmethod
    def block(number: Int[Array, ""], rows: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(rows, number * BLOCK, BLOCK)


def centered(family: Any) -> PyTree:
    """The family's start in the middle of the returns, so that its upper bound is above the best of them."""
    return family.centered(family.from_outputs(jnp.zeros(family.num_outputs)))


STEPS = {
    "network": Twin(),
    "target": RunningMean(0.99, acting_decay=0.9),
    "rollout_steps": 1,
    "updates_per_rollout": 8,
    "batch_size": 128,
    "learning_rate": 1e-3,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
}
"""A small network with several updates a decision (docs/decisions/0032)."""


@dataclasses.dataclass(frozen=True)
class KernelCounts(EvidenceBuilder):
    """u(s, a) = lambda / (lambda + N(s, a)), N(s, a) = sum_i exp(- (d_i / reach)^2) over the pairs (s_i, a) so far.

    A visit counts as 1 where it was made, and less the farther away it was: the rule of a table, made soft. Distances
    are root mean squares over the numbers, in units of their largest standard deviations so far.

    Args:
        prior_count: lambda, above 0: how many visits the wide start counts as.
        reach: the distance at which a visit counts as 0.37. It is halved each time that nothing new is met any more,
            but nothing was found: all steps were paid the same and, if that is not 0, none ended an episode.

    Examples:
        >>> ut.KernelCounts(reach=0.5).prior_count
        0.1
    """

    by_row: ClassVar[bool] = True
    asks_cut_soon: ClassVar[bool] = True
    greedy_mean: ClassVar[bool] = True
    prior_count: float = traced(0.1)
    reach: float = traced(0.7)

    def __post_init__(self) -> None:
        settle(self)
        for name in ("prior_count", "reach"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number above 0, for example 0.5.")

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        return STEPS

    def encoding(self, encoding: Encoding) -> Encoding:
        vector = encoding.vector if isinstance(encoding, RandomFeatures) else encoding
        return Standardized(vector) if isinstance(vector, Vector) else vector

    def family(self, family: Any) -> Any:
        return family.as_wide_as_returns()

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> KernelEvidence:
        if not isinstance(encoding, Standardized):
            raise InputError(
                f"KernelCounts needs vectors of numbers, but observations enter as {type(encoding).__name__}: leave "
                "evidence out."
            )
        rows, zero = -(-capacity // BLOCK) * BLOCK, jnp.zeros((), jnp.int32)
        numbers, nothing = jnp.zeros((rows, encoding.num_features)), jnp.zeros((rows, num_actions))
        arrays = encoding.init(key), numbers, numbers, nothing, nothing, zero
        settings = jnp.asarray(self.prior_count), jnp.asarray(self.reach)
        search = Search(jnp.asarray(jnp.nan), jnp.zeros((), bool), jnp.ones(()))
        return KernelEvidence(encoding, num_actions, capacity, *arrays, *settings, search)
