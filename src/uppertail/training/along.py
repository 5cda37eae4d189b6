"""Observations along the greedy path at the end of a run, and what its networks gave there before."""

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Shaped, UInt8

from uppertail.agent import Agent
from uppertail.compiling import jitted
from uppertail.distributions import spread
from uppertail.environments import Reading
from uppertail.errors import printable
from uppertail.networks import Network

SHOWN = 8  # observations of each seed, evenly along its path
MOST_SHOWN = 64  # of all seeds
MOST_NAMED = 12  # numbers of an observation that is called by them
LONGEST_NAME = 60
FAMILY = "family/"  # begins the names of a family's numbers, which change with the range of returns


class Along(NamedTuple):
    """Distinct observations along the paths of all seeds."""

    observations: Shaped[np.ndarray, "count *shape"]
    names: tuple[str, ...]
    path: Int[np.ndarray, "seeds places"]  # which of them each seed's has, in order; -1 beyond its end
    masks: Bool[np.ndarray, "count actions"] | None  # which actions are allowed there; None: all
    of_state: Callable[[int], str]  # what a state is called that is made of several integers

    @classmethod
    def of(cls, episodes: Sequence[Sequence[tuple[Any, Any]]], reading: Reading) -> Self:
        """Those of an episode of each seed, each with its mask."""
        found, path = dict[bytes, tuple[np.ndarray, str, Any]](), np.full((len(episodes), SHOWN), -1)
        for seed, episode in enumerate(episodes):
            here = {(seen := reading.array(each)).tobytes(): (seen, in_words(each), mask) for each, mask in episode}
            steps = {name: step for step, name in enumerate(here)}
            chosen = [[*here][place] for place in np.unique(np.linspace(0, len(here) - 1, SHOWN).round().astype(int))]
            for place, name in enumerate(chosen):
                if name in found or len(found) < MOST_SHOWN:
                    seen, words, mask = here[name]
                    found.setdefault(name, (seen, words or f"observation {steps[name] + 1} of its path", mask))
                    path[seed, place] = [*found].index(name)
        observations, names, masks = zip(*found.values(), strict=True)
        masks = None if masks[0] is None else np.stack(masks)
        return cls(np.stack(observations), names, path, masks, functools.partial(state_in_words, reading))

    def given_by(self, agent: Agent, networks: Network) -> dict[str, np.ndarray]:
        """What networks of all seeds give there, [seeds, count, ...]."""
        of_seed = functools.partial(given, agent)
        return jax.tree.map(np.asarray, jitted(jax.vmap(of_seed, in_axes=(0, None)))(networks, self.observations))


def state_in_words(reading: Reading, state: int) -> str:
    """A state as a picture calls it: by the integers that it is made of; empty if it is made of one."""
    sizes = [size for part in reading.parts for size in part.sizes]
    if len(sizes) < 2:
        return ""
    digits, words = iter(np.unravel_index(state, sizes)), list[str]()
    for part in reading.parts:
        assert part.start is not None
        numbers = " ".join(f"{next(digits) + start}" for start in part.start.tolist())
        words.append(" ".join([*(name for name in part.path if isinstance(name, str)), numbers]))
    return ", ".join(words)


def given(agent: Agent, network: Network, observations: Shaped[Array, "count *shape"]) -> dict[str, Array]:
    """What a network gives of the actions in some observations, by the names of arrays in a recording."""
    z = jax.vmap(agent.returns_by_member, in_axes=(None, 0))(network, observations)
    spreads = jax.vmap(lambda each: spread(agent.family, each))(z)
    leaves, _ = jax.tree_util.tree_flatten_with_path(z)
    parameters = {f"z/{jax.tree_util.keystr(path, simple=True, separator='/')}": leaf for path, leaf in leaves}
    kept = {"evidence": jax.vmap(network.evidence)(observations), "allowed": jax.vmap(network.allowed)(observations)}
    known = {name: each for name, each in kept.items() if each is not None}
    return {"mean": spreads.mean, "std": spreads.total, **known, **parameters}


def in_words(observation: Any) -> str:
    """An observation as a picture calls it; empty if it is too long."""
    match observation:
        case str():
            words = printable(observation)
        case dict():
            words = ", ".join(f"{name} {in_words(each)}" for name, each in observation.items())
        case tuple():
            words = ", ".join(map(in_words, observation))
        case _:
            numbers = np.ravel(observation)
            words = " ".join(f"{each:.3g}" for each in numbers.tolist()) if numbers.size <= MOST_NAMED else ""
    return words if len(words) <= LONGEST_NAME else ""


def packed(networks: Network) -> UInt8[np.ndarray, " bytes"]:
    """All arrays of networks, compressed."""
    content = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(networks))
    return np.frombuffer(zlib.compress(content, 1), np.uint8)


def unpacked(like: Network, content: UInt8[np.ndarray, " bytes"]) -> Network:
    """The networks that were packed, which have the shapes and types of others."""
    left, leaves = zlib.decompress(content.tobytes()), list[Any]()
    for leaf in jax.tree.leaves(like):
        leaves.append(jnp.asarray(np.frombuffer(left[: leaf.nbytes], leaf.dtype).reshape(leaf.shape)))
        left = left[leaf.nbytes :]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def numbers_of(family: Any) -> dict[str, np.ndarray]:
    """The numbers of a family, in the form of a recording."""
    return {FAMILY + name: np.array(value) for name, value in vars(family).items() if isinstance(value, float)}


def with_numbers(agent: Agent, arrays: Mapping[str, np.ndarray]) -> Agent:
    """The agent whose family has these numbers."""
    numbers = {name.removeprefix(FAMILY): float(each) for name, each in arrays.items() if name.startswith(FAMILY)}
    family: Any = agent.family
    return dataclasses.replace(agent, family=dataclasses.replace(family, **numbers))
