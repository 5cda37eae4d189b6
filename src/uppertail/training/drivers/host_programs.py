"""The compiled programs of a run whose environments Python steps: its beginning, acting for all seeds, learning."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.acting import (
    Actor,
    Choice,
    View,
    environment_keys,
    iteration_keys,
    start_keys,
    step_keys,
)
from uppertail.training.drivers.groups import Group, Groups, over_seeds
from uppertail.training.loop import Episode, Loop, RunState
from uppertail.types import PyTree, Transition

Compile = Callable[..., Any]
"""Compiles a function for arguments of the given shapes, as `Stopwatch.compiled` does."""


class Player(NamedTuple):
    """Chooses the actions of an evaluation.

    Args:
        choose: actions and memory of all seeds, from networks, keys, step, observations, memory and where an episode
            begins.
        nothing: the memory before the first step.
    """

    choose: Any
    nothing: PyTree


class HostPrograms:
    """The programs; each is compiled at its first use.

    Args:
        loop: what a run does with its steps.
        num_actions: number of discrete actions.
        keys: the keys of each seed's run.
        groups: which seeds share a program.
        first: the first observations of each seed's environments.
        compiled: compiles a function for arguments of the given shapes.
    """

    def __init__(
        self,
        loop: Loop,
        num_actions: int,
        keys: Key[Array, " seeds"],
        groups: Groups,
        first: np.ndarray,
        compiled: Compile,
    ) -> None:
        self.loop, self.num_actions, self.keys = loop, num_actions, keys
        self.groups, self.first, self.compiled = groups, first, compiled
        self.actor = Actor(loop.agent, loop.agent.policy)

    @functools.cached_property
    def policy_remembers(self) -> bool:
        """Whether the policy keeps anything."""
        return bool(jax.tree.leaves(self.template.episode.memory))

    @functools.cached_property
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""
        return jax.eval_shape(jax.vmap(self._init), self.keys, self.first)

    def start(self) -> RunState:
        """The state of all seeds before the first step."""
        return self.compiled(jax.vmap(self._init), self.keys, self.first)(self.keys, self.first)

    @functools.cached_property
    def begin_rollout(self) -> Any:
        """The key of each seed's rollout, and the number of its first step."""

        def begin(run_key: PRNGKeyArray, iteration: Array) -> tuple[PRNGKeyArray, Array]:
            return iteration_keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)

        return self.compiled(jax.vmap(begin), self.keys, np.zeros(len(self.first), np.int32))

    # Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most
    # 512 bytes each, in the thread that calls it; it hands parts of larger ones to other threads, which takes longer.

    @functools.cached_property
    def view(self) -> Any:
        """Computes what the policy sees of the observations of all seeds.

        It takes the networks' leaves: to take a network apart at every step would be a quarter of a step's time.
        """
        return self.compiled(self._views, jax.tree.leaves(self.template.learned.network), self.first)

    def _views(self, leaves: list[Array], observations: Array) -> View:
        def of_seed(network: Network, observations: Array) -> View:
            return jax.vmap(self.actor.view, in_axes=(None, 0))(network, observations)

        networks = jax.tree.unflatten(jax.tree.structure(self.template.learned.network), leaves)
        return over_seeds(of_seed, len(self.first))(networks, observations)

    @functools.cached_property
    def choose(self) -> Any:
        """Chooses the actions of all seeds at one step of a rollout.

        It returns one row of actions and one that says which are not greedy, the policy's memory, and the next step.
        `begins` says where an episode begins; it is () for a policy without memory.
        """
        envs = self.first.shape[1]

        def choose(
            rollout_key: PRNGKeyArray, step: Array, view: View, where: Array, memory: PyTree, begins: PyTree
        ) -> tuple[Array, PyTree, Array]:
            keys = environment_keys(step_keys(rollout_key, step).action, envs)
            starts = begins if self.policy_remembers else jnp.zeros(envs, bool)
            choice = jax.vmap(self.actor.next_in)(keys, view, where, memory, starts)
            explores = choice.exploratory.astype(choice.action.dtype)
            return jnp.stack([choice.action, explores]), choice.memory, step + 1

        step = np.zeros(len(self.first), np.int32)
        view: PyTree = jax.eval_shape(self._views, jax.tree.leaves(self.template.learned.network), self.first)
        begins = np.zeros(self.first.shape[:2], bool) if self.policy_remembers else ()
        arguments = (self.keys, step, view, self.first, self.template.episode.memory, begins)
        return self.compiled(over_seeds(choose, len(self.first)), *arguments)

    @functools.cached_property
    def learn(self) -> list[Any]:
        """Stores the rollouts of each group and learns from them."""
        template, loop = self.template._replace(episode=()), self.loop

        def learn(run_key: PRNGKeyArray, run: RunState, fresh: Transition, ended: Array) -> tuple[RunState, Metrics]:
            return loop.learn(iteration_keys(run_key, run.iteration)[1], run, (), fresh, ended)

        def compiled(group: Group, keys: Any) -> Any:
            state = group.part_of(template)
            steps = (group.size, loop.rollout_steps)
            ended = jax.ShapeDtypeStruct(steps, bool)
            return self.compiled(over_seeds(learn, group.size), keys, state, self._fresh(steps), ended, donate=(1,))

        return self.groups.programs(compiled, self.groups.split(self.keys))

    def playing(self, networks: Network, policy: ExplorationPolicy, envs: int) -> Player:
        """The player of an evaluation in this many environments of each seed."""
        actor = dataclasses.replace(self.actor, policy=policy)

        def act(
            network: Network, key: PRNGKeyArray, step: Array, observations: Array, memory: PyTree, begins: Array
        ) -> tuple[Array, PyTree]:
            keys = environment_keys(jax.random.fold_in(key, step), envs)
            choose = jax.vmap(actor.play, in_axes=(0, None, 0, 0, 0))
            choice = choose(keys, network, observations, memory, begins)
            return choice.action, choice.memory

        seeds, _, *shape = self.first.shape
        observations = jax.ShapeDtypeStruct((seeds, envs, *shape), self.first.dtype)
        blank = jax.vmap(jax.vmap(actor.blank, in_axes=(None, 0)))
        nothing = jax.tree.map(np.asarray, blank(networks, jnp.zeros(observations.shape, observations.dtype)))
        begins = np.zeros((seeds, envs), bool)
        arguments = (networks, self.keys, np.int32(0), observations, nothing, begins)
        return Player(self.compiled(jax.vmap(act, in_axes=(0, 0, None, 0, 0, 0)), *arguments), nothing)

    def _init(self, run_key: PRNGKeyArray, observations: Array) -> RunState:
        """A run before its first step, with the first action of each environment."""
        keys = start_keys(run_key)
        learned = self.loop.learner.init(keys.network, observations, self.num_actions)
        choice = self._first(learned.network, keys.action, observations)
        zeros = jnp.zeros(observations.shape[0])
        episode = Episode((), observations, choice.action, zeros, zeros.astype(jnp.int32), choice.memory)
        return self.loop.begin(learned, episode)

    def _first(self, network: Network, key: PRNGKeyArray, observations: Array) -> Choice:
        """The first choice of a run in each of a seed's environments."""
        keys = environment_keys(key, observations.shape[0])
        return jax.vmap(self.actor.first, in_axes=(0, None, 0))(keys, network, observations)

    def _fresh(self, steps: tuple[int, int]) -> Any:
        """Shapes and types of the transitions of a rollout, with these leading axes [seeds, steps]."""
        observation = jax.ShapeDtypeStruct((*steps, *self.first.shape[2:]), self.template.episode.observation.dtype)

        def each(kind: Any) -> Any:
            return jax.ShapeDtypeStruct(steps, kind)

        kinds: Any = Transition  # of shapes instead of arrays
        return kinds(observation, each(np.int32), each(np.float32), each(bool), observation, each(np.int32))
