"""The compiled programs of a run whose environments Python steps: its beginning, acting for all seeds, learning."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.acting import Actor, View
from uppertail.training.loop import Episode, Loop, RunState
from uppertail.training.programs import Stopwatch
from uppertail.training.seeds import environment_keys, iteration_keys, start_keys, step_keys
from uppertail.types import PyTree, Transition


class HostPrograms:
    """The programs; each is compiled at its first call.

    Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most 512
    bytes each, in the thread that calls it; it hands parts of larger ones to other threads, which takes longer.

    Args:
        loop: what a run does with its steps.
        num_actions: number of discrete actions.
        keys: the keys of each seed's run.
        first: the first observations of each seed's environments.
        seconds: compiles them, and counts the time.

    Attributes:
        template: shapes and types of the state of all seeds.
        policy_remembers: whether the policy keeps anything.
        begin_rollout: gives the key of each seed's rollout, and the number of its first step.
        view: what the policy sees of the observations of all seeds. It takes the networks' leaves: to take a network
            apart at every step would be a quarter of a step's time.
        choose: one row of actions and one that says which are not greedy, the policy's memory, and the next step.
        learn: stores the rollout of each group and learns from it; compiled by `compile_learning`.
    """

    def __init__(
        self, loop: Loop, num_actions: int, keys: Key[Array, " seeds"], first: np.ndarray, seconds: Stopwatch
    ) -> None:
        self.loop, self.seconds, self._actions, self._start = loop, seconds, num_actions, (keys, first)
        actor = Actor(loop.agent, loop.agent.policy)
        self.template: RunState = jax.eval_shape(jax.vmap(functools.partial(_init, loop, num_actions)), keys, first)
        self.policy_remembers = bool(jax.tree.leaves(self.template.episode.memory))
        structure = jax.tree.structure(self.template.learned.network)
        self.begin_rollout = seconds.compiled_later(_begin, None)
        self.view = seconds.compiled_later(_view, actor, static=(structure,))
        self.choose = seconds.compiled_later(_choose, actor)
        self.learn: list[Callable[..., tuple[RunState, Metrics]]] = []

    def start(self) -> RunState:
        """The state of all seeds before the first step."""
        return self.seconds.compiled(_init, self.loop, *self._start, static=(self._actions,))(*self._start)

    def compile_learning(self, *arguments: list[Any]) -> None:
        """Compiles `learn` for the keys, states, transitions and ends of each group."""
        compiled = functools.partial(self.seconds.compiled, _learn, self.loop, donate=(1,))
        self.learn = self.learn or [compiled(*of_group) for of_group in zip(*arguments, strict=True)]

    def acting(self, networks: Network, policy: ExplorationPolicy, first: np.ndarray) -> tuple[Any, PyTree]:
        """The program that chooses the actions of an evaluation, and the policy's memory before its first step."""
        actor = Actor(self.loop.agent, policy)
        memory = jax.vmap(jax.vmap(actor.blank, in_axes=(None, 0)))(networks, jnp.asarray(first))
        return self.seconds.compiled_later(_act, actor), jax.tree.map(np.asarray, memory)


def _init(loop: Loop, num_actions: int, run_key: PRNGKeyArray, observations: Array) -> RunState:
    """A run before its first step, with the first action of each environment."""
    keys, actor = start_keys(run_key), Actor(loop.agent, loop.agent.policy)
    learned = loop.learner.init(keys.network, observations, num_actions)
    first = jax.vmap(actor.first, in_axes=(0, None, 0))
    choice = first(environment_keys(keys.action, observations.shape[0]), learned.network, observations)
    zeros = jnp.zeros(observations.shape[0])
    episode = Episode((), observations, choice.action, zeros, zeros.astype(jnp.int32), choice.memory)
    return loop.begin(learned, episode)


def _begin(_: None, run_key: PRNGKeyArray, iteration: Array) -> tuple[PRNGKeyArray, Array]:
    return iteration_keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)


def _view(actor: Actor, structure: Any, leaves: list[Array], observations: Array) -> View:
    return jax.vmap(actor.view, in_axes=(None, 0))(jax.tree.unflatten(structure, leaves), observations)


def _choose(
    actor: Actor, key: PRNGKeyArray, step: Array, view: View, observations: Array, memory: PyTree, begins: PyTree
) -> tuple[Array, PyTree, Array]:
    """`begins` says where an episode begins; it is () for a policy without memory."""
    envs = observations.shape[0]
    keys = environment_keys(step_keys(key, step).action, envs)
    starts = jnp.zeros(envs, bool) if isinstance(begins, tuple) else begins
    choice = jax.vmap(actor.next_in)(keys, view, observations, memory, starts)
    explores = choice.exploratory.astype(choice.action.dtype)
    return jnp.stack([choice.action, explores]), choice.memory, step + 1


def _learn(
    loop: Loop, run_key: PRNGKeyArray, run: RunState, fresh: Transition, ended: Array
) -> tuple[RunState, Metrics]:
    return loop.learn(iteration_keys(run_key, run.iteration)[1], run, (), fresh, ended)


def _act(
    actor: Actor, network: Network, key: PRNGKeyArray, step: Array, *of_environments: PyTree
) -> tuple[Array, PyTree]:
    """Actions and memory, from observations, memory and where an episode begins."""
    keys = environment_keys(jax.random.fold_in(key, step), of_environments[0].shape[0])
    choice = jax.vmap(actor.play, in_axes=(0, None, 0, 0, 0))(keys, network, *of_environments)
    return choice.action, choice.memory
