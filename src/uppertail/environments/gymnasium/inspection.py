"""Facts that are read off a Gymnasium environment once."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.adapter import Stack, WithFirst
from uppertail.environments.gymnasium.observed import Observed
from uppertail.environments.gymnasium.tables import read_table
from uppertail.environments.gymnasium.wrapping import Made, actions_of, normalizing, shows_time, time_limit
from uppertail.environments.interface import Interface
from uppertail.environments.packages import call


class Inspected(NamedTuple):
    """What is read off one environment."""

    observed: Observed
    interface: Interface
    time_limit: int | None  # steps after which an episode is truncated; None: not known
    shows_time: bool  # a wrapper shows how many steps are gone
    normalizing: tuple[str, ...]  # wrappers that scale by what they saw
    own_limit: int | None  # a `max_steps` of its own, as MiniGrid's have
    reward_threshold: float | None
    table: FiniteMDP | None  # what can be compiled in its place
    table_error: str | None  # why its table cannot
    is_single: bool  # not a vector of several
    rows: int  # of a picture of its states
    action_names: tuple[str, ...]  # as it declares them; empty: it does not


def inspect_environment(label: str, env: Made, levels: int | None, observe: Callable[[Any], Observed]) -> Inspected:
    """Reads the facts off an environment that is made only for this; InputError if it cannot be trained on.

    Args:
        label: what messages call it.
        env: the environment.
        levels: as for `list_actions`.
        observe: finds out how observations of a space are read.
    """
    alone = not isinstance(env, VectorEnv)
    names = ("observation_space", "action_space") if alone else ("single_observation_space", "single_action_space")
    space, _ = call(lambda: [getattr(env, name) for name in names], lambda: f"{label}, asked for its spaces,")
    observed = observe(space)
    table, table_error = read_table(env) if isinstance(env, gymnasium.Env) else (None, None)
    own_limit, threshold, rows = call(lambda: _declared(env), lambda: f"{label}, asked for what it declares,")
    interface = Interface(observed.reading, actions_of(env, levels))
    return Inspected(
        observed,
        interface._replace(form=env.form, parts=env.parts) if isinstance(env, Stack | WithFirst) else interface,
        time_limit(env),
        shows_time(env),
        normalizing(env),
        own_limit if alone else None,
        threshold,
        table,
        table_error,
        alone,
        rows,
        _action_names(env),
    )


def _declared(env: Made) -> tuple[int | None, float | None, int]:
    """The limit of steps that it names itself, its threshold, and the rows of its states' picture."""
    bare = env.unwrapped
    shape = getattr(bare, "shape", None)  # of its states, as CliffWalking has it; FrozenLake has `nrow`
    rows = shape[0] if isinstance(shape, tuple) and len(shape) == 2 else getattr(bare, "nrow", 1)
    is_count = isinstance(rows, int | np.integer) and rows > 0
    own = getattr(bare, "max_steps", None)
    return own if isinstance(own, int) else None, _threshold(env), int(rows) if is_count else 1


def _action_names(env: Made) -> tuple[str, ...]:
    """The names of its actions in its metadata, if these are texts."""
    said: Any = getattr(env, "metadata", None)
    named: Any = said.get("action_names") if isinstance(said, dict) else None
    is_list = isinstance(named, list | tuple) and all(isinstance(each, str) for each in named)
    return tuple(named) if is_list else ()


def _threshold(env: Made) -> float | None:
    """The return from which an environment counts as solved: as registered, or as it declares itself."""
    declared = None if env.spec is None else env.spec.reward_threshold
    own = getattr(env.unwrapped, "reward_threshold", None) if declared is None else declared
    if isinstance(own, bool) or not isinstance(own, int | float | np.integer | np.floating):
        return None
    return float(own) if math.isfinite(own) else None
