"""The algorithm: learn the distribution of the return, act optimistically on it (Sections 4 and 5)."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail import gradients
from uppertail.distributions import ReturnDistribution
from uppertail.encodings import Encoding, require_state
from uppertail.errors import InputError
from uppertail.networks import PerActionNetwork
from uppertail.policies import ExplorationPolicy
from uppertail.types import POLICY_CHOICE, Transition


class AgentState(NamedTuple):
    """All that an agent learns."""

    network: PerActionNetwork
    optimizer: optax.OptState


class Metrics(NamedTuple):
    """What one update reports."""

    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    outside: Float[Array, ""]
    """Share of the targets whose mean lies outside of what the family can represent."""


@dataclasses.dataclass(frozen=True)
class Agent:
    """Distributional policy evaluation and optimistic exploration, as pure functions of an explicit state.

    Args:
        family: the family of return distributions.
        policy: the exploration policy that acts on them.
        encoding: how an observation enters the network.
        discount: gamma, per step.
        optimizer: turns gradients into updates.
        hidden_sizes: units of each hidden layer.
        bias: whether the layers have biases.
        loss_samples: draws per transition of the sample-based loss; 0: the family's own loss, in closed form.
    """

    family: ReturnDistribution[Any]
    policy: ExplorationPolicy
    encoding: Encoding
    discount: float
    optimizer: optax.GradientTransformation
    hidden_sizes: tuple[int, ...]
    bias: bool
    loss_samples: int = 0

    def __post_init__(self) -> None:
        if self.loss_samples and not self.family.has_density:
            raise InputError(
                f"loss_samples is {self.loss_samples}, but {type(self.family).__name__} has no density to learn draws "
                "by: use 0, its own loss, or a family with a density, for example Gaussian."
            )

    def init(self, key: PRNGKeyArray, num_actions: int) -> AgentState:
        """An agent that has learned nothing: its distributions are wide."""
        sizes = (self.encoding.num_features, *self.hidden_sizes, self.family.num_outputs)
        encoder = self.encoding.init(jax.random.fold_in(key, num_actions))
        network = PerActionNetwork.init(key, sizes, num_actions, self.bias, encoder)
        return AgentState(network, self.optimizer.init(_tree(network)))

    def returns(self, network: PerActionNetwork, observation: Array | int) -> Any:
        """p(Z | s, a) for one state: the family's parameters with a leading axis of actions."""
        require_state(self.encoding, observation)
        return jax.vmap(self.family.from_outputs)(network(self.encoding, jnp.asarray(observation)))

    def act(
        self, network: PerActionNetwork, key: PRNGKeyArray, observation: Array, policy: ExplorationPolicy | None = None
    ) -> Int[Array, ""]:
        """The policy's action in one state."""
        return (policy or self.policy).select(key, self.family, self.returns(network, observation))

    def observe(self, state: AgentState, observations: Array) -> AgentState:
        """The agent after it has seen a batch of observations (one leading axis), before it learns from them."""
        encoder = self.encoding.observe(state.network.encoder, observations)
        return state._replace(network=dataclasses.replace(state.network, encoder=encoder))

    def explores(self, z: Any, action: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether an action is not the greedy one of these return distributions: its mean is below another's."""
        mean = jax.vmap(self.family.mean)(z)
        return mean[action] < jnp.max(mean)

    def bootstrap(self, network: PerActionNetwork, key: PRNGKeyArray, transition: Transition) -> Any:
        """Z(s', a') of one transition, which is surely 0 if the episode terminated."""
        z_next = self.returns(network, transition.next_observation)
        chosen = self.policy.select(key, self.family, z_next)
        next_action = jnp.where(transition.next_action == POLICY_CHOICE, chosen, transition.next_action)
        return where(transition.terminated, self.family.terminal(), take(z_next, next_action))

    def target(self, bootstrap: Any, transition: Transition) -> Any:
        """q(Z | s, a) of one transition: r + discount * Z(s', a')."""
        return self.family.backup(bootstrap, transition.reward, jnp.asarray(self.discount))

    def outside(self, bootstrap: Any, transition: Transition) -> Bool[Array, ""]:
        """Whether r + discount * E[Z(s', a')] is beyond what the family can represent."""
        low, high = self.family.support
        mean = transition.reward + self.discount * self.family.mean(bootstrap)
        return (mean < low) | (mean > high)

    def loss(
        self, network: PerActionNetwork, key: PRNGKeyArray, target: Any, transition: Transition
    ) -> Float[Array, ""]:
        """L(q, p) of one transition: in closed form, or - mean_k log p(z_k) with draws z_k of q (appendix)."""
        prediction = take(self.returns(network, transition.observation), transition.action)
        if self.loss_samples == 0:
            return self.family.loss(target, prediction)
        draws = jax.vmap(self.family.sample, in_axes=(0, None))(jax.random.split(key, self.loss_samples), target)
        return -jnp.mean(self.family.log_density(prediction, draws))

    def update(self, state: AgentState, key: PRNGKeyArray, batch: Transition) -> tuple[AgentState, Metrics]:
        """One gradient step on a minibatch, the targets held still."""
        size = batch.action.shape[0]
        keys = jax.random.split(key, size)
        draw_keys = jax.random.split(jax.random.fold_in(key, size), size)  # `keys` are folds of 0 to size - 1
        bootstraps = jax.vmap(self.bootstrap, in_axes=(None, 0, 0))(state.network, keys, batch)
        targets, outside = jax.vmap(self.target)(bootstraps, batch), jax.vmap(self.outside)(bootstraps, batch)

        def loss_of(network: PerActionNetwork, action: Int[Array, ""], row: Any) -> Float[Array, ""]:
            draw_key, target, transition = row
            return self.loss(network, draw_key, target, transition._replace(action=action))

        rows = (draw_keys, targets, batch)
        loss, gradient = gradients.mean_loss(loss_of, state.network, batch.action, rows)
        updates, optimizer = self.optimizer.update(_tree(gradient), state.optimizer, _tree(state.network))
        network = optax.apply_updates(_tree(state.network), updates)
        metrics = Metrics(loss, optax.tree.norm(gradient), jnp.mean(outside, dtype=jnp.float32))
        return AgentState(_tree(network), optimizer), metrics


def take(z: Any, action: Int[Array, ""]) -> Any:
    """The parameters of one action."""
    return jax.tree.map(lambda leaf: leaf[action], z)


def where(condition: Bool[Array, ""], if_true: Any, if_false: Any) -> Any:
    """One of two distributions of a family."""
    return jax.tree.map(lambda true, false: jnp.where(condition, true, false), if_true, if_false)


def _tree(network: Any) -> Any:
    """The same tree of arrays; optax's types do not know that a module is one."""
    return network
