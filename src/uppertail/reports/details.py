"""The details of one seed: its distributions over training, how policies act on them, its data, its states."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from uppertail.analysis.statistics import significant
from uppertail.compiling import jitted
from uppertail.errors import InputError
from uppertail.exact import exact_returns, optimal_policy
from uppertail.identity import kept
from uppertail.masks import ActionMask
from uppertail.policies import UCB, Decision, Thompson
from uppertail.reports.maps import grid, pack, plane
from uppertail.reports.opening import opening
from uppertail.reports.seeds import Seed
from uppertail.types import PyTree

POINTS = 33
SPREAD = 3.5  # a density is drawn within this many standard deviations of its mean
DECISIONS = 400  # measure a policy's probabilities, whose standard error is 0.025 at most
MOST_EXACT, MOST_ATOMS = 2600, 24


def detail(seed: Seed, label: str, asked: list[int], room: int | None = None) -> dict[str, Any]:
    """The data that the page needs about one seed.

    They are of the states that were asked for; else of all that there is room for, first those along the greedy path.
    """
    recorded, (moments, _, actions) = seed.recorded, seed.mean.shape
    shown = seed.choose_states(asked)
    most = recorded.states.shape[2] if room is None else room // (moments * actions)
    others = [] if asked else np.setdiff1d(recorded.states[:, seed.row], [-1, *shown]).tolist()
    states = [*shown, *others[: max(0, most - len(shown))]]
    places = seed.places(states)
    taken = (np.arange(moments)[:, None], np.maximum(places, 0))
    document: dict[str, Any] = {
        "label": label,
        "step": recorded.step[:, seed.row].tolist(),
        "episode": recorded.episode[:, seed.row].tolist(),
        "opens": opening(seed, shown),
        "states": states,
        "names": [seed.state_name(state) for state in states],
        "rows": list(range(len(shown))),
        "actions": recorded.names.get("actions", [f"action {action}" for action in range(actions)]),
        "there": pack(places >= 0, np.uint8),
        "mean": pack(seed.mean[taken], np.float32),
        "upper": pack(seed.upper[taken], np.float32),
        "policies": {"arrays": {name: pack(255 * p, np.uint8) for name, p in action_shares(seed, taken).items()}},
        "exact": exact(seed, states),
    }
    if seed.family is not None and seed.family.has_density:
        document |= densities(seed, taken)
    if recorded.evidence is not None:
        left, allowed = recorded.evidence[:, seed.row], seed.allowed
        document["left"] = pack((left if allowed is None else np.where(allowed, left, np.nan))[taken], np.float32)
    if seed.data is not None:
        document |= {name: pack(each[taken], np.int32) for name, each in zip(("visits", "age"), seed.data, strict=True)}
        if seed.table is not None and recorded.states.shape[2] == seed.table.num_states:
            document["grid"] = grid(seed)
    if recorded.plane:
        document["plane"] = plane(seed)
    return document


def densities(seed: Seed, taken: Any) -> dict[str, Any]:
    """Heights at points of each distribution's range, relative to the highest, at an index of moments and states."""
    family, z = seed.family, seed.parameters(taken)  # [moments, states, members, actions]
    mean, std = seed.mean[taken], seed.std[taken]
    centers = family.centers
    if centers is not None:
        points = np.broadcast_to(np.asarray(centers, np.float32), (*mean.shape, len(centers)))
    else:
        reach = np.linspace(-SPREAD, SPREAD, POINTS, dtype=np.float32)
        points = mean[..., None] + np.maximum(std, 1e-9)[..., None] * reach
    density = np.nan_to_num(np.asarray(mixture_density(family)(z, jnp.asarray(points))))
    height = density / np.maximum(density.max(axis=-1, keepdims=True), 1e-30)
    return {
        "bins": None if centers is None else [float(centers[0]), float(centers[-1])],
        "points": points.shape[-1],
        "spread": SPREAD,
        "height": pack(255 * np.clip(height, 0, 1), np.uint8),
    }


@kept
def mixture_density(family: Any) -> Callable[[PyTree, Any], Any]:
    """Densities [moments, states, actions, points] of the mixture over members, at points of the same axes."""

    def heights(z: PyTree, points: Any) -> Any:
        return jnp.mean(jax.vmap(jax.vmap(family.density), in_axes=(0, None))(z, points), axis=0)

    return jitted(jax.vmap(jax.vmap(heights)))


def action_shares(seed: Seed, taken: Any) -> dict[str, Float[np.ndarray, "..."]]:
    """How often each policy takes each action, by the first decisions of episodes; greedy shares ties equally."""
    mean = np.nan_to_num(seed.mean[taken])
    best = mean == mean.max(axis=-1, keepdims=True)
    found = {"greedy": best / best.sum(axis=-1, keepdims=True)}
    family, own = seed.family, seed.policy
    if family is None:
        return found
    z, count = seed.parameters(taken), mean.shape[-1]
    policies = {} if own is None else {type(own).__name__: own}
    if family.has_spread:
        policies = {**policies, "UCB": UCB(), "Thompson": Thompson(), **policies}
    mask = None if seed.allowed is None else seed.allowed[taken]
    return found | {name: np.asarray(_shares(policy, family, count)(z, mask)) for name, policy in policies.items()}


@kept
def _shares(policy: Any, family: Any, count: int) -> Callable[[PyTree, Any], Any]:
    """How often a policy takes each of so many actions, [moments, states, actions]."""

    def shares(z: PyTree, mask: ActionMask) -> Any:
        first = jax.vmap(lambda key: policy.first_action(key, Decision(family, z, action_mask=mask)))
        return jnp.mean(jax.nn.one_hot(first(jax.random.split(jax.random.key(0), DECISIONS)), count), axis=0)

    return jitted(jax.vmap(jax.vmap(shares)))


def exact(seed: Seed, states: list[int]) -> list[list[Any]]:
    """Exact distributions under the best policy: [place of the state, action, return, probability]; none if unknown."""
    if seed.table is None or seed.table.num_states > MOST_EXACT:
        return []
    try:
        returns = exact_returns(seed.table, optimal_policy(seed.table, seed.discount), seed.discount)
    except InputError:  # noisy rewards, or episodes that never end
        return []
    rows: list[list[Any]] = []
    mask = np.True_ if seed.table.action_mask is None else np.asarray(seed.table.action_mask)[states]
    for place, action in np.argwhere(np.broadcast_to(mask, (len(states), seed.table.num_actions))).tolist():
        z = returns[states[place], action]
        likeliest = np.sort(np.argsort(-z.probabilities)[:MOST_ATOMS])
        rows += [[place, action, *map(significant, (float(z.atoms[k]), float(z.probabilities[k])))] for k in likeliest]
    return rows
