"""A Gymnasium vector environment, in any of its autoreset modes."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from gymnasium.vector.utils import iterate
from jaxtyping import Bool, Float, Int

from uppertail.environments.gymnasium.action_masks import KEY, NONE_ALLOWED, NOT_ALWAYS, mask_of
from uppertail.environments.gymnasium.adapter import NO_PAIR, STEPS, close_quietly
from uppertail.environments.interface import Interface
from uppertail.environments.packages import (
    LARGEST,
    NOT_FINITE,
    TOO_LARGE,
    EnvironmentFailedError,
    call,
    require_finite,
)
from uppertail.errors import ContractError, InputError, short_text

Masks = Bool[np.ndarray, "envs actions"] | None

NONE = -1  # fills the actions of the shorter episodes, in a checkpoint


class HostStep(NamedTuple):
    """One step of environments side by side."""

    next_observation: np.ndarray  # after the step, also at an episode's end
    reward: Float[np.ndarray, " envs"]  # as the environments gave it; of 32 bits after `step_host`
    terminated: Bool[np.ndarray, " envs"]
    truncated: Bool[np.ndarray, " envs"]
    observation: np.ndarray  # for the next action: the first of a new episode, if one has ended
    real: Bool[np.ndarray, " envs"]  # False for a step that only reset the environment
    steps: Int[np.ndarray, " envs"]  # for which the action was taken
    next_action_mask: Masks = None  # at `next_observation`
    action_mask: Masks = None  # at `observation`


@contextlib.contextmanager
def of_processes(apart: bool = True) -> Iterator[None]:
    """Says what a broken pipe means where environments are in processes of their own."""
    try:
        yield
    except (EOFError, ConnectionError) as error:
        if not apart:
            raise
        raise RuntimeError("the process of one of its environments has ended") from error


def step_host(host: "HostEnvironments", actions: Int[np.ndarray, " envs"], where: Callable[[], str]) -> HostStep:
    """One step of all environments, as `call` makes it; its rewards and observations must be finite, too."""
    now = call(lambda: host.step(actions), where)
    if not (usable := np.abs(now.reward) <= LARGEST).all():
        reward = now.reward[~usable][0]
        raise EnvironmentFailedError((TOO_LARGE if np.isfinite(reward) else NOT_FINITE).format(where(), reward))
    require_finite(now.next_observation, where)
    if now.observation is not now.next_observation:
        require_finite(now.observation, where)
    return now._replace(reward=now.reward.astype(np.float32))


def episode_seed(seed: int, environment: int, episode: int, fixed: int | None = None) -> int:
    """The seed that an episode of an environment of a run is reset with, so that none before it is needed.

    `environment` and `episode` count from 0; `fixed`: the seed of every episode instead.
    """
    if fixed is not None:
        return fixed
    return int(np.random.SeedSequence((seed, environment, episode)).generate_state(1)[0])


class HostEnvironments:
    """The environments of one seed, side by side. No step crosses an episode's end, in any autoreset mode.

    In the mode `DISABLED` this class resets them: each episode has its own seed, or `reset_seed`, and a checkpoint can
    restore it. To go back to an episode, its seed and its actions are played again: an environment that keeps to
    Gymnasium's contract then gives the same observations. Those of `adapted` environments are arrays already.

    Attributes:
        action_mask: which actions are allowed now, [envs, actions]; None: the environments do not say.
        places: as many environments as the seeds of episodes are drawn for, if they are played in fewer.
    """

    action_mask: Masks = None

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        interface: Interface,
        seed: int,
        reset_seed: int | None = None,
        adapted: bool = False,
        masked: bool = True,
        ends_at_limit: bool = False,
        time_limit: int | None = None,
    ) -> None:
        """Takes a vector environment.

        `masked`: whether masks of allowed actions are read, where the environments give them. `ends_at_limit`: whether
        an episode that is truncated counts as terminated. `time_limit`: steps after which an episode is truncated; one
        of environments that reset themselves goes on as the next.
        """
        self.env, self.interface, self.seed, self.reset_seed, self.adapted = env, interface, seed, reset_seed, adapted
        self.masked, self.ends_at_limit, self.time_limit = masked, ends_at_limit, time_limit or math.inf
        mode: Any = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        try:
            self.mode = AutoresetMode(mode)
        except ValueError:
            raise InputError(
                f"autoreset_mode in the metadata of this vector environment is {short_text(mode)}: use one of the "
                "members of gymnasium.vector.AutoresetMode."
            ) from None
        if reset_seed is not None and self.mode is not AutoresetMode.DISABLED:
            raise InputError(
                f"reset_seed is {reset_seed}, but this vector environment resets itself, with seeds of its own: leave "
                "reset_seed out, or make it with AutoresetMode.DISABLED."
            )
        self.num_envs = self.places = env.num_envs
        self.episodes, self.lengths = np.zeros((2, env.num_envs), np.int64)
        self.actions: list[list[int]] = [[] for _ in range(env.num_envs)]
        self.resetting = np.zeros(env.num_envs, bool)

    def reset(self, episode: int = 0) -> np.ndarray:
        """The first observation of each environment's episode of this number."""
        self.episodes[:], self.lengths[:], self.resetting[:] = episode, 0, False
        self.actions = [[] for _ in range(self.num_envs)]
        first, info = self._reset()
        self.action_mask = self._mask_in(info, everywhere := np.ones(self.num_envs, bool))
        self._require_allowed(everywhere)
        return self._arrays(first)

    def begin_another(self, episodes: int) -> np.ndarray:
        """The first observations of new episodes in place of those in progress, after so many have ended."""
        return self.reset(max(int(self.episodes.max()), episodes) + 1)

    def step(self, actions: Int[np.ndarray, " envs"]) -> HostStep:
        """One step of all of them; an episode that ends is followed by another."""
        if self.mode is AutoresetMode.DISABLED:  # in other modes, episodes cannot be restored
            for taken, action in zip(self.actions, actions.tolist(), strict=True):
                taken.append(action)
        after, reward, terminated, truncated, info = self._stepped(actions)
        taken = info[STEPS] if self.adapted and STEPS in info else np.ones(self.num_envs, np.int64)
        real, ended = ~self.resetting, terminated | truncated
        self.lengths += taken * real
        long = self.lengths >= self.time_limit
        self.lengths[ended | long] = 0
        if self.mode is AutoresetMode.DISABLED:
            ended = ended | long
        next_observation = observation = self._arrays(after)
        next_mask = self.action_mask
        if self.mode is AutoresetMode.NEXT_STEP:
            self.resetting = ended.copy()
        elif ended.any():
            self.episodes += ended
            if self.mode is AutoresetMode.SAME_STEP:
                if missing := {"final_obs", *(["final_info"] if next_mask is not None else [])} - info.keys():
                    raise ContractError(
                        f"its info has no {min(missing)} where an episode ended, as AutoresetMode.SAME_STEP asks: give "
                        "it, or use AutoresetMode.NEXT_STEP"
                    )
                next_observation = observation.copy()
                for index in np.flatnonzero(ended):
                    next_observation[index] = self.interface.reading.array(info["final_obs"][index])
                if next_mask is not None:
                    final: Any = self._mask_in(info["final_info"], ended)
                    next_mask = np.where(ended[:, None], final, next_mask)
            else:
                observation = self._begin(ended)
        if self.ends_at_limit:
            terminated = ended
        rewards = np.array(reward, np.float64).reshape(self.num_envs)
        truncated, masks = (truncated | long) & ~terminated, (next_mask, self.action_mask)
        return HostStep(next_observation, rewards, terminated.copy(), truncated, observation, real, taken, *masks)

    def saved(self) -> dict[str, np.ndarray]:
        """Arrays from which `restore` can go back to the episodes in progress; empty if it cannot."""
        if self.mode is not AutoresetMode.DISABLED:
            return {}
        longest = max(map(len, self.actions))
        padded = [[NONE] * (longest - len(taken)) + taken for taken in self.actions]
        return {"episode": self.episodes.copy(), "actions": np.array(padded, np.int64).reshape(self.num_envs, longest)}

    def restore(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Plays the saved actions again, or begins other episodes; the current observations.

        A shorter episode begins later, so that all end at the same step.
        """
        observation, everywhere = self.reset(), np.ones(self.num_envs, bool)
        if not arrays:
            return observation
        self.episodes = arrays["episode"].copy()
        observation = self._begin(everywhere)
        for actions in arrays["actions"].T:
            idle = actions == NONE
            for taken, action in zip(self.actions, actions.tolist(), strict=True):
                taken.extend([] if action == NONE else [action])
            allowed = 0 if self.action_mask is None else self.action_mask.argmax(axis=1)
            after, _, terminated, truncated, _ = self._stepped(np.where(idle, allowed, actions))
            if ((terminated | truncated) & ~idle).any():  # none ended at first: the environments behave differently now
                return self._begin(everywhere)
            observation = self._arrays(after)
            if idle.any():  # these are still waiting for their episode to begin
                observation = self._begin(idle)
        return observation

    def close(self) -> None:
        """Frees the resources of the environments."""
        close_quietly(self.env)

    def _stepped(self, actions: Int[np.ndarray, " envs"]) -> Any:
        """One step by actions as the environments count them, of the type that Gymnasium's own samples have."""
        numbers, listed = actions.astype(np.int64), self.interface.actions
        with of_processes(isinstance(self.env, AsyncVectorEnv)):  # adapted ones have their list themselves
            stepped = self.env.step(numbers + listed.first if self.adapted else listed.taken(numbers))
        for name, ends in zip(("terminated", "truncated"), stepped[2:4], strict=True):
            if np.shape(ends) != (self.num_envs,):
                one = f"give one truth value for each of the {self.num_envs} environments"
                raise ContractError(f"{name} has the shape {np.shape(ends)}: {one}")
        goes_on = ~np.asarray(stepped[2], bool)
        before, self.action_mask = self.action_mask, self._mask_in(stepped[4], goes_on)
        if (before is None) != (self.action_mask is None):
            raise ContractError(NOT_ALWAYS)
        self._require_allowed(goes_on)
        return stepped

    def _reset(self, **asked: Any) -> tuple[Any, dict[str, Any]]:
        with of_processes(isinstance(self.env, AsyncVectorEnv)):
            pair: Any = self.env.reset(seed=self._seeds(), **asked)
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[1], dict):
            raise ContractError(NO_PAIR)
        return pair[0], pair[1]

    def _begin(self, which: Bool[np.ndarray, " envs"]) -> np.ndarray:
        """All observations, after a new episode has begun in some of the environments."""
        for index in np.flatnonzero(which):
            self.actions[index] = []
        first, info = self._reset(options={"reset_mask": which.copy()})
        if (mask := self._mask_in(info, which)) is not None:
            before = mask if self.action_mask is None else self.action_mask
            self.action_mask = np.where(which[:, None], mask, before)
            self._require_allowed(which)
        return self._arrays(first)

    def _mask_in(self, info: Any, which: Bool[np.ndarray, " envs"]) -> Masks:
        """The masks in an info, which must hold those of some of the environments; None: it holds none."""
        size = self.interface.actions.size
        if not self.masked or (mask := mask_of(info, self.num_envs, size)) is None:
            if which.any() and self.action_mask is not None:
                raise ContractError(NOT_ALWAYS)
            return None
        if not np.broadcast_to(info.get(f"_{KEY}", True), which.shape)[which].all():
            raise ContractError(NOT_ALWAYS)
        return mask

    def _require_allowed(self, which: Bool[np.ndarray, " envs"]) -> None:
        """Refuses masks without an allowed action in some of the environments."""
        if self.action_mask is not None and not self.action_mask[which].any(axis=1).all():
            raise ContractError(NONE_ALLOWED)

    def _seeds(self) -> Any:
        """A seed for each environment, a form that Gymnasium's types lack; one for all if they reset themselves."""
        if self.mode is not AutoresetMode.DISABLED:
            return episode_seed(self.seed, 0, int(self.episodes[0]))
        numbers = (self.episodes * self.num_envs + np.arange(self.num_envs)).tolist()
        of_places = (divmod(number, self.places) for number in numbers)
        return [episode_seed(self.seed, place, episode, self.reset_seed) for episode, place in of_places]

    def _arrays(self, observations: Any) -> np.ndarray:
        """The observations of all environments, in a copy."""
        if self.adapted:
            return observations
        arrays = [*map(self.interface.reading.array, iterate(self.env.observation_space, observations))]
        if len(arrays) != self.num_envs:
            raise ContractError(
                f"it has {self.num_envs} environments, but gives {len(arrays)} observations: give one each"
            )
        return np.stack(arrays)
