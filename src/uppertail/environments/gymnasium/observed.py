"""How a Gymnasium environment's observations are read: by its space, and by what random episodes show."""

import contextlib
import copy
import dataclasses
import itertools
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from uppertail.encodings import Numbers, Pixels, hash_of, one_hot_text
from uppertail.environments.gymnasium.action_masks import sample_allowed
from uppertail.environments.gymnasium.adapter import Checked
from uppertail.environments.gymnasium.wrapping import Made
from uppertail.environments.packages import call
from uppertail.environments.spaces import (
    Origins,
    Path,
    Reading,
    Watched,
    at,
    chosen_origins,
    differs,
    holds_more,
    is_a,
    is_grid,
    is_image,
    is_text,
    leaves,
    read_space,
)
from uppertail.errors import InputError, join_names

TRIED_EPISODES, TRIED_STEPS = 10, 200  # a text that never changes in so many random episodes and steps is a constant


class Observed(NamedTuple):
    """What is known of an environment's observations.

    Args:
        reading: how they become arrays.
        example: one of them, as it is read.
        left_out: the names of texts that are left out.
        sharing: the names of texts of which two share a place, so that they look the same.
        flat_images: the names of images, and of smaller grids of integers, that are read as numbers.
        grids: the places of numbers that stand in grids of integers.
        has_texts: whether they hold texts.
        is_wide: whether numbers that are read as such have more than 32 bits.
        merges: whether two observations that differ became the same.
    """

    reading: Reading
    example: np.ndarray
    left_out: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()
    flat_images: tuple[str, ...] = ()
    grids: tuple[int, ...] = ()
    has_texts: bool = False
    is_wide: bool = False
    merges: bool = False


def observed_as_hashes(env: Made, space: Any, hashed: Reading) -> Observed:
    """Observations that become hashes as `hashed` says; of an image, those of the pixels that it is read as."""
    is_plain = not isinstance(env, VectorEnv) and hashed.array is hash_of and is_a(space, "Box")
    if is_plain and isinstance((image := read_space(np, space)).space, Pixels):
        pixels = image.array(np.zeros(image.shape or ())).dtype.name
        whole = dataclasses.replace(hashed.space, pixels=pixels)  # pyright: ignore[reportArgumentType]
        hashed = Reading(lambda seen: hash_of(image.array(seen)), whole)
    hashed = hashed._replace(shape=getattr(space, "shape", None))
    return Observed(hashed, hashed.array(_sample(space)), flat_images=_flat_images(space))


def observed_by_space(
    label: str,
    env: Made,
    space: Any,
    states: bool,
    origins: Origins | None,
    constant_texts: Collection[str] | None,
    ordered: bool = False,
) -> Observed:
    """Observations that are read by their space; InputError if an environment fails, or settings do not fit.

    Args:
        label: what messages call the environment.
        env: the environment, which is stepped if its observations hold texts or large numbers.
        space: of its observations.
        states: whether several integers become one state, if they have few values together.
        origins: what is subtracted from numbers; None: what random episodes ask for.
        constant_texts: the names of texts that are left out; None: those that stay the same in random episodes.
        ordered: whether integers are numbers, as near ones are alike.
    """
    alone, texts, walk = not isinstance(env, VectorEnv), dict[Path, set[str]](), list[Any]()
    if alone:
        texts = call(lambda: _texts(env), lambda: f"{label}, in a random episode before training,")
    left_out = _constant(space, texts, constant_texts)
    if unknown := sorted({*(constant_texts or ())} - {*_names(texts)}):
        shown = join_names(sorted(_names(texts))) if texts else "none"
        raise InputError(f"constant_texts names {unknown[0]!r}, but the texts of {label} are: {shown}.")
    if alone and holds_more(space):
        with contextlib.suppress(Exception):  # the run says why in its own words
            for observation in itertools.islice(random_walk(env), TRIED_STEPS + 1):
                walk.append(observation)
    is_wide = bool(walk) and not is_image(space)
    chosen, lost = chosen_origins(space, left_out, walk, ordered) if is_wide else ((), False)
    origins = chosen if origins is None else origins
    reading = read_space(np, space, left_out, states=states, origins=origins, ordered=ordered)
    if is_wide:
        reading = reading._replace(array=Watched(reading.array, space))
    count = len(reading.space.low) if isinstance(reading.space, Numbers) else 0
    if beyond := [place for place, _ in origins or () if not 0 <= place < count]:
        raise InputError(
            f"origins names number {beyond[0]}, but {label} shows {count} numbers: count from 0, or leave it out."
        )
    return Observed(
        reading,
        reading.array(_sample(space)),
        left_out=_names(left_out),
        sharing=_names({path for path, seen in texts.items() if len({*map(_place, seen)}) < len(seen)}),
        flat_images=_flat_images(space),
        grids=_grids(space, reading),
        has_texts=bool(texts),
        is_wide=is_wide,
        merges=lost or any(_become_equal(space, reading, *pair) for pair in itertools.pairwise(walk)),
    )


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


def _sample(space: Any) -> Any:
    """An observation of a space; its lowest one if its bounds are so far apart that Gymnasium draws none."""
    try:
        return space.sample()
    except (ValueError, OverflowError):
        if not is_a(space, "Box"):
            raise
        return np.array(space.low)


def _become_equal(space: Any, reading: Reading, *observations: Any) -> bool:
    """Whether two observations that differ are read as the same."""
    parts = ([np.ravel(at(each, path)) for each in observations] for path, _ in leaves(space))
    return any(np.any(differs(*pair)) for pair in parts) and np.array_equal(*map(reading.array, observations))


def _flat_images(space: Any) -> tuple[str, ...]:
    names = _names([path for path, part in leaves(space) if is_grid(part) or (path and is_image(part))])
    return tuple(name or "observation" for name in names)


def _grids(space: Any, reading: Reading) -> tuple[int, ...]:
    """The places of the numbers that stand in grids of integers, which are no image alone; none beside fractions."""
    boxes = [part for _, part in leaves(space) if is_a(part, "Box") and part.dtype.kind == "f"]
    if any((part.high > 1).any() for part in boxes):
        return ()
    grids = {path for path, part in leaves(space) if is_grid(part) or (is_image(part) and part.dtype.kind in "iu")}
    widths = [len(part.low) for part in reading.parts]
    inside = np.repeat([part.path in grids for part in reading.parts], widths)
    return tuple(np.flatnonzero(inside).tolist())


def _place(text: str) -> int:
    """The place of a text in its one-hot."""
    return int(one_hot_text(text).argmax())


def _names(paths: Collection[Path]) -> tuple[str, ...]:
    return tuple(map(_name, sorted(paths, key=str)))


def _name(path: Path) -> str:
    return ".".join(map(str, path))
