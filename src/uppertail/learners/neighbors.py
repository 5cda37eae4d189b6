"""A learner that keeps transitions, and averages over the nearest ones."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.clocks import Clocks
from uppertail.learners.neighborhoods import BLOCK, OTHER, Neighborhoods, Neighbors, Places, Row
from uppertail.learners.regression import AveragedReturns, Averages, roots
from uppertail.schema import TRACED
from uppertail.types import Transition

SOLVE_AFTER = 0.02
"""All transitions are swept when this share of them is new, or when an episode has terminated."""

IDLE = 100
"""After so many transitions in a row that were all known, the reach shrinks: at this scale nothing is left to find."""

SHORTER, SHORTEST = 0.8, 1 / 8
"""What the reach is multiplied by then, and its least, as a share of the reach at first."""

COARSER, COARSEST = 1.25, 1.0
"""What the resolution is multiplied by when there is no room for another transition. From the coarsest one on, new
transitions that do not join are not kept: where ends are chance, ever coarser entries would make no room."""


class NeighborReturns(AveragedReturns):
    """Return distributions by the nearest transitions of each action."""

    places: Places
    values: Float[Array, "rows outputs"]  # coordinates of the mean target of each row's outcomes
    reach: Float[Array, ""]
    num_actions: int = eqx.field(static=True)
    neighbors: int = eqx.field(static=True)

    def place(self, observation: Float[Array, " entries"]) -> Float[Array, " entries"]:
        """The observation on the common scale."""
        return self.encoding.features(self.encoder, observation) / self.encoding.vector.kept.size**0.5

    def nearest(self, observation: Float[Array, " entries"]) -> Neighbors:
        return self.places.nearest(self.place(observation), self.num_actions, self.neighbors)

    def mixed(self, near: Neighbors) -> Float[Array, "*places actions outputs"]:
        """The coordinates of each action: those of the start, as far as nothing is near, and the neighbors' mean."""
        mean = jnp.einsum("...n,...no->...o", near.shares, self.values[near.row])
        left = near.unknown(self.reach)[..., None]
        return left * jnp.broadcast_to(self.start, mean.shape) + (1.0 - left) * mean

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        return self.mixed(self.nearest(observation))

    def evidence(self, observation: Array) -> Float[Array, " actions"]:
        return self.nearest(observation).unknown(self.reach)


class NeighborMemory(NamedTuple):
    """What the learner keeps beside places and values."""

    hoods: Neighborhoods
    resolution: Float[Array, ""]
    change: Float[Array, ""]  # the largest of a coordinate in the last sweep, over its tolerance
    total: Int[Array, ""]  # how many transitions there ever were
    swept: Int[Array, ""]  # how many there were at the last sweep
    idle: Int[Array, ""]  # how many of the latest were known
    clocks: Clocks


@dataclasses.dataclass(frozen=True)
class NeighborLearner(Averages):
    """Keeps transitions that differ, and sweeps over them when enough are new, or an episode has terminated."""

    neighbors: int
    reach: float = dataclasses.field(metadata=TRACED)
    resolution: float = dataclasses.field(metadata=TRACED)

    @property
    def room(self) -> int:
        """The most transitions: a whole number of blocks."""
        return -(-self.transitions // BLOCK) * BLOCK

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        rows, entries, none = self.room, observations.shape[1], jnp.zeros((), jnp.int32)
        network = NeighborReturns(
            places=Places.none(rows, entries),
            values=jnp.zeros((rows, self.start.shape[0])),
            reach=jnp.asarray(self.reach),
            num_actions=num_actions,
            neighbors=self.neighbors,
            **self.begun(key),
        )
        sizes = rows, entries, num_actions, self.neighbors, self.start.shape[0]
        hoods = Neighborhoods.none(*sizes, self.agent.has_masks)
        is_left_out = jnp.ones(entries, bool).at[network.encoding.vector.kept].set(False)
        clocks = Clocks(is_left_out, is_left_out)
        memory = NeighborMemory(hoods, jnp.asarray(self.resolution), jnp.zeros(()), none, none, none, clocks)
        return LearnerState(network.observe(observations), memory)

    def refitted(self, before: Learner, state: LearnerState) -> LearnerState:
        assert isinstance(before, NeighborLearner)
        network, memory = state
        values = self.in_this_unit(before, network.values)
        network = dataclasses.replace(network, start=self.start, values=values)
        return LearnerState(network, memory._replace(swept=jnp.zeros((), jnp.int32)))

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        count = fresh.action.shape[0]
        if 2 * count > self.room:
            raise InputError(
                f"A rollout has {count} transitions, and transitions is {self.transitions}: use "
                f"--learner.transitions {2 * count} or more, or fewer --rollout_steps."
            )
        network = state.network.observe(fresh.observation).observe(fresh.next_observation)
        rescaled = jnp.any(state.network.encoder.scale != network.encoder.scale)
        network, memory = self.with_room(network, state.memory, count, rescaled)
        clocks = memory.clocks.after(fresh)
        data = fresh.observation, fresh.action, fresh.reward, fresh.terminated, fresh.next_observation
        rows = Row(*data, weight=jnp.ones(count), next_mask=fresh.next_action_mask)

        def enter(carry: tuple[NeighborReturns, Neighborhoods], row: Row) -> tuple[tuple, None]:
            network, hoods = carry
            near = network.nearest(row.next_observation)
            value = self.backed_up(key, network, clocks, *jax.tree.map(lambda leaf: leaf[None], (near, row)))[0]
            return self.entered(network, hoods, row, near, value, memory.resolution), None

        (after, hoods), _ = jax.lax.scan(enter, (network, memory.hoods), rows)
        idle = jnp.where(after.places.size > network.places.size, 0, memory.idle + count)
        is_stuck = idle >= IDLE
        shorter = jnp.where(is_stuck, jnp.maximum(SHORTER * after.reach, SHORTEST * self.reach), after.reach)
        network = dataclasses.replace(after, reach=shorter)
        total = memory.total + count
        many = (total - memory.swept).astype(jnp.float32) >= SOLVE_AFTER * total.astype(jnp.float32)
        due = jnp.any(fresh.terminated) | many | is_stuck
        values, targets, change, sweeps = self.solve(key, network, hoods, clocks, memory.change, due)
        network = dataclasses.replace(network, values=values)
        swept, idle = jnp.where(due, total, memory.swept), jnp.where(is_stuck, 0, idle)
        hoods = hoods._replace(targets=targets)
        memory = NeighborMemory(hoods, memory.resolution, change, total, swept, idle, clocks)
        return LearnerState(network, memory), Metrics.of_sweeps(change, sweeps)

    def entered(
        self,
        network: NeighborReturns,
        hoods: Neighborhoods,
        row: Row,
        near: Neighbors,
        value: Float[Array, " outputs"],
        resolution: Float[Array, ""],
    ) -> tuple[NeighborReturns, Neighborhoods]:
        """All transitions with one more, which joins an earlier one if both begin and lead near it, with equal masks.

        One that leads elsewhere is another outcome of the earlier one.

        Args:
            network: the places and values so far.
            hoods: the transitions so far.
            row: the transition.
            near: the neighbors of where it leads, among those so far.
            value: the coordinates of its target.
            resolution: the distance within which it joins.
        """
        places, rows = network.places, hoods.rows
        place, next_place = network.place(row.observation), network.place(row.next_observation)
        nearest = places.nearest(place, network.num_actions, 1)
        twin, square = nearest.row[row.action, 0], nearest.square[row.action, 0]
        is_near = (square <= jnp.square(resolution)) & (rows.terminated[twin] == row.terminated)
        if row.next_mask is not None and rows.next_mask is not None:
            is_near &= jnp.all(rows.next_mask[twin] == row.next_mask)
        outcomes = hoods.outcomes[twin]
        apart = jnp.sum(jnp.square(hoods.next_place[outcomes] - next_place[None]), axis=1)
        apart = jnp.where(outcomes >= 0, apart, jnp.inf)
        is_other = is_near & ~row.terminated & (jnp.min(apart) > jnp.square(OTHER * resolution))
        is_other &= (outcomes[-1] < 0) & (places.size < self.room)
        joins, twin, first = is_near & ~is_other, outcomes[jnp.argmin(apart)], twin
        weight = rows.weight[twin] + row.weight
        reward = rows.reward[twin] + (row.reward - rows.reward[twin]) * row.weight / weight
        old, new = jnp.where(joins, twin, self.room), jnp.where(joins, self.room, places.size)  # beyond the last: none
        rows: Row = jax.tree.map(lambda leaf, one: leaf.at[new].set(one, mode="drop"), rows, row)
        rows = rows._replace(
            reward=rows.reward.at[old].set(reward, mode="drop"), weight=rows.weight.at[old].set(weight, mode="drop")
        )
        places = Places(
            places.place.at[new].set(place, mode="drop"),
            places.action.at[new].set(jnp.where(is_other, -1, row.action), mode="drop"),
            places.size + (~joins & (new < self.room)).astype(jnp.int32),
        )
        near = jax.tree.map(lambda leaf, one: leaf.at[new].set(one, mode="drop"), hoods.near, near)
        owner = jnp.where(is_other, first, self.room)
        outcomes = hoods.outcomes.at[owner, jnp.argmax(outcomes < 0)].set(places.size - 1, mode="drop")
        next_places = hoods.next_place.at[new].set(next_place, mode="drop")
        hoods = Neighborhoods(rows, next_places, near, outcomes, hoods.targets.at[new].set(value, mode="drop"))
        hoods = hoods.with_neighbor(jnp.where(is_other, self.room, new), place, row.action, places.blocks)
        values = network.values.at[new].set(value, mode="drop")
        return dataclasses.replace(network, places=places, values=values), hoods

    def with_room(
        self, network: NeighborReturns, memory: NeighborMemory, count: int, again: Bool[Array, ""]
    ) -> tuple[NeighborReturns, NeighborMemory]:
        """All transitions entered again if the scale has changed, and more coarsely while there is no room for more."""

        def is_due(carry: tuple[Array, NeighborReturns, Neighborhoods, Array]) -> Bool[Array, ""]:
            return carry[0] | ((carry[1].places.size + count > self.room) & (carry[3] < COARSEST))

        def renewed(carry: tuple[Array, NeighborReturns, Neighborhoods, Array]) -> tuple:
            again, network, hoods, resolution = carry
            resolution = jnp.where(again, resolution, COARSER * resolution)

            def enter(number: Int[Array, ""], after: tuple[NeighborReturns, Neighborhoods]) -> tuple:
                row = jax.tree.map(lambda leaf: leaf[number], hoods.rows)
                near = after[0].nearest(row.next_observation)
                return self.entered(*after, row, near, hoods.targets[number], resolution)

            entries, actions = network.places.place.shape[1], network.num_actions
            sizes = self.room, entries, actions, self.neighbors, hoods.targets.shape[1]
            nothing = Neighborhoods.none(*sizes, self.agent.has_masks)
            empty = dataclasses.replace(network, places=Places.none(self.room, entries))
            after = jax.lax.fori_loop(0, network.places.size, enter, (empty, nothing))
            return jnp.zeros((), bool), *after, resolution

        _, network, hoods, resolution = jax.lax.while_loop(
            is_due, renewed, (again & (network.places.size > 0), network, memory.hoods, memory.resolution)
        )
        return network, memory._replace(hoods=hoods, resolution=resolution)

    def backed_up(
        self, key: PRNGKeyArray, network: NeighborReturns, clocks: Clocks, near: Neighbors, rows: Row
    ) -> Float[Array, "rows outputs"]:
        """The coordinates of the targets of some transitions, by the neighbors of where they lead.

        A time limit says nothing of the place where it is met, so what follows counts there as it does anywhere.
        """
        terminated = rows.terminated & ~clocks.are_over(network.encoder.bounds, rows.next_observation)
        return self.targets(key, network.mixed(near), rows.reward, terminated, rows.next_mask)

    def solve(
        self,
        key: PRNGKeyArray,
        network: NeighborReturns,
        hoods: Neighborhoods,
        clocks: Clocks,
        change: Float[Array, ""],
        due: Bool[Array, ""],
    ) -> tuple[Float[Array, "rows outputs"], Float[Array, "rows outputs"], Float[Array, ""], Int[Array, ""]]:
        """Values and targets after sweeps over all, the newest first, with the change and number of sweeps."""
        blocks, size = network.places.blocks, network.places.size

        def sweep(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            def back_up(number: Int[Array, ""], carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
                values, targets, change = carry
                number = blocks - 1 - number
                block, first = hoods.block(number), number * BLOCK
                now = dataclasses.replace(network, values=values)
                fresh = self.backed_up(key, now, clocks, block.near, block.rows)
                targets = jax.lax.dynamic_update_slice_in_dim(targets, fresh, first, 0)
                after = hoods._replace(targets=targets).means(block.outcomes)
                before = jax.lax.dynamic_slice_in_dim(values, first, BLOCK)
                moved = jnp.abs(roots(self.powers, after) - roots(self.powers, before)) / self.largest_change
                there = (first + jnp.arange(BLOCK) < size)[:, None]
                change = jnp.maximum(change, jnp.max(jnp.where(there, moved, 0.0)))
                return jax.lax.dynamic_update_slice_in_dim(values, after, first, 0), targets, change

            *after, change = jax.lax.fori_loop(0, blocks, back_up, (*carry[:2], jnp.zeros(())))
            return *after, change, carry[3] + 1

        def goes_on(carry: tuple[Array, Array, Array, Array]) -> Bool[Array, ""]:
            return (carry[2] > 1) & (carry[3] < self.sweeps)

        begun = network.values, hoods.targets, jnp.where(due, jnp.inf, 0.0), jnp.zeros((), jnp.int32)
        values, targets, now, sweeps = jax.lax.while_loop(goes_on, sweep, begun)
        return values, targets, jnp.where(due, now, change), sweeps
