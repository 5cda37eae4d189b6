"""The gradient of a minibatch, at the price of the networks of the actions that were taken.

Networks of different actions share nothing, so each has to see only its own rows. How many these are is known only as
the batch is drawn; a compiled program needs fixed shapes. Hence sizes in steps, and a branch for each.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from uppertail.networks import PerActionNetwork

STEP, BRANCHES = 8, 8
"""Rows are computed in multiples of so many, or of so many times that, lest there be more branches to compile."""

RowLoss = Callable[[PerActionNetwork, Int[Array, ""], Any], Float[Array, ""]]
"""The loss of one row, whose action the network has: (network, action, row) -> loss."""


def mean_loss(
    loss: RowLoss, network: PerActionNetwork, actions: Int[Array, " batch"], rows: Any
) -> tuple[Float[Array, ""], PerActionNetwork]:
    """The mean of the rows' losses, and its gradient.

    Args:
        loss: the loss of one row.
        network: the network.
        actions: the action of each row.
        rows: a tree of arrays, with a leading axis of rows.
    """

    def value_and_gradient(network: PerActionNetwork, actions: Array, rows: Any) -> Any:
        if network.num_actions == 1:
            return _of_all(loss, network, actions, rows)
        return _by_action(loss, network, actions, rows)

    def batched(size: int, axes: Any, *arguments: Any) -> Any:
        """Branches would all be computed: every network sees every row instead."""
        del size
        in_axes = jax.tree.map(lambda mapped: 0 if mapped else None, axes)
        results = jax.vmap(lambda *each: _of_all(loss, *each), in_axes=in_axes)(*arguments)
        return results, jax.tree.map(lambda _: True, results)

    computed = jax.custom_batching.custom_vmap(value_and_gradient)
    computed.def_vmap(batched)
    return computed(network, actions, rows)


def _of_all(loss: RowLoss, network: PerActionNetwork, actions: Array, rows: Any) -> Any:
    def mean(network: PerActionNetwork) -> Float[Array, ""]:
        return jnp.mean(jax.vmap(loss, in_axes=(None, 0, 0))(network, actions, rows))

    return jax.value_and_grad(mean)(network)


def _by_action(loss: RowLoss, network: PerActionNetwork, actions: Array, rows: Any) -> Any:
    """Rows in the order of their actions; each network sees its own, the last again where there are too few."""
    size, num_actions = actions.shape[0], network.num_actions
    order = jnp.argsort(actions)
    ends = jnp.cumsum(jnp.bincount(actions, length=num_actions))
    starts = jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
    step = STEP * -(-size // (STEP * BRANCHES))
    lengths = [*range(step, size, step), size]

    def of_action(arguments: tuple[Any, Array, Array]) -> Any:
        own, start, end = arguments

        def of_piece(length: int) -> Any:
            places = start + jnp.arange(length)
            piece = jax.tree.map(lambda leaf: leaf[order[jnp.minimum(places, end - 1)]], rows)

            def total(own: Any, encoder: Any) -> Float[Array, ""]:
                weights, biases = jax.tree.map(lambda leaf: leaf[None], own)
                alone = type(network)(weights, biases, encoder)
                losses = jax.vmap(lambda row: loss(alone, jnp.zeros((), jnp.int32), row))(piece)
                return jnp.sum(jnp.where(places < end, losses, 0.0)) / size

            return jax.value_and_grad(total, argnums=(0, 1))(own, network.encoder)

        nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, (own, network.encoder))
        branches = [lambda: nothing, *(functools.partial(of_piece, length) for length in lengths)]
        return jax.lax.switch(-(-(end - start) // step), branches)

    losses, ((weights, biases), encoder) = jax.lax.map(of_action, (network.per_action, starts, ends))
    of_encoder = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), encoder)
    return jnp.sum(losses), type(network)(weights, biases, of_encoder)
