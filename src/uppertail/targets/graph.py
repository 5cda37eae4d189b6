"""Targets from the graph of the transitions seen so far; from the network for pairs that were never tried."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.schema import settle
from uppertail.targets.base import AnyNetwork, BackUp, Target
from uppertail.targets.pair_table import ALWAYS, PairTable, empty, enter, find, write_places
from uppertail.types import POLICY_CHOICE, PyTree, Transition


@dataclasses.dataclass(frozen=True)
class Graph(Target):
    """Bootstraps from the last backup of (s', a'), or from the network for pairs that were never tried.

    So new information travels back at once, before the network has learned it: each rollout is backed up from its last
    transition to its first, with every a' chosen anew, and each update stores its targets (Graph Backup, Jiang et al.
    2022). The network learns the values, and acts on them. Its predictions for pairs never tried bring optimism into
    the graph.

    A pair that has led to different places or rewards is left to the network, which averages; if every pair does, this
    is `Online`. If no observation repeats, it remembers only the next step of the same episode. It stores only targets
    whose a' the policy chooses anew, so prefer `on_policy` none; and pairs should be replayed often, so prefer
    `--replay Distinct`.

    Args:
        pairs: how many (observation, action) pairs it can hold. With many more, some are forgotten.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.encodings import OneHot
        >>> from uppertail.types import Transition
        >>> family, key = ut.Gaussian(), jax.random.key(0)
        >>> network = ut.PerAction(width=8).init(key, OneHot(5), num_actions=3, num_outputs=2)
        >>> target = ut.Graph(pairs=100)
        >>> state = target.init(network, family.terminal())
        >>> one = jnp.array([1])
        >>> steps = Transition(one, one, jnp.ones(1), jnp.array([True]), 2 * one, -one)  # from state 1 to an end, for 1
        >>> def back_up(state, key, step, predicted):  # one member, at an episode's end
        ...     backup = family.backup(family.terminal(), step.reward, jnp.array(0.9))
        ...     return jax.tree.map(lambda leaf: leaf[None], backup)
        >>> predicted = jax.vmap(jax.vmap(family.from_outputs))(network.outputs(one[0])[None])  # of one member
        >>> state = target.after_steps(state, key, steps, jax.tree.map(lambda leaf: leaf[None], predicted), back_up)
        >>> recalled = target.recall(state, one[0], predicted)
        >>> recalled.mean.tolist()  # what action 1 was seen to pay, and what the network says of the others
        [[0.0, 1.0, 0.0]]
    """

    pairs: int = 20_000

    def __post_init__(self) -> None:
        settle(self)
        if not 1 <= self.pairs < 2**28:
            raise InputError(f"pairs is {self.pairs}: use a whole number, 1 or more, below 2^28.")

    def init(self, online: Network, z: PyTree) -> PairTable:
        return empty(self.pairs, online.members or 1, z)

    def network(self, state: PairTable, online: AnyNetwork) -> AnyNetwork:
        del state
        return online

    def after_steps(
        self, state: PairTable, key: PRNGKeyArray, steps: Transition, predicted: PyTree, back_up: BackUp
    ) -> PairTable:
        """Backs up the newest transition first, so that one pass carries values from an episode's end to its start."""
        first_key, pass_key = jax.random.split(key)
        anew = steps._replace(next_action=jnp.full_like(steps.next_action, POLICY_CHOICE))
        count = steps.action.shape[0]
        nothing = empty(1, *_layout(state.z))  # an empty memory, for the first values of new pairs
        z = jax.vmap(back_up, in_axes=(None, 0, 0, 0))(nothing, jax.random.split(first_key, count), anew, predicted)
        table, places = enter(state, steps, z)

        def step(z: PyTree, row: tuple[Array, PRNGKeyArray, Transition, PyTree]) -> tuple[PyTree, None]:
            place, step_key, transition, predicted = row
            return write_places(z, place, back_up(table._replace(z=z), step_key, transition, predicted)), None

        rows = (places, jax.random.split(pass_key, count), anew, predicted)
        return table._replace(z=jax.lax.scan(step, table.z, rows, reverse=True)[0])

    def recall(self, state: PairTable, observation: Array, z: PyTree) -> PyTree:
        actions = jnp.arange(jax.tree.leaves(z)[0].shape[1])
        observations = jnp.broadcast_to(observation, (actions.shape[0], *observation.shape))
        places, stands = find(state, observations, actions)
        sure = stands & (state.status[places] == ALWAYS)

        def of_each(remembered: Array, said: Array) -> Array:
            known = jnp.moveaxis(remembered[places], 0, 1)  # [members, actions]
            return jnp.where(sure.reshape(1, -1, *(1,) * (said.ndim - 2)), known, said)

        return jax.tree.map(of_each, state.z, z)

    def after_backups(self, state: PairTable, transitions: Transition, targets: PyTree) -> PairTable:
        places, stands = find(state, transitions.observation, transitions.action)
        kept = jnp.where(stands & (transitions.next_action == POLICY_CHOICE), places, state.status.shape[0])
        return state._replace(z=write_places(state.z, kept, targets))


def _layout(stored: PyTree) -> tuple[int, PyTree]:
    """The number of members, and one distribution, in a table's arrays."""
    return jax.tree.leaves(stored)[0].shape[1], jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[2:], leaf.dtype), stored)
