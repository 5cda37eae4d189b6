"""The randomized Chain, seen through noise: no observation ever comes twice."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import Numbers
from uppertail.environments.base import Environment, SameSuccess, VectorBuilder
from uppertail.environments.chain import Chain
from uppertail.environments.deep_sea import DeepSea
from uppertail.environments.finite import FiniteMDP, FiniteState
from uppertail.errors import InputError
from uppertail.types import TimeStep


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
class RichChain(SameSuccess, VectorBuilder):
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
        if not self.dim >= 2:
            raise InputError(f"dim is {self.dim}, but a unit vector needs at least 2 numbers: use 2 or more.")
        if not 0 <= self.noise < math.inf:
            raise InputError(f"noise is {self.noise}: use a finite number, 0 or more, for example 0.1.")

    def build(self, key: PRNGKeyArray) -> RichMDP:
        code_key, chain_key = jax.random.split(key)
        drawn = jax.random.normal(code_key, (self.length, self.dim))
        codes = drawn / jnp.linalg.norm(drawn, axis=1, keepdims=True)
        std = jnp.full(self.dim, self.noise / math.sqrt(self.dim)) if self.noise else None
        return RichMDP(self.hidden.build(chain_key), codes, std)

    @property
    def hidden(self) -> Chain:
        return Chain(self.length)


MOST_BITS = 1_024  # more bits would leave no memory for anything else


@dataclasses.dataclass(frozen=True)
class RichSea(SameSuccess, VectorBuilder):
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
        if not 0 <= self.bits <= MOST_BITS:
            raise InputError(f"bits is {self.bits}: use 0 to {MOST_BITS} random bits.")

    def build(self, key: PRNGKeyArray) -> RichMDP:
        row, column = jnp.divmod(jnp.arange(self.size**2), self.size)
        codes = jnp.concatenate([jax.nn.one_hot(each, self.size) for each in (row, column)], axis=1)
        return RichMDP(self.hidden.build(key), codes, bits=self.bits, binary=True)

    @property
    def hidden(self) -> DeepSea:
        return DeepSea(self.size)
