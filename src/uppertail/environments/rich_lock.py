"""The rich-observation combination lock, on which methods that learn their features are measured."""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.environments.base import VectorBuilder
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.rich import RichMDP
from uppertail.errors import InputError

LATENT = 3  # hidden states at each step: two good ones, and one that no action leaves


@dataclasses.dataclass(frozen=True)
class RichLock(VectorBuilder):
    """At each step one action keeps an agent in the good states; every other loses the episode and may pay a little.

    The combination lock of Briee (Zhang et al. 2022, arXiv 2202.00063), with the dynamics of its released code
    (github.com/yudasong/briee, envs/Lock_batch.py, commit c6920ff), but without its clock: there an agent is told the
    step, and learns features for each step apart. At each step there are two good hidden states, each with a right
    action of its own, drawn at random for each seed. It leads to one of the next two good states, each with
    probability 1/2, and pays 1 at the last step. Any other action leads to the bad state, where nothing more is paid,
    and pays `small_reward` with probability 1/2. Every episode takes `horizon` steps.

    An observation is a Hadamard matrix, with entries of 1 and -1, times the sum of the one-hot of the hidden state
    (good, good, bad), the one-hot of the step, and normal noise: every number depends on every part, and no observation
    repeats. Its length is the smallest power of 2 that is at least horizon + 4.

    Args:
        horizon: steps of an episode, at least 1; Briee has 6 to 100.
        actions: number of actions, at least 2; Briee has 10.
        small_reward: what a wrong action in a good state may pay, at least 0 and below 1; Briee has 0.1.
        noise: standard deviation of the noise on each entry of the one-hots, 0 or more; Briee has 0.1.

    Examples:
        >>> lock = ut.RichLock(horizon=5, noise=0.0).build(jax.random.key(0))
        >>> sorted(set(lock.reset(jax.random.key(1))[1].observation.tolist()))
        [-2.0, 0.0, 2.0]
    """

    horizon: int = 10
    actions: int = 10
    small_reward: float = 0.1
    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon < 1:
            raise InputError(f"horizon is {self.horizon}, but an episode takes at least 1 step; Briee has 6 to 100.")
        if self.actions < 2:
            raise InputError(f"actions is {self.actions}, but a lock needs at least 2: a right one and a wrong one.")
        if not 0 <= self.small_reward < 1:
            raise InputError(f"small_reward is {self.small_reward}: use 0 or more, and less than the 1 at the end.")
        if not 0 <= self.noise < math.inf:
            raise InputError(f"noise is {self.noise}: use a finite number, 0 or more, for example 0.1.")

    @property
    def success_return(self) -> float:
        """The best return: an agent that is always right earns it in every episode, and no other one does."""
        return 1.0

    @property
    def rows(self) -> int:
        return self.horizon + 1

    def build(self, key: PRNGKeyArray) -> RichMDP:
        numbers = 2 ** math.ceil(math.log2(self.horizon + 4))
        step, latent = jnp.divmod(jnp.arange(LATENT * (self.horizon + 1)), LATENT)
        codes = jax.nn.one_hot(latent, numbers) + jax.nn.one_hot(LATENT + step, numbers)
        std = jnp.where(jnp.arange(numbers) < LATENT + self.horizon, self.noise, 0.0) if self.noise else None
        return RichMDP(self._table(key), codes, std, hadamard(numbers))

    def _table(self, key: PRNGKeyArray) -> FiniteMDP:
        """The lock behind it, whose state is 3 * step + hidden state."""
        states = LATENT * (self.horizon + 1)
        shape = states, self.actions, 2  # both outcomes are equally likely
        step, latent = jnp.divmod(jnp.arange(states)[:, None, None], LATENT)
        action, coin = jnp.arange(self.actions)[None, :, None], jnp.arange(2)[None, None]
        is_right = action == jax.random.randint(key, (states, 1, 1), 0, self.actions)
        is_good, is_last = latent < LATENT - 1, step >= self.horizon - 1
        after = jnp.where(is_good & is_right, coin, LATENT - 1)
        lost = jnp.where(is_good & (coin == 1), self.small_reward, 0.0)
        return FiniteMDP(
            next_state=LATENT * jnp.minimum(step + 1, self.horizon) + after,
            reward=jnp.where(is_good & is_right, jnp.where(is_last, 1.0, 0.0), lost),
            terminated=jnp.broadcast_to(is_last, shape),
            probability=jnp.full(shape, 0.5),
            time_limit=self.horizon,
            start_state=jnp.arange(2),
            start_probability=jnp.full(2, 0.5),
        )


def hadamard(size: int) -> Float[Array, "size size"]:
    """The symmetric matrix of 1 and -1 with orthogonal rows whose size is a power of 2 (Sylvester 1867)."""
    index = jnp.arange(size)
    return jnp.where(jax.lax.population_count(index[:, None] & index[None, :]) % 2 == 1, -1.0, 1.0)
