"""The contract of evidence and of its builder."""

import abc
import dataclasses
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import Explained
from uppertail.networks import not_by_parts
from uppertail.types import PyTree, Transition


class Evidence(eqx.Module):
    """u(s, a), the share of the wide start that is left: 1 where nothing is known, and toward 0 as data arrive.

    No network has a say in it, and no gradient reaches it: it follows from the pairs (s, a) that were seen.

    Examples:
        >>> class Nothing(ut.Evidence):
        ...     def share(self, observation):
        ...         return jnp.ones(3)
        ...
        ...     def observe(self, fresh):
        ...         return self
        >>> Nothing().share(jnp.array(4)).tolist()
        [1.0, 1.0, 1.0]
    """

    @abc.abstractmethod
    def share(self, observation: Array) -> Float[Array, " actions"]:
        """u(s, a) of each action in one state."""

    @abc.abstractmethod
    def observe(self, fresh: Transition) -> Self:
        """The evidence after these transitions, with one leading axis."""

    def doubt(self, share: Any) -> Any:
        """How much the lowest of several critics counts where a share u is left, and their mean with the rest.

        1 / sqrt(1 + N) after N visits, as the error of a mean falls, where u = prior_count / (prior_count + N); all of
        it where evidence has no `prior_count`.
        """
        prior: Any = getattr(self, "prior_count", None)
        return jnp.ones_like(share) if prior is None else (share / (share + (1.0 - share) * prior)) ** 0.5

    def combining(self, sizes: tuple[int, ...]) -> Self:
        """The evidence for actions that are made of numbers with so many values each, and learned by these.

        Raises:
            InputError: it counts actions alone.
        """
        raise not_by_parts(sizes, f"{type(self).__name__} counts each by itself: leave evidence out")

    def start(self, family: Any) -> PyTree:
        """z0, the wide start; by default the family's, about a return of 0."""
        return family.from_outputs(jnp.zeros(family.num_outputs))

    def kept(self, rows: Int[Array, " count"]) -> PyTree:
        """What it keeps of where stored transitions lead, by their rows in the replay buffer; nothing by default."""
        del rows
        return ()

    def there(self, kept: PyTree) -> "Evidence":
        """The evidence where one of these transitions leads; by default its share is computed anew."""
        del kept
        return self


class EvidenceBuilder(metaclass=Explained):
    """A frozen dataclass of settings, named with `--evidence`; it builds the evidence of each seed.

    Attributes:
        by_row: whether it is `kept` for stored transitions, so that minibatches are drawn from the replay buffer alone.
        asks_cut_soon: whether an episode that is cut short while discount^actions is above 1/e carries no hope on.
        greedy_mean: whether the mean is backed up with the greedy next action (`Agent.greedy_mean`).

    Examples:
        >>> [issubclass(kind, ut.EvidenceBuilder) for kind in (ut.Counts, ut.NoEvidence)]
        [True, True]
    """

    by_row: ClassVar[bool] = False
    asks_cut_soon: ClassVar[bool] = False
    greedy_mean: ClassVar[bool] = False

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        """Parts and settings of gradient descent, where they are left open, for a network beside this evidence."""
        del encoding
        return {}

    def encoding(self, encoding: Encoding) -> Encoding:
        """How observations enter, by default in the encoding that the environment and the user's settings give."""
        return encoding

    def family(self, family: Any) -> Any:
        """The family of return distributions, with its open settings as this evidence needs them."""
        return family

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        """The `Evidence` before the first transition; None: there is none, and the network is the whole prediction.

        Args:
            key: randomness of the start.
            encoding: how observations enter.
            num_actions: number of discrete actions.
            capacity: transitions that the replay buffer holds.
        """


@dataclasses.dataclass(frozen=True)
class NoEvidence(EvidenceBuilder):
    """The network alone, as in the paper: what it was not trained on it predicts as it happens to generalize.

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> ut.NoEvidence().init(jax.random.key(0), OneHot(5), 3, 100) is None
        True
    """

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> None:
        return None
