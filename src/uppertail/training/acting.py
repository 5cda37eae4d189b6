"""How actions are chosen, and with which keys: the same in compiled runs, host runs, evaluation and watching."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.networks import Network
from uppertail.policies import BEGIN, ExplorationPolicy
from uppertail.types import PyTree

ADVANCE = 3
"""Folded into a decision's key to draw the memory after it, as `BEGIN` is for the memory of an episode's start."""


class Decision(NamedTuple):
    """A decision in one state.

    Args:
        action: the action.
        memory: the policy's memory for the rest of the episode.
        exploratory: whether the action is not the greedy one.
    """

    action: Int[Array, "*envs"]
    memory: PyTree
    exploratory: Bool[Array, "*envs"]


@dataclasses.dataclass(frozen=True)
class Actor:
    """Chooses the actions of one environment.

    Args:
        agent: the algorithm.
        policy: the policy that acts; the agent's own in training.
        num_actions: number of discrete actions.

    Raises:
        InputError: the policy needs members, and there are none.
    """

    agent: Agent
    policy: ExplorationPolicy
    num_actions: int

    def __post_init__(self) -> None:
        self.agent.require_members(self.policy)

    def begin(self, key: PRNGKeyArray) -> PyTree:
        """The policy's memory at the start of an episode."""
        return self.policy.begin(jax.random.fold_in(key, BEGIN), self.agent.members or 1, self.num_actions)

    def first(self, key: PRNGKeyArray, network: Network, observation: Array) -> Decision:
        """The first decision of an episode."""
        return self._decide(key, self.agent.returns_by_member(network, observation), self.begin(key))

    def next(
        self, key: PRNGKeyArray, network: Network, observation: Array, memory: PyTree, begins: Bool[Array, ""]
    ) -> Decision:
        """A decision in an episode in progress or, if `begins`, the first of a new one."""
        return self.from_returns(key, self.agent.returns_by_member(network, observation), memory, begins)

    def from_returns(self, key: PRNGKeyArray, z: PyTree, memory: PyTree, begins: Bool[Array, ""]) -> Decision:
        """The decision of `next`, from the return distributions [members, actions] of the state."""
        fresh = self.begin(key)
        return self._decide(key, z, jax.tree.map(lambda new, old: jnp.where(begins, new, old), fresh, memory))

    def _decide(self, key: PRNGKeyArray, z: PyTree, memory: PyTree) -> Decision:
        action = self.policy.select(key, memory, self.agent.family, z)
        after = self.policy.advance(jax.random.fold_in(key, ADVANCE), memory, action)
        return Decision(action, after, self.agent.is_exploratory(z, action))


class StartKeys(NamedTuple):
    """Keys of a run's beginning: for its network, the first reset and the first action."""

    network: PRNGKeyArray
    reset: PRNGKeyArray
    action: PRNGKeyArray


class StepKeys(NamedTuple):
    """Keys of one step: for the environment, a reset if the episode ends there, and the next action."""

    step: PRNGKeyArray
    reset: PRNGKeyArray
    action: PRNGKeyArray


def start_keys(run_key: PRNGKeyArray) -> StartKeys:
    """The keys of a run's beginning."""
    return StartKeys(*jax.random.split(jax.random.fold_in(run_key, 0), 3))


def iteration_keys(run_key: PRNGKeyArray, iteration: Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The keys of the next rollout and of its updates, after this many iterations."""
    act_key, learn_key = jax.random.split(jax.random.fold_in(run_key, iteration + 1))
    return act_key, learn_key


def step_keys(rollout_key: PRNGKeyArray, step: int | Int[Array, ""]) -> StepKeys:
    """The keys of a step of a rollout."""
    return StepKeys(*jax.random.split(jax.random.fold_in(rollout_key, step), 3))


def play_keys(play_key: PRNGKeyArray, step: int | Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The keys of the action and of the environment at a step of an episode played with a compiled environment."""
    action_key, step_key = jax.random.split(jax.random.fold_in(play_key, step))
    return action_key, step_key


def environment_keys(key: PRNGKeyArray, count: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single environment has the seed's own, as in compiled runs."""
    return key[None] if count == 1 else jax.random.split(key, count)


def remembers(actor: Actor) -> bool:
    """Whether the actor's policy keeps anything during an episode."""
    memory: PyTree = jax.eval_shape(actor.begin, jax.random.key(0))
    return bool(jax.tree.leaves(memory))
