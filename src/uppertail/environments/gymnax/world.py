"""An environment in gymnax's form as a compiled environment, and what its builders share."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from uppertail.compiling import precise
from uppertail.encodings import ObservationSpace
from uppertail.environments.actions import Actions, list_actions
from uppertail.environments.base import EVALUATION, Environment, WatchedEnvironment
from uppertail.environments.packages import PackageBuilder, call
from uppertail.environments.repeated import build_repeated
from uppertail.environments.spaces import Reading, read_space
from uppertail.errors import InputError
from uppertail.identity import identity_of
from uppertail.schema import require_type
from uppertail.types import PyTree, TimeStep

# names of the steps of an episode in a state, and of their limit in the parameters, before gymnax 1.0
CLOCKS = (("time", "max_steps_in_episode"), ("timestep", "max_timesteps"))
FRAMES_PER_SECOND = 10  # how fast its pictures are shown


@dataclasses.dataclass(frozen=True, eq=False)
class Rules:
    """An environment with its parameters, which are constants of the compiled program; equal if they hold the same.

    An `env` of the form before gymnax 1.0 has no `is_truncated`: there, an end on the time limit is a truncation.
    """

    env: Any
    params: Any
    reading: Reading
    actions: Actions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @functools.cached_property
    def _identity(self) -> Hashable:
        return identity_of((self.env, self.params, self.reading, self.actions))

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
        return self.rules.actions.size

    def reset(self, key: PRNGKeyArray) -> tuple[PyTree, TimeStep]:
        """The state and first time step; its numbers have the types that they have after a step."""
        env, params, start = self.rules.env, self.rules.params, self.layout if self.fixed else key
        action = self.rules.actions.taken(jnp.zeros((), jnp.int32), jnp)
        observation, state = env.reset_env(start, params)
        after = jax.eval_shape(lambda: env.step_env(start, state, action, params)[1])
        no = jnp.zeros((), bool)
        shown = TimeStep(self.rules.reading.array(observation), jnp.zeros(()), no, no)
        return jax.tree.map(_of_type, state, after), shown

    def step(self, key: PRNGKeyArray, state: PyTree, action: Int[Array, ""]) -> tuple[PyTree, TimeStep]:
        rules = self.rules
        taken = rules.actions.taken(action, jnp)
        observation, after, reward, ended, *_ = rules.env.step_env(key, state, taken, rules.params)
        after, ended = jax.tree.map(_of_type, after, state), jnp.asarray(ended, bool).reshape(())
        cut = jnp.asarray(rules.is_truncated(after), bool).reshape(())
        old_form = not hasattr(rules.env, "is_truncated")
        terminated, truncated = (ended & ~cut, ended & cut) if old_form else (ended, cut & ~ended)
        reward = jnp.asarray(reward, jnp.float32).reshape(())
        return after, TimeStep(rules.reading.array(observation), reward, terminated, truncated)


def rules_of(label: str, env: Any, params: Any, images: bool, states: bool, levels: int | None = None) -> Rules:
    """The rules of an environment, whose first step is tried; settings as for `read_space` and `list_actions`."""
    actions, observations = call(
        lambda: (env.action_space(params), env.observation_space(params)), lambda: f"{label}, asked for its spaces,"
    )
    reading = read_space(jnp, observations, images=images, states=states)
    rules = Rules(env, params, reading, list_actions(actions, levels))
    key = jax.random.key(0)
    world = GymnaxWorld(key, False, rules)
    call(
        lambda: jax.eval_shape(lambda: world.step(key, world.reset(key)[0], jnp.zeros((), jnp.int32))),
        lambda: f"{label}, at its first step,",
    )
    return rules


class CompiledWatched(WatchedEnvironment):
    """One compiled environment, played to be watched: `picture` draws a state."""

    def __init__(self, build: Callable[..., Environment], picture: Callable[[Any], Any], frames_per_second: int):
        self.build, self.picture = build, picture
        self.frames_per_second = float(frames_per_second)
        self.programs: dict[int, Any] = {}

    def reset(self, seed: int, episode: int) -> np.ndarray:
        """The first observation of an episode in the environment that the run of this seed has."""
        run = jax.random.key(seed % EVALUATION)
        world = self.build(jax.random.split(run, 3)[0])  # as `training.seeds.seed_keys` draws it
        self.key, self.length = jax.random.fold_in(jax.random.key(seed), episode), 0
        self.step_compiled = self.programs.setdefault(seed, eqx.filter_jit(precise(world.step)))
        self.state, first = eqx.filter_jit(precise(world.reset))(self.key)
        return np.asarray(first.observation)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        self.length += 1
        key = jax.random.fold_in(self.key, self.length)
        self.state, now = self.step_compiled(key, self.state, np.int32(action))
        return np.asarray(now.observation), float(now.reward), bool(now.terminated | now.truncated)

    def frame(self) -> np.ndarray:
        return np.asarray(self.picture(self.state), np.uint8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnaxBuilder(PackageBuilder):
    """A compiled environment in gymnax's form."""

    @abc.abstractmethod
    def make(self) -> Rules:
        """The environment with its parameters; InputError if it cannot be made."""

    @abc.abstractmethod
    def picture(self, state: Any) -> Any:
        """The picture of a state, [rows, columns, red green blue]; InputError if there is none."""

    @functools.cached_property
    def rules(self) -> Rules:
        """The environment, made once; its arrays are plain even under a trace."""
        with jax.ensure_compile_time_eval():
            return self.make()

    @property
    def actions(self) -> Actions:
        return self.rules.actions

    def build(self, key: PRNGKeyArray) -> GymnaxWorld:
        layout = jax.random.key(self.reset_seed) if isinstance(self.reset_seed, int) else key
        return GymnaxWorld(layout, self.reset_seed is not None, self.rules)

    def watched(self, pictures: bool, frames_per_second: int | None = None) -> CompiledWatched:
        if not pictures:
            raise InputError(f"{self.label} opens no window: give --gif FILE.")
        pace = frames_per_second or max(1, round(FRAMES_PER_SECOND / self.repeats))
        return CompiledWatched(functools.partial(build_repeated, self), self.picture, pace)


def with_params(label: str, default: Any, changes: Mapping[str, Any]) -> Any:
    """Parameters with some of them replaced; InputError if there is none of a name, or it is of another type."""
    fields = [field.name for field in dataclasses.fields(default)]
    for name, value in changes.items():
        if name not in fields:
            raise InputError(f"{label} has no parameter {name!r}: it has {', '.join(fields)}.")
        if isinstance(old := getattr(default, name), bool | int | float):
            require_type(f"params.{name}", value, type(old))
    return dataclasses.replace(default, **changes)


def _of_type(new: Any, like: Any) -> Array:
    """A number, or a key, of the type that another one has."""
    array = jnp.asarray(new)
    return array if jnp.issubdtype(array.dtype, jax.dtypes.prng_key) else array.astype(like.dtype)
