"""What is put around environments: checks, stacks of observations, observations as arrays, and a vector of several."""

import collections
import contextlib
import copy
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from uppertail.environments.actions import Actions
from uppertail.environments.gymnasium.action_masks import KEY, NOT_ALWAYS, mask_of
from uppertail.environments.spaces import Reading
from uppertail.errors import ContractError, message_of, short_text

LAST_SECONDS = 60  # for which an environment's process outlives a signal, so that its parent can save what was learned

STEPS = "steps"  # in an adapted environment's info: for how many an action was taken that may be repeated

NO_PAIR = "its reset returns no pair of an observation and an info: return both"
FIVE = "return observation, reward, terminated, truncated, info"


class Checked(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that returns what Gymnasium's do; ContractError says what it returns instead."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        try:
            returned: Any = self.env.reset(seed=seed)
        except TypeError as error:
            if "reset() got an unexpected keyword argument" not in str(error):
                raise
            raise ContractError(f"{message_of(error)}: let its reset take seed=None, options=None") from error
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise ContractError(NO_PAIR)
        return returned[0], returned[1]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; its reward is a number of any type, and an end may be an array of one truth value."""
        try:
            returned: Any = self.env.step(action)
        except ValueError as error:  # of Gymnasium's own wrappers, such as TimeLimit
            if "values to unpack (expected 5" not in str(error):
                raise
            raise ContractError(f"its step gives more or fewer than five values: {FIVE}") from error
        if not isinstance(returned, tuple | list) or len(returned) != 5:
            count = f"{len(returned)} values" if isinstance(returned, tuple | list) else "one value"
            raise ContractError(f"its step gives {count}: {FIVE}")
        after, reward, terminated, truncated, info = returned
        reward = _paid(reward)
        for name, end in (("terminated", terminated), ("truncated", truncated)):
            if np.size(end) != 1 or end not in (False, True):  # an array of one number is fine
                raise ContractError(f"{name} is {end!r}, which is no truth value: return True or False")
        return after, reward, bool(terminated), bool(truncated), info


def _paid(reward: Any) -> float:
    """A reward now, as the environment may write into an array of it again; ContractError if it is no number."""
    if reward is not None and not (np.ndim(reward) or isinstance(reward, str | bytes) or np.iscomplexobj(reward)):
        with contextlib.suppress(TypeError, ValueError):
            return float(reward)
    many = reward is not None and np.size(reward) > 1
    one = "one float, such as a weighted sum (--env.wrappers)" if many else "a float"
    raise ContractError(f"the reward is {reward!r}, which is no number: return {one}")


class Listed(Checked):
    """An environment whose actions are numbers of a list."""

    def __init__(self, env: gymnasium.Env[Any, Any], actions: Actions) -> None:
        super().__init__(env)
        self.listed, self.action_space = actions, spaces.Discrete(actions.size)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return super().step(self.listed.taken(action))


class WithOptions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose every reset has these options."""

    def __init__(self, env: gymnasium.Env[Any, Any], options: dict[str, Any]) -> None:
        super().__init__(env)
        self.options = options

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed, options={**self.options, **(options or {})})


class Stack(Checked):
    """Shows the last `count` observations and the actions between them, the oldest first.

    At first there are fewer: the first observation stands for those before it, and a number beyond the actions for
    those that were not taken.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], count: int) -> None:
        super().__init__(env)
        self.parts = count + 1
        self.form = f"a tuple of the last {count} observations and an array of the actions between them"
        actions: Any = env.action_space
        self.first_action, self.none, self.count = int(actions.start), int(actions.n), count
        taken = spaces.MultiDiscrete([self.none + 1] * (count - 1))
        self.observation_space = spaces.Tuple((*[env.observation_space] * count, taken))

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        first, info = super().reset(**kwargs)
        self.seen = collections.deque([copy.deepcopy(first)] * self.count, self.count)
        self.taken = collections.deque([self.none] * (self.count - 1), self.count - 1)
        return (*self.seen, np.array(self.taken)), info

    def step(self, action: Any) -> Any:
        after, *others = super().step(action)
        self.seen.append(copy.deepcopy(after))  # many environments reuse their arrays
        self.taken.append(int(action) - self.first_action)
        return (*self.seen, np.array(self.taken)), *others


class WithFirst(Checked):
    """Shows the first observation of the episode before each observation."""

    parts, form = 2, "(first, last), each as the environment gives it"

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = spaces.Tuple((env.observation_space, env.observation_space))

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        first, info = super().reset(**kwargs)
        self.first = copy.deepcopy(first)
        return (self.first, first), info

    def step(self, action: Any) -> Any:
        after, *others = super().step(action)
        return (self.first, after), *others


class Adapter(Checked):
    """An environment that is called in the same way alone, beside others and when it is watched.

    Its observations are arrays, like the `example`, its actions Python integers, and its infos hold a mask of allowed
    actions or nothing, and how many steps an action was taken if it may be repeated, which it is as long as it is
    allowed. Without it, Gymnasium's vector
    environments convert observations to the declared shape and type, and pass actions as numbers of NumPy's types: an
    environment that works alone might fail, or behave differently, beside others.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], reading: Reading, example: np.ndarray, repeats: int = 1) -> None:
        """Adapts an environment, in which each action is taken `repeats` times."""
        super().__init__(env)
        kind = example.dtype
        bounds = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
        self.array, self.observation_space = reading.array, spaces.Box(*bounds, example.shape, kind.type)
        actions: Any = env.action_space
        self.repeats, self.first_action, self.count = repeats, int(actions.start), int(actions.n)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        first, info = super().reset(**kwargs)
        mask = mask_of(info, self.count)
        return self._read(first), {} if mask is None else {KEY: mask}

    def step(self, action: Any) -> Any:
        after, reward, terminated, truncated, info = super().step(int(action))
        mask, taken = mask_of(info, self.count), 1
        for _ in range(self.repeats - 1):
            if terminated or truncated or (mask is not None and not mask[int(action) - self.first_action]):
                break
            after, more, terminated, truncated, info = super().step(int(action))
            reward, mask, taken = reward + more, mask_of(info, self.count), taken + 1
        told = {} if self.repeats == 1 else {STEPS: taken}
        return self._read(after), reward, terminated, truncated, told if mask is None else {**told, KEY: mask}

    def _read(self, observation: Any) -> np.ndarray:
        """The observation as an array; ContractError if it is none of its space."""
        try:
            return self.array(observation)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
            if isinstance(error, ContractError):
                raise
            raise ContractError(
                f"the observation is {short_text(observation)}, which cannot be read as its space says "
                f"({message_of(error)}): let observation_space describe it"
            ) from error


def adapt_apart(parent: int, make: Callable[[], Any], *arguments: Any) -> Adapter:
    """Makes and adapts an environment in a process of its own.

    The process leaves Ctrl-C to its parent. After SIGTERM or SIGHUP, which may be sent to all processes at once, it
    lives on for as long as the parent may need to save what was learned. In the process `parent`, where Gymnasium
    makes one more to look at, signals stay as they are.
    """
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _end_later)
        if os.name == "posix" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, _end_later)
    return Adapter(make(), *arguments)


def _end_later(number: int, frame: Any) -> None:
    if os.name == "posix":
        signal.alarm(LAST_SECONDS)
    else:
        signal.signal(number, signal.SIG_DFL)


class SideBySide(VectorEnv[Any, Any, Any]):
    """Adapted environments as a vector in this process, without the copies that Gymnasium's makes at each step."""

    def __init__(self, envs: Sequence[Adapter]) -> None:
        self.envs, self.num_envs, self.metadata = envs, len(envs), {"autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space, self.single_action_space = envs[0].observation_space, envs[0].action_space
        self.seen: list[Any] = [None] * self.num_envs
        self.infos: list[dict[str, Any]] = [{}] * self.num_envs

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        for index, env in enumerate(self.envs):
            if options is None or options["reset_mask"][index]:
                self.seen[index], self.infos[index] = env.reset(seed=seed[index])
        return np.array(self.seen), self._info

    def step(self, actions: Any) -> Any:
        steps = [env.step(action) for env, action in zip(self.envs, actions.tolist(), strict=True)]
        self.seen[:], reward, terminated, truncated, self.infos[:] = zip(*steps, strict=True)
        return np.array(self.seen), np.array(reward), np.array(terminated), np.array(truncated), self._info

    @property
    def _info(self) -> dict[str, Any]:
        """What the infos of all environments hold; ContractError if only some of them have a mask."""
        told = dict[str, Any]()
        for name in (KEY, STEPS):
            given = [info[name] for info in self.infos if name in info]
            if len(given) == self.num_envs:
                told[name] = np.array(given)
            elif given and name == KEY:
                raise ContractError(NOT_ALWAYS)
        return told

    def close_extras(self, **kwargs: Any) -> None:
        for env in self.envs:
            close_quietly(env)


def close_quietly(env: Any) -> None:
    """Closes an environment, and ignores any error: nothing is lost by one."""
    with contextlib.suppress(Exception, SystemExit, GeneratorExit):
        env.close()
