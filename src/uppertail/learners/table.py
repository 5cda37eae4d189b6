"""Averages of backed-up targets in a table of states and actions, beside the wide start."""

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import TINY, Agent, where
from uppertail.learners.base import Learner, LearnerState, Metrics
from uppertail.learners.coordinates import Coordinates
from uppertail.learners.known import known_returns
from uppertail.learners.novelty import LEAVING, UNKNOWN, Novelty, new_to_its_pair
from uppertail.learners.outcomes import NONE, Outcomes
from uppertail.learners.table_state import Sums, Sweep, TableMemory, TableReturns
from uppertail.masks import ActionMask, masked
from uppertail.networks import Network
from uppertail.policies.base import Posterior
from uppertail.schema import TRACED
from uppertail.types import POLICY_CHOICE, PyTree, Transition

LANES = 128
"""Pairs that are backed up at once in a sweep: the newest first, each with the values of those that ended before."""

NOISE_COUNT = 0.3
"""How many transitions of a pair its prior counts as, in the estimate of the pair's noise: the noise of the noisiest
pair."""

CHANCE_COUNT = 1.0
"""The same where chance is known to be at work."""

FIRST_NOISE = 27.0
"""The prior of the noise where chance is known to be at work and none was seen so far, in variances of the start. After
n equal outcomes two standard errors of a known range's Gaussian are then 3 / n of it: an outcome with a chance of 3 / n
is missed n times with a chance of 5% (the rule of three)."""

MEASURED_STD = 0.375
"""The standard deviation of the start where chance is at work and the range of returns was measured, in ranges: its
upper bound, two of them above the middle, is a quarter of the range above the highest return."""

SOLVE_AFTER = 0.002
"""All pairs are swept when there is a new outcome, or when this share of all transitions is new."""

RENEW_AFTER = 0.01
"""A draw from the posterior is renewed when this share of all transitions is new."""

SMALL = 2**14
"""The least room for outcomes, if there can be so many."""

EXACT = 1e-3
"""What the tolerance of sweeps is multiplied by in a table without chance."""

ROUNDED = 1e-6
"""The least change of a probability that is no rounding error of a backup."""

CERTAIN = 1e-9
"""The largest lambda at which one visit leaves nothing of the wide start."""

MOST = 1.0
"""The largest lambda of the spread that noise can lead to."""

ARRIVALS = 3
"""Arrivals in a state that was never left, after which time is taken to run out there: nothing is hoped for beyond."""

RENEW = 2  # folded into the key of a learning step to renew a draw


@dataclasses.dataclass(frozen=True)
class TableLearner(Learner):
    """z(s, a) is the mean of the start, counted lambda times, and of the targets of all transitions from (s, a).

    A policy may ask for draws from the posterior. A draw is a plan of its own, which backs up its own values: an unseen
    pair has the upper bound of the start, others an error about their mean target. This is randomized value iteration
    (RLSVI, Osband et al. 2016) with an optimistic start.

    Its settings are those of `LeastSquares`, and none of them is open.
    """

    agent: Agent
    spread_prior_count: float = dataclasses.field(metadata=TRACED)
    mean_prior_count: float = dataclasses.field(metadata=TRACED)
    sweeps: int
    tolerance: float = dataclasses.field(metadata=TRACED)
    outcomes_per_pair: int
    stochastic: bool

    @property
    def can_refit(self) -> bool:
        return True

    @property
    def coordinates(self) -> Coordinates:
        """What is averaged."""
        return Coordinates(self.agent.family)

    @property
    def start(self) -> Float[Array, " outputs"]:
        """y0: the coordinates of the wide start; where there is chance, it lies in the middle of the returns."""
        return self.coordinates.of(self.agent.family.centered(self.wide) if self.stochastic else self.wide)

    @property
    def wide(self) -> PyTree:
        """The wide start before it is moved."""
        family = self.agent.family
        return family.from_outputs(jnp.zeros(family.num_outputs))

    @property
    def start_square(self) -> Float[Array, ""]:
        """tau^2, the second moment of the start before it is moved: a point mass has no spread, but may start high."""
        family = self.agent.family
        return family.mean(self.wide) ** 2 + family.std(self.wide) ** 2

    @property
    def largest_change(self) -> Float[Array, ""]:
        """The change of a coordinate below which sweeps end, in units of return or of probability."""
        largest = jnp.max(jnp.abs(self.coordinates.roots(self.start)))
        return self.tolerance * jnp.where(largest > 0, largest, 1.0)  # a point mass may start at 0

    @property
    def asked(self) -> Posterior:
        """The draws that the policy asks for; none by default."""
        return self.agent.policy.posterior or Posterior(0, 0.0, 0.0)

    @property
    def exactness(self) -> float:
        """What the tolerance is multiplied by where nothing is left to chance: sweeps come to an end there.

        The range of returns may be far larger than the reward that matters. A value without a spread is another case:
        it keeps the optimism of its loops, which a sweep lowers by the discount only.
        """
        return EXACT if self.agent.family.has_spread and not self.stochastic else 1.0

    @property
    def bound(self) -> Float[Array, ""]:
        """The value in each draw of a pair that was never seen: mean + c * std of the start."""
        family, start = self.agent.family, self.coordinates.distribution(self.start)
        return family.mean(start) + self.asked.c * family.std(start)

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        encoding, start, draws = self.agent.encoding, self.start, self.asked.draws
        states, pairs = encoding.num_features, encoding.num_features * num_actions
        masks = jnp.zeros((states, num_actions), bool) if self.agent.has_masks else None
        network = TableReturns(
            values=jnp.broadcast_to(start, (states, num_actions, start.shape[0])),
            counts=jnp.zeros((states, num_actions)),
            priors=jnp.full((states, num_actions), self.spread_prior_count),
            plans=jnp.broadcast_to(self.bound, (states, num_actions, draws)),
            replaced=jnp.zeros((), jnp.int32),
            encoder=encoding.init(key),
            encoding=encoding,
            masks=masks,
        )
        possible = 2 * states * pairs  # each leads to a state, and ends there or not
        most = min(possible, max(self.outcomes_per_pair * pairs, SMALL))
        error_key = jax.random.fold_in(key, RENEW)
        errors = jax.random.normal(error_key, (draws, pairs)) if self.stochastic else jnp.zeros((draws, pairs))
        outcomes, oldest = Outcomes.none(pairs, most), jnp.zeros((), jnp.int32)
        none, arrivals = jnp.zeros(()), jnp.zeros(states, jnp.int32)
        no = jnp.zeros((), bool)
        memory = TableMemory(outcomes, Novelty.none(states), none, none, errors, oldest, arrivals, no, no, masks)
        return LearnerState(network.observe(observations), memory)

    def played(self, state: LearnerState) -> Network:
        """The table with the means of the best plan through what was tried, below the upper bounds that it has.

        What was not tried is expected to earn a little less than all that was, so that the greedy policy leaves it. Of
        a policy that does not end as the greedy one, such as a uniform one, the table keeps the mean.
        """
        network, memory, coordinates = state.network, state.memory, self.coordinates
        ends_greedy = self.agent.policy.explores_by_spread or self.agent.policy.posterior is not None
        if not ends_greedy or not coordinates.is_mean.any():
            return network
        tried, out = network.counts > 0, self.out_of_time(network.counts, memory.arrivals)
        tolerance = self.largest_change * self.exactness
        found = known_returns(memory.outcomes, tried, out, self.agent.discount, tolerance)

        def known(value: Float[Array, " outputs"], tried: Array, found: Array) -> Array:
            z = coordinates.distribution(value)
            mean = jnp.where(tried, found, jnp.minimum(self.agent.family.mean(z), found))
            return coordinates.of(self.agent.with_mean(z, mean))

        return dataclasses.replace(network, values=jax.vmap(jax.vmap(known))(network.values, tried, found))

    def without_data(self, state: LearnerState) -> LearnerState:
        return state

    def refitted(self, before: Learner, state: LearnerState) -> LearnerState:
        assert isinstance(before, TableLearner)
        network, memory = state
        seen, start = (network.counts > 0)[:, :, None], self.start
        untried, plans = self.untried(network.counts, memory.arrivals)

        def in_this_unit(value: Float[Array, " outputs"]) -> Float[Array, " outputs"]:
            return self.certain(before.coordinates.mean(value), start)

        values = jnp.where(seen, jax.vmap(jax.vmap(in_this_unit))(network.values), untried[:, None])
        plans = jnp.where(seen, network.plans, plans[:, None, None])
        network = dataclasses.replace(network, values=values, plans=plans)
        return LearnerState(network, memory._replace(change=jnp.full((), jnp.inf)))

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        del iteration
        network, memory = state.network.observe(fresh.observation).observe(fresh.next_observation), state.memory
        index = jax.vmap(network.encoding.index, in_axes=(None, 0))
        states, nexts = index(network.encoder, fresh.observation), index(network.encoder, fresh.next_observation)
        pairs = states * network.values.shape[1] + fresh.action
        rows = pairs, nexts, fresh.reward, fresh.terminated
        seen = memory.outcomes, memory.novelty, network.counts
        (outcomes, novelty, counts), _ = jax.lax.scan(functools.partial(recorded, self.stochastic), seen, rows)
        total, earlier = jnp.sum(counts), jnp.sum(counts) - pairs.shape[0]
        is_noisy = (memory.noise > 0) | self.stochastic
        again = is_noisy & passes_power(RENEW_AFTER, earlier, total) & bool(self.asked.draws)
        due = (outcomes.size > memory.outcomes.size) | passes_power(SOLVE_AFTER, earlier, total) | again
        is_exact = (memory.noise == 0) & (self.exactness < 1)
        due |= (memory.change > 1) & (is_exact | jnp.isinf(memory.change))
        lost = outcomes.pairs > memory.outcomes.pairs  # a pair that was seen first has lost its wide start
        places, goes_on = jnp.concatenate([states, nexts]), (~fresh.terminated).astype(jnp.int32)
        arrivals = memory.arrivals.at[nexts].add(goes_on)
        tables = self.hoped_for(network, places, counts, arrivals)
        masks = memory.masks
        if masks is not None:
            masks = masks.at[nexts].max(fresh.next_action_mask)
        novelty = novelty.estimated() if self.stochastic else novelty
        earned = memory.earned | jnp.any(fresh.reward != 0)
        memory = memory._replace(outcomes=outcomes, novelty=novelty, arrivals=arrivals, earned=earned, masks=masks)
        memory = renewed(jax.random.fold_in(key, RENEW), memory, again)
        before = Sweep(*tables, network.priors, memory.noise, memory.change, jnp.zeros((), jnp.int32))
        swept = self.solve(key, before, memory, pairs, due, lost)
        network = dataclasses.replace(network, counts=counts, replaced=outcomes.replaced, masks=masks, **swept.tables)
        memory = memory._replace(noise=swept.noise, change=swept.change)
        memory = self.doubted(memory, network, places)
        return LearnerState(network, memory), Metrics.of_sweeps(swept.change, swept.number)

    def doubted(self, memory: TableMemory, network: TableReturns, places: Int[Array, " places"]) -> TableMemory:
        """The memory, which doubts that outcomes repeat once nothing is hoped for and nothing was earned.

        All was tried then, so what is earned is left to chance. The first reward ends the doubt.
        """
        is_spread = self.coordinates.is_spread
        if self.stochastic or not (self.agent.policy.explores_by_spread and is_spread.any()):
            return memory
        roots, end = self.coordinates.roots, self.coordinates.of(self.agent.family.terminal())
        spread = jnp.sum(roots(network.values[places]) - roots(end)[None, None], axis=-1, where=is_spread)
        hopeless = jnp.max(masked(spread, memory.allowed(places))) <= self.largest_change * self.exactness
        doubts = (memory.doubts | hopeless) & ~memory.earned
        noise = jnp.where(doubts, FIRST_NOISE * self.start_square, memory.noise)
        change = jnp.where(doubts & ~memory.doubts, jnp.inf, memory.change)
        return memory._replace(doubts=doubts, noise=noise, change=change)

    def out_of_time(
        self, counts: Float[Array, "states actions"], arrivals: Int[Array, " states"]
    ) -> Bool[Array, " states"]:
        """Where episodes are cut each time: states that were often reached and never left."""
        return (arrivals >= ARRIVALS) & (jnp.sum(counts, axis=1) == 0)

    def untried(
        self, counts: Float[Array, "states actions"], arrivals: Int[Array, " states"]
    ) -> tuple[Float[Array, "states outputs"], Float[Array, " states"]]:
        """The coordinates of pairs that were not tried, by their states, and their values in each draw: the wide start.

        Where time runs out, it is 0 as at an end. No episode gets beyond such a state, so it would be hoped for for
        ever.
        """
        out, start = self.out_of_time(counts, arrivals), self.start
        end = self.coordinates.of(self.agent.family.terminal())
        return jnp.where(out[:, None], end[None], start[None]), jnp.where(out, 0.0, self.bound)

    def hoped_for(
        self,
        network: TableReturns,
        places: Int[Array, " places"],
        counts: Float[Array, "states actions"],
        arrivals: Int[Array, " states"],
    ) -> tuple[Float[Array, "states actions outputs"], Float[Array, "states actions draws"]]:
        """Values and plans, in which pairs of these places that were not tried are worth what is hoped for now."""
        values, plans = self.untried(counts[places], arrivals[places])
        columns = jnp.broadcast_to(jnp.arange(counts.shape[1])[None], (places.shape[0], counts.shape[1]))
        rows = jnp.where(counts[places] == 0, places[:, None], counts.shape[0])  # those that were tried stay
        return (
            network.values.at[rows, columns].set(values[:, None], mode="drop"),
            network.plans.at[rows, columns].set(plans[:, None, None], mode="drop"),
        )

    def solve(
        self,
        key: PRNGKeyArray,
        before: Sweep,
        memory: TableMemory,
        fresh: Int[Array, " fresh"],
        due: Bool[Array, ""],
        lost: Bool[Array, ""],
    ) -> Sweep:
        """Backs up the fresh pairs and, if it is due and one changes, sweeps over all pairs until none does.

        Args:
            key: randomness of the policy's next actions.
            before: the values before.
            memory: all outcomes that were seen.
            fresh: the pairs of the rollout.
            due: whether to sweep.
            lost: whether a pair lost its wide start, which loops may still live on.
        """
        outcomes = memory.outcomes
        is_certain = (memory.noise == 0) & (not self.stochastic) & (self.spread_prior_count <= CERTAIN)

        def sweep(before: Sweep) -> Sweep:
            before = self.without_idle_loops(key, before, memory, lost & is_certain)
            least = jnp.where(memory.doubts, FIRST_NOISE * self.start_square, 0.0)
            nothing = before._replace(noise=least, change=jnp.zeros(()), number=before.number + 1)
            return self.back_up(key, nothing, before.noise, memory, outcomes.order, outcomes.pairs)

        def goes_on(sweep: Sweep) -> Bool[Array, ""]:
            return due & (sweep.change > 1) & (sweep.number < self.sweeps)

        now = self.back_up(key, before, before.noise, memory, fresh, jnp.asarray(fresh.shape[0], jnp.int32))
        now = now._replace(change=jnp.where(lost, jnp.inf, now.change))
        return jax.lax.while_loop(goes_on, sweep, now)

    def certain(self, mean: Float[Array, ""], before: Float[Array, " outputs"]) -> Float[Array, " outputs"]:
        """The coordinates of a return that is certain; a family whose only coordinate is a value keeps it."""
        family = self.agent.family
        if not family.has_spread:
            return before
        point = family.backup(family.terminal(), mean, jnp.zeros(()))
        narrowest = self.coordinates.distribution(jnp.zeros_like(before))
        narrowest = family.backup(narrowest, mean, jnp.asarray(self.agent.discount))
        return jnp.where(self.coordinates.is_spread, self.coordinates.of(narrowest), self.coordinates.of(point))

    def without_idle_loops(self, key: PRNGKeyArray, sweep: Sweep, memory: TableMemory, due: Bool[Array, ""]) -> Sweep:
        """The values, if it is due, with no spread at pairs from which the policy walks in circles.

        The states of a loop hold up each other's optimism, and a sweep lowers it by the discount only. So if all that
        follows from a pair is certain and leads neither to something unknown nor to an end, its return is its mean.
        """
        (states, actions), outcomes = sweep.priors.shape, memory.outcomes
        lanes = min(LANES, states * actions)

        def over_seen(part: Callable[[Array, Array, PyTree], PyTree], carry: PyTree) -> PyTree:
            """Folds over all pairs that were seen, in lanes; a lane without one has the state beyond the last."""

            def lane(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
                place = carry[0] + jnp.arange(lanes)
                state, action = jnp.divmod(outcomes.order[place], actions)
                return carry[0] + lanes, part(jnp.where(place < outcomes.pairs, state, states), action, carry[1])

            first = jnp.zeros((), jnp.int32), carry
            return jax.lax.while_loop(lambda carry: carry[0] < outcomes.pairs, lane, first)[1]

        def following(state: Array, action: Array) -> Int[Array, "..."]:
            """Where pairs always led so far; beyond the last state: it is unknown, several ones, or an end."""
            newest = outcomes.newest[state * actions + action]
            alone = (state < states) & (newest != NONE) & (outcomes.earlier[newest] == NONE)
            return jnp.where(alone & ~outcomes.terminated[newest], outcomes.next_state[newest], states)

        def cut(carry: tuple[Array, Sweep]) -> tuple[Array, Sweep]:
            sweep = carry[1]

            def chosen(state: Array, _: Array, after: Array) -> Array:
                """Where the policy, and the best action of each draw, lead."""
                z: PyTree = jax.vmap(jax.vmap(self.coordinates.distribution))(sweep.values[state])
                allowed = memory.allowed(state)
                policy = jax.vmap(lambda z, mask: self.agent.choice(key, z, mask))(z, allowed)
                best = jnp.argmax(masked(sweep.plans[state], allowed), axis=1)
                choices = jnp.vstack([policy, best.T])
                return after.at[:, state].set(following(jnp.broadcast_to(state, choices.shape), choices), mode="drop")

            def further(state: Array, _: Array, after: Array) -> Array:
                """Where at least twice as many steps lead."""
                return after.at[:, state].set(jnp.take_along_axis(after, after[:, state], axis=1), mode="drop")

            def narrowed(state: Array, action: Array, sweep: Sweep) -> Sweep:
                """The values, with no spread where the pair is idle."""
                idle = after[:, following(state, action)] != states
                before, plans = sweep.values[state, action], sweep.plans[state, action]
                mean = jax.vmap(self.coordinates.mean)(before)
                values = jnp.where(idle[0, :, None], jax.vmap(self.certain)(mean, before), before)
                plans = jnp.where(idle[1:].T, mean[:, None], plans)
                return sweep._replace(
                    values=sweep.values.at[state, action].set(values, mode="drop"),
                    plans=sweep.plans.at[state, action].set(plans, mode="drop"),
                )

            after = over_seen(chosen, jnp.full((1 + sweep.plans.shape[2], states + 1), states))
            rounds = math.ceil(math.log2(states + 1))
            after = jax.lax.fori_loop(0, rounds, lambda _, after: over_seen(further, after), after)
            return jnp.zeros((), bool), over_seen(narrowed, sweep)

        return jax.lax.while_loop(lambda carry: carry[0], cut, (due, sweep))[1]

    def back_up(
        self,
        key: PRNGKeyArray,
        sweep: Sweep,
        noise: Float[Array, ""],
        memory: TableMemory,
        pairs: Int[Array, " pairs"],
        count: Int[Array, ""],
    ) -> Sweep:
        """The values after the first `count` pairs took the mean of their start and of the targets of their outcomes.

        The last pair is the first to do so. Pairs are backed up side by side in lanes. Each lane adds one outcome at a
        time to the sums of its pair, and goes on to the next pair after the last: few lanes wait for long lists.

        Args:
            key: randomness of the policy's next actions.
            sweep: the values before, and noise and change of the sweep so far.
            noise: that of the noisiest pair, by the sweep before.
            memory: all outcomes that were seen, and the errors of the draws.
            pairs: the pairs.
            count: how many there are.
        """
        outcomes, lanes = memory.outcomes, min(LANES, pairs.shape[0])
        outputs, draws = sweep.values.shape[-1], sweep.plans.shape[-1]
        nothing = Sums(*(jnp.zeros((lanes, *size)) for size in ((), (), (outputs,), (), (), (draws,))))

        def begun(place: Int[Array, " lanes"]) -> tuple[Int[Array, " lanes"], Int[Array, " lanes"], Sums]:
            """The pairs at these places, their newest outcomes, and no targets yet; NONE beyond the last pair."""
            there = jnp.where(place < count, pairs[jnp.maximum(count - 1 - place, 0)], NONE)
            return there, jnp.where(there == NONE, NONE, outcomes.newest[there]), nothing

        def step(
            carry: tuple[tuple[Array, Array, Sums], Array, Sweep],
        ) -> tuple[tuple[Array, Array, Sums], Array, Sweep]:
            (pairs, slots, sums), taken, sweep = carry
            sums, earlier = self.added(key, sweep, memory, pairs, slots, sums), outcomes.earlier[slots]
            ends = (slots == NONE) | (earlier == NONE)
            sweep = self.settled(sweep, noise, memory, jnp.where(ends, pairs, NONE), sums)
            following = begun(taken + jnp.cumsum(ends, dtype=jnp.int32) - 1)
            going_on = jax.tree.map(
                lambda new, old: jnp.where(jnp.expand_dims(ends, range(1, old.ndim)), new, old),
                following,
                (pairs, earlier, sums),
            )
            return going_on, taken + jnp.sum(ends, dtype=jnp.int32), sweep

        first = begun(jnp.arange(lanes, dtype=jnp.int32)), jnp.asarray(lanes, jnp.int32), sweep
        return jax.lax.while_loop(lambda carry: jnp.any(carry[0][0] != NONE), step, first)[2]

    def added(
        self,
        key: PRNGKeyArray,
        sweep: Sweep,
        memory: TableMemory,
        pairs: Int[Array, " lanes"],
        slots: Int[Array, " lanes"],
        sums: Sums,
    ) -> Sums:
        """The sums of each lane's pair with the targets of all transitions of one more outcome."""
        outcomes = memory.outcomes
        visits, reward, reward_squares = jnp.where((slots != NONE)[:, None], outcomes.seen[slots], 0.0).T
        terminated, after = outcomes.terminated[slots], outcomes.next_state[slots]
        allowed = memory.allowed(after)
        targets = self.targets(key, sweep.values[after], reward, terminated, allowed)
        mean = jax.vmap(self.coordinates.mean)(targets)
        best = jnp.where(terminated[:, None], 0.0, jnp.max(masked(sweep.plans[after], allowed), axis=1))
        plans = reward[:, None] + self.agent.discount * best
        both, error = sums.visits + visits, mean - sums.mean
        share = visits / jnp.maximum(both, 1.0)
        leaves = terminated | (after != pairs // sweep.values.shape[1])
        return Sums(
            visits=both,
            left=sums.left + jnp.where(leaves, visits, 0.0),
            targets=sums.targets + visits[:, None] * targets,
            mean=sums.mean + share * error,
            squares=sums.squares + reward_squares + error**2 * sums.visits * share,
            plans=sums.plans + visits[:, None] * plans,
        )

    def prior_counts(self, noise: Float[Array, "*pairs"]) -> Float[Array, "*pairs outputs"]:
        """lambda = sigma^2 / tau^2 of each coordinate, by the variance of the targets in units of return squared."""
        least = self.spread_prior_count
        spread = jnp.clip(noise / jnp.maximum(self.start_square, TINY), least, jnp.maximum(MOST, least))
        return jnp.stack([jnp.where(each, self.mean_prior_count, spread) for each in self.coordinates.is_mean], axis=-1)

    def of_waits(self, memory: TableMemory, sums: Sums) -> Float[Array, "lanes outputs"]:
        """The least lambda of a spread beside a mean, of pairs that only led back to their own states; 0 of all else.

        With a chance q such a pair leads to something as wide as the start, so that sigma^2 = q tau^2 in each step. It
        makes the same error in each step of its loop: errors add up to 1 / (1 - discount) of one, where variances would
        add up to 1 / (1 - discount^2) of one. So lambda = q (1 + discount) / (1 - discount). What is hoped for is as
        far away as the start: the square of the difference of the means is a part of tau^2, as in any mixture. A value
        without a spread would take the hope for what is earned.
        """
        waits, again = (sums.left == 0) & self.stochastic, (1 + self.agent.discount) / (1 - self.agent.discount)
        least = jnp.where(waits, memory.novelty.of(LEAVING, sums.visits) * again, 0.0)
        return jnp.where(self.coordinates.is_spread, least[:, None], 0.0)

    def targets(
        self,
        key: PRNGKeyArray,
        next_values: Float[Array, "batch actions outputs"],
        reward: Float[Array, " batch"],
        terminated: Bool[Array, " batch"],
        next_mask: ActionMask = None,
    ) -> Float[Array, "batch outputs"]:
        """y = r + discount * Z(s', a') in coordinates, for a batch of transitions, with the agent's bootstrap.

        All states share the key: a policy that draws makes the same draws everywhere, so that sweeps can converge.
        """
        agent, none = self.agent, jnp.zeros(reward.shape, jnp.int32)
        unknown = jnp.full_like(none, POLICY_CHOICE)
        transitions = Transition(none, none, reward, terminated, none, unknown, next_action_mask=next_mask)
        z_next: PyTree = jax.vmap(jax.vmap(self.coordinates.distribution))(next_values)

        def of_one(z_next: PyTree, transition: Transition) -> Float[Array, " outputs"]:
            bootstrap = agent.bootstrap(key, z_next, transition)
            bootstrap = where(transition.terminated, agent.family.terminal(), bootstrap)
            return self.coordinates.of(agent.back_up(bootstrap, transition))

        return jax.vmap(of_one)(z_next, transitions)

    def settled(
        self, sweep: Sweep, noise: Float[Array, ""], memory: TableMemory, pairs: Int[Array, " lanes"], sums: Sums
    ) -> Sweep:
        """The values after these pairs, all at once, took the mean of their start and of these targets."""
        there, here, visits = pairs != NONE, jnp.divmod(jnp.maximum(pairs, 0), sweep.values.shape[1]), sums.visits
        known = CHANCE_COUNT if self.stochastic else NOISE_COUNT
        unit = self.start_square if self.stochastic else 0.0
        noise = jnp.where(noise > 0, noise, FIRST_NOISE * unit)
        variance = (sums.squares + known * noise) / (jnp.maximum(visits - 1.0, 0.0) + known)
        variance = jnp.maximum(variance, memory.novelty.of(UNKNOWN, visits) * unit)
        waits = self.of_waits(memory, sums)
        away = self.coordinates.mean(self.start) - sums.mean[:, None]
        priors = jnp.maximum(self.prior_counts(variance), waits)
        # what is left of the start is a sum of its own: 32 bits would lose a small target beside it
        start = self.start[None] + jnp.where(waits > 0, away**2, 0.0)
        values = (sums.targets + priors * start) / (visits[:, None] + priors)
        least, errors = self.spread_prior_count, memory.errors[:, jnp.maximum(pairs, 0)].T
        count = (visits + least)[:, None]
        error = self.asked.scale * jnp.sqrt(jnp.minimum(variance, self.start_square)[:, None] / count)
        plans = jnp.minimum((sums.plans + least * self.bound) / count + errors * error, self.bound)
        roots = self.coordinates.roots
        moved = roots(values) - roots(sweep.values[here]), plans - sweep.plans[here]
        exact = self.largest_change * self.exactness
        if not self.coordinates.is_mean.any():  # probabilities, which 32 bits round
            exact = jnp.maximum(exact, jnp.minimum(ROUNDED, self.largest_change))
        change, still = sweep.change, jnp.where(noise > 0, self.largest_change, exact)
        for each in moved:
            largest = jnp.where(there[:, None], jnp.abs(each) / still, 0.0)
            change = jnp.maximum(change, jnp.max(largest, initial=0.0))
        noisiest = jnp.max(jnp.where(there, sums.squares / jnp.maximum(visits, 1.0), 0.0))
        read = change != -1.0  # always: XLA would copy the values if it did not see that they are read before
        rows = jnp.where(there & read, here[0], sweep.values.shape[0]), here[1]
        return Sweep(
            sweep.values.at[rows].set(values, mode="drop"),
            sweep.plans.at[rows].set(plans, mode="drop"),
            sweep.priors.at[rows].set(priors[:, -1], mode="drop"),
            jnp.maximum(sweep.noise, noisiest),
            change,
            sweep.number,
        )


def recorded(
    stochastic: bool,
    seen: tuple[Outcomes, Novelty, Float[Array, "states actions"]],
    row: tuple[Array, Array, Array, Array],
) -> tuple[tuple[Outcomes, Novelty, Float[Array, "states actions"]], None]:
    """Outcomes, their novelty and the visits of pairs after one more transition: its pair, where it led, and so on.

    Where nothing is left to chance, novelty is not counted.
    """
    outcomes, novelty, counts = seen
    (pair, next_state, _, terminated), after = row, outcomes.add(*row)
    state, action = jnp.divmod(pair, counts.shape[1])
    # a single row would be written into a copy, as `replay.base.written` says
    counts = counts.at[jnp.tile(state, 2), jnp.tile(action, 2)].add(jnp.array([1.0, 0.0]))
    if stochastic:
        is_new, stayed = new_to_its_pair(outcomes, after), outcomes.only_back(pair, state)
        novelty = novelty.add(counts[state, action] - 1.0, state, next_state, terminated, is_new, stayed)
    return (after, novelty, counts), None


def renewed(key: PRNGKeyArray, memory: TableMemory, due: Bool[Array, ""]) -> TableMemory:
    """The memory with new errors of the oldest draw, if due. A loop: many seeds do both branches of a `cond`."""
    count, pairs = memory.errors.shape
    if not count:
        return memory

    def renew(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, errors, oldest = carry
        return jnp.zeros((), bool), errors.at[oldest].set(jax.random.normal(key, (pairs,))), (oldest + 1) % count

    _, errors, oldest = jax.lax.while_loop(lambda carry: carry[0], renew, (due, memory.errors, memory.oldest))
    return memory._replace(errors=errors, oldest=oldest)


def passes_power(growth: float, before: Float[Array, ""], now: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether a number of transitions has passed a power of 1 + growth: this happens to all seeds at the same time."""
    step = math.log1p(growth)
    return jnp.floor(jnp.log(now) / step) > jnp.floor(jnp.log(jnp.maximum(before, 0.5)) / step)
