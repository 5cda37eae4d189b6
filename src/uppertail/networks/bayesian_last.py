"""A Bayesian linear last layer (Azizzadenesheli et al. 2018): features are learned, and their weights are uncertain."""

import dataclasses
import math
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.encoded import EncodedNetwork
from uppertail.networks.per_action import perceptrons_of
from uppertail.networks.perceptrons import Perceptron, Perceptrons, require_members
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class BayesianLast(Perceptrons):
    """The last layer's weights are normal around the learned ones, with the covariance of linear regression.

    Given features f(s), that is the inverse of I / prior_std^2 + sum f(s) f(s)^T / noise_std^2 over the transitions
    with this action: a direction that was never seen stays wide. Each draw is a member. The sum keeps the features of
    each transition as they were at that time, though features go on changing. Every update learns with random signs
    of the draws.

    Its other settings are those of `Perceptrons`.

    Args:
        members: how many draws of the last layer there are, at least 2.
        prior_std: standard deviation of its weights before the first transition, above 0.
        noise_std: standard deviation of the noise in one transition's target, in units of the output, above 0.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.encodings import OneHot
        >>> builder, key = ut.BayesianLast(members=4, width=8), jax.random.key(0)
        >>> network = builder.init(key, OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # members, actions, outputs
        (4, 3, 2)
    """

    members: int = 10  # pyright: ignore[reportIncompatibleMethodOverride]
    prior_std: float = 1.0
    noise_std: float = 0.1

    def __post_init__(self) -> None:
        self.require_layers()
        require_members(self.members)
        for name in ("prior_std", "noise_std"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}: use a finite number above 0.")

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "BayesianLastNetwork":
        network = perceptrons_of(self, key, encoding, num_actions, num_outputs)
        shape = (num_actions, self.members, self.width, num_outputs)
        noise = jax.random.normal(jax.random.fold_in(key, num_actions + 1), shape)
        precision = jnp.broadcast_to(jnp.eye(self.width) / self.prior_std**2, (num_actions, self.width, self.width))
        begun = (network.own, noise, precision, self.prior_std * noise, network.encoder)
        return BayesianLastNetwork(*begun, network.form, self.noise_std)


class BayesianLastNetwork(EncodedNetwork):
    """The perceptrons of all actions, and how uncertain their last layers are.

    Args:
        learned: weights and biases; the leading axis of every array is the action.
        noise: standard normal draws of each member.
        precision: inverse covariance of the last layer's weights, the same for each output.
        offsets: how far each member's last layer deviates: noise with that covariance.
        encoder: the encoding's own arrays.
        form: how outputs follow from these.
        noise_std: standard deviation of the noise in one transition's target.
    """

    learned: PyTree
    noise: Float[Array, "actions members units outputs"]
    precision: Float[Array, "actions units units"]
    offsets: Float[Array, "actions members units outputs"]
    encoder: PyTree
    form: Perceptron = eqx.field(static=True)
    noise_std: float = eqx.field(static=True)

    @property
    def encoding(self) -> Encoding:
        return self.form.encoding

    @property
    def members(self) -> int:
        return self.noise.shape[1]

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        def of_action(own: PyTree, offsets: Float[Array, "members units outputs"]) -> Float[Array, "members outputs"]:
            weights, biases = own
            features = self.form.features(self.encoder, weights, biases, observation)
            mean = features @ weights[-1] + (biases[-1] if biases else 0.0)
            return mean[None] + jnp.einsum("u,muo->mo", jax.lax.stop_gradient(features), offsets)

        return jax.vmap(of_action, out_axes=1)(self.learned, jax.lax.stop_gradient(self.offsets))

    def took(self, observations: Array, actions: Int[Array, " batch"]) -> Self:
        """Adds these transitions to the precision, and gives the members' draws the new covariance."""

        def of_action(action: Array, own: PyTree, precision: Array, noise: Array) -> tuple[Array, Array]:
            weights, biases = own
            features = jax.vmap(lambda seen: self.form.features(self.encoder, weights, biases, seen))(observations)
            features = features * (actions == action).astype(features.dtype)[:, None] / self.noise_std
            grown = precision + features.T @ features
            root = jnp.linalg.cholesky(grown)
            draw = jax.vmap(lambda each: jax.scipy.linalg.solve_triangular(root.T, each, lower=False))
            return grown, draw(noise)

        number = jnp.arange(self.precision.shape[0])
        precision, offsets = jax.vmap(of_action)(number, self.learned, self.precision, self.noise)
        return dataclasses.replace(self, precision=precision, offsets=offsets)

    def redrawn(self, key: PRNGKeyArray) -> Self:
        """The same draws with a random sign for each member and output: as likely, and 0 on average."""
        actions, members, _, outputs = self.offsets.shape
        signs = jax.random.rademacher(key, (actions, members, 1, outputs), self.offsets.dtype)
        return dataclasses.replace(self, offsets=signs * self.offsets)

    def member_weights(self, extra: PyTree) -> Float[Array, " members"]:
        """All draws are of one network: together they learn as much as one."""
        del extra
        return jnp.full(self.members, 1 / self.members)
