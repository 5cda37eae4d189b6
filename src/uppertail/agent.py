"""The method: act optimistically on the return distribution, and learn it from its own backups (Sections 4, 5)."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.encodings import Encoding, require_state
from uppertail.errors import InputError
from uppertail.masks import ActionMask, masked
from uppertail.networks import EncodedNetwork, Network
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.schema import TRACED
from uppertail.types import POLICY_CHOICE, PyTree, Transition

MARGIN = 3.0  # times the width between the bounds: how far above a mean what is hoped for may be
TINY = 1e-12
"""The least number that is divided by: the c of a policy, or the square of a start."""


@dataclasses.dataclass(frozen=True)
class Agent:
    """Distributional policy evaluation and optimistic exploration, as pure functions.

    A network with members gives a return distribution by each of them; one without counts as one member.

    Args:
        family: the family of return distributions.
        policy: the exploration policy that acts on them.
        encoding: how an observation enters the network.
        discount: gamma, per step.
        members: members of the network that acts; None: it has none.
        loss_samples: draws per transition of the sample-based loss; 0: the family's own loss, in closed form.
        greedy_mean: whether the mean is backed up with the greedy next action, and mean + c sd with the policy's.
        bounds: the lowest and the highest mean that is bootstrapped from; None: it may be any.
        has_masks: whether the environment says which actions are allowed.
    """

    family: ReturnDistribution[Any]
    policy: ExplorationPolicy
    encoding: Encoding
    discount: float | Float[Array, ""] = dataclasses.field(metadata=TRACED)
    members: int | None = None
    loss_samples: int = 0
    greedy_mean: bool = False
    bounds: tuple[float, float] | None = dataclasses.field(default=None, metadata=TRACED)
    has_masks: bool = False

    def __post_init__(self) -> None:
        if self.loss_samples and not self.family.has_density:
            raise InputError(
                f"loss_samples is {self.loss_samples}, but {type(self.family).__name__} has no density, which a "
                "sample-based loss needs: use 0 (the family's own loss), or a family with a density, such as Gaussian."
            )
        self.require_members(self.policy)

    def require_members(self, policy: ExplorationPolicy) -> None:
        """Refuses a policy that needs members where there are none."""
        if policy.needs_members and self.members is None:
            raise InputError(
                f"The policy {type(policy).__name__} needs a network with members, and this run has none: use "
                "--network Ensemble, or another policy, for example UCB."
            )

    def loss(
        self, network: Network, bootstrapping: Network, keys: Key[Array, "2"], transition: Transition
    ) -> tuple[Float[Array, " members"], Bool[Array, " members"]]:
        """L(q, p) of one transition by each member (Section 4), and whether q is beyond the family's support.

        `network` learns, and `bootstrapping` gives Z(s', a'). The keys are for the next action and for draws of q.
        """

        def of_member(z: PyTree, z_next: PyTree) -> tuple[Float[Array, ""], Bool[Array, ""]]:
            prediction = take(z, transition.action)  # p(Z | s, a)
            bootstrap = self.bootstrap(keys[0], z_next, transition)  # Z(s', a')
            bootstrap = where(transition.terminated, self.family.terminal(), bootstrap)
            target = jax.lax.stop_gradient(self.back_up(bootstrap, transition))  # q(Z | s, a)
            return self.distance(keys[1], target, prediction), self.is_outside(bootstrap, transition)

        z = network.predictions(self.family, transition.observation)
        z_next = self.returns_by_member(bootstrapping, transition.next_observation)
        of_each = jax.vmap(of_member, in_axes=(0, None if is_shared(z_next) else 0))
        return of_each(z, jax.tree.map(lambda leaf: leaf[0], z_next) if is_shared(z_next) else z_next)

    def bootstrap(self, key: PRNGKeyArray, z_next: PyTree, transition: Transition) -> PyTree:
        """Z(s', a') of one member, of Z(s', .); where a' is not known, it is the policy's choice from these alone."""
        mask = transition.next_action_mask
        chosen = self.choice(key, z_next, mask)
        z = take(z_next, jnp.where(transition.next_action == POLICY_CHOICE, chosen, transition.next_action))
        z = self.within_bounds(self.with_greedy_mean(z, z_next, mask) if self.greedy_mean else z)
        return z if transition.cut_soon is None else where(transition.cut_soon, self.certain(z), z)

    def certain(self, z: PyTree) -> PyTree:
        """The mean of a distribution as a return without a spread, for the last state before a time limit."""
        return self.family.backup(z, self.family.mean(z), jnp.zeros(()))

    def within_bounds(self, z: PyTree) -> PyTree:
        """The distribution, moved so that its mean lies within the bounds, and narrowed if its spread is beyond them.

        A network bootstraps from its own errors too, which would else grow without end. What the policy hopes for lies
        at most `MARGIN` times the width between the bounds above the mean.
        """
        if self.bounds is None:
            return z
        (low, high), mean = self.bounds, self.family.mean(z)
        within = self.family.backup(z, jnp.clip(mean, low, high) - mean, jnp.ones(()))
        if not self.family.has_spread:
            return within
        mean, hoped = self.family.mean(within), self.policy.optimism * self.family.std(within)
        most = MARGIN * (high - low)
        share = jnp.where(hoped > most, most / jnp.maximum(hoped, TINY), 1.0)
        return self.family.backup(within, mean * (1.0 - share), share)

    def with_greedy_mean(self, z: PyTree, z_next: PyTree, mask: ActionMask = None) -> PyTree:
        """The mean of the greedy next action, and what is left between it and the policy's upper bound as spread.

        A loop through known states would otherwise have the mean of the way to the goal and the spread of what is
        unknown.
        """
        greedy = take(z_next, jnp.argmax(masked(jax.vmap(self.family.mean)(z_next), mask)))
        return self.with_mean(z, self.family.mean(greedy))

    def with_mean(self, z: PyTree, mean: Float[Array, ""]) -> PyTree:
        """The distribution with another mean and the upper bound that it has; as it is, if the family has no mean."""
        family, is_mean = self.family, np.array(self.family.is_mean)
        if not is_mean.any():
            return z
        optimism = self.policy.optimism  # where it is 0, the mean is the upper bound: the spread stays
        lost = jnp.where(optimism > 0, (mean - family.mean(z)) / jnp.maximum(optimism, TINY), 0.0)
        return family.from_coordinates(jnp.where(is_mean, mean, family.coordinates(z) - lost))

    def choice(self, key: PRNGKeyArray, z: PyTree, mask: ActionMask = None) -> Int[Array, ""]:
        """The policy's choice in a state, from the return distributions of one member and the allowed actions alone."""
        alone = jax.tree.map(lambda leaf: leaf[None], z)
        return self.policy.first_action(key, Decision(self.family, alone, action_mask=mask))

    def back_up(self, bootstrap: PyTree, transition: Transition) -> PyTree:
        """q(Z | s, a) = r + discount * Z(s', a') of one member (Eq. 2)."""
        return self.family.backup(bootstrap, transition.reward, jnp.asarray(self.discount))

    def is_outside(self, bootstrap: PyTree, transition: Transition) -> Bool[Array, ""]:
        """Whether r + discount * E[Z(s', a')] is beyond what the family can represent."""
        low, high = self.family.support
        mean = transition.reward + self.discount * self.family.mean(bootstrap)
        return (mean < low) | (mean > high)

    def distance(self, key: PRNGKeyArray, target: PyTree, prediction: PyTree) -> Float[Array, ""]:
        """L(q, p) in closed form, or - mean_k log p(z_k) with draws z_k of q (appendix)."""
        if self.loss_samples == 0:
            return self.family.loss(target, prediction)
        draws = jax.vmap(self.family.sample, in_axes=(0, None))(jax.random.split(key, self.loss_samples), target)
        return -jnp.mean(self.family.log_density(prediction, draws))

    def returns(self, network: Network, observation: Array | int) -> PyTree:
        """p(Z | s, a) for one state: the family's parameters with leading axes [actions], or [members, actions]."""
        require_state(self.encoding, observation)
        numbers = network.seen_bounds() if isinstance(network, EncodedNetwork) else None
        if numbers is not None and jnp.shape(observation) != (shape := numbers[0].shape):
            raise InputError(f"observation has the shape {jnp.shape(observation)}: give one of shape {shape}.")
        z = self.returns_by_member(network, jnp.asarray(observation))
        return jax.tree.map(lambda leaf: leaf[0], z) if network.members is None else z

    def returns_by_member(self, network: Network, observation: Array) -> PyTree:
        """The same with leading axes [members, actions] for every network; one without members counts as one."""
        return network.returns(self.family, observation)


def is_shared(z: PyTree) -> bool:
    """Whether all members bootstrap from one prediction."""
    return jax.tree.leaves(z)[0].shape[0] == 1


def take(z: PyTree, action: Int[Array, ""]) -> PyTree:
    """The parameters of one action."""
    return jax.tree.map(lambda leaf: leaf[action], z)


def where(condition: Bool[Array, ""], if_true: PyTree, if_false: PyTree) -> PyTree:
    """One of two distributions of a family."""
    return jax.tree.map(lambda true, false: jnp.where(condition, true, false), if_true, if_false)
