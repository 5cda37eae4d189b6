"""The details of one seed: its distributions over training, how policies act on them, its data, its states."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from uppertail.analysis.exact import exact_returns, optimal_policy
from uppertail.errors import InputError
from uppertail.policies import UCB, Thompson
from uppertail.reports.packing import pack
from uppertail.reports.seeds import OPTIMISM, Seed
from uppertail.reports.state_grid import grid
from uppertail.types import PyTree

POINTS = 33
SPREAD = 3.5
"""A density is drawn within this many standard deviations of its mean."""
DECISIONS = 400
"""How many decisions measure a policy's probabilities: their standard error is 0.025 at most."""
MOST_EXACT, MOST_ATOMS = 2600, 24


def detail(seed: Seed, label: str, asked: list[int], rows: int) -> dict[str, Any]:
    """The data that the page needs about one seed.

    Args:
        seed: the seed.
        label: its name.
        asked: states that were asked for; empty: those along the greedy path.
        rows: rows of the grid in which the environment's states lie, one for a line.
    """
    recorded, row = seed.recorded, seed.row
    states = seed.choose_states(asked)
    places = seed.places(states)
    moments = np.arange(len(places))[:, None]
    taken = (moments, row, np.maximum(places, 0))
    mean, std = recorded.mean[taken], recorded.std[taken]
    parameters = {name: array[taken] for name, array in recorded.parameters.items()}
    document: dict[str, Any] = {
        "label": label,
        "step": recorded.step[:, row].tolist(),
        "episode": recorded.episode[:, row].tolist(),
        "states": states if recorded.of_states else ["the first observation"],
        "path": [state in seed.path() for state in states],
        "actions": int(mean.shape[2]),
        "there": pack(places >= 0, np.uint8),
        "mean": pack(mean, np.float32),
        "upper": pack(mean + OPTIMISM * std, np.float32),
        "policies": {
            name: pack(255 * share, np.uint8) for name, share in action_shares(seed, parameters, mean).items()
        },
        "exact": exact(seed, states),
    }
    if (drawn := densities(seed, parameters, mean, std)) is not None:
        document |= drawn
    if recorded.visits is not None and recorded.last is not None:
        visits, last = recorded.visits[taken], recorded.last[taken]
        age = np.where(last > 0, recorded.step[:, row, None, None] - last, -1)
        document |= {"visits": pack(visits, np.int32), "age": pack(age, np.int32)}
    if seed.table is not None and recorded.visits is not None and recorded.states.shape[2] == seed.table.num_states:
        document["grid"] = grid(seed, rows)
    return document


def densities(
    seed: Seed, parameters: dict[str, np.ndarray], mean: np.ndarray, std: np.ndarray
) -> dict[str, Any] | None:
    """Heights at points within each distribution's range, relative to the highest; None: they cannot be drawn."""
    family = seed.parts.family
    if family is None or not family.has_density:
        return None
    z = seed.parts.distribution(parameters)  # [moments, states, members, actions]
    centres = getattr(family, "centres", None)  # of a family of bins
    if centres is not None:
        points = np.broadcast_to(np.asarray(centres, np.float32), (*mean.shape, len(centres)))
    else:
        points = mean[..., None] + np.maximum(std, 1e-9)[..., None] * np.linspace(
            -SPREAD, SPREAD, POINTS, dtype=np.float32
        )

    def heights(z: PyTree, points: Any) -> Any:
        """Of one moment and state: the mixture over members."""
        each = jax.vmap(jax.vmap(family.density), in_axes=(0, None))(z, points)
        return jnp.mean(each, axis=0)

    density = np.asarray(jax.jit(jax.vmap(jax.vmap(heights)))(z, jnp.asarray(points)))
    height = np.nan_to_num(density / np.maximum(density.max(axis=-1, keepdims=True), 1e-30))
    return {
        "bins": centres is not None,
        "points": points.shape[-1],
        "ends": pack(points[..., [0, -1]], np.float32),
        "height": pack(255 * np.clip(height, 0, 1), np.uint8),
    }


def action_shares(
    seed: Seed, parameters: dict[str, np.ndarray], mean: np.ndarray
) -> dict[str, Float[np.ndarray, "..."]]:
    """How often each policy takes each action, by the first decisions of episodes; greedy shares ties equally."""
    best = mean == mean.max(axis=-1, keepdims=True)
    found = {"greedy": best / best.sum(axis=-1, keepdims=True)}
    family, own = seed.parts.family, seed.parts.policy
    if family is None:
        return found
    z, count = seed.parts.distribution(parameters), mean.shape[-1]
    policies = {type(own).__name__: own} if own is not None else {}
    policies |= {"UCB": UCB(), "Thompson": Thompson()} if family.has_density else {}
    if own is not None:
        policies[type(own).__name__] = own
    for name, policy in policies.items():

        def shares(z: PyTree, policy: Any = policy) -> Any:
            keys = jax.random.split(jax.random.key(0), DECISIONS)
            members = jax.tree.leaves(z)[0].shape[0]
            memories = jax.vmap(lambda key: policy.begin(key, members, count))(keys)
            actions = jax.vmap(lambda key, memory: policy.select(key, memory, family, z))(keys, memories)
            return jnp.mean(jax.nn.one_hot(actions, count), axis=0)

        found[name] = np.asarray(jax.jit(jax.vmap(jax.vmap(shares)))(z))
    return found


def exact(seed: Seed, states: list[int]) -> list[list[Any]]:
    """Exact distributions under the best policy: [place of the state, action, return, probability]; none if unknown."""
    if seed.table is None or seed.table.num_states > MOST_EXACT:
        return []
    try:
        returns = exact_returns(seed.table, optimal_policy(seed.table, seed.discount), seed.discount)
    except InputError:  # noisy rewards, or episodes that never end
        return []
    rows: list[list[Any]] = []
    for place, state in enumerate(states):
        for action in range(seed.table.num_actions):
            z = returns[state, action]
            likeliest = np.sort(np.argsort(-z.probabilities)[:MOST_ATOMS])
            rows += [
                [place, action, round(float(z.atoms[k]), 5), round(float(z.probabilities[k]), 4)] for k in likeliest
            ]
    return rows
