"""Monte-Carlo dropout: members are draws of one network with units left out (Gal and Ghahramani 2016)."""

import dataclasses
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.perceptrons import PerceptronNetwork, Perceptrons
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class Dropout(Perceptrons):
    """One network whose hidden units are left out at random; each draw is a member.

    Members act with draws that never change, so that each member is one plan. Every update learns with fresh draws.

    Its other settings are those of `Perceptrons`.

    Args:
        members: how many draws there are, at least 2.
        rate: probability that a unit is left out, in (0, 1).

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> network = ut.Dropout(members=4, width=8).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # members, actions, outputs
        (4, 3, 2)
    """

    members: int = 10  # pyright: ignore[reportIncompatibleMethodOverride]
    rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate < 1:
            raise InputError(
                f"rate is {self.rate}, but 0 leaves out nothing and 1 everything: use a number between them, for "
                "example 0.1, or --network PerAction for a network without dropout."
            )

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "DropoutNetwork":
        network = self.per_action(key, encoding, num_actions, num_outputs)
        shapes = (num_actions, self.members, self.width)
        masks = tuple(jnp.ones(shapes) for _ in range(self.hidden_layers))
        drawn = DropoutNetwork(
            network.encoding, network.units, (network.weights, network.biases), masks, network.encoder, self.rate
        )
        return drawn.resample_weights(jax.random.fold_in(key, num_actions + 1))


class DropoutNetwork(PerceptronNetwork):
    """The perceptrons of all actions, and which of their units each member has."""

    learned: PyTree  # weights and biases; the leading axis of every array is the action
    masks: tuple[Float[Array, "actions members _units"], ...]  # 0, or 1 / (1 - rate); no gradient reaches them
    encoder: PyTree
    rate: float = eqx.field(static=True)

    @property
    def members(self) -> int:
        return self.masks[0].shape[1]

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        def one(own: PyTree, masks: PyTree) -> Float[Array, " outputs"]:
            weights, biases = own
            return self.perceptron(self.encoder, weights, biases, observation, masks)

        of_members = jax.vmap(jax.vmap(one, in_axes=(None, 0)), out_axes=1)
        return of_members(self.learned, jax.lax.stop_gradient(self.masks))

    def resample_weights(self, key: PRNGKeyArray) -> Self:
        """Leaves out each unit of each member, or not, independently."""
        keys = jax.random.split(key, len(self.masks))
        draws = (jax.random.bernoulli(k, 1 - self.rate, mask.shape) for k, mask in zip(keys, self.masks, strict=True))
        return dataclasses.replace(self, masks=tuple(kept.astype(jnp.float32) / (1 - self.rate) for kept in draws))

    def member_weights(self, extra: PyTree) -> Float[Array, " members"]:
        """All draws are of one network: together they learn as much as one."""
        return jnp.full(self.members, 1 / self.members)
