"""Environments of XLand-MiniGrid, in gymnax's form."""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from uppertail.encodings import Numbers
from uppertail.environments.actions import Actions
from uppertail.environments.gymnax.world import GymnaxBuilder, Rules, with_params
from uppertail.environments.packages import import_extra, make_registered
from uppertail.environments.spaces import Reading
from uppertail.errors import InputError

DIRECTIONS = 4  # in how many directions an agent looks


class InGymnaxForm:
    """An environment of XLand-MiniGrid with gymnax's methods; its state is the library's whole time step.

    Each field is seen as two one-hot vectors, of its tile and of its color. With `whole` these are the fields of the
    whole grid, with the agent's place and what it carries; else those in front of the agent.
    """

    def __init__(self, env: Any, whole: bool, max_reward: float, tiles: int, colors: int) -> None:
        self.env, self.whole, self.max_reward, self.tiles, self.colors = env, whole, max_reward, tiles, colors

    def reset_env(self, key: Array, params: Any) -> tuple[Array, Any]:
        first = self.env.reset(params, key)
        return self._shown(first), first

    def step_env(self, key: Array, state: Any, action: Array, params: Any) -> tuple[Array, Any, Array, Array, Any]:
        now = self.env.step(params, state, action)
        reward = jnp.minimum(now.reward, self.max_reward)
        return self._shown(now), now, reward, now.last() & (now.discount == 0.0), {}

    def is_truncated(self, state: Any, params: Any) -> Array:
        return state.last() & (state.discount == 1.0)

    def _shown(self, now: Any) -> Array:
        """What the agent sees, and in which direction it looks."""
        agent = now.state.agent
        parts = [jax.nn.one_hot(agent.direction, DIRECTIONS)]
        if self.whole:
            grid = now.state.grid
            place = jnp.zeros(grid.shape[:2]).at[agent.position[0], agent.position[1]].set(1.0)
            parts += [place.reshape(-1), *self._one_hot(grid), *self._one_hot(agent.pocket)]
        else:
            parts += self._one_hot(now.observation)
        return jnp.concatenate(parts)

    def _one_hot(self, fields: Array) -> list[Array]:
        """Tiles and colors of fields, [..., 2]."""
        kinds = zip((fields[..., 0], fields[..., 1]), (self.tiles, self.colors), strict=True)
        return [jax.nn.one_hot(each, count).reshape(-1) for each, count in kinds]


@dataclasses.dataclass(frozen=True)
class XMiniGrid(GymnaxBuilder):
    """An environment of XLand-MiniGrid, compiled with the training loop.

    Returns lie between 0 and the largest reward, since the goal alone pays.

    Args:
        id: its id, for example MiniGrid-DoorKey-8x8.
        params: parameters that differ from the environment's own, for example '{view_size: 5, max_steps: 200}'.
        view: what is observed besides the agent's direction: partial (the fields in front of it) or whole (all of the
            grid, where it is and what it carries).
        max_reward: the highest reward of a step; a larger one is cut to it. The goal pays less when it comes late: with
            0.1 it pays the same at any time.

    Examples:
        >>> ut.XMiniGrid("MiniGrid-DoorKey-8x8", reset_seed="run").label
        'MiniGrid-DoorKey-8x8'
    """

    id: str
    params: dict[str, Any] | None = None
    view: Literal["partial", "whole"] = "partial"
    max_reward: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.max_reward <= 1:
            raise InputError(f"max_reward is {self.max_reward}: the goal pays 0.1 to 1, so use a number in (0, 1].")
        if self.returns is None:
            object.__setattr__(self, "returns", (0.0, self.max_reward))

    def make(self) -> Rules:
        library = import_extra("xminigrid", "xminigrid")
        constants = import_extra("xminigrid.core.constants", "xminigrid")
        known = list(library.registered_environments())
        env, params = make_registered("xminigrid", self.id, known, lambda: library.make(self.id))
        form = InGymnaxForm(env, self.view == "whole", self.max_reward, constants.NUM_TILES, constants.NUM_COLORS)
        params = with_params(self.id, params, self.params or {})
        size = jax.eval_shape(lambda key: form.reset_env(key, params)[0], jax.random.key(0)).size
        bits = Numbers((0.0,) * size, (1.0,) * size, continuous=False)
        return Rules(form, params, Reading(jnp.asarray, bits), Actions(env.num_actions(params)))

    def picture(self, state: Any) -> np.ndarray:
        return np.asarray(self.rules.env.env.render(self.rules.params, state))
