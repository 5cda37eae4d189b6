"""The agent with tables: one return distribution for each state and action, replayed exactly after every episode."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import take, where
from uppertail.distributions import ReturnDistribution
from uppertail.environments import FiniteMDP
from uppertail.policies import ExplorationPolicy
from uppertail.twin import deciding
from uppertail.twin.mixture import mixed
from uppertail.types import PyTree

Sweeps = tuple[PyTree, Bool[Array, ""], Int[Array, ""]]
"""The distributions, whether the last sweep changed nothing, and how many sweeps there were."""


class Tables(NamedTuple):
    """What the twin learns: the distributions, leading axes [states, actions], and how often it saw each outcome.

    `deepest` is the last layer of states (`order.py`) in which it has taken an action, `episodes` how many have ended.
    """

    z: PyTree
    seen: Int[Array, "states actions outcomes"]
    deepest: Int[Array, ""]
    episodes: Int[Array, ""]


class Layers(NamedTuple):
    """The arrays of an `Order`."""

    layers: Any
    layer_of: Any


@dataclasses.dataclass(frozen=True)
class TabularAgent:
    """Acts for an episode, then replays all known transitions exactly.

    Args:
        family: the family of return distributions, fitted to the environment's returns.
        policy: the exploration policy.
        discount: gamma, per step.
        sweeps: the most backward sweeps after each episode; fewer once nothing changes any more.
    """

    family: ReturnDistribution[Any]
    policy: ExplorationPolicy
    discount: float
    sweeps: int

    def init(self, mdp: FiniteMDP) -> Tables:
        """Tables that know nothing: every distribution is that of a network whose outputs are 0."""
        initial = self.family.from_outputs(jnp.zeros(self.family.num_outputs))
        shape = (mdp.num_states, mdp.num_actions)
        z = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*shape, *leaf.shape)), initial)
        zero = jnp.zeros((), jnp.int32)
        return Tables(z, jnp.zeros(mdp.next_state.shape, jnp.int32), zero, zero)

    def episodes(
        self, key: PRNGKeyArray, mdp: FiniteMDP, order: Layers, tables: Tables, count: int
    ) -> tuple[Tables, Float[Array, " count"], Int[Array, " count"]]:
        """The next episodes of a run, with their undiscounted returns and lengths; `key` is that of the run."""

        def episode(tables: Tables, _: None) -> tuple[Tables, tuple[Float[Array, ""], Int[Array, ""]]]:
            act_key, sweep_key = jax.random.split(jax.random.fold_in(key, tables.episodes))
            after, ret, length = self._act(act_key, mdp, order, tables)
            z = self.learn(sweep_key, mdp, order, after)
            return after._replace(z=z, episodes=tables.episodes + 1), (ret, length)

        tables, (returns, lengths) = jax.lax.scan(episode, tables, length=count)
        return tables, returns, lengths

    def learn(self, key: PRNGKeyArray, mdp: FiniteMDP, order: Layers, tables: Tables) -> PyTree:
        """Sweeps after an episode; the new distributions. All sweeps draw the same choices of the policy."""

        def sweep(
            carry: tuple[PyTree, Bool[Array, ""], Int[Array, ""]],
        ) -> tuple[PyTree, Bool[Array, ""], Int[Array, ""]]:
            z, _, sweeps = carry
            swept = self._sweep(key, mdp, order, tables._replace(z=z))
            same = jax.tree.map(lambda new, old: jnp.all(new == old), swept, z)
            return swept, jnp.stack(jax.tree.leaves(same)).all(), sweeps + 1

        if self.sweeps == 1:
            return self._sweep(key, mdp, order, tables)
        begin = (tables.z, jnp.zeros((), bool), jnp.zeros((), jnp.int32))
        z, _, _ = jax.lax.while_loop(lambda carry: ~carry[1] & (carry[2] < self.sweeps), sweep, begin)
        return z

    def _act(
        self, key: PRNGKeyArray, mdp: FiniteMDP, order: Layers, tables: Tables
    ) -> tuple[Tables, Float[Array, ""], Int[Array, ""]]:
        """Plays one episode and counts what it sees; its undiscounted return and its length."""
        reset_key, memory_key, step_key = jax.random.split(key, 3)
        start, _ = mdp.reset(reset_key)
        memory = deciding.begin(self.policy, memory_key, mdp.num_actions)

        def step(carry: PyTree) -> PyTree:
            state, seen, deepest, memory, ret, _ = carry
            choice_key, environment_key = jax.random.split(jax.random.fold_in(step_key, state.elapsed))
            where_ = state.state
            z = take(tables.z, where_)
            action, memory = deciding.decide(self.policy, choice_key, memory, self.family, z)
            after, now = mdp.step(environment_key, state, action)
            happened = (
                (mdp.next_state[where_, action] == after.state)
                & (mdp.reward[where_, action] == now.reward)
                & (mdp.terminated[where_, action] == now.terminated)
                & (mdp.probability[where_, action] > 0)
            )
            seen = seen.at[where_, action, jnp.argmax(happened)].add(1)  # equal outcomes count as the first of them
            deepest = jnp.maximum(deepest, order.layer_of[where_])
            return after, seen, deepest, memory, ret + now.reward, now.terminated | now.truncated

        begin = (start, tables.seen, tables.deepest, memory, jnp.zeros(()), jnp.zeros((), bool))
        last, seen, deepest, _, ret, _ = jax.lax.while_loop(lambda carry: ~carry[-1], step, begin)
        return tables._replace(seen=seen, deepest=deepest), ret, last.elapsed

    def _sweep(self, key: PRNGKeyArray, mdp: FiniteMDP, order: Layers, tables: Tables) -> PyTree:
        """Makes one sweep over all transitions ever seen, from the deepest layer to the first."""

        def layer(index: Int[Array, ""], z: PyTree) -> PyTree:
            states = order.layers[tables.deepest - index]
            rows = jax.vmap(self._back_up, in_axes=(None, None, None, None, 0))(key, mdp, z, tables.seen, states)
            return jax.tree.map(lambda leaf, row: leaf.at[states].set(row, mode="drop"), z, rows)

        return jax.lax.fori_loop(0, tables.deepest + 1, layer, tables.z)

    def _back_up(
        self,
        key: PRNGKeyArray,
        mdp: FiniteMDP,
        z: PyTree,
        seen: Int[Array, "states actions outcomes"],
        state: Int[Array, ""],
    ) -> PyTree:
        """The distributions of one state's actions: r + discount * Z(s', a') for actions seen, others unchanged."""
        next_state, reward, ended = mdp.next_state[state], mdp.reward[state], mdp.terminated[state]
        counts = seen[state]

        def backup(
            key: PRNGKeyArray, after: Int[Array, ""], reward: Float[Array, ""], ended: Bool[Array, ""]
        ) -> PyTree:
            z_next = take(z, after)
            memory_key, choice_key = jax.random.split(key)
            memory = deciding.begin(self.policy, memory_key, mdp.num_actions)
            chosen, _ = deciding.decide(self.policy, choice_key, memory, self.family, z_next)
            bootstrap = where(ended, self.family.terminal(), take(z_next, chosen))
            return self.family.backup(bootstrap, reward, jnp.asarray(self.discount))

        keys = jax.random.split(jax.random.fold_in(key, state), next_state.shape)
        backed_up = jax.vmap(jax.vmap(backup))(keys, next_state, reward, ended)
        total = jnp.sum(counts, axis=1)
        weights = counts / jnp.maximum(total, 1)[:, None]
        target = _first(backed_up) if counts.shape[1] == 1 else jax.vmap(mixed)(backed_up, weights)
        return jax.vmap(where)(total > 0, target, take(z, state))


def _first(z: PyTree) -> PyTree:
    """The only outcome of each action."""
    return jax.tree.map(lambda leaf: leaf[:, 0], z)
