"""The best plan through what was tried: what a table is sure to earn, by its own data."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from uppertail.learners.outcomes import NONE, Outcomes
from uppertail.masks import ActionMask

MOST = 2_000
"""The most sweeps: wherever they end, the plan earns no less than they say."""


def known_returns(
    outcomes: Outcomes,
    tried: Bool[Array, "states actions"],
    allowed: ActionMask,
    ended: Bool[Array, " states"],
    discount: float | Float[Array, ""],
    still: Float[Array, ""],
) -> Float[Array, "states actions"]:
    """The mean return of each pair that was tried, followed by the best of such pairs; the least possible elsewhere.

    Values rise from the least return that is possible with the rewards that were seen. So at any time the plan that
    they make earns at least what they say, if each pair goes on as it did on average.

    Args:
        outcomes: all that were seen.
        tried: whether a pair was.
        allowed: which actions are allowed in each state.
        ended: states of which the value is 0.
        discount: per step, below 1.
        still: the change in units of return below which sweeps end.
    """
    visits, reward, _ = outcomes.seen.T
    pairs = _pairs_of(outcomes)
    count = tried.size
    share = visits / jnp.maximum(jax.ops.segment_sum(visits, pairs, count)[pairs], 1.0)
    least = jnp.minimum(jnp.min(jnp.where(visits > 0, reward, jnp.inf)), 0.0) / (1.0 - discount)
    least = jnp.where(jnp.isfinite(least), least, 0.0)
    usable = tried if allowed is None else tried & allowed
    there, start = jnp.any(usable, axis=1), jnp.where(ended, 0.0, least)

    def backed_up(values: Float[Array, " states"]) -> Float[Array, "states actions"]:
        after = jnp.where(outcomes.terminated, 0.0, values[outcomes.next_state])
        found = jax.ops.segment_sum(share * (reward + discount * after), pairs, count)
        return jnp.where(tried, found.reshape(tried.shape), least)

    def sweep(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        values, _, number = carry
        best = jnp.max(jnp.where(usable, backed_up(values), -jnp.inf), axis=1)
        best = jnp.where(there, best, start)
        return best, jnp.max(jnp.abs(best - values)), number + 1

    def goes_on(carry: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        return (carry[1] > still) & (carry[2] < MOST)

    begin = start, jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32)
    return backed_up(jax.lax.while_loop(goes_on, sweep, begin)[0])


def _pairs_of(outcomes: Outcomes) -> Int[Array, " outcomes"]:
    """The pair of each outcome; beyond the last pair where there is none."""
    pairs, places = outcomes.newest.shape[0], outcomes.earlier.shape[0]

    def further(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        slots, found = carry
        found = found.at[jnp.where(slots == NONE, places, slots)].set(jnp.arange(pairs), mode="drop")
        return jnp.where(slots == NONE, NONE, outcomes.earlier[slots]), found

    begin = outcomes.newest, jnp.full(places, pairs)
    return jax.lax.while_loop(lambda carry: jnp.any(carry[0] != NONE), further, begin)[1]
