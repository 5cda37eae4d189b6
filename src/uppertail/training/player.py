"""What one seed learned: actions and return distributions of observations, as a user reads them."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.compiling import jitted
from uppertail.distributions import spread
from uppertail.encodings import States, require_state
from uppertail.environments import Interface
from uppertail.environments.actions import by_action
from uppertail.environments.gymnasium.action_masks import KEY
from uppertail.errors import InputError, message_of, short_text
from uppertail.masks import ActionMask, masked
from uppertail.networks import Network
from uppertail.training.loop import Actor
from uppertail.types import PyTree

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
"""What reading an observation raises that is not one of the environment's."""

HALVINGS = 50  # how often a quantile's bracket is halved: beyond what a float32 tells apart


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ActionReturns:
    """The return distribution of each action, of one observation or of a batch; of an ensemble, its members' mixture.

    Args:
        mean: mean return, [actions] or [batch, actions].
        std: its standard deviation, of the same shape.
        probabilities: with Categorical, the probability of each bin, the last axis; else None.
        bins: with Categorical, the return at the center of each bin; else None.
        parameters: the family's own parameters by name, [actions, ...] or [members, actions, ...], a batch before it.

    Examples:
        >>> import uppertail as ut
        >>> result = ut.train(ut.Toy(), ut.Categorical(bins=7), settings=ut.Settings(seeds=1, episodes=64))
        >>> z: ut.ActionReturns = result.distribution(0)
        >>> z.mean.shape, z.probabilities.shape, z.quantiles([0.1, 0.9]).shape, z.greedy
        ((2,), (2, 7), (2, 2), 0)
    """

    mean: Float[np.ndarray, "*batch actions"]
    std: Float[np.ndarray, "*batch actions"]
    probabilities: Float[np.ndarray, "*batch actions bins"] | None
    bins: Float[np.ndarray, " bins"] | None
    parameters: dict[str, np.ndarray]
    _quantiles: Callable[[Float[Array, " levels"]], Array]

    @property
    def greedy(self) -> int | Int[np.ndarray, " batch"]:
        """The action with the highest mean, counted from 0, allowed or not."""
        best = self.mean.argmax(axis=-1)
        return int(best) if best.ndim == 0 else best

    def quantiles(self, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> np.ndarray:
        """The returns below which these shares of each distribution lie, [actions, levels] after a batch.

        Raises:
            InputError: a level is not above 0 and below 1.
        """
        try:
            asked = np.asarray(levels, np.float32)
        except (ValueError, TypeError):
            asked = np.zeros(())
        if asked.ndim != 1 or not ((asked > 0) & (asked < 1)).all():
            raise InputError(f"levels is {levels}: give a list of numbers between 0 and 1, for example [0.05, 0.95].")
        return np.asarray(self._quantiles(jnp.asarray(asked)))

    def __repr__(self) -> str:
        if self.mean.ndim > 1:
            return f"ActionReturns of {len(self.mean)} observations and {self.mean.shape[1]} actions"
        rows = np.column_stack([self.mean, self.std, self.quantiles([0.05, 0.5, 0.95])])
        lines = [f"{action:6}{''.join(f'{number:11.4g}' for number in row)}" for action, row in enumerate(rows)]
        return "\n".join(["action" + "".join(f"{name:>11}" for name in ("mean", "std", "5%", "50%", "95%")), *lines])


@dataclasses.dataclass(frozen=True, eq=False)
class Player:
    """What one seed learned, for observations and actions as its environment has them."""

    agent: Agent
    network: Network
    interface: Interface
    _programs: dict[Any, Callable[..., Any]] = dataclasses.field(default_factory=dict)

    def act(self, observation: Any, mask: Any = None) -> int | np.ndarray:
        """The greedy action of an observation, or of each of a batch, as the environment takes it."""
        return self._numbered(self.greedy(observation, mask))

    def greedy(self, observation: Any, mask: Any = None) -> Int[Array, "*batch"]:
        """Its number, counted from 0."""
        seen, batch = self.read(observation)
        allowed = self._allowed(observation, mask, len(seen) if batch else None)
        return self._program(_greedy, batch)(self.network, seen, allowed)

    def explore(self, observation: Any, key: PRNGKeyArray, mask: Any = None) -> int | np.ndarray:
        """The action of the run's exploration policy, as in the first step of an episode."""
        seen, batch = self.read(observation)
        count = len(seen) if batch else None
        keys, allowed = jax.random.split(key, count) if count else key, self._allowed(observation, mask, count)
        return self._numbered(self._program(_first, batch)(self.network, seen, keys, allowed))

    def returns(self, observation: Any) -> ActionReturns:
        seen, batch = self.read(observation)
        z, mean, std = self._program(_moments, batch)(self.network, seen)  # [members, actions], a batch before them
        of_levels, centers, members = self._program(_quantiles, batch), self.agent.family.centers, int(batch)
        arrays = {name: np.asarray(value) for name, value in z._asdict().items()}
        return ActionReturns(
            np.asarray(mean),
            np.asarray(std),
            None if centers is None else np.exp(arrays["log_probabilities"]).mean(axis=members),
            None if centers is None else np.asarray(centers),
            arrays if self.agent.members else {name: array.squeeze(members) for name, array in arrays.items()},
            lambda levels: of_levels(levels, z),
        )

    def moments(self, observations: Array) -> tuple[Float[Array, "batch actions"], Float[Array, "batch actions"]]:
        """The mean and the standard deviation of each action's return, of a batch as the network takes it."""
        return self._program(_moments, True)(self.network, observations)[1:]

    def read(self, observation: Any) -> tuple[np.ndarray, bool]:
        """An observation as the network takes it, or a batch, and whether it is one; what is neither is refused."""
        try:
            if self.interface.is_batch(observation):
                if not len(observation):
                    raise InputError("observation is an empty batch: give one observation or more.")
                return np.stack([self._one(each) for each in observation]), True
            return self._one(observation), False
        except InputError:
            raise
        except UNREADABLE as error:
            if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
                pair = "observation is what reset returns, an observation and an info: give the first alone."
                raise InputError(pair) from error
            as_tuple = ", as a tuple if it is a list" if isinstance(observation, list) else ""
            wanted = f"{self.interface.form}{as_tuple}, or a list of such"
            if (shape := self.interface.reading.shape) is not None:
                wanted = f"one of shape {shape}, or a batch of shape {('n', *shape)}".replace("'", "")
            raise InputError(
                f"observation is {short_text(observation)}, which is not of this environment ({message_of(error)}): "
                f"give {wanted}."
            ) from error

    def _one(self, observation: Any) -> np.ndarray:
        shape, parts = self.interface.reading.shape, self.interface.parts
        if parts is not None and not (isinstance(observation, tuple) and len(observation) == parts):
            raise ValueError(f"it is no tuple of {parts}")  # a hash has a place for everything
        if shape is not None and np.shape(observation) != shape:
            raise ValueError(f"its shape is {np.shape(observation)}")
        if shape is not None and np.asarray(observation).dtype.kind in "US":
            raise ValueError("it holds a text")
        array = self.interface.reading.array(observation)
        if np.asarray(array).dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError("all its numbers must be finite")
        is_state = isinstance(self.interface.reading.space, States) and np.ndim(array) == 0
        if is_state and shape is not None and np.asarray(observation).dtype.kind == "f":
            raise ValueError("a state is a whole number")
        require_state(self.agent.encoding, array)
        return array

    def _allowed(self, observation: Any, mask: Any, batch: int | None) -> Bool[np.ndarray, "*batch actions"] | None:
        """The mask of an observation or of a batch of so many; InputError if it is none, or if it is needed."""
        if mask is None and not self.agent.has_masks:
            return None
        if mask is None and (mask := self._shown(observation)) is None:
            raise InputError(
                f"This environment says which actions are allowed: give action_mask, too, a 0 or 1 for each of the "
                f"{self.interface.actions.size} actions, as its reset and step gave it "
                '(info["action_mask"], a part of the observation, or its action_masks()).'
            )
        actions, given = self.interface.actions, np.asarray(mask)
        shape = (*([] if batch is None else [batch]), actions.size)
        are_allowed = np.isin(given, (0, 1)).all()
        if are_allowed and given.shape != shape:
            given = by_action(given.astype(bool), actions.of_values)
        if not are_allowed or given.shape != shape:
            raise InputError(f"action_mask is {short_text(mask)}: give an array of 0 and 1 of the shape {shape}.")
        if not given.any(axis=-1).all():
            raise InputError("action_mask allows no action: an episode is over there, and needs none.")
        return given.astype(bool)

    def _shown(self, observation: Any) -> Any:
        """The masks of all actions that are parts of observations; None where one has none."""
        masks = [
            by_action(np.ravel(each[KEY]).astype(bool), self.interface.actions.of_values)
            if isinstance(each, dict) and KEY in each
            else np.zeros(0)
            for each in (observation if isinstance(observation, list) else [observation])
        ]
        if any(mask.size != self.interface.actions.size for mask in masks):
            return None
        return masks if isinstance(observation, list) else masks[0]

    def _numbered(self, action: Array) -> int | np.ndarray:
        return self.interface.actions.taken(np.asarray(action) if action.ndim else int(action))

    def _program(self, function: Callable[..., Any], batch: bool) -> Callable[..., Any]:
        """A function of the agent, something all observations share, and one observation; compiled once."""
        if (function, batch) not in self._programs:
            of_one = functools.partial(function, self.agent)
            program = (lambda shared, *rows: jax.vmap(functools.partial(of_one, shared))(*rows)) if batch else of_one
            self._programs[function, batch] = jitted(program)
        return self._programs[function, batch]


def _moments(agent: Agent, network: Network, seen: Array) -> tuple[PyTree, Array, Array]:
    z = agent.returns_by_member(network, seen)
    moments = spread(agent.family, z)
    return z, moments.mean, moments.total


def _greedy(agent: Agent, network: Network, seen: Array, mask: ActionMask) -> Array:
    return jnp.argmax(masked(_moments(agent, network, seen)[1], mask))


def _first(agent: Agent, network: Network, seen: Array, key: PRNGKeyArray, mask: ActionMask) -> Array:
    return Actor(agent, agent.policy).first(key, network, seen, mask).action


def _quantiles(agent: Agent, levels: Float[Array, " levels"], z: PyTree) -> Array:
    """Quantiles [actions, levels] of the mixtures over members of `z` [members, actions], by bisection."""
    family = agent.family

    def quantile(z: PyTree, level: Float[Array, ""]) -> Float[Array, ""]:
        def halved(_: Any, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket
            middle = 0.5 * (low + high)
            enough = jnp.mean(jax.vmap(family.cdf, in_axes=(0, None))(z, middle)) >= level
            return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

        mean, std = jax.vmap(family.mean)(z), jax.vmap(family.std)(z)
        center = jnp.mean(mean)
        wide = jnp.max(std) + jnp.max(jnp.abs(mean - center))
        reach = 1.01 * wide * jnp.sqrt(jnp.maximum(level, 1.0 - level) / jnp.minimum(level, 1.0 - level))  # Cantelli
        return jax.lax.fori_loop(0, HALVINGS, halved, (center - reach, center + reach))[1]

    return jax.vmap(jax.vmap(quantile, in_axes=(None, 0)), in_axes=(1, None))(z, levels)
