"""The best plan through what was tried, and what it earns if each pair goes on as it did on average."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from uppertail.learners.outcomes import Outcomes

SWEEPS, WORK = 2_000, 2**24
"""At most so many sweeps, or as many as look at `WORK` outcomes in all, whichever is more: wherever they end, the plan
earns no less than they say. A discount of 0.999 takes some 10,000 sweeps where each step pays."""

LESS = 1e-5
"""How much less than all that was tried in a state the rest is expected to earn, at least, as a share of it."""


def known_returns(
    outcomes: Outcomes,
    tried: Bool[Array, "states actions"],
    ended: Bool[Array, " states"],
    discount: float | Float[Array, ""],
    tolerance: Float[Array, ""],
) -> Float[Array, "states actions"]:
    """The mean return of each pair that was tried, followed by the best of such pairs; for others a bound.

    A pair that was not tried is expected to earn less than all that were in its state, so its bound is a little below
    these; it is infinite where none was tried. Values rise from the least return that is possible with the rewards that
    were seen. So at any time the plan that they make earns at least what they say, if each pair goes on as it did on
    average.

    Args:
        outcomes: all that were seen.
        tried: whether a pair was.
        ended: states where time ran out: their value is 0.
        discount: per step, below 1.
        tolerance: the error, in units of return, at which sweeps end.
    """
    (visits, reward, _), pairs, count = outcomes.seen.T, outcomes.pair, tried.size
    share = visits / jnp.maximum(jax.ops.segment_sum(visits, pairs, count)[pairs], 1.0)
    least = jnp.min(reward, where=visits > 0, initial=0.0) / (1.0 - discount)
    most = max(SWEEPS, WORK // len(pairs))
    there, start = jnp.any(tried, axis=1), jnp.where(ended, 0.0, least)

    def backed_up(values: Float[Array, " states"]) -> Float[Array, "states actions"]:
        after = jnp.where(outcomes.terminated, 0.0, values[outcomes.next_state])
        found = jax.ops.segment_sum(share * (reward + discount * after), pairs, count)
        return found.reshape(tried.shape)

    def sweep(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        values, _, number = carry
        best = jnp.max(backed_up(values), axis=1, where=tried, initial=-jnp.inf)
        best = jnp.where(there, best, start)
        return best, jnp.max(jnp.abs(best - values)) * discount / (1.0 - discount), number + 1

    def goes_on(carry: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        return (carry[1] > tolerance) & (carry[2] < most)

    begin = start, jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32)
    found = backed_up(jax.lax.while_loop(goes_on, sweep, begin)[0])
    lowest = jnp.min(found, axis=1, where=tried, initial=jnp.inf, keepdims=True)
    less = jnp.where(there[:, None], jnp.maximum(tolerance, LESS * jnp.abs(lowest)), 0.0)
    return jnp.where(tried, found, lowest - less)
