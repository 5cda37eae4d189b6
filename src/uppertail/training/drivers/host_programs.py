"""The compiled programs of a run whose environments Python steps: its beginning, acting for all seeds, learning."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray

from uppertail.learners import Metrics
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.training.acting import Actor, Choice, View
from uppertail.training.drivers.groups import Group, Groups, over_seeds
from uppertail.training.loop import Episode, Loop, RunState
from uppertail.training.programs import Stopwatch
from uppertail.training.seeds import environment_keys, iteration_keys, start_keys, step_keys
from uppertail.types import PyTree, Transition


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
        seconds: compiles them, and counts the time.
    """

    def __init__(
        self,
        loop: Loop,
        num_actions: int,
        keys: Key[Array, " seeds"],
        groups: Groups,
        first: np.ndarray,
        seconds: Stopwatch,
    ) -> None:
        self.loop, self.num_actions, self.keys = loop, num_actions, keys
        self.groups, self.first, self.compiled = groups, first, seconds.compiled
        self.actor = Actor(loop.agent, loop.agent.policy)

    @functools.cached_property
    def policy_remembers(self) -> bool:
        """Whether the policy keeps anything."""
        return bool(jax.tree.leaves(self.template.episode.memory))

    @functools.cached_property
    def template(self) -> RunState:
        """Shapes and types of the state of all seeds."""
        return jax.eval_shape(functools.partial(_init, self.loop, self.num_actions), self.keys, self.first)

    def start(self) -> RunState:
        """The state of all seeds before the first step."""
        arguments = self.keys, self.first
        return self.compiled(_init, self.loop, *arguments, static=(self.num_actions,))(*arguments)

    @functools.cached_property
    def begin_rollout(self) -> Any:
        """The key of each seed's rollout, and the number of its first step."""
        return self.compiled(_begin, None, self.keys, np.zeros(len(self.first), np.int32))

    # Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most
    # 512 bytes each, in the thread that calls it; it hands parts of larger ones to other threads, which takes longer.

    @functools.cached_property
    def view(self) -> Any:
        """Computes what the policy sees of the observations of all seeds.

        It takes the networks' leaves: to take a network apart at every step would be a quarter of a step's time.
        """
        leaves, structure = jax.tree.flatten(self.template.learned.network)
        return self.compiled(_views, self.actor, leaves, self.first, static=(structure,))

    @functools.cached_property
    def choose(self) -> Any:
        """Chooses the actions of all seeds at one step of a rollout.

        It returns one row of actions and one that says which are not greedy, the policy's memory, and the next step.
        `begins` says where an episode begins; it is () for a policy without memory.
        """
        leaves, structure = jax.tree.flatten(self.template.learned.network)
        view: PyTree = jax.eval_shape(functools.partial(_views, self.actor, structure), leaves, self.first)
        begins = np.zeros(self.first.shape[:2], bool) if self.policy_remembers else ()
        step = np.zeros(len(self.first), np.int32)
        arguments = (self.keys, step, view, self.first, self.template.episode.memory, begins)
        return self.compiled(_choose, self.actor, *arguments)

    @functools.cached_property
    def learn(self) -> list[Any]:
        """Stores the rollouts of each group and learns from them."""

        def compiled(group: Group, keys: Any) -> Any:
            state = group.part_of(self.template._replace(episode=()))
            steps = (group.size, self.loop.rollout_steps)
            ended = jax.ShapeDtypeStruct(steps, bool)
            return self.compiled(_learn, self.loop, keys, state, self._fresh(steps), ended, donate=(1,))

        return self.groups.programs(compiled, self.groups.split(self.keys))

    def playing(self, networks: Network, policy: ExplorationPolicy, envs: int) -> Player:
        """The player of an evaluation in this many environments of each seed."""
        actor, (seeds, _, *shape) = dataclasses.replace(self.actor, policy=policy), self.first.shape
        observations = jax.ShapeDtypeStruct((seeds, envs, *shape), self.first.dtype)
        blank = jax.vmap(jax.vmap(actor.blank, in_axes=(None, 0)))
        nothing = jax.tree.map(np.asarray, blank(networks, jnp.zeros(observations.shape, observations.dtype)))
        arguments = (networks, self.keys, np.int32(0), observations, nothing, np.zeros((seeds, envs), bool))
        return Player(self.compiled(_act, actor, *arguments), nothing)

    def _fresh(self, steps: tuple[int, int]) -> Any:
        """Shapes and types of the transitions of a rollout, with these leading axes [seeds, steps]."""
        observation = jax.ShapeDtypeStruct((*steps, *self.first.shape[2:]), self.template.episode.observation.dtype)

        def each(kind: Any) -> Any:
            return jax.ShapeDtypeStruct(steps, kind)

        kinds: Any = Transition  # of shapes instead of arrays
        return kinds(observation, each(np.int32), each(np.float32), each(bool), observation, each(np.int32))


def _init(loop: Loop, num_actions: int, keys: Key[Array, " seeds"], observations: Array) -> RunState:
    """Runs before their first step, with the first action of each environment."""
    actor = Actor(loop.agent, loop.agent.policy)

    def init(run_key: PRNGKeyArray, observations: Array) -> RunState:
        keys = start_keys(run_key)
        learned = loop.learner.init(keys.network, observations, num_actions)
        first = jax.vmap(actor.first, in_axes=(0, None, 0))
        choice = first(environment_keys(keys.action, observations.shape[0]), learned.network, observations)
        zeros = jnp.zeros(observations.shape[0])
        episode = Episode((), observations, choice.action, zeros, zeros.astype(jnp.int32), choice.memory)
        return loop.begin(learned, episode)

    return jax.vmap(init)(keys, observations)


def _begin(_: None, keys: Key[Array, " seeds"], iterations: Array) -> tuple[Key[Array, " seeds"], Array]:
    def begin(run_key: PRNGKeyArray, iteration: Array) -> tuple[PRNGKeyArray, Array]:
        return iteration_keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)

    return jax.vmap(begin)(keys, iterations)


def _views(actor: Actor, structure: Any, leaves: list[Array], observations: Array) -> View:
    def of_seed(network: Network, observations: Array) -> View:
        return jax.vmap(actor.view, in_axes=(None, 0))(network, observations)

    return over_seeds(of_seed, jax.tree.unflatten(structure, leaves), observations)


def _choose(
    actor: Actor,
    rollout_keys: Key[Array, " seeds"],
    steps: Array,
    views: View,
    observations: Array,
    memory: PyTree,
    begins: PyTree,
) -> tuple[Array, PyTree, Array]:
    envs = observations.shape[1]

    def choose(
        key: PRNGKeyArray, step: Array, view: View, where: Array, memory: PyTree, begins: PyTree
    ) -> tuple[Array, PyTree, Array]:
        keys = environment_keys(step_keys(key, step).action, envs)
        starts = jnp.zeros(envs, bool) if isinstance(begins, tuple) else begins
        choice = jax.vmap(actor.next_in)(keys, view, where, memory, starts)
        explores = choice.exploratory.astype(choice.action.dtype)
        return jnp.stack([choice.action, explores]), choice.memory, step + 1

    return over_seeds(choose, rollout_keys, steps, views, observations, memory, begins)


def _learn(
    loop: Loop, keys: Key[Array, " seeds"], runs: RunState, fresh: Transition, ended: Array
) -> tuple[RunState, Metrics]:
    def learn(run_key: PRNGKeyArray, run: RunState, fresh: Transition, ended: Array) -> tuple[RunState, Metrics]:
        return loop.learn(iteration_keys(run_key, run.iteration)[1], run, (), fresh, ended)

    return over_seeds(learn, keys, runs, fresh, ended)


def _act(
    actor: Actor,
    networks: Network,
    keys: Key[Array, " seeds"],
    step: Array,
    observations: Array,
    memory: PyTree,
    begins: Array,
) -> tuple[Array, PyTree]:
    envs = observations.shape[1]

    def act(network: Network, key: PRNGKeyArray, *of_seed: Any) -> tuple[Array, PyTree]:
        keys = environment_keys(jax.random.fold_in(key, step), envs)
        choice: Choice = jax.vmap(actor.play, in_axes=(0, None, 0, 0, 0))(keys, network, *of_seed)
        return choice.action, choice.memory

    return jax.vmap(act)(networks, keys, observations, memory, begins)
