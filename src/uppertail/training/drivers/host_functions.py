"""What is compiled of a run whose environments Python steps: its beginning, acting for all seeds, learning.

Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most 512
bytes each, in the thread that calls it; it hands parts of larger ones to other threads, which takes longer.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PRNGKeyArray

from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.training.acting import Actor, View
from uppertail.training.loop import Episode, Loop, RunState, iteration_keys, start_keys, step_keys
from uppertail.types import PyTree, Transition


def init(loop: Loop, num_actions: int, run_key: PRNGKeyArray, observations: Array) -> RunState:
    """A run before its first step, with the first action of each environment."""
    keys, actor = start_keys(run_key), Actor(loop.agent, loop.agent.policy)
    learned = loop.learner.init(keys.network, observations, num_actions)
    first = jax.vmap(actor.first, in_axes=(0, None, 0))
    choice = first(environment_keys(keys.action, observations.shape[0]), learned.network, observations)
    zeros = jnp.zeros(observations.shape[0])
    episode = Episode((), observations, choice.action, zeros, zeros.astype(jnp.int32), choice.memory)
    return loop.begin(learned, episode)


def begin_rollout(_: None, run_key: PRNGKeyArray, iteration: Array) -> tuple[PRNGKeyArray, Array]:
    """The key of a rollout, and the number of its first step."""
    return iteration_keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)


def view(actor: Actor, structure: Any, leaves: list[Array], observations: Array) -> View:
    """What the policy sees. To take a network apart into its leaves at every step would be a quarter of its time."""
    return jax.vmap(actor.view, in_axes=(None, 0))(jax.tree.unflatten(structure, leaves), observations)


def choose(
    actor: Actor, key: PRNGKeyArray, step: Array, view: View, observations: Array, memory: PyTree, begins: PyTree
) -> tuple[Array, PyTree, Array]:
    """A row of actions and one that says which are not greedy, the policy's memory, and the next step.

    `begins` says where an episode begins; it is () for a policy without memory.
    """
    envs = observations.shape[0]
    keys = environment_keys(step_keys(key, step).action, envs)
    starts = jnp.zeros(envs, bool) if isinstance(begins, tuple) else begins
    choice = jax.vmap(actor.next)(keys, view, observations, memory, starts)
    explores = choice.exploratory.astype(choice.action.dtype)
    return jnp.stack([choice.action, explores]), choice.memory, step + 1


def learn(
    loop: Loop, run_key: PRNGKeyArray, run: RunState, fresh: Transition, ended: Array
) -> tuple[RunState, Metrics]:
    """Stores a rollout, and learns from it."""
    return loop.learn(iteration_keys(run_key, run.iteration)[1], run, (), fresh, ended)


def play(
    actor: Actor, network: Network, key: PRNGKeyArray, step: Array, *of_environments: PyTree
) -> tuple[Array, PyTree]:
    """Actions and memory in an evaluation, from observations, memory and where an episode begins."""
    keys = environment_keys(jax.random.fold_in(key, step), of_environments[0].shape[0])
    choice = jax.vmap(actor.play, in_axes=(0, None, 0, 0, 0))(keys, network, *of_environments)
    return choice.action, choice.memory


def environment_keys(key: PRNGKeyArray, count: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single environment has the seed's own, as in compiled runs."""
    return key[None] if count == 1 else jax.random.split(key, count)
