"""The details of one seed: its distributions over training, how policies act on them, its data, its states."""

import base64
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from uppertail.analysis.exact import exact_returns, optimal_policy
from uppertail.environments import FiniteMDP
from uppertail.errors import InputError
from uppertail.policies import UCB, Thompson
from uppertail.records.distributions import Distributions
from uppertail.reports.rebuilt import Rebuilt
from uppertail.types import PyTree

SHOWN = 8
"""How many states are shown with their distributions, unless the user names some."""
POINTS = 33
SPREAD = 3.5
"""A density is drawn within this many standard deviations of its mean."""
OPTIMISM = 2.0
"""The upper bound is the mean plus this many standard deviations: the middle of UCB's range."""
DECISIONS = 400
"""How many decisions measure a policy's probabilities: their standard error is 0.025 at most."""
MOST_EXACT, MOST_ATOMS = 2600, 24
MOST_CELLS = 1024


@dataclasses.dataclass(frozen=True, eq=False)
class Seed:
    """One seed of a run that recorded.

    Args:
        recorded: the records of all seeds.
        row: which of the seeds.
        parts: the run's parts.
        table: its environment's table; None if it has none.
        discount: discount per step.
    """

    recorded: Distributions
    row: int
    parts: Rebuilt
    table: FiniteMDP | None
    discount: float

    def path(self, moment: int = -1) -> list[int]:
        """The states along the greedy path at a moment, as far as they were recorded."""
        states = self.recorded.states[moment, self.row]
        if self.table is None or states[0] < 0:
            return states[states >= 0][:1].tolist()
        best = dict(zip(states.tolist(), self.recorded.mean[moment, self.row].argmax(axis=1).tolist(), strict=True))
        state, path = int(self.table.start_state[0]), []
        while state in best and state not in path:
            path.append(state)
            where = (state, best[state], int(jnp.argmax(self.table.probability[state, best[state]])))
            if bool(self.table.terminated[where]):
                break
            state = int(self.table.next_state[where])
        return path

    def choose_states(self, asked: list[int]) -> list[int]:
        """The states whose distributions are shown: those asked for, else some along the path, else often visited."""
        if asked:
            return asked
        path = self.path()
        states = [path[place] for place in np.unique(np.linspace(0, len(path) - 1, SHOWN).round().astype(int))]
        if self.recorded.visits is not None:
            counts = self.recorded.visits[-1, self.row].sum(axis=1)
            order = self.recorded.states[-1, self.row][np.argsort(-counts, kind="stable")]
            states += [int(each) for each in order[: (counts > 0).sum()] if each >= 0 and each not in path]
        along = {state: place for place, state in enumerate(path)}
        return sorted(dict.fromkeys(states[:SHOWN]), key=lambda state: (along.get(state, len(path)), state))

    def places(self, states: list[int]) -> Int[np.ndarray, "moments states"]:
        """The position of each state among those recorded at each moment; -1: it is not there."""
        recorded = self.recorded
        found = [
            [recorded.place_of(moment, self.row, state) for state in states] for moment in range(len(recorded.step))
        ]
        return np.array([[-1 if place is None else place for place in row] for row in found])


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
        "there": _pack(places >= 0, np.uint8),
        "mean": _pack(mean, np.float32),
        "upper": _pack(mean + OPTIMISM * std, np.float32),
        "policies": {
            name: _pack(255 * share, np.uint8) for name, share in action_shares(seed, parameters, mean).items()
        },
        "exact": exact(seed, states),
    }
    if (drawn := densities(seed, parameters, mean, std)) is not None:
        document |= drawn
    if recorded.visits is not None and recorded.last is not None:
        visits, last = recorded.visits[taken], recorded.last[taken]
        age = np.where(last > 0, recorded.step[:, row, None, None] - last, -1)
        document |= {"visits": _pack(visits, np.int32), "age": _pack(age, np.int32)}
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
        "ends": _pack(points[..., [0, -1]], np.float32),
        "height": _pack(255 * np.clip(height, 0, 1), np.uint8),
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


def grid(seed: Seed, rows: int) -> dict[str, Any] | None:
    """All states in their places: visits, upper bound and greedy action at each moment."""
    table, recorded = seed.table, seed.recorded
    assert table is not None
    assert recorded.visits is not None
    count = table.num_states
    if count > MOST_CELLS:
        return None
    columns = -(-count // rows) if rows > 1 else min(count, 25)
    upper = (recorded.mean + OPTIMISM * recorded.std)[:, seed.row].max(axis=2)
    visits = np.log1p(recorded.visits[:, seed.row].sum(axis=2))
    greedy = recorded.mean[:, seed.row].argmax(axis=2)
    likely = np.asarray(table.probability).argmax(axis=2)
    where = (*np.indices(likely.shape), likely)
    after, ends = np.asarray(table.next_state)[where], np.asarray(table.terminated)[where]
    here = np.arange(count)[:, None]
    step = np.stack([after // columns - here // columns, after % columns - here % columns], axis=-1)
    arrow = np.where(ends & (np.asarray(table.reward)[where] <= 0), 1, _arrows(np.sign(step)))
    arrow = np.where(ends & (np.asarray(table.reward)[where] > 0), 2, arrow)
    low, high = float(upper.min()), float(upper.max())
    return {
        "columns": columns,
        "count": count,
        "low": low,
        "high": high,
        "upper": _pack(255 * (upper - low) / max(high - low, 1e-9), np.uint8),
        "most": float(np.expm1(visits.max())),
        "visits": _pack(255 * visits / max(visits.max(), 1e-9), np.uint8),
        "arrow": _pack(arrow[here[:, 0], greedy], np.uint8),
    }


ARROWS = "·×★↑↓←→↖↗↙↘"
"""The arrows by number: the action stays, ends without a reward, ends with one, or moves in a direction."""

WAYS = {(-1, 0): 3, (1, 0): 4, (0, -1): 5, (0, 1): 6, (-1, -1): 7, (-1, 1): 8, (1, -1): 9, (1, 1): 10, (0, 0): 0}


def _arrows(way: Int[np.ndarray, "states actions 2"]) -> Int[np.ndarray, "states actions"]:
    flat = [WAYS[int(down), int(right)] for down, right in way.reshape(-1, 2)]
    return np.array(flat).reshape(way.shape[:2])


def _pack(array: Any, kind: Any) -> str:
    """Numbers in the form that the page unpacks: little-endian, in base 64."""
    whole = np.rint(array) if np.issubdtype(kind, np.integer) else array
    return base64.b64encode(np.ascontiguousarray(whole, np.dtype(kind).newbyteorder("<")).tobytes()).decode()
