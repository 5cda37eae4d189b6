"""An environment in gymnax's form, as a compiled environment."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.encodings import ObservationSpace
from uppertail.environments.base import Environment
from uppertail.environments.host import call
from uppertail.environments.spaces import Reading, read_space, require_discrete
from uppertail.types import PyTree, TimeStep

CLOCKS = (("time", "max_steps_in_episode"), ("timestep", "max_timesteps"))
"""Names of the steps of an episode in a state, and of their limit in the parameters, before gymnax 1.0."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rules:
    """An environment with its parameters, which are constants of the compiled program; two are equal if they are one.

    `env` is the object with `reset_env`, `step_env` and its spaces. `is_truncated` says where an episode was only cut
    short; in the form before gymnax 1.0, which has none, that is where an end falls on the time limit.
    """

    env: Any
    params: Any
    reading: Reading
    num_actions: int

    def is_truncated(self, state: PyTree) -> Any:
        """Whether the time limit is reached."""
        if hasattr(self.env, "is_truncated"):
            return self.env.is_truncated(state, self.params)
        for clock, limit in CLOCKS:
            if hasattr(state, clock) and hasattr(self.params, limit):
                return getattr(state, clock) >= getattr(self.params, limit)
        return False


class GymnaxWorld(Environment):
    """One seed's environment; if it is `fixed`, every episode begins with the key `layout`."""

    layout: PRNGKeyArray
    fixed: bool = eqx.field(static=True)
    rules: Rules = eqx.field(static=True)

    @property
    def observations(self) -> ObservationSpace:
        return self.rules.reading.space

    @property
    def num_actions(self) -> int:
        return self.rules.num_actions

    def reset(self, key: PRNGKeyArray) -> tuple[PyTree, TimeStep]:
        """The state and first time step; its numbers have the types that they have after a step."""
        env, params, start = self.rules.env, self.rules.params, self.layout if self.fixed else key
        observation, state = env.reset_env(start, params)
        after = jax.eval_shape(lambda: env.step_env(start, state, jnp.zeros((), jnp.int32), params)[1])
        no = jnp.zeros((), bool)
        shown = TimeStep(self.rules.reading.array(observation), jnp.zeros(()), no, no)
        return jax.tree.map(_of_type, state, after), shown

    def step(self, key: PRNGKeyArray, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        rules = self.rules
        observation, after, reward, ended, *_ = rules.env.step_env(key, state, action, rules.params)
        after, ended = jax.tree.map(_of_type, after, state), jnp.asarray(ended, bool).reshape(())
        cut = jnp.asarray(rules.is_truncated(after), bool).reshape(())
        old_form = not hasattr(rules.env, "is_truncated")
        terminated, truncated = (ended & ~cut, ended & cut) if old_form else (ended, cut & ~ended)
        reward = jnp.asarray(reward, jnp.float32).reshape(())
        return after, TimeStep(rules.reading.array(observation), reward, terminated, truncated)


def rules_of(label: str, env: Any, params: Any, images: bool, states: bool) -> Rules:
    """The rules of an environment, whose first step is tried; `images` and `states` as for `read_space`."""
    actions, observations = call(
        lambda: (env.action_space(params), env.observation_space(params)), lambda: f"{label}, asked for its spaces,"
    )
    require_discrete(actions)
    rules = Rules(env, params, read_space(jnp, observations, images=images, states=states), int(actions.n))
    key = jax.random.key(0)
    world = GymnaxWorld(key, False, rules)
    call(
        lambda: jax.eval_shape(lambda: world.step(key, world.reset(key)[0], jnp.zeros((), jnp.int32))),
        lambda: f"{label}, at its first step,",
    )
    return rules


def _of_type(new: Any, like: Any) -> Array:
    """A number, or a key, of the type that another one has."""
    array = jnp.asarray(new)
    return array if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array.astype(like.dtype)
