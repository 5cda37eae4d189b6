"""How actions are chosen: the same in compiled runs, host runs, evaluation and watching."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.policies.base import ADVANCE
from uppertail.types import PyTree


class Choice(NamedTuple):
    """What a policy chose in one state, what it keeps from there on, and whether another action has a higher mean."""

    action: Int[Array, "*envs"]
    memory: PyTree
    exploratory: Bool[Array, "*envs"]


class View(NamedTuple):
    """What a policy sees of one state beside its memory, as `Decision` has it; None for what it does not need."""

    z: PyTree
    evidence: Float[Array, "*envs actions"] | None
    drawn: Float[Array, "*envs draws actions"] | None


@dataclasses.dataclass(frozen=True)
class Actor:
    """Chooses the actions of one environment by a policy, in training the agent's own.

    Raises:
        InputError: the policy needs members, evidence or draws, and there are none.
    """

    agent: Agent
    policy: ExplorationPolicy

    def __post_init__(self) -> None:
        self.agent.require_members(self.policy)

    def view(self, network: Network, observation: Array) -> View:
        """What the policy sees of one state."""
        z = self.agent.returns_by_member(network, observation)
        evidence = network.evidence(observation) if self.policy.needs_evidence else None
        drawn = network.drawn(observation) if self.policy.posterior else None
        name = type(self.policy).__name__
        if self.policy.needs_evidence and evidence is None:
            raise InputError(
                f"The policy {name} needs the evidence for each action, which this learner does not give: use "
                "--learner LeastSquares, or another policy, for example UCB."
            )
        if self.policy.posterior and drawn is None:
            raise InputError(
                f"The policy {name} needs draws from the posterior of the values, which only LeastSquares makes, for "
                "tables, when it is also the policy that trains: train with it (on an environment with states, or with "
                "--env.encoding hashed), or use another policy, for example UCB."
            )
        return View(z, evidence, drawn)

    def first(self, key: PRNGKeyArray, network: Network, observation: Array) -> Choice:
        """The first choice of a run."""
        decision = self._decision(self.view(network, observation), observation)
        return self._choose(key, self._begun(key, decision))

    def next(
        self, key: PRNGKeyArray, view: View, observation: Array, memory: PyTree, begins: Bool[Array, ""]
    ) -> Choice:
        """A choice in an episode in progress or, if `begins`, the first of a new one."""
        going_on = self._decision(view, observation).with_memory(memory)
        return self._choose(key, _either(begins, self.policy.begun(key, going_on), going_on))

    def play(
        self, key: PRNGKeyArray, network: Network, observation: Array, memory: PyTree, begins: Bool[Array, ""]
    ) -> Choice:
        """The same in an evaluation, where each episode begins as the first of a run does."""
        decision = self._decision(self.view(network, observation), observation)
        return self._choose(key, _either(begins, self._begun(key, decision), decision.with_memory(memory)))

    def blank(self, network: Network, observation: Array) -> PyTree:
        """Zeros in the shape of the memory, for `play` to replace at an episode's first step."""
        shapes = jax.eval_shape(self.first, jax.random.key(0), network, observation).memory
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def _decision(self, view: View, observation: Array) -> Decision:
        return Decision(self.agent.family, view.z, observation, view.evidence, view.drawn)

    def _begun(self, key: PRNGKeyArray, decision: Decision) -> Decision:
        return self.policy.begun(key, decision.with_memory(self.policy.init(decision)))

    def _choose(self, key: PRNGKeyArray, decision: Decision) -> Choice:
        action = self.policy.select(key, decision)
        mean = jnp.mean(decision.mean, axis=0)
        memory = self.policy.advance(jax.random.fold_in(key, ADVANCE), decision, action)
        return Choice(action, memory, mean[action] < jnp.max(mean))


def _either(begins: Bool[Array, ""], begun: Decision, going_on: Decision) -> Decision:
    """The decision with the memory of one of the two."""
    both = jax.tree.map(lambda new, old: jnp.where(begins, new, old), begun.memory, going_on.memory)
    return going_on.with_memory(both)
