"""Environments that say which actions are allowed in another way than by their infos, or whose masks are not asked."""

import inspect
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from uppertail.environments.actions import by_action
from uppertail.environments.gymnasium.action_masks import KEY, mask_of
from uppertail.environments.gymnasium.adapter import Checked, Listed
from uppertail.environments.spaces import is_a
from uppertail.errors import ContractError

METHOD = "action_masks"  # as sb3-contrib asks for it


class Unmasked(Checked):
    """An environment that does not say which actions are allowed."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        first, _ = super().reset(**kwargs)
        return first, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return *super().step(action)[:4], {}


class Masked(Checked):
    """Puts into each info the mask that an environment gives by a method, or as a part of its observation.

    That is the method `action_masks`, as sb3-contrib asks for it, or the part `action_mask` of a Dict observation, as
    in PettingZoo. It has a truth value for each action or, if an action is several integers, for each value of the
    first of them, then of the second, and so on, or for each combination; four numbers for two integers of two values
    are about the values. What an info has goes before.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        listed: Any = env.action_space
        self.count, self.by_method = int(listed.n), _has_method(env)
        self.no_action, self.of_values = np.zeros(self.count, bool), None
        if isinstance(env, Listed):
            self.of_values = env.listed.of_values

    @staticmethod
    def fits(env: gymnasium.Env[Any, Any]) -> bool:
        """Whether an environment has such a method, or such a part: an array, beside actions that it lists itself."""
        space = getattr(env, "observation_space", None)
        part = space.spaces.get(KEY) if isinstance(space, spaces.Dict) else None
        lists = is_a(_own_actions(env), "Discrete", "MultiDiscrete", "MultiBinary")
        return _has_method(env) or (lists and part is not None and bool(part.shape))

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        first, info = super().reset(**kwargs)
        return first, self._told(first, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        after, reward, terminated, truncated, info = super().step(action)
        told = {KEY: self.no_action} if terminated else self._told(after, info)
        return after, reward, terminated, truncated, told

    def _told(self, observation: Any, info: Any) -> dict[str, Any]:
        """What is allowed, as an info says it; nothing where the environment does not say."""
        if isinstance(info, dict) and info.get(KEY) is not None:
            return info
        if self.by_method:
            given, what = self._by_method(), f"its {METHOD}() gives"
        else:
            part = observation.get(KEY) if isinstance(observation, dict) else None
            given, what = part, f"the part {KEY} of its observation has"
        return {} if given is None else {KEY: self._of_actions(given, what)}

    def _by_method(self) -> Any:
        """The mask of the method; None if it gives none."""
        try:
            return self.env.get_wrapper_attr(METHOD)()
        except NotImplementedError:
            return None

    def _of_actions(self, given: Any, what: str) -> Any:
        """A mask with a value for each action of the list."""
        length, values = np.size(given), 0 if self.of_values is None else int(self.of_values.max()) + 1
        if length not in (values, self.count):
            wanted = f"{values} or {self.count}" if values else self.count
            raise ContractError(
                f"{what} {length} values, not {wanted}: give one for each action, or for each value of each integer of "
                "an action (--env.action_masks false: masks are ignored)"
            )
        mask = mask_of({KEY: np.ravel(given)}, length)
        return None if mask is None else by_action(mask, self.of_values)


def _own_actions(env: gymnasium.Env[Any, Any]) -> Any:
    """The action space before its actions were listed."""
    return (env.env if isinstance(env, Listed) else env).action_space


def _has_method(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether the environment, or one that it wraps, has the method, and it needs no arguments."""
    method = env.get_wrapper_attr(METHOD) if env.has_wrapper_attr(METHOD) else None
    try:
        return callable(method) and inspect.signature(method).bind() is not None
    except (TypeError, ValueError):
        return False
