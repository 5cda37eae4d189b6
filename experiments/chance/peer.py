"""What all peers share: what they see, what they count, and how they plan. All arrays have a leading axis of seeds."""

import abc
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

import uppertail as ut

SWEEPS, TOLERANCE = 200, 1e-5  # the most sweeps of a plan; it ends when no value changes by more, in units of the span


class World(NamedTuple):
    """The tables of all seeds, of which a peer knows the numbers of states and actions and the ranges.

    Args:
        next_state, reward, terminated, probability, reward_std: of each outcome.
        rewards: the lowest and highest mean reward of any outcome.
        returns: the lowest and highest discounted return, as our learners are given them.
    """

    next_state: Int[np.ndarray, "seeds states actions outcomes"]
    reward: Float[np.ndarray, "seeds states actions outcomes"]
    terminated: Bool[np.ndarray, "seeds states actions outcomes"]
    probability: Float[np.ndarray, "seeds states actions outcomes"]
    reward_std: Float[np.ndarray, "seeds states actions outcomes"]
    rewards: tuple[float, float]
    returns: tuple[float, float]

    @classmethod
    def of(cls, mdps: list[ut.FiniteMDP], discount: float) -> "World":
        names = ("next_state", "reward", "terminated", "probability")
        arrays = {name: np.stack([np.asarray(getattr(mdp, name)) for mdp in mdps]) for name in names}
        noise = [np.zeros(np.shape(mdp.reward)) if mdp.reward_std is None else mdp.reward_std for mdp in mdps]
        possible = np.where(arrays["probability"] > 0, arrays["reward"], np.nan)
        bounds = np.array([[float(bound) for bound in mdp.return_range(discount)] for mdp in mdps])
        return cls(
            **arrays,
            reward_std=np.stack([np.asarray(each) for each in noise]),
            rewards=(float(np.nanmin(possible)), float(np.nanmax(possible))),
            returns=(float(bounds[:, 0].min()), float(bounds[:, 1].max())),
        )


class Peer(abc.ABC):
    """A published method: it acts greedily by `q`, counts what it sees, and plans anew from time to time.

    Args:
        world: what it acts in.
        discount: by which it plans.
        rngs: one for each seed, which draws what the method draws.
    """

    def __init__(self, world: World, discount: float, rngs: list[np.random.Generator]) -> None:
        self.world, self.discount, self.rngs = world, discount, rngs
        self.outcomes = np.zeros(world.next_state.shape)  # how often each was seen
        self.reward_sum, self.reward_squares = np.zeros((2, *world.next_state.shape[:3]))
        self.q = np.full(world.next_state.shape[:3], world.returns[1])

    def observe(
        self,
        where: tuple[np.ndarray, ...],
        reward: Float[np.ndarray, " seeds"],
        next_state: Int[np.ndarray, " seeds"],
        terminated: Bool[np.ndarray, " seeds"],
    ) -> None:
        """Counts one transition of each seed; `where` has its seed, state, action and outcome."""
        self.outcomes[where] += 1
        self.reward_sum[where[:3]] += reward
        self.reward_squares[where[:3]] += reward**2

    @abc.abstractmethod
    def plan(self, ended: Bool[np.ndarray, " seeds"]) -> None:
        """Computes `q` anew; `ended` says which seeds have ended an episode since the last time."""

    @property
    def visits(self) -> Float[np.ndarray, "seeds states actions"]:
        return self.outcomes.sum(axis=3)

    @property
    def reward(self) -> Float[np.ndarray, "seeds states actions"]:
        """The mean reward seen; 0 where there was none."""
        return self.reward_sum / np.maximum(self.visits, 1)

    def greedy(self) -> Float[np.ndarray, "seeds states actions"]:
        """The values of what was seen, with nothing hoped for: a pair that was not seen is worth the least."""
        least = np.full_like(self.q, self.world.returns[0])
        return self.solve(least, self.visits > 0, self.reward, sweeps=10 * SWEEPS)

    def solve(
        self,
        q: Float[np.ndarray, "seeds states actions"],
        known: Bool[np.ndarray, "seeds states actions"],
        reward: Float[np.ndarray, "seeds states actions"],
        radius: Float[np.ndarray, "seeds states actions"] | None = None,
        sweeps: int = SWEEPS,
    ) -> Float[np.ndarray, "seeds states actions"]:
        """Value iteration from `q` on the frequencies of outcomes; pairs that are not known keep their value.

        With a radius, the frequencies are the most hopeful ones within this L1 distance, and no value is above the
        highest return: half of the distance moves to the best state from the worst (Strehl and Littman 2008, Section
        3.2; Jaksch et al. 2010, Figure 2).
        """
        world, (seeds, states, *_) = self.world, self.world.next_state.shape
        weight = self.outcomes / np.maximum(self.visits, 1)[..., None]
        flat = world.next_state + states * np.arange(seeds)[:, None, None, None]
        goes_on, (low, high) = self.discount * ~world.terminated, world.returns
        for _ in range(sweeps):
            value = q.max(axis=2)
            after = goes_on * value.ravel()[flat]
            new = reward + np.sum(weight * after, axis=3)
            if radius is not None:
                moved, order = np.minimum(radius / 2, 1.0), np.argsort(after, axis=3)
                share, worst = (np.take_along_axis(each, order, axis=3) for each in (weight, after))
                taken = np.diff(np.minimum(np.cumsum(share, axis=3), moved[..., None]), axis=3, prepend=0.0)
                best = self.discount * np.maximum(value.max(axis=1), 0.0)[:, None, None]
                new = np.minimum(new + moved * best - np.sum(taken * worst, axis=3), high)
            new = np.where(known, new, q)
            still = np.abs(new - q).max(axis=(1, 2), keepdims=True) <= TOLERANCE * (high - low)
            q = np.where(still, q, new)
            if still.all():
                break
        return q
