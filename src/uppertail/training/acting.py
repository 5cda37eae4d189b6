"""How actions are chosen: the same in compiled runs, host runs, evaluation and watching.

Where Python makes the steps, two programs choose an action. XLA runs a program of at most eight operations, or one
whose arrays have at most 512 bytes each, in the thread that calls it; it hands parts of larger ones to other threads,
which takes longer.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.policies.base import ADVANCE
from uppertail.training.loop import step_keys
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


def view_all(actor: Actor, structure: Any, leaves: list[Array], observations: Array) -> View:
    """What the policy sees in all environments of a seed.

    To take a network apart into its leaves at every step would be a quarter of its time.
    """
    return jax.vmap(actor.view, in_axes=(None, 0))(jax.tree.unflatten(structure, leaves), observations)


def choose_all(
    actor: Actor, key: PRNGKeyArray, step: Array, view: View, observations: Array, memory: PyTree, begins: PyTree
) -> tuple[Array, PyTree, Array]:
    """A row of actions and one that says which are not greedy, the policy's memory, and the next step.

    `begins` says where an episode begins; it is () for a policy without memory.
    """
    envs = observations.shape[0]
    keys = environment_keys(step_keys(key, step)[2], envs)
    starts = jnp.zeros(envs, bool) if isinstance(begins, tuple) else begins
    choice = jax.vmap(actor.next)(keys, view, observations, memory, starts)
    return jnp.stack([choice.action, choice.exploratory.astype(choice.action.dtype)]), choice.memory, step + 1


def play_all(
    actor: Actor, network: Network, key: PRNGKeyArray, step: Array, *of_environments: PyTree
) -> tuple[Array, PyTree]:
    """Actions and memory in an evaluation, from observations, memory and where an episode begins."""
    keys = environment_keys(jax.random.fold_in(key, step), of_environments[0].shape[0])
    choice = jax.vmap(actor.play, in_axes=(0, None, 0, 0, 0))(keys, network, *of_environments)
    return choice.action, choice.memory


def environment_keys(key: PRNGKeyArray, count: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single environment has the seed's own, as in compiled runs."""
    return key[None] if count == 1 else jax.random.split(key, count)
