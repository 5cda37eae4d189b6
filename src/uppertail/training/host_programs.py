"""What is compiled where Python steps the environments: a run's beginning, acting for all seeds, learning of each."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray

from uppertail.agent import Metrics
from uppertail.encodings import Encoding
from uppertail.networks import PerActionNetwork
from uppertail.policies import ExplorationPolicy
from uppertail.training.driver import Compile
from uppertail.training.groups import Group, Groups, over_seeds
from uppertail.training.loop import Episode, Loop, RunState
from uppertail.types import Transition


class HostPrograms:
    """Each is compiled when it is first asked for.

    Args:
        loop: what is done with the steps.
        encoding: how observations enter the network.
        num_actions: number of discrete actions.
        keys: the keys of each seed's run.
        groups: which seeds share a program.
        first: the first observations of each seed's environments.
        compiled: compiles a function for arguments of the shapes that it is given.
    """

    def __init__(
        self,
        loop: Loop,
        encoding: Encoding,
        num_actions: int,
        keys: Key[Array, " seeds"],
        groups: Groups,
        first: np.ndarray,
        compiled: Compile,
    ) -> None:
        self.loop, self.encoding, self.num_actions = loop, encoding, num_actions
        self.keys, self.groups, self.first, self.compiled = keys, groups, first, compiled

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
            return self.loop.keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)

        return self.compiled(jax.vmap(begin), self.keys, np.zeros(len(self.first), np.int32))

    # Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most
    # 512 bytes each, in the thread that calls it; of others it hands parts to other threads, which takes longer.

    @functools.cached_property
    def outputs(self) -> Any:
        """What the networks make of the observations of all seeds."""
        return self.compiled(self._all_outputs, self.template.agent.network, self.first)

    def _all_outputs(self, networks: PerActionNetwork, observations: Array) -> Array:
        def of_seed(network: PerActionNetwork, observations: Array) -> Array:
            return jax.vmap(network, in_axes=(None, 0))(self.encoding, observations)

        return over_seeds(of_seed, len(self.first))(networks, observations)

    @functools.cached_property
    def choose(self) -> Any:
        """Chooses the actions of all seeds at one step of a rollout: one row; another says which are not greedy."""
        agent = self.loop.agent

        def chosen(rollout_key: PRNGKeyArray, step: Array, outputs: Array) -> tuple[Int[Array, "2 envs"], Array]:
            z = jax.vmap(jax.vmap(agent.family.from_outputs))(outputs)
            _, _, action_key = jax.random.split(jax.random.fold_in(rollout_key, step), 3)  # as compiled runs draw it
            keys = _of_envs(action_key, outputs.shape[0])
            actions = jax.vmap(agent.policy.select, in_axes=(0, None, 0))(keys, agent.family, z)
            explores = jax.vmap(agent.explores)(z, actions)
            return jnp.stack([actions, explores.astype(actions.dtype)]), step + 1

        step = np.zeros(len(self.first), np.int32)
        outputs = jax.eval_shape(self._all_outputs, self.template.agent.network, self.first)
        return self.compiled(over_seeds(chosen, len(self.first)), self.keys, step, outputs)

    @functools.cached_property
    def learn(self) -> list[Any]:
        """What keeps and learns from the rollouts of each group."""
        template, loop = self.template._replace(episode=()), self.loop

        def learned(run_key: PRNGKeyArray, run: RunState, fresh: Transition, ended: Array) -> tuple[RunState, Metrics]:
            return loop.learn(loop.keys(run_key, run.iteration)[1], run, (), fresh, ended)

        def compiled(group: Group, keys: Any) -> Any:
            state = group.part_of(template)
            steps = (group.size, loop.rollout_steps)
            fresh = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(steps + leaf.shape[2:], leaf.dtype), state.replay.transitions
            )
            ended = jax.ShapeDtypeStruct(steps, bool)
            return self.compiled(over_seeds(learned, group.size), keys, state, fresh, ended, donate=(1,))

        return self.groups.programs(compiled, self.groups.split(self.keys))

    def playing(self, networks: PerActionNetwork, policy: ExplorationPolicy, envs: int) -> Any:
        """Chooses the actions of all seeds at one step of an evaluation, from networks, keys, step and observations."""

        def act(network: PerActionNetwork, key: PRNGKeyArray, step: Array, observations: Array) -> Array:
            return self._choices(network, jax.random.fold_in(key, step), observations, policy)

        seeds, _, *shape = self.first.shape
        observations = jax.ShapeDtypeStruct((seeds, envs, *shape), self.first.dtype)
        return self.compiled(jax.vmap(act, in_axes=(0, 0, None, 0)), networks, self.keys, np.int32(0), observations)

    def _init(self, run_key: PRNGKeyArray, observations: Array) -> RunState:
        """A run before its first step, with the first action of each environment."""
        network_key, _, action_key = jax.random.split(jax.random.fold_in(run_key, 0), 3)
        agent_state = self.loop.agent.observe(self.loop.agent.init(network_key, self.num_actions), observations)
        actions = self._choices(agent_state.network, action_key, observations)
        zeros = jnp.zeros(observations.shape[0])
        episode = Episode((), observations, actions, zeros, zeros.astype(jnp.int32))
        return self.loop.begin(agent_state, observations[0], episode)

    def _choices(
        self, network: PerActionNetwork, key: PRNGKeyArray, observations: Array, policy: ExplorationPolicy | None = None
    ) -> Int[Array, " envs"]:
        """The policy's action in each of a seed's environments."""
        keys = _of_envs(key, observations.shape[0])
        return jax.vmap(self.loop.agent.act, in_axes=(None, 0, 0, None))(network, keys, observations, policy)


def _of_envs(key: PRNGKeyArray, envs: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single one has the seed's own, as in compiled runs."""
    return key[None] if envs == 1 else jax.random.split(key, envs)
