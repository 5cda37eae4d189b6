"""A finite MDP as a table, which all environments of the paper are."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings import States
from uppertail.environments.base import Environment
from uppertail.errors import InputError, short_text
from uppertail.masks import ActionMask
from uppertail.types import PyTree, TimeStep

MOST_SWEEPS = 10_000  # sweeps after which value iteration ends if it has not converged, and no time limit has ended it
MOST_OUTCOMES = 10**9  # of all its sweeps, which take about two seconds and cannot be interrupted
ROUNDING = 1e-5  # how far from 1 a sum of probabilities of 32 bits may be
NOISE = 2.0  # how many standard deviations of noise the range of the returns has room for, on each side


class FiniteState(NamedTuple):
    """Where the episode is, and how many steps it has taken."""

    state: Int[Array, ""]
    elapsed: Int[Array, ""]


class FiniteMDP(Environment):
    """For each state and action: where you go, what you earn, whether it ends; observations are the states.

    A stochastic MDP has several weighted outcomes per entry, a deterministic one a single outcome. Noisy rewards are
    normal: a table of a few outcomes would only share some of their moments.

    Args:
        next_state: index of the next state.
        reward: reward on the way there.
        terminated: whether the episode terminates there.
        probability: probability of each outcome; sums to 1 over outcomes.
        time_limit: steps after which an episode that has not terminated is truncated.
        start_state: states in which an episode may start; by default the first.
        start_probability: probability of each of them.
        reward_std: standard deviation of the normal noise on each reward; None: there is none.
        action_mask: which actions are allowed; None: all.

    Examples:
        >>> bandit = ut.FiniteMDP(  # one state, two arms: the second pays 1
        ...     next_state=jnp.zeros((1, 2, 1), int),
        ...     reward=jnp.array([[[0.0], [1.0]]]),
        ...     terminated=jnp.ones((1, 2, 1), bool),
        ...     probability=jnp.ones((1, 2, 1)),
        ...     time_limit=1,
        ... )
        >>> key = jax.random.key(0)
        >>> state, first = bandit.reset(key)
        >>> _, last = bandit.step(key, state, jnp.array(1))
        >>> float(last.reward), bool(last.terminated)
        (1.0, True)
    """

    next_state: Int[Array, "states actions outcomes"]
    reward: Float[Array, "states actions outcomes"]
    terminated: Bool[Array, "states actions outcomes"]
    probability: Float[Array, "states actions outcomes"]
    time_limit: int = eqx.field(static=True)
    start_state: Int[Array, " starts"] = eqx.field(default_factory=lambda: jnp.zeros(1, jnp.int32))
    start_probability: Float[Array, " starts"] = eqx.field(default_factory=lambda: jnp.ones(1))
    reward_std: Float[Array, "states actions outcomes"] | None = None
    action_mask: Bool[Array, "states actions"] | None = None

    @property
    def observations(self) -> States:
        return States(self.num_states)

    @property
    def num_states(self) -> int:
        return self.next_state.shape[-3]

    @property
    def num_actions(self) -> int:
        return self.next_state.shape[-2]

    def allowed(self, state: Int[Array, ""]) -> ActionMask:
        """The actions that are allowed in a state; None: all are, in every one."""
        return None if self.action_mask is None else self.action_mask[state]

    def reset(self, key: PRNGKeyArray) -> tuple[FiniteState, TimeStep]:
        state = self.start_state[_draw(key, self.start_probability)]
        no = jnp.zeros((), bool)
        first = TimeStep(state, jnp.zeros(()), no, no, self.allowed(state))
        return FiniteState(state, jnp.zeros((), jnp.int32)), first

    def step(self, key: PRNGKeyArray, state: FiniteState, action: Int[Array, ""]) -> tuple[FiniteState, TimeStep]:
        keys = [key] if self.reward_std is None else [*jax.random.split(key)]
        outcome = _draw(keys[0], self.probability[state.state, action])
        where = (state.state, action, outcome)
        reward = self.reward[where]
        if self.reward_std is not None:
            reward = reward + self.reward_std[where] * jax.random.normal(keys[1])
        terminated = self.terminated[where]
        elapsed = state.elapsed + 1
        truncated = (elapsed >= self.time_limit) & ~terminated
        next_state = FiniteState(self.next_state[where], elapsed)
        return next_state, TimeStep(next_state.state, reward, terminated, truncated, self.allowed(next_state.state))

    def require_sound(self) -> None:
        """Refuses arrays, also with a leading axis of seeds, that are no MDP: InputError names the first."""
        reached = np.asarray(self.probability) > 0
        for name, values, what in (
            ("probability", self.probability, "from one state by one action"),
            ("start_probability", self.start_probability, "of the states in start_state"),
        ):
            each = np.asarray(values, np.float64)
            sound = sum_to_1(each, ROUNDING)
            if name == "probability" and self.action_mask is not None:
                sound |= ~np.asarray(self.action_mask)
            if not sound.all():
                row = np.round(each[~sound][0], 6).tolist()
                raise InputError(
                    f"{name} of a FiniteMDP is {short_text(row)} {what}: give 0 or more each, which sum to 1."
                )
        for name, states in (("next_state", np.asarray(self.next_state)[reached]), ("start_state", self.start_state)):
            if (strange := np.asarray(states)[~np.isin(states, np.arange(self.num_states))]).size:
                states_of = f"states are counted from 0 to {self.num_states - 1}"
                raise InputError(f"{name} of a FiniteMDP holds {strange[0]}, but its {states_of}.")
        for name, numbers in (("reward", self.reward), ("reward_std", self.reward_std)):
            if numbers is not None and not np.isfinite(numbers).all():
                raise InputError(f"{name} of a FiniteMDP holds numbers that are not finite.")

    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The lowest and highest return of any step that is followed by the best policy, within one time limit.

        Losses that take repeated mistakes are left out, since they would set the scale of all returns.
        """
        possible = self.probability > 0
        if self.action_mask is not None:
            possible &= self.action_mask[..., None]

        def returns(value: Float[Array, " states"], otherwise: float) -> Float[Array, "states actions outcomes"]:
            """The return of each outcome, if the best follows; `otherwise` where it is impossible."""
            after = self.reward + discount * jnp.where(self.terminated, 0.0, value[self.next_state])
            return jnp.where(possible, after, otherwise)

        def sweep(carry: tuple[Float[Array, " states"], Bool[Array, ""], Int[Array, ""]]) -> PyTree:
            value, _, sweeps = carry
            better = jnp.max(returns(value, -jnp.inf), axis=(1, 2))
            return better, jnp.all(better == value), sweeps + 1

        def goes_on(carry: tuple[Float[Array, " states"], Bool[Array, ""], Int[Array, ""]]) -> Bool[Array, ""]:
            return ~carry[1] & (carry[2] < self._most_sweeps - 1)  # the last step is the one below

        start = (jnp.zeros(self.num_states), jnp.zeros((), bool), jnp.zeros((), jnp.int32))
        value, _, _ = jax.lax.while_loop(goes_on, sweep, start)
        noise = 0.0
        if self.reward_std is not None:
            noise = NOISE * jnp.sqrt(self._variance(returns(value, -jnp.inf), discount))
        low, high = jnp.min(returns(value, jnp.inf) - noise), jnp.max(returns(value, -jnp.inf) + noise)
        return jnp.minimum(low, 0.0), jnp.maximum(high, 0.0)

    @property
    def _most_sweeps(self) -> int:
        return min(self.time_limit, MOST_SWEEPS, max(1, MOST_OUTCOMES // math.prod(self.next_state.shape[-3:])))

    def _variance(
        self, returns: Float[Array, "states actions outcomes"], discount: float
    ) -> Float[Array, "states actions outcomes"]:
        """What the noise on the rewards adds to the variance of each outcome's return, if the best policy follows."""
        assert self.reward_std is not None
        own, best = self.reward_std**2, jnp.argmax(returns.reshape(self.num_states, -1), axis=1)

        def with_later(later: Float[Array, " states"]) -> Float[Array, "states actions outcomes"]:
            return own + discount**2 * jnp.where(self.terminated, 0.0, later[self.next_state])

        def sweep(_: Int[Array, ""], later: Float[Array, " states"]) -> Float[Array, " states"]:
            return with_later(later).reshape(self.num_states, -1)[jnp.arange(self.num_states), best]

        later = jax.lax.fori_loop(0, self._most_sweeps - 1, sweep, jnp.zeros(self.num_states))
        return with_later(later)


def _draw(key: PRNGKeyArray, probabilities: Float[Array, " outcomes"]) -> Int[Array, ""]:
    """An index drawn by its probability; no randomness is spent where there is nothing to draw."""
    if probabilities.shape[0] == 1:
        return jnp.zeros((), jnp.int32)
    return jnp.searchsorted(jnp.cumsum(probabilities), jax.random.uniform(key), side="right").astype(jnp.int32)


def sum_to_1(probabilities: Float[np.ndarray, "*rows outcomes"], rounding: float) -> Any:
    """Whether each row is one of probabilities, whose sum may be this far from 1."""
    return (probabilities >= 0).all(axis=-1) & (np.abs(probabilities.sum(axis=-1) - 1) <= rounding)
