"""A finite MDP under a stationary policy: its moments, its bounds and whether its episodes end, in float64."""

import dataclasses
from typing import Self

import numpy as np
from jaxtyping import Bool, Float, Int

from uppertail.environments import FiniteMDP
from uppertail.errors import InputError

SWEEPS = 200_000


@dataclasses.dataclass(frozen=True, eq=False)
class MarkovReward:
    """What can happen from each state and action, and how often the policy takes that action."""

    next_state: Int[np.ndarray, "states actions outcomes"]
    reward: Float[np.ndarray, "states actions outcomes"]
    goes_on: Bool[np.ndarray, "states actions outcomes"]
    probability: Float[np.ndarray, "states actions outcomes"]  # sums to 1 over outcomes
    policy: Float[np.ndarray, "states actions"]
    discount: float  # per step, in [0, 1]

    @classmethod
    def of(cls, mdp: FiniteMDP, policy: Float[np.ndarray, "states actions"], discount: float) -> Self:
        """The tables of an MDP, probabilities made to sum to 1 in float64; InputError if an argument does not fit."""
        if not 0 <= discount <= 1:
            raise InputError(f"discount is {discount}: use a number in [0, 1].")
        shape = (mdp.num_states, mdp.num_actions)
        if policy.shape != shape:
            raise InputError(f"The policy has shape {policy.shape}, but it needs [states, actions] = {shape}.")
        if not np.all(policy >= 0) or not np.allclose(policy.sum(axis=1), 1.0, rtol=0, atol=1e-6):
            wrong = int(np.argmin(np.all(policy >= 0, axis=1) & (np.abs(policy.sum(axis=1) - 1) <= 1e-6)))
            raise InputError(
                f"The policy's row for state {wrong} is {policy[wrong].tolist()}, but the probabilities of a state's "
                "actions must be 0 or more and sum to 1."
            )
        if mdp.reward_std is not None:
            raise InputError(
                "The rewards of this environment are noisy (reward_std), and no exact distribution is computed for "
                "normal noise: use an environment without it."
            )
        probability = np.asarray(mdp.probability, np.float64)
        return cls(
            next_state=np.asarray(mdp.next_state),
            reward=np.asarray(mdp.reward, np.float64),
            goes_on=~np.asarray(mdp.terminated),
            probability=probability / probability.sum(axis=2, keepdims=True),
            policy=np.asarray(policy, np.float64) / policy.sum(axis=1, keepdims=True),
            discount=float(discount),
        )

    @property
    def weight(self) -> Float[np.ndarray, "states actions outcomes"]:
        """Probability of each action and outcome in a state."""
        return self.policy[:, :, None] * self.probability

    @property
    def transitions(self) -> Float[np.ndarray, "states states"]:
        """Probability of going on from one state to another; the rest of a row, up to 1, is that of an end."""
        states = np.arange(len(self.policy))[:, None, None]
        matrix = np.zeros((len(self.policy), len(self.policy)))
        np.add.at(matrix, (np.broadcast_to(states, self.weight.shape), self.next_state), self.weight * self.goes_on)
        return matrix

    def after(self, value: Float[np.ndarray, " states"]) -> Float[np.ndarray, "states actions outcomes"]:
        """R + discount * value(S'), and R alone where the episode ends."""
        return self.reward + self.discount * np.where(self.goes_on, value[self.next_state], 0.0)

    def moments(self) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"]]:
        """Mean and variance of the return from each state, each the solution of a linear system.

        m = E[R + discount m(S')] and v = E[(R + discount m(S') - m)^2] + discount^2 E[v(S')], by the law of total
        variance. Needs a discount below 1 or episodes that end.
        """
        transitions, identity = self.transitions, np.eye(len(self.policy))
        mean = np.linalg.solve(identity - self.discount * transitions, np.sum(self.weight * self.reward, axis=(1, 2)))
        surprise = np.sum(self.weight * (self.after(mean) - mean[:, None, None]) ** 2, axis=(1, 2))
        return mean, np.maximum(np.linalg.solve(identity - self.discount**2 * transitions, surprise), 0.0)

    def bounds(self) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"]]:
        """Lowest and highest return possible from each state under the policy; infinite where there is no bound."""
        return -_highest(dataclasses.replace(self, reward=-self.reward)), _highest(self)

    def require_end(self) -> None:
        """Raises InputError unless every episode ends, with discount 1: each state of a finite chain reaches an end."""
        possible = self.weight > 0
        ends, before = np.any(possible & ~self.goes_on, axis=(1, 2)), np.zeros(len(self.policy), bool)
        while not np.array_equal(ends, before):
            before, ends = ends, ends | np.any(possible & ends[self.next_state], axis=(1, 2))
        if self.discount == 1 and not np.all(ends):
            raise InputError(
                f"discount is 1, but under this policy an episode never ends from state {int(np.argmin(ends))}, so "
                "its return is not defined: use a discount below 1, or another policy."
            )


def _highest(process: MarkovReward) -> Float[np.ndarray, " states"]:
    """The highest return possible from each state.

    Below discount 1: value iteration from above, where each iterate is an upper bound. With discount 1: the best of
    all episodes that end; a value that still improves after as many sweeps as there are states has no bound.
    """
    states, possible = len(process.policy), process.weight > 0

    def sweep(value: Float[np.ndarray, " states"]) -> Float[np.ndarray, " states"]:
        return np.max(np.where(possible, process.after(value), -np.inf), axis=(1, 2))

    if process.discount < 1:
        value = np.full(states, max(0.0, np.max(process.reward[possible])) / (1 - process.discount))
        for _ in range(SWEEPS):
            value, before = sweep(value), value
            if np.max(before - value) <= 1e-9 * np.max(np.abs(value)):
                break
        return value
    value = np.full(states, -np.inf)
    for _ in range(states):
        value = sweep(value)
    endless = sweep(value) > value + 1e-9 * np.maximum(1.0, np.abs(value))
    value = np.where(endless, np.inf, value)
    for _ in range(states if np.any(endless) else 0):
        value = sweep(value)
    return value


def uniform_policy(mdp: FiniteMDP) -> Float[np.ndarray, "states actions"]:
    """Every allowed action equally often."""
    allowed = _allowed(mdp)
    return allowed / allowed.sum(axis=1, keepdims=True)


def _allowed(mdp: FiniteMDP) -> Bool[np.ndarray, "states actions"]:
    """Which actions are allowed; all of them where none is, since an episode is over there."""
    everywhere = np.ones((mdp.num_states, mdp.num_actions), bool)
    if mdp.action_mask is None:
        return everywhere
    mask = np.asarray(mdp.action_mask)
    return np.where(mask.any(axis=1, keepdims=True), mask, everywhere)


def optimal_policy(mdp: FiniteMDP, discount: float) -> Float[np.ndarray, "states actions"]:
    """The actions of the highest expected return, by value iteration, equally often where several share it."""
    process, allowed = MarkovReward.of(mdp, uniform_policy(mdp), discount), _allowed(mdp)
    value, before = np.zeros(mdp.num_states), np.full(mdp.num_states, np.inf)
    q, sweeps = np.zeros_like(process.policy), 0
    # relative to each value, since a reward far away counts for little
    while sweeps < SWEEPS and np.any(np.abs(value - before) > 1e-12 * np.abs(value)):
        q = np.where(allowed, np.sum(process.probability * process.after(value), axis=2), -np.inf)
        value, before, sweeps = np.max(q, axis=1), value, sweeps + 1
    if sweeps == SWEEPS and discount == 1:
        raise InputError("discount is 1, and the optimal values do not converge: use a discount below 1.")
    best = q >= value[:, None] - 1e-7 * np.abs(value[:, None])
    return best / best.sum(axis=1, keepdims=True)
