"""Toy problems: the two-step MDP of Fig. 1, and a choice between a sure reward and a lottery that is worth less."""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.environments.base import StateBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError


@dataclasses.dataclass(frozen=True)
class Toy(StateBuilder):
    """State 0 leads to state 1 (action 0, reward -1) or state 2 (action 1, reward +1).

    State 1 then pays 4 or 1 and state 2 pays 1 or 0 for actions 0 and 1, and the episode ends.

    Examples:
        >>> ut.Toy().build(jax.random.key(0)).reward[..., 0].tolist()
        [[-1.0, 1.0], [4.0, 1.0], [1.0, 0.0]]
    """

    @property
    def success_return(self) -> float:
        return 3.0

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        return FiniteMDP(
            next_state=jnp.array([[1, 2], [1, 1], [2, 2]])[..., None],
            reward=jnp.array([[-1.0, 1.0], [4.0, 1.0], [1.0, 0.0]])[..., None],
            terminated=jnp.array([[False, False], [True, True], [True, True]])[..., None],
            probability=jnp.ones((3, 2, 1)),
            time_limit=2,
        )


@dataclasses.dataclass(frozen=True)
class RiskyArm(StateBuilder):
    """A Chain that ends at two arms: one always pays `sure`, the other pays `mean` on average, in rare large prizes.

    In each state of the corridor one action of two, drawn at random for each state and seed, goes on, and the other
    ends the episode with nothing. In the last state, which action is the lottery is drawn likewise: it pays mean /
    chance with probability `chance`, and nothing otherwise. An agent that is optimistic about the whole spread of the
    return plays it.

    A single return does not say which arm was taken, so no episode counts as a success.

    Args:
        length: states of the corridor before the arms, 0 or more.
        sure: what the sure arm pays, above 0.
        mean: what the lottery pays on average, above 0.
        chance: probability of winning it, in (0, 1); its standard deviation is mean * sqrt(1 / chance - 1).

    Examples:
        >>> table = ut.RiskyArm(length=2).build(jax.random.key(0))
        >>> arms = (table.probability * table.reward).sum(axis=-1)[2]  # what each pays on average
        >>> sorted(round(float(arm), 3) for arm in arms)
        [0.8, 1.0]
    """

    length: int = 10
    sure: float = 1.0
    mean: float = 0.8
    chance: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 0:
            raise InputError(f"length is {self.length}, but a corridor cannot have fewer than 0 states: use 0 or more.")
        for name in ("sure", "mean"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}, but both arms pay: use a finite number above 0.")
        if not 0 < self.chance < 1:
            raise InputError(f"chance is {self.chance}, but a lottery can be won or lost: use a probability in (0, 1).")

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        states, shape = self.length + 1, (self.length + 1, 2, 2)
        drawn = jax.random.bernoulli(key, 0.5, (states,)).astype(jnp.int32)
        # The chosen action goes on in the corridor, and is the lottery at its end.
        chosen = (jnp.arange(2)[None, :] == drawn[:, None])[..., None]
        state = jnp.arange(states)[:, None, None]
        arms = state == self.length
        goes_on, lottery, sure = ~arms & chosen, arms & chosen, arms & ~chosen
        won = jnp.arange(2) == 0
        prize = jnp.where(won, self.mean / self.chance, 0.0)
        once = jnp.where(won, 1.0, 0.0)
        return FiniteMDP(
            next_state=jnp.broadcast_to(jnp.where(goes_on, state + 1, state), shape),
            reward=jnp.where(lottery, prize, jnp.where(sure, self.sure * once, 0.0)),
            terminated=jnp.broadcast_to(~goes_on, shape),
            probability=jnp.where(lottery, jnp.where(won, self.chance, 1 - self.chance), once),
            time_limit=states,
        )
