"""Targets over the graph of the transitions seen so far; the network speaks where no arrow leads on."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.schema import settle
from uppertail.targets.base import AnyNetwork, BackedUp, Target
from uppertail.targets.pair_table import ALWAYS, PairTable, empty, entered, found, written
from uppertail.types import POLICY_CHOICE, PyTree, Transition


@dataclasses.dataclass(frozen=True)
class Graph(Target):
    """Bootstraps from what was backed up for (s', a') before; from the network for pairs never tried.

    So news need not wait until the network has learned it, step by step: each rollout is backed up from its last
    transition to its first, with every a' chosen anew, and each update keeps the targets that it works out (Graph
    Backup, Jiang et al. 2022). The network learns the values, and acts on them; what it says of pairs never tried is
    how optimism enters the graph.

    A pair that has led to different places or rewards is left to the network, which averages. So where every pair
    does, this is `Online`. Where no observation repeats, only the step taken next in the same episode is remembered.
    Only targets whose a' the policy chooses anew are kept: prefer `on_policy` none. Made for pairs that are replayed
    again and again: prefer `--replay Distinct`.

    Args:
        pairs: how many (observation, action) pairs it is made for. With many more, some are forgotten.
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

    def after_steps(self, state: PairTable, key: PRNGKeyArray, steps: Transition, backed_up: BackedUp) -> PairTable:
        """Backs up the newest transition first: one pass carries news from the end of an episode to its start."""
        first_key, pass_key = jax.random.split(key)
        anew = steps._replace(next_action=jnp.full_like(steps.next_action, POLICY_CHOICE))
        count = steps.action.shape[0]
        nothing = empty(1, *_layout(state.z))  # remembering nothing: for new pairs, until the pass has come to them
        z = jax.vmap(backed_up, in_axes=(None, 0, 0))(nothing, jax.random.split(first_key, count), anew)
        table, places = entered(state, steps, z)

        def step(z: PyTree, row: tuple[Array, PRNGKeyArray, Transition]) -> tuple[PyTree, None]:
            place, step_key, transition = row
            return written(z, place, backed_up(table._replace(z=z), step_key, transition)), None

        rows = (places, jax.random.split(pass_key, count), anew)
        return table._replace(z=jax.lax.scan(step, table.z, rows, reverse=True)[0])

    def recall(self, state: PairTable, observation: Array, z: PyTree) -> PyTree:
        actions = jnp.arange(jax.tree.leaves(z)[0].shape[1])
        observations = jnp.broadcast_to(observation, (actions.shape[0], *observation.shape))
        places, stands = found(state, observations, actions)
        sure = stands & (state.status[places] == ALWAYS)

        def of_each(remembered: Array, said: Array) -> Array:
            known = jnp.moveaxis(remembered[places], 0, 1)  # [members, actions]
            return jnp.where(sure.reshape(1, -1, *(1,) * (said.ndim - 2)), known, said)

        return jax.tree.map(of_each, state.z, z)

    def after_backups(self, state: PairTable, transitions: Transition, targets: PyTree) -> PairTable:
        places, stands = found(state, transitions.observation, transitions.action)
        kept = jnp.where(stands & (transitions.next_action == POLICY_CHOICE), places, state.status.shape[0])
        return state._replace(z=written(state.z, kept, targets))


def _layout(stored: PyTree) -> tuple[int, PyTree]:
    """The number of members, and one distribution, of what a table stores."""
    return jax.tree.leaves(stored)[0].shape[1], jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[2:], leaf.dtype), stored)
