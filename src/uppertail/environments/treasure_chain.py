"""A Chain with distractors: small rewards near the start that tempt a greedy agent away from the treasure."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from uppertail.encodings import Preferences, StateEncoding
from uppertail.environments.base import EnvironmentBuilder
from uppertail.environments.chain import Chain
from uppertail.environments.finite import FiniteMDP
from uppertail.errors import InputError
from uppertail.schema import settle


@dataclasses.dataclass(frozen=True)
class TreasureChain(EnvironmentBuilder):
    """A Chain whose wrong action pays a little in the first states: it ends the episode, but with a small reward.

    An agent that exploits the first reward it finds never leaves the start; the treasure of 1 is past the last state.
    An agent of perfect memory that tries every action once needs length / 2 + 1 episodes on average, as on the Chain.

    Args:
        length: number of states, at least 1.
        distractors: number of states, from the first on, in which the wrong action pays; from 0 to the length.
        small_reward: what it pays, above 0 and below the treasure's 1.
        ordered: the right action is always action 1, instead of drawn at random for each state and seed.
        encoding: how a state enters the network.
        time_limit: steps after which an episode is truncated, at least the length; null: 200, or the length where that
            is more.

    Examples:
        >>> import jax
        >>> import uppertail as ut
        >>> table = ut.TreasureChain(length=4, distractors=2, small_reward=0.25).build(jax.random.key(0))
        >>> table.reward.max(axis=(1, 2)).tolist()  # the largest in each state
        [0.25, 0.25, 0.0, 1.0]
    """

    length: int = 100
    distractors: int = 5
    small_reward: float = 0.1
    ordered: bool = False
    encoding: StateEncoding = "one_hot"
    time_limit: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        self._chain()
        if not 0 <= self.distractors <= self.length:
            raise InputError(
                f"distractors is {self.distractors}, but a Chain of length {self.length} has room for 0 to "
                f"{self.length}: use a number of these."
            )
        if not 0 < self.small_reward < 1:
            raise InputError(
                f"small_reward is {self.small_reward}, but a distractor pays more than nothing and less than the "
                "treasure's 1: use a number between 0 and 1."
            )

    @property
    def success_return(self) -> float:
        return self._chain().success_return

    @property
    def floor_episodes(self) -> float | None:
        return self._chain().floor_episodes

    @property
    def preferences(self) -> Preferences:
        return Preferences(states=self.encoding)

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        chain = self._chain().build(key)
        wrong = chain.terminated & (chain.reward == 0)
        tempting = wrong & (jnp.arange(self.length) < self.distractors)[:, None, None]
        return eqx.tree_at(lambda mdp: mdp.reward, chain, jnp.where(tempting, self.small_reward, chain.reward))

    def _chain(self) -> Chain:
        """The Chain without its distractors."""
        return Chain(self.length, self.ordered, self.encoding, self.time_limit)
