"""Rich observations: finite MDPs seen through noise, so that no observation ever comes twice."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import Numbers
from uppertail.environments.base import Environment, VectorBuilder
from uppertail.environments.chain import Chain
from uppertail.environments.deep_sea import DeepSea
from uppertail.environments.finite import FiniteMDP, FiniteState
from uppertail.errors import InputError
from uppertail.types import TimeStep

MOST_BITS = 1_024  # more bits would leave no memory for anything else
SMALL_REWARD = 0.1  # what a wrong action in a good state of a lock may pay
LATENT = 3  # hidden states at each step of a lock: two good ones, and one that no action leaves


class RichMDP(Environment):
    """A finite MDP that shows a vector in place of its state: the state's own, with fresh noise at each time step."""

    mdp: FiniteMDP
    codes: Float[Array, "states numbers"]  # the vector of each state
    std: Float[Array, " numbers"] | None = None  # of the normal noise on each number; None: there is none
    rotation: Float[Array, "numbers numbers"] | None = None  # what vector and noise are multiplied by; None: nothing
    bits: int = eqx.field(static=True, default=0)  # how many random bits are appended
    binary: bool = eqx.field(static=True, default=False)  # whether every number is 0 or 1

    @property
    def observations(self) -> Numbers:
        size = self.codes.shape[-1] + self.bits
        if self.binary:
            return Numbers((0.0,) * size, (1.0,) * size, continuous=False)
        return Numbers((-math.inf,) * size, (math.inf,) * size)  # bounds are taken from what was seen

    @property
    def num_actions(self) -> int:
        return self.mdp.num_actions

    def reset(self, key: PRNGKeyArray) -> tuple[FiniteState, TimeStep]:
        start_key, noise_key = jax.random.split(key)
        state, now = self.mdp.reset(start_key)
        return state, now._replace(observation=self._shown(noise_key, state.state))

    def step(self, key: PRNGKeyArray, state: FiniteState, action: Int[Array, ""]) -> tuple[FiniteState, TimeStep]:
        step_key, noise_key = jax.random.split(key)
        after, now = self.mdp.step(step_key, state, action)
        return after, now._replace(observation=self._shown(noise_key, after.state))

    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return self.mdp.return_range(discount)

    def _shown(self, key: PRNGKeyArray, state: Int[Array, ""]) -> Float[Array, " numbers"]:
        noise_key, bits_key = jax.random.split(key)
        code = self.codes[state]
        if self.std is not None:
            code = code + self.std * jax.random.normal(noise_key, code.shape)
        if self.rotation is not None:
            code = code @ self.rotation
        return jnp.concatenate([code, jax.random.bernoulli(bits_key, 0.5, (self.bits,)).astype(code.dtype)])


@dataclasses.dataclass(frozen=True)
class RichChain(VectorBuilder):
    """A Chain whose states are random unit vectors, each seed's its own, with fresh noise at every observation.

    In each state one action, drawn at random, goes on and the other ends the episode; reward 1 only past the last
    state. No observation repeats, so that an agent has to generalize from near ones; two states are at a distance of
    about sqrt(2), two observations of one state of about noise * sqrt(2). Episodes, rewards and the number of episodes
    that an agent of perfect memory needs are those of `Chain`.

    Args:
        length: number of states, at least 1.
        dim: numbers in an observation, at least 2; each is of size 1 / sqrt(dim).
        noise: length of the noise vector, as root mean square, 0 or more; 0: observations repeat.

    Examples:
        >>> world = ut.RichChain(length=5, noise=0.0).build(jax.random.key(0))
        >>> observation = world.reset(jax.random.key(1))[1].observation
        >>> observation.shape, round(float(jax.numpy.linalg.norm(observation)), 3)
        ((32,), 1.0)
    """

    length: int = 20
    dim: int = 32
    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        Chain(self.length)  # refuses a length that it cannot have
        if not self.dim >= 2:
            raise InputError(f"dim is {self.dim}, but a unit vector needs at least 2 numbers: use 2 or more.")
        require_noise(self.noise)

    @property
    def success_return(self) -> float:
        return Chain(self.length).success_return

    @property
    def floor_episodes(self) -> float | None:
        return Chain(self.length).floor_episodes

    def build(self, key: PRNGKeyArray) -> RichMDP:
        code_key, chain_key = jax.random.split(key)
        drawn = jax.random.normal(code_key, (self.length, self.dim))
        codes = drawn / jnp.linalg.norm(drawn, axis=1, keepdims=True)
        std = jnp.full(self.dim, self.noise / math.sqrt(self.dim)) if self.noise else None
        return RichMDP(Chain(self.length).build(chain_key), codes, std)


@dataclasses.dataclass(frozen=True)
class RichSea(VectorBuilder):
    """DeepSea whose observation is the row and the column, each one-hot, and random bits that mean nothing.

    Episodes, rewards and successes are those of `DeepSea`.

    Args:
        size: rows and columns, at least 1.
        bits: how many bits are drawn anew at each time step, from 0 to 1,024; 0: observations repeat.

    Examples:
        >>> world = ut.RichSea(size=5, bits=2).build(jax.random.key(0))
        >>> world.reset(jax.random.key(1))[1].observation[:-2].tolist()  # row 0, column 0
        [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """

    size: int = 10
    bits: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        DeepSea(self.size)  # refuses a size that it cannot have
        if not 0 <= self.bits <= MOST_BITS:
            raise InputError(f"bits is {self.bits}: use 0 to {MOST_BITS} random bits.")

    @property
    def success_return(self) -> float:
        return DeepSea(self.size).success_return

    @property
    def floor_episodes(self) -> float | None:
        return DeepSea(self.size).floor_episodes

    def build(self, key: PRNGKeyArray) -> RichMDP:
        row, column = jnp.divmod(jnp.arange(self.size**2), self.size)
        codes = jnp.concatenate([jax.nn.one_hot(each, self.size) for each in (row, column)], axis=1)
        return RichMDP(DeepSea(self.size).build(key), codes, bits=self.bits, binary=True)


@dataclasses.dataclass(frozen=True)
class RichLock(VectorBuilder):
    """At each step one action keeps an agent in the good states; every other loses the episode and may pay a little.

    The combination lock of Briee (Zhang et al. 2022, arXiv 2202.00063), as in its released code
    (github.com/yudasong/briee, envs/Lock_batch.py, commit c6920ff), but nobody tells the agent the step. At each step
    there are two good hidden states, each with a right action of its own, drawn for each seed. It leads to one of the
    next two good states, each with probability 1/2, and pays 1 at the last step. Any other action leads to the bad
    state, where nothing more is paid, and pays 0.1 with probability 1/2. Every episode takes `horizon` steps.

    An observation is a Hadamard matrix times the sum of the one-hot of the hidden state (good, good, bad), the one-hot
    of the step, and normal noise. Its length is the smallest power of 2 that is at least horizon + 4.

    Args:
        horizon: steps of an episode, at least 1; Briee has 6 to 100.
        actions: number of actions, at least 2; Briee has 10.
        noise: standard deviation of the noise on each entry of the one-hots, 0 or more; Briee has 0.1.

    Examples:
        >>> lock = ut.RichLock(horizon=5, noise=0.0).build(jax.random.key(0))
        >>> sorted(set(lock.reset(jax.random.key(1))[1].observation.tolist()))
        [-2.0, 0.0, 2.0]
    """

    horizon: int = 10
    actions: int = 10
    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon < 1:
            raise InputError(f"horizon is {self.horizon}, but an episode takes at least 1 step; Briee has 6 to 100.")
        if self.actions < 2:
            raise InputError(f"actions is {self.actions}, but a lock needs at least 2: a right one and a wrong one.")
        require_noise(self.noise)

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
        lost = jnp.where(is_good & (coin == 1), SMALL_REWARD, 0.0)
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


def require_noise(noise: float) -> None:
    """Refuses a size of noise that no observation can have."""
    if not 0 <= noise < math.inf:
        raise InputError(f"noise is {noise}: use a finite number, 0 or more, for example 0.1.")
