"""Compiled environments in which each action is taken several times."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import ObservationSpace
from uppertail.environments.base import Environment, EnvironmentBuilder, discounted_steps
from uppertail.types import PyTree, TimeStep


class Repeated(Environment):
    """An environment in which each action is taken several times, and their rewards add up.

    It is taken fewer times where the episode ends, or where it is no longer allowed.
    """

    environment: Environment
    repeats: int = eqx.field(static=True)

    @property
    def observations(self) -> ObservationSpace:
        return self.environment.observations

    @property
    def num_actions(self) -> int:
        return self.environment.num_actions

    def reset(self, key: PRNGKeyArray) -> tuple[PyTree, TimeStep]:
        return self.environment.reset(key)

    def step(self, key: PRNGKeyArray, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        keys = jax.random.split(key, self.repeats)

        def again(number: Int[Array, ""], before: tuple[PyTree, TimeStep]) -> tuple[PyTree, TimeStep]:
            state, last = before
            after, now = self.environment.step(keys[number], state, action)
            over, added = last.terminated | last.truncated, now._replace(reward=last.reward + now.reward)
            if last.action_mask is not None:
                over |= ~last.action_mask[action]
            return jax.tree.map(lambda old, new: jnp.where(over, old, new), before, (after, added))

        return jax.lax.fori_loop(1, self.repeats, again, self.environment.step(keys[0], state, action))

    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]] | None:
        """The environment's own; wider, because rewards within an action are not discounted."""
        of_step = discount ** (1 / self.repeats)
        wider = self.repeats / discounted_steps(self.repeats, of_step)
        own = self.environment.return_range(of_step)
        return own and (wider * own[0], wider * own[1])


def build_repeated(builder: EnvironmentBuilder, key: PRNGKeyArray) -> Environment:
    """The environment of one seed as a run steps it: each action is taken as often as the builder says."""
    environment = builder.build(key)
    return Repeated(environment, builder.repeats) if builder.repeats > 1 else environment
