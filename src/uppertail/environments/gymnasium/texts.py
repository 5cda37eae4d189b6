"""Texts in observations: constant ones are left out, others become the one-hot of their hash."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from uppertail.environments.gymnasium.answers import checked_reset, checked_step
from uppertail.environments.gymnasium.hashing import place

PLACES = 64
"""Places of the one-hot of a text. A new text takes the place of its hash, so that no list of texts has to be kept."""

TRIED_EPISODES, TRIED_STEPS = 10, 200
"""Random episodes, and the most steps of each, in which a text that never changes is taken for a constant."""

Path = tuple[Any, ...]
"""Where in an observation something is: keys of Dicts and indices of Tuples."""

Strip = Callable[[Any], Any]
"""An observation, or a part of one, without texts."""


class WithoutTexts(NamedTuple):
    """A space without texts, and the function that brings an observation into it."""

    space: spaces.Space[Any]
    strip: Strip


def texts_of(space: spaces.Space[Any], path: Path = ()) -> Iterator[Path]:
    """Where the texts in an observation are."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for name, part in _parts(space):
            yield from texts_of(part, (*path, name))
    elif _is_text(space):
        yield path


def constants(env: gymnasium.Env[Any, Any]) -> frozenset[Path]:
    """Where its texts are that stayed the same through random episodes; none if nothing would be left without them.

    The seeds of these episodes are fixed, so that it is the same each time.

    Args:
        env: an environment that is made only for this.
    """
    seen: dict[Path, set[str]] = {path: set() for path in texts_of(env.observation_space)}
    if not seen:
        return frozenset()
    env.action_space.seed(0)
    for episode in range(TRIED_EPISODES):
        observation, over = checked_reset(env.reset(seed=episode))[0], False
        for _ in range(TRIED_STEPS + 1):
            for path, texts in seen.items():
                texts.add(_at(observation, path))
            if over:
                break
            observation, _, terminated, truncated, _ = checked_step(env.step(env.action_space.sample()))
            over = terminated or truncated
    same = frozenset(path for path, texts in seen.items() if len(texts) == 1)
    return frozenset() if () in same or _is_empty(without_texts(env.observation_space, same).space) else same


def without_texts(space: spaces.Space[Any], left_out: frozenset[Path] = frozenset(), path: Path = ()) -> WithoutTexts:
    """The space without texts.

    Args:
        space: what an environment shows.
        left_out: paths of texts that never change.
        path: where this space is in the whole observation.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        kept = [(name, part) for name, part in _parts(space) if (*path, name) not in left_out]
        plain = {name: without_texts(part, left_out, (*path, name)) for name, part in kept}
        inner = {name: each for name, each in plain.items() if not _is_empty(each.space)}
        if isinstance(space, spaces.Dict):
            mapped = spaces.Dict({name: each.space for name, each in inner.items()})
            return WithoutTexts(mapped, lambda seen: {name: each.strip(seen[name]) for name, each in inner.items()})
        listed = spaces.Tuple([each.space for each in inner.values()])
        return WithoutTexts(listed, lambda seen: tuple(each.strip(seen[name]) for name, each in inner.items()))
    return (
        WithoutTexts(spaces.MultiBinary(PLACES), one_hot) if _is_text(space) else WithoutTexts(space, lambda seen: seen)
    )


def one_hot(text: str) -> np.ndarray:
    """A text as the one-hot of its hash."""
    places = np.zeros(PLACES, np.int8)
    places[place(str(text), PLACES)] = 1
    return places


def path_name(path: Path) -> str:
    """A part of an observation by its name, for messages."""
    return ".".join(map(str, path)) or "observation"


def _is_text(space: spaces.Space[Any]) -> bool:
    """Whether its observations are texts, as in Text and in spaces of other packages (MiniGrid's missions)."""
    if isinstance(space, spaces.Text):
        return True
    return not type(space).__module__.startswith("gymnasium.") and isinstance(space.sample(), str)


def _is_empty(space: spaces.Space[Any]) -> bool:
    """Whether it is a Dict or Tuple without parts."""
    return isinstance(space, spaces.Dict | spaces.Tuple) and not space.spaces


def _parts(space: Any) -> list[tuple[Any, spaces.Space[Any]]]:
    return list(space.spaces.items()) if isinstance(space, spaces.Dict) else list(enumerate(space.spaces))


def _at(observation: Any, path: Path) -> str:
    for name in path:
        observation = observation[name]
    return str(observation)
