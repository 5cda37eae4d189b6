"""The algorithm: learn the distribution of the return, act optimistically on it (Sections 4 and 5)."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.encodings import Encoding
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
        network = PerActionNetwork.init(key, sizes, num_actions, self.bias)
        return AgentState(network, self.optimizer.init(_tree(network)))

    def returns(self, network: PerActionNetwork, observation: Array | int) -> Any:
        """p(Z | s, a) for one state: the family's parameters with a leading axis of actions."""
        return jax.vmap(self.family.from_outputs)(network(self.encoding, jnp.asarray(observation)))

    def act(
        self, network: PerActionNetwork, key: PRNGKeyArray, observation: Array, policy: ExplorationPolicy | None = None
    ) -> Int[Array, ""]:
        """The policy's action in one state."""
        return (policy or self.policy).select(key, self.family, self.returns(network, observation))

    def target(self, network: PerActionNetwork, key: PRNGKeyArray, transition: Transition) -> Any:
        """q(Z | s, a) of one transition: r + discount * Z(s', a'), where Z is surely 0 if the episode terminated."""
        z_next = self.returns(network, transition.next_observation)
        chosen = self.policy.select(key, self.family, z_next)
        next_action = jnp.where(transition.next_action == POLICY_CHOICE, chosen, transition.next_action)
        bootstrap = where(transition.terminated, self.family.terminal(), take(z_next, next_action))
        return self.family.backup(bootstrap, transition.reward, jnp.asarray(self.discount))

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
        targets = jax.vmap(self.target, in_axes=(None, 0, 0))(state.network, keys, batch)

        def mean_loss(network: PerActionNetwork) -> Float[Array, ""]:
            return jnp.mean(jax.vmap(self.loss, in_axes=(None, 0, 0, 0))(network, draw_keys, targets, batch))

        loss, gradient = jax.value_and_grad(mean_loss)(state.network)
        updates, optimizer = self.optimizer.update(gradient, state.optimizer, _tree(state.network))
        network = optax.apply_updates(_tree(state.network), updates)
        return AgentState(_tree(network), optimizer), Metrics(loss, optax.tree.norm(gradient))


def take(z: Any, action: Int[Array, ""]) -> Any:
    """The parameters of one action."""
    return jax.tree.map(lambda leaf: leaf[action], z)


def where(condition: Bool[Array, ""], if_true: Any, if_false: Any) -> Any:
    """One of two distributions of a family."""
    return jax.tree.map(lambda true, false: jnp.where(condition, true, false), if_true, if_false)


def _tree(network: Any) -> Any:
    """The same tree of arrays; optax's types do not know that a module is one."""
    return network
