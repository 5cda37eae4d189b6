"""The contracts of a network and of its builder."""

import abc
from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.types import PyTree

RowLoss = Callable[[PyTree, Int[Array, ""], PyTree], Float[Array, ""]]
"""The loss of one row of a minibatch: (network, action, row) -> loss. The network has that action."""


class Network(eqx.Module):
    """A network: its arrays, and how outputs follow from them.

    Every array is a leaf, so `jax.vmap` runs over seeds; settings are static fields. Arrays that no gradient should
    reach (a prior function, bounds of what was observed) stay fixed if `outputs` wraps them in `jax.lax.stop_gradient`.

    Examples:
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> class Table(ut.Network):
        ...     values: jnp.ndarray  # states, actions, outputs
        ...
        ...     def outputs(self, observation):
        ...         return self.values[observation]
        >>> Table(jnp.zeros((5, 3, 2))).outputs(jnp.array(4)).shape
        (3, 2)
    """

    @property
    def members(self) -> int | None:
        """The number of networks in an ensemble, or of draws of one network; None for a single network."""
        return None

    @abc.abstractmethod
    def outputs(self, observation: Array) -> Float[Array, "*members actions outputs"]:
        """The outputs for one observation; an ensemble puts a leading axis of its members before the actions."""

    def observe(self, observations: Array) -> Self:
        """The network after it has seen a batch of observations (one leading axis), before it learns from them.

        One that keeps something of them has `with_observed`, too; `EncodedNetwork` has both.
        """
        del observations
        return self

    def with_observed(self, other: Any) -> Self:
        """This network, with what another one of its kind keeps of its observations in place of its own.

        Args:
            other: the network whose bounds of observations, or places for them, this one takes.
        """
        del other
        return self

    def took(self, observations: Array, actions: Int[Array, " batch"]) -> Self:
        """The network after it has seen which actions were taken where (one leading axis), before it learns of them."""
        del observations, actions
        return self

    def redrawn(self, key: PRNGKeyArray) -> Self:
        """The network that one update learns with: with fresh draws of its weights, where these are random."""
        del key
        return self

    def extra(self, key: PRNGKeyArray) -> PyTree:
        """Random arrays drawn once for a transition when it is stored, such as a bootstrap mask; nothing by default."""
        del key
        return ()

    def member_weights(self, extra: PyTree) -> Float[Array, " members"]:
        """How much each member learns from a transition with this `extra`; 1 each by default."""
        del extra
        return jnp.ones(self.members or 1)

    def remark(self) -> str | None:
        """A note for the user at a run's end, about what was observed; None: nothing to note.

        It is called on the networks of all seeds, whose arrays have a leading axis of seeds.
        """
        return None

    def loss_and_gradient(
        self, loss: RowLoss, actions: Int[Array, " batch"], rows: PyTree, weights: Float[Array, " batch"]
    ) -> tuple[Float[Array, ""], Float[Array, " batch"], Self]:
        """The weighted mean of the rows' losses, the loss of each row, and the gradient of the mean.

        Args:
            loss: the loss of one row.
            actions: the action of each row.
            rows: a tree of arrays, with a leading axis of rows.
            weights: the weight of each row; 1 each for a plain mean.
        """
        return of_all_rows(self, loss, actions, rows, weights)


class NetworkBuilder(abc.ABC):
    """A frozen dataclass of settings, named with `--network`; it builds the network of each seed.

    Examples:
        >>> import dataclasses
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.encodings import OneHot
        >>> class Table(ut.Network):
        ...     values: jnp.ndarray  # states, actions, outputs
        ...
        ...     def outputs(self, observation):
        ...         return self.values[observation]
        >>> @dataclasses.dataclass(frozen=True)
        ... class Tables(ut.NetworkBuilder):
        ...     def init(self, key, encoding, num_actions, num_outputs):
        ...         return Table(jnp.zeros((encoding.num_features, num_actions, num_outputs)))
        >>> Tables().init(jax.random.key(0), OneHot(5), 3, 2).outputs(jnp.array(4)).shape
        (3, 2)
    """

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> Network:
        """A network that has learned nothing.

        Args:
            key: randomness of its weights.
            encoding: turns an observation into the input of the first layer; the network keeps it.
            num_actions: number of discrete actions.
            num_outputs: numbers that it gives for each action.
        """

    @property
    def members(self) -> int | None:
        """How many members its networks have; None for single networks."""
        return None


def of_all_rows(
    network: PyTree, loss: RowLoss, actions: Int[Array, " batch"], rows: PyTree, weights: Float[Array, " batch"]
) -> PyTree:
    """Computes `Network.loss_and_gradient` with every row through the whole network."""

    def mean(network: PyTree) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
        losses = jax.vmap(loss, in_axes=(None, 0, 0))(network, actions, rows)
        return jnp.mean(weights * losses), losses

    (total, losses), gradient = jax.value_and_grad(mean, has_aux=True)(network)
    return total, losses, gradient
