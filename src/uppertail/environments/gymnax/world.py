"""An environment in gymnax's form, as a compiled environment."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from uppertail.encodings import ObservationSpace
from uppertail.environments.base import Environment
from uppertail.environments.failures import call
from uppertail.environments.gymnax.spaces import reading
from uppertail.environments.spaces import require_discrete
from uppertail.types import PyTree, TimeStep

CLOCKS = (("time", "max_steps_in_episode"), ("timestep", "max_timesteps"))
"""Names of the steps of an episode in a state, and of their limit in the parameters, before gymnax 1.0."""


class Rules:
    """An environment in gymnax's form with its parameters, which are constants of the compiled program.

    Args:
        label: what messages call it.
        env: the object with `reset_env`, `step_env` and its spaces. `is_truncated` says where an episode was only cut
            short; in the form before gymnax 1.0, which has none, that is where an end falls on the time limit.
        params: its parameters.
        images: whether large bounded Boxes are images.

    Raises:
        InputError: its actions or observations are of no kind that can be trained on.
        EnvironmentFailedError: it raised an exception as it was traced.
    """

    def __init__(self, label: str, env: Any, params: Any, images: bool = True) -> None:
        self.env, self.params = env, params
        spaces = call(
            lambda: (env.action_space(params), env.observation_space(params)), lambda: f"{label}, asked for its spaces,"
        )
        require_discrete(spaces[0])
        self.num_actions, self.reading = int(spaces[0].n), reading(spaces[1], images)
        key = jax.random.key(0)
        call(
            lambda: jax.eval_shape(lambda: self.step(key, self.reset(key)[0], jnp.zeros((), jnp.int32))),
            lambda: f"{label}, at its first step,",
        )

    def reset(self, key: PRNGKeyArray) -> tuple[PyTree, Array]:
        """The state and the observation of a new episode; numbers have the types that they have after a step."""
        observation, state = self.env.reset_env(key, self.params)
        after = jax.eval_shape(lambda: self.env.step_env(key, state, jnp.zeros((), jnp.int32), self.params)[1])
        return jax.tree.map(_of_type, state, after), self.reading.array(observation)

    def step(self, key: PRNGKeyArray, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        """The state and the time step after an action."""
        observation, after, reward, ended, *_ = self.env.step_env(key, state, action, self.params)
        after, ended = jax.tree.map(_of_type, after, state), jnp.asarray(ended, bool).reshape(())
        cut = jnp.asarray(self._is_truncated(after), bool).reshape(())
        old_form = not hasattr(self.env, "is_truncated")
        terminated, truncated = (ended & ~cut, ended & cut) if old_form else (ended, cut & ~ended)
        reward = jnp.asarray(reward, jnp.float32).reshape(())
        return after, TimeStep(self.reading.array(observation), reward, terminated, truncated)

    def _is_truncated(self, state: PyTree) -> Any:
        """Whether the time limit is reached."""
        if hasattr(self.env, "is_truncated"):
            return self.env.is_truncated(state, self.params)
        for clock, limit in CLOCKS:
            if hasattr(state, clock) and hasattr(self.params, limit):
                return getattr(state, clock) >= getattr(self.params, limit)
        return False


class GymnaxWorld(Environment):
    """One seed's environment.

    Args:
        layout: the key that every episode begins with, if `fixed`.
        fixed: whether every episode begins alike.
        rules: the environment.
        returns: the range of discounted returns, if the user gave one.
    """

    layout: PRNGKeyArray
    fixed: bool = eqx.field(static=True)
    rules: Rules = eqx.field(static=True)
    returns: tuple[float, float] | None = eqx.field(static=True, default=None)

    @property
    def observations(self) -> ObservationSpace:
        return self.rules.reading.space

    @property
    def num_actions(self) -> int:
        return self.rules.num_actions

    def reset(self, key: PRNGKeyArray) -> tuple[PyTree, TimeStep]:
        state, observation = self.rules.reset(self.layout if self.fixed else key)
        no: Bool[Array, ""] = jnp.zeros((), bool)
        return state, TimeStep(observation, jnp.zeros(()), no, no)

    def step(self, key: PRNGKeyArray, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        return self.rules.step(key, state, action)

    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]] | None:
        if self.returns is None:
            return None
        return jnp.float32(min(self.returns[0], 0.0)), jnp.float32(max(self.returns[1], 0.0))


def _of_type(new: Any, like: Any) -> Array:
    """A number, or a key, of the type that another one has."""
    array = jnp.asarray(new)
    return array if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array.astype(like.dtype)
