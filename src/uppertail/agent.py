"""The algorithm: learn the distribution of the return, act optimistically on it (Sections 4 and 5)."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.distributions import ReturnDistribution
from uppertail.encodings import Encoding, require_state
from uppertail.errors import InputError
from uppertail.networks import Network, NetworkBuilder
from uppertail.policies import ExplorationPolicy
from uppertail.targets import Target
from uppertail.types import POLICY_CHOICE, PyTree, Transition


class AgentState(NamedTuple):
    """What an agent has learned: its network, the optimizer's state and the state of its target."""

    network: PyTree
    optimizer: optax.OptState
    target: PyTree


@runtime_checkable
class Optimizer(Protocol):
    """What turns gradients into updates: any transformation of optax."""

    @property
    def init(self) -> Callable[..., optax.OptState]:
        """Makes its state before the first update."""
        ...

    @property
    def update(self) -> Callable[..., Any]:
        """Turns a gradient, a state and a network into a step and the next state."""
        ...


class Metrics(NamedTuple):
    """What one update reports."""

    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    outside: Float[Array, ""]
    """Share of the targets whose mean lies outside of what the family can represent."""


@dataclasses.dataclass(frozen=True)
class Agent:
    """Distributional policy evaluation and optimistic exploration, as pure functions of an explicit state.

    Every member of an ensemble learns on its own, from its own bootstrap; a network without members counts as one.

    Args:
        family: the family of return distributions.
        policy: the exploration policy that acts on them.
        network: builds the network.
        target: which network the targets are computed with.
        encoding: how an observation enters the network.
        discount: gamma, per step.
        optimizer: turns gradients into updates.
        loss_samples: draws per transition of the sample-based loss; 0: the family's own loss, in closed form.
    """

    family: ReturnDistribution[Any]
    policy: ExplorationPolicy
    network: NetworkBuilder
    target: Target
    encoding: Encoding
    discount: float
    optimizer: Optimizer
    loss_samples: int = 0

    def __post_init__(self) -> None:
        if self.loss_samples and not self.family.has_density:
            raise InputError(
                f"loss_samples is {self.loss_samples}, but {type(self.family).__name__} has no density, which learning "
                "from draws needs: use 0, its own loss, or a family with a density, for example Gaussian."
            )
        self.require_members(self.policy)

    def require_members(self, policy: ExplorationPolicy) -> None:
        """Checks that the network has the members that a policy needs.

        Raises:
            InputError: it has none.
        """
        if policy.needs_members and self.network.members is None:
            raise InputError(
                f"The policy {type(policy).__name__} needs a network with members, and "
                f"{type(self.network).__name__} has none: use an ensemble, or another policy, for example UCB."
            )

    def init(self, key: PRNGKeyArray, num_actions: int) -> AgentState:
        """An agent that has learned nothing: its distributions are wide."""
        network = self.network.init(key, self.encoding, num_actions, self.family.num_outputs)
        return AgentState(
            network, self.optimizer.init(_tree(network)), self.target.init(network, self.family.terminal())
        )

    def returns(self, network: Network, observation: Array | int) -> PyTree:
        """p(Z | s, a) for one state: the family's parameters with leading axes [actions], or [members, actions]."""
        require_state(self.encoding, observation)
        z = self.returns_by_member(network, jnp.asarray(observation))
        return jax.tree.map(lambda leaf: leaf[0], z) if network.members is None else z

    def returns_by_member(self, network: Network, observation: Array) -> PyTree:
        """The same with leading axes [members, actions] for every network; one without members counts as one."""
        return self.returns_of_outputs(network.outputs(observation))

    def returns_of_outputs(self, outputs: Float[Array, "*members actions outputs"]) -> PyTree:
        """The return distributions [members, actions] that a network's outputs stand for."""
        by_member = outputs[None] if outputs.ndim == 2 else outputs
        return jax.vmap(jax.vmap(self.family.from_outputs))(by_member)

    def explores(self, z: PyTree, action: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether an action is not the greedy one of these [members, actions]: its mean is below another's."""
        mean = jnp.mean(jax.vmap(jax.vmap(self.family.mean))(z), axis=0)
        return mean[action] < jnp.max(mean)

    def observe(self, state: AgentState, observations: Array) -> AgentState:
        """The agent after it has seen a batch of observations (one leading axis), before it learns from them."""
        return state._replace(network=state.network.observe(observations))

    def took(self, state: AgentState, transitions: Transition) -> AgentState:
        """The agent after it has seen a batch of transitions (one leading axis), before it learns from them."""
        network = state.network.observe(transitions.observation)
        return state._replace(network=network.took(transitions.observation, transitions.action))

    def sweep(self, state: AgentState, key: PRNGKeyArray, steps: Transition) -> AgentState:
        """The agent after its target has taken in the steps of a rollout, before it learns from them."""

        def back_up(target: PyTree, key: PRNGKeyArray, transition: Transition, predicted: PyTree) -> PyTree:
            return self.backup(self.bootstrap_from(predicted, target, key, transition), transition)

        network = self.target.network(state.target, state.network)
        predicted = jax.vmap(self.returns_by_member, in_axes=(None, 0))(network, steps.next_observation)
        return state._replace(target=self.target.after_steps(state.target, key, steps, predicted, back_up))

    def bootstrap(self, network: Network, target: PyTree, key: PRNGKeyArray, transition: Transition) -> PyTree:
        """Each member's Z(s', a') for one transition; exactly 0 if the episode terminated.

        Args:
            network: the network that bootstraps.
            target: the state of the agent's target, which may hold more than the network predicts.
            key: randomness of the next action.
            transition: one transition.
        """
        predicted = self.returns_by_member(network, transition.next_observation)
        return self.bootstrap_from(predicted, target, key, transition)

    def bootstrap_from(self, predicted: PyTree, target: PyTree, key: PRNGKeyArray, transition: Transition) -> PyTree:
        """Each member's Z(s', a') for one transition, given the bootstrapping network's Z(s', .) [members, actions]."""

        def of_member(z_next: PyTree) -> PyTree:
            chosen = self.policy.next_action(key, self.family, z_next)
            next_action = jnp.where(transition.next_action == POLICY_CHOICE, chosen, transition.next_action)
            return where(transition.terminated, self.family.terminal(), take(z_next, next_action))

        return jax.vmap(of_member)(self.target.recall(target, transition.next_observation, predicted))

    def backup(self, bootstrap: PyTree, transition: Transition) -> PyTree:
        """q(Z | s, a) of one transition by each member: r + discount * Z(s', a')."""
        discount = jnp.asarray(self.discount)
        return jax.vmap(lambda z_next: self.family.backup(z_next, transition.reward, discount))(bootstrap)

    def outside(self, bootstrap: PyTree, transition: Transition) -> Bool[Array, " members"]:
        """Whether r + discount * E[Z(s', a')] is beyond what the family can represent, by each member."""
        low, high = self.family.support
        mean = transition.reward + self.discount * jax.vmap(self.family.mean)(bootstrap)
        return (mean < low) | (mean > high)

    def loss(self, network: Network, key: PRNGKeyArray, targets: PyTree, transition: Transition) -> Float[Array, ""]:
        """L(q, p) of one transition, summed over the members that learn from it."""

        def of_member(target: PyTree, z: PyTree) -> Float[Array, ""]:
            return self.distance(key, target, take(z, transition.action))

        by_member = jax.vmap(of_member)(targets, self.returns_by_member(network, transition.observation))
        return jnp.sum(network.member_weights(transition.extra) * by_member)

    def distance(self, key: PRNGKeyArray, target: PyTree, prediction: PyTree) -> Float[Array, ""]:
        """L(q, p) in closed form, or - mean_k log p(z_k) with draws z_k of q (appendix)."""
        if self.loss_samples == 0:
            return self.family.loss(target, prediction)
        draws = jax.vmap(self.family.sample, in_axes=(0, None))(jax.random.split(key, self.loss_samples), target)
        return -jnp.mean(self.family.log_density(prediction, draws))

    def update(
        self, state: AgentState, key: PRNGKeyArray, batch: Transition, weights: Float[Array, " batch"]
    ) -> tuple[AgentState, Metrics, Float[Array, " batch"]]:
        """One gradient step on a minibatch with fixed targets; also the loss of each transition."""
        size = batch.action.shape[0]
        keys = jax.random.split(key, size)
        draw_keys = jax.random.split(jax.random.fold_in(key, size), size)  # `keys` are folds of 0 to size - 1
        draw_of_weights = jax.random.fold_in(key, size + 1)
        learning = state.network.redrawn(draw_of_weights)
        bootstrapping = self.target.network(state.target, state.network).redrawn(draw_of_weights)
        bootstraps = jax.vmap(self.bootstrap, in_axes=(None, None, 0, 0))(bootstrapping, state.target, keys, batch)
        targets, outside = jax.vmap(self.backup)(bootstraps, batch), jax.vmap(self.outside)(bootstraps, batch)
        target = self.target.after_backups(state.target, batch, targets)

        def loss_of(network: Network, action: Int[Array, ""], row: PyTree) -> Float[Array, ""]:
            draw_key, backed_up, transition = row
            return self.loss(network, draw_key, backed_up, transition._replace(action=action))

        rows = (draw_keys, targets, batch)
        loss, losses, gradient = learning.loss_and_gradient(loss_of, batch.action, rows, weights)
        updates, optimizer = self.optimizer.update(_tree(gradient), state.optimizer, _tree(state.network))
        network = _tree(optax.apply_updates(_tree(state.network), updates))
        metrics = Metrics(loss, optax.tree.norm(gradient), jnp.mean(outside, dtype=jnp.float32))
        after = AgentState(network, optimizer, self.target.after_update(target, network))
        return after, metrics, losses


def take(z: PyTree, action: Int[Array, ""]) -> PyTree:
    """The parameters of one action."""
    return jax.tree.map(lambda leaf: leaf[action], z)


def where(condition: Bool[Array, ""], if_true: PyTree, if_false: PyTree) -> PyTree:
    """One of two distributions of a family."""
    return jax.tree.map(lambda true, false: jnp.where(condition, true, false), if_true, if_false)


def _tree(network: PyTree) -> PyTree:
    """The same tree of arrays; optax's types do not know that a module is one."""
    return network
