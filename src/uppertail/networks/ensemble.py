"""An ensemble with randomized prior functions and bootstrap masks (Osband et al. 2016, 2018)."""

import dataclasses
from typing import Any, Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.networks.perceptrons import PerceptronNetwork, Perceptrons
from uppertail.types import PyTree

Prior = Literal["auto", "network", "table"]  # the names of `--network.prior`


@dataclasses.dataclass(frozen=True)
class Ensemble(Perceptrons):
    """Members that each add a fixed random function of their own to what they learn.

    Where nothing has been learned yet, members differ by their priors; where all have learned the same, they agree.

    Its other settings are those of `Perceptrons`.

    Args:
        members: how many members there are, at least 2.
        prior: what the prior functions are. network: a network of the same shape, as published. table: an independent
            standard normal number for each output of each state, which takes one-hot states. auto: table for one-hot
            states, whose prior_scale is then in units of the network's outputs, however many states there are; network
            for all else.
        prior_scale: what a prior function is multiplied by, 0 or more; 0: members differ by their first weights alone.
        share: probability that a member learns from a transition, drawn once when it is stored; in (0, 1].

    Examples:
        >>> from uppertail.encodings import OneHot
        >>> network = ut.Ensemble(members=4, width=8).init(jax.random.key(0), OneHot(5), num_actions=3, num_outputs=2)
        >>> network.outputs(jnp.array(4)).shape  # members, actions, outputs
        (4, 3, 2)
    """

    members: int = 10  # pyright: ignore[reportIncompatibleMethodOverride]
    prior: Prior = "auto"
    prior_scale: float = 1.0
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_scale < 0:
            raise InputError(f"prior_scale is {self.prior_scale}: use a finite number, 0 or more.")
        if not 0 < self.share <= 1:
            raise InputError(
                f"share is {self.share}, but each member has to learn from some of the transitions: use a number above "
                "0, at most 1 (all of them)."
            )

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> "EnsembleNetwork":
        if self.prior == "table" and not encoding.is_one_hot:
            raise InputError(
                "prior is table, which has a number for each state, but observations are not one-hot states here: use "
                "network, or an encoding that is, for example --env.encoding hashed."
            )
        learned_key, prior_key = jax.random.split(key)

        def member(key: PRNGKeyArray) -> PyTree:
            network = self.per_action(key, encoding, num_actions, num_outputs)
            return network.weights, network.biases

        def members(key: PRNGKeyArray) -> PyTree:
            return jax.vmap(member, out_axes=1)(jax.random.split(key, self.members))

        if self.prior != "network" and encoding.is_one_hot:
            shape = (num_actions, self.members, encoding.num_features, num_outputs)
            prior = (jax.random.normal(prior_key, shape),), ()
        else:
            prior = members(prior_key)
        torso = self.torso_on(encoding)
        own, others = (torso.init(jax.random.fold_in(each, num_actions)) for each in (learned_key, prior_key))
        scales = self.prior_scale, self.share
        return EnsembleNetwork(torso, self.units, members(learned_key), prior, own, others, *scales)


class EnsembleNetwork(PerceptronNetwork):
    """The perceptrons of all members, computed in one batched product, with the settings of `Ensemble`."""

    learned: PyTree  # weights and biases; every array has leading axes [actions, members]
    prior: PyTree  # those of the prior functions, which no gradient reaches; a prior of one layer is a table
    encoder: PyTree  # shared by all members
    prior_encoder: PyTree
    prior_scale: float = eqx.field(static=True)
    share: float = eqx.field(static=True)

    @property
    def members(self) -> int:
        return jax.tree.leaves(self.learned)[0].shape[1]

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        learned = self.of_members(self.encoder, self.learned, observation)
        if self.prior_scale == 0:
            return learned
        prior = self.of_members(self.prior_encoder, self.prior, observation)
        return learned + self.prior_scale * jax.lax.stop_gradient(prior)

    def observe(self, observations: Array) -> Self:
        own, prior = (self.encoding.observe(each, observations) for each in (self.encoder, self.prior_encoder))
        return dataclasses.replace(self, encoder=own, prior_encoder=prior)

    def with_observed(self, other: Any) -> Self:
        own = self.encoding.with_observed(self.encoder, other.encoder)
        return dataclasses.replace(self, encoder=own, prior_encoder=other.prior_encoder)

    def transition_extras(self, key: PRNGKeyArray) -> Bool[Array, " members"]:
        return jax.random.bernoulli(key, self.share, (self.members,))

    def member_weights(self, extras: Bool[Array, " members"]) -> Float[Array, " members"]:
        return extras.astype(jnp.float32)
