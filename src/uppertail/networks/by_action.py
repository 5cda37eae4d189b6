"""The gradient of a minibatch, at the cost of only the networks of the actions that were taken.

Networks of different actions share nothing, so each has to see only its own rows. Their number is known only once the
batch is drawn, but a compiled program needs fixed shapes. Hence row counts are rounded up, with a branch for each.
"""

import abc
import functools
from typing import Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from uppertail.networks.base import Network, RowLoss, of_all_rows
from uppertail.types import PyTree

STEP, BRANCHES = 8, 8
"""Row counts are rounded up to a multiple of `STEP`, or of a multiple of it, so that at most `BRANCHES` + 1 differ."""


class DividedNetwork(Network):
    """A network whose arrays belong to one action each, or to all of them."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of actions."""

    @property
    @abc.abstractmethod
    def own(self) -> PyTree:
        """The arrays that belong to one action each; their leading axis is the action."""

    @property
    @abc.abstractmethod
    def shared(self) -> PyTree:
        """The arrays that belong to all actions."""

    @abc.abstractmethod
    def rebuild(self, own: PyTree, shared: PyTree) -> Self:
        """A network of this kind from other arrays."""

    def loss_and_gradient(
        self, loss: RowLoss, actions: Int[Array, " batch"], rows: PyTree, weights: Float[Array, " batch"]
    ) -> tuple[Float[Array, ""], Float[Array, " batch"], Self]:
        """As every network, but the arrays of an action see its own rows only."""
        return by_action(self, loss, actions, rows, weights)


def by_action(
    network: DividedNetwork,
    loss: RowLoss,
    actions: Int[Array, " batch"],
    rows: PyTree,
    weights: Float[Array, " batch"],
) -> tuple[Float[Array, ""], Float[Array, " batch"], PyTree]:
    """Computes `Network.loss_and_gradient` for a network that is divided by action."""

    def value_and_gradient(network: DividedNetwork, actions: Array, rows: PyTree, weights: Array) -> PyTree:
        if network.num_actions == 1:
            return of_all_rows(network, loss, actions, rows, weights)
        return _of_own_rows(network, loss, actions, rows, weights)

    def batched(size: int, axes: PyTree, *arguments: PyTree) -> PyTree:
        """Under `vmap` all branches would be computed: every network sees every row instead."""
        del size
        in_axes = jax.tree.map(lambda mapped: 0 if mapped else None, axes)
        each = jax.vmap(lambda network, *rest: of_all_rows(network, loss, *rest), in_axes=in_axes)
        results = each(*arguments)
        return results, jax.tree.map(lambda _: True, results)

    computed = jax.custom_batching.custom_vmap(value_and_gradient)
    computed.def_vmap(batched)
    return computed(network, actions, rows, weights)


def _of_own_rows(network: DividedNetwork, loss: RowLoss, actions: Array, rows: PyTree, weights: Array) -> PyTree:
    """Sorts the rows by action; each network sees its own, the last one again where a piece is too long."""
    size, num_actions = actions.shape[0], network.num_actions
    order = jnp.argsort(actions)
    ends = jnp.cumsum(jnp.bincount(actions, length=num_actions))
    starts = jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
    step = STEP * -(-size // (STEP * BRANCHES))
    lengths = [*range(step, size, step), size]

    def of_action(arguments: tuple[PyTree, Array, Array]) -> PyTree:
        own, start, end = arguments

        def of_piece(length: int) -> PyTree:
            places = start + jnp.arange(length)
            chosen = order[jnp.minimum(places, end - 1)]
            piece, weight = jax.tree.map(lambda leaf: leaf[chosen], (rows, weights))

            def total(own: PyTree, shared: PyTree) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
                alone = network.rebuild(jax.tree.map(lambda leaf: leaf[None], own), shared)
                losses = jax.vmap(lambda row: loss(alone, jnp.zeros((), jnp.int32), row))(piece)
                by_row = jnp.zeros(size).at[jnp.where(places < end, chosen, size)].set(losses, mode="drop")
                return jnp.sum(jnp.where(places < end, weight * losses, 0.0)) / size, by_row

            return jax.value_and_grad(total, argnums=(0, 1), has_aux=True)(own, network.shared)

        nothing = (jnp.zeros(()), jnp.zeros(size)), jax.tree.map(jnp.zeros_like, (own, network.shared))
        branches = [lambda: nothing, *(functools.partial(of_piece, length) for length in lengths)]
        return jax.lax.switch(-(-(end - start) // step), branches)

    (totals, by_row), (own, shared) = jax.lax.map(of_action, (network.own, starts, ends))
    of_all = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), shared)
    return jnp.sum(totals), jnp.sum(by_row, axis=0), network.rebuild(own, of_all)
