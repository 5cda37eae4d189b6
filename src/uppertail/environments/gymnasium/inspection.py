"""Facts that are read off a Gymnasium environment once."""

import contextlib
import copy
import itertools
import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from uppertail.encodings import Numbers, Pixels, hash_of, one_hot_text
from uppertail.environments.finite import FiniteMDP
from uppertail.environments.gymnasium.action_masks import sample_allowed
from uppertail.environments.gymnasium.adapter import Checked, Stack, WithFirst
from uppertail.environments.gymnasium.tables import read_table
from uppertail.environments.gymnasium.wrapping import Made, actions_of, time_limit
from uppertail.environments.interface import Interface
from uppertail.environments.packages import call
from uppertail.environments.spaces import (
    Origins,
    Path,
    Reading,
    Watched,
    at,
    chosen_origins,
    holds_more,
    is_a,
    is_image,
    is_text,
    leaves,
    read_space,
)
from uppertail.errors import InputError, join_names

TRIED_EPISODES, TRIED_STEPS = 10, 200  # a text that never changes in so many random episodes and steps is a constant


class Inspected(NamedTuple):
    """What is read off one environment."""

    interface: Interface
    example: np.ndarray  # an observation as it is read
    time_limit: int | None  # steps after which an episode is truncated; None: not known
    own_limit: int | None  # a `max_steps` of its own, as MiniGrid's have
    reward_threshold: float | None
    table: FiniteMDP | None  # what can be compiled in its place
    table_error: str | None  # why its table cannot
    is_single: bool  # not a vector of several
    rows: int  # of a picture of its states
    left_out: tuple[str, ...]  # the names of constant texts
    sharing: tuple[str, ...]  # the names of texts of which two share a place, so that they look the same
    action_names: tuple[str, ...]  # as it declares them; empty: it does not
    flat_images: tuple[str, ...]  # the names of images that are read as numbers, since they do not stand alone
    merges: bool  # whether two observations that differ became the same
    is_wide: bool  # whether numbers that are read as such have more than 32 bits
    has_texts: bool


def inspect_environment(
    label: str,
    env: Made,
    hashed: Reading | None,
    states: bool,
    levels: int | None,
    origins: Origins | None,
    constant_texts: Collection[str] | None,
) -> Inspected:
    """Reads the facts off an environment that is made only for this; InputError if it cannot be trained on.

    Args:
        label: what messages call it.
        env: the environment.
        hashed: how its observations are read if they become hashes; None: they are read by their space.
        states: whether several integers become one state, if they have few values together.
        levels: as for `list_actions`.
        origins: what is subtracted from numbers; None: what random episodes ask for.
        constant_texts: the names of texts that are left out; None: those that stay the same in random episodes.
    """
    alone = not isinstance(env, VectorEnv)
    names = ("observation_space", "action_space") if alone else ("single_observation_space", "single_action_space")
    space, _ = call(lambda: [getattr(env, name) for name in names], lambda: f"{label}, asked for its spaces,")
    texts = dict[Path, set[str]]()
    if alone and hashed is None:
        texts = call(lambda: _texts(env), lambda: f"{label}, in a random episode before training,")
    left_out = _constant(space, texts, constant_texts)
    if unknown := sorted({*(constant_texts or ())} - {*_names(texts)}):
        shown = join_names(sorted(_names(texts))) if texts else "none"
        raise InputError(f"constant_texts names {unknown[0]!r}, but the texts of {label} are: {shown}.")
    walk = list[Any]()
    if alone and hashed is None and holds_more(space):
        with contextlib.suppress(Exception):  # the run says why in its own words
            for observation in itertools.islice(random_walk(env), TRIED_STEPS + 1):
                walk.append(observation)
    is_wide, lost = bool(walk) and not is_image(space), False
    if hashed is None:
        chosen, lost = chosen_origins(space, left_out, walk) if is_wide else ((), False)
        reading = read_space(np, space, left_out, states=states, origins=chosen if origins is None else origins)
        if is_wide:
            reading = reading._replace(array=Watched(reading.array, space))
        count = len(reading.space.low) if isinstance(reading.space, Numbers) else 0
        if beyond := [place for place, _ in origins or () if not 0 <= place < count]:
            raise InputError(
                f"origins names number {beyond[0]}, but {label} shows {count} numbers: count from 0, or leave it out."
            )
    else:
        reading = of_images(hashed, space) if alone else hashed
    table, table_error = read_table(env) if isinstance(env, gymnasium.Env) else (None, None)
    own_limit, threshold, rows = call(lambda: _declared(env), lambda: f"{label}, asked for what it declares,")
    actions = actions_of(env, levels)
    interface = Interface(reading, actions)
    return Inspected(
        interface._replace(form=env.form, parts=env.parts) if isinstance(env, Stack | WithFirst) else interface,
        reading.array(_sample(space)),
        time_limit(env),
        own_limit if alone else None,
        threshold,
        table,
        table_error,
        alone,
        rows,
        _names(left_out),
        _names({path for path, seen in texts.items() if len({*map(_place, seen)}) < len(seen)}),
        _action_names(env),
        _names([path for path, part in leaves(space) if path and is_image(part)]),
        lost
        or any(
            _differ(space, *pair) and np.array_equal(*map(reading.array, pair)) for pair in itertools.pairwise(walk)
        ),
        is_wide,
        bool(texts),
    )


def _sample(space: Any) -> Any:
    """An observation of a space; its lowest one if its bounds are so far apart that Gymnasium draws none."""
    try:
        return space.sample()
    except (ValueError, OverflowError):
        if not is_a(space, "Box"):
            raise
        return np.array(space.low)


def of_images(hashed: Reading, space: Any) -> Reading:
    """How observations are hashed; those that are images, as the pixels that they are read as, with their shape."""
    if hashed.array is not hash_of or not is_a(space, "Box"):
        return hashed
    image = read_space(np, space)
    if not isinstance(image.space, Pixels):
        return hashed
    return hashed._replace(array=lambda seen: hash_of(image.array(seen)), shape=image.shape)


def random_walk(env: Any) -> Iterator[Any]:
    """The observations of random episodes, without an end, as the environment gives them."""
    checked = Checked(env)
    env.action_space.seed(0)
    for episode in itertools.count():
        (observation, info), over = checked.reset(seed=episode), False
        yield copy.deepcopy(observation)  # many environments reuse their arrays
        while not over:
            observation, _, terminated, truncated, info = checked.step(sample_allowed(env, info))
            yield copy.deepcopy(observation)
            over = terminated or truncated


def _differ(space: Any, *observations: Any) -> bool:
    """Whether two observations differ in any of their parts."""
    return any(not np.array_equal(*(at(each, path) for each in observations)) for path, _ in leaves(space))


def _texts(env: Any) -> dict[Path, set[str]]:
    """Which texts random episodes show, and where."""
    checked = Checked(env)
    seen: dict[Path, set[str]] = {path: set() for path, part in leaves(env.observation_space) if is_text(part)}
    if not seen:
        return seen
    env.action_space.seed(0)
    for episode in range(TRIED_EPISODES):
        (observation, info), over = checked.reset(seed=episode), False
        for _ in range(TRIED_STEPS + 1):
            for path, texts in seen.items():
                texts.add(str(at(observation, path)))
            if over:
                break
            observation, _, terminated, truncated, info = checked.step(sample_allowed(env, info))
            over = terminated or truncated
    return seen


def _constant(space: Any, texts: dict[Path, set[str]], named: Collection[str] | None) -> frozenset[Path]:
    """Where the texts are that are named or, if None are, stayed the same; none if nothing would be left."""
    same = frozenset(
        path for path, seen in texts.items() if (len(seen) == 1 if named is None else _name(path) in named)
    )
    return same if dict(leaves(space)).keys() - same else frozenset()


def _place(text: str) -> int:
    """The place of a text in its one-hot."""
    return int(one_hot_text(text).argmax())


def _names(paths: Collection[Path]) -> tuple[str, ...]:
    return tuple(map(_name, sorted(paths, key=str)))


def _name(path: Path) -> str:
    return ".".join(map(str, path))


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
