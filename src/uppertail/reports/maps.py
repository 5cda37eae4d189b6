"""Pictures that move with a run: all states of a table in their places, and a plane of two numbers of a vector."""

import base64
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from uppertail.environments import FiniteMDP
from uppertail.reports.seeds import Seed

MOST_CELLS = 1024
ARROWS = "·×★↑↓←→↖↗↙↘"  # the action stays, ends without a reward, ends with one, or moves in a direction
WAYS = {(-1, 0): 3, (1, 0): 4, (0, -1): 5, (0, 1): 6, (-1, -1): 7, (-1, 1): 8, (1, -1): 9, (1, 1): 10, (0, 0): 0}
SIGNS = {"goal": "★", "hole": "◯", "start": "", "": ""}


def pack(array: Any, kind: Any) -> str:
    """Numbers in the form that the page unpacks: little-endian, in base 64."""
    whole = np.rint(array) if np.issubdtype(kind, np.integer) else array
    return base64.b64encode(np.ascontiguousarray(whole, np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def shaded(values: Float[np.ndarray, "..."]) -> tuple[str, list[float]]:
    """Numbers as shades from 0 to 255, packed, and the numbers of the lightest and the darkest shade."""
    values = np.nan_to_num(values, posinf=0, neginf=0)
    low, high = float(values.min()), float(values.max())
    return pack(255 * (values - low) / max(high - low, 1e-9), np.uint8), [low, high]


def grid(seed: Seed) -> dict[str, Any] | None:
    """All states that can be reached in their places: width, visits, upper bound and greedy action at each moment."""
    table, data = seed.table, seed.data
    assert table is not None
    assert data is not None
    count, columns = table.num_states, seed.columns
    if count > MOST_CELLS:
        return None
    greedy = seed.mean.argmax(axis=2)
    shades = {
        "width": shaded(seed.std.max(axis=2)),
        "visits": shaded(np.log1p(data[0].sum(axis=2))),
        "upper": shaded(seed.upper.max(axis=2)),
    }
    kinds = cell_kinds(table)
    return {
        "columns": columns,
        "rows": -(-count // columns),
        "count": count,
        "cells": [
            {
                "s": s,
                "row": s // columns,
                "column": s % columns,
                "label": ", ".join(filter(None, (seed.state_name(s), kind))),
                "kind": kind,
                "sign": SIGNS[kind],
            }
            for s, kind in kinds.items()
        ],
        "ends": {name: ends for name, (_, ends) in shades.items()},
        "arrays": {name: text for name, (text, _) in shades.items()}
        | {"arrow": pack(_arrows(table, columns)[np.arange(count), greedy], np.uint8)},
        "arrows": ARROWS,
    }


def cell_kinds(table: FiniteMDP) -> dict[int, str]:
    """Of each state that can be reached: start, goal (an end of the highest reward), hole (another end), or nothing."""
    arrays = (np.asarray(each) for each in (table.probability, table.next_state, table.terminated, table.reward))
    probability, after, over, reward = arrays
    possible = probability > 0
    reached, waiting = set[int](), set(np.asarray(table.start_state).tolist())
    starts = frozenset(waiting)
    while waiting:
        state = waiting.pop()
        reached.add(state)
        waiting |= set(after[state][possible[state]].tolist()) - reached
    inside = possible & np.isin(np.arange(len(after)), [*reached])[:, None, None]
    ends, moves = inside & over, inside & (after != np.arange(len(after))[:, None, None])
    goals = set(after[ends & (reward >= reward[ends].max(initial=-np.inf) - 1e-6)].tolist())
    holes = set(after[moves & over].tolist()) - set(after[moves & ~over].tolist()) - goals
    named = dict.fromkeys(starts, "start") | dict.fromkeys(holes, "hole") | dict.fromkeys(goals, "goal")
    return {state: named.get(state, "") for state in sorted(reached)}


def _arrows(table: FiniteMDP, columns: int) -> Int[np.ndarray, "states actions"]:
    """The number of the arrow of each state and action, by the likeliest outcome."""
    likely = np.asarray(table.probability).argmax(axis=2)
    where = (*np.indices(likely.shape), likely)
    after, over = np.asarray(table.next_state)[where], np.asarray(table.terminated)[where]
    here = np.arange(len(after))[:, None]
    way = np.sign(np.stack([after // columns - here // columns, after % columns - here % columns], axis=-1))
    moves = np.array([WAYS[int(down), int(right)] for down, right in way.reshape(-1, 2)]).reshape(after.shape)
    return np.where(over, np.where(np.asarray(table.reward)[where] > 0, 2, 1), moves)


def plane(seed: Seed) -> dict[str, Any]:
    """Width and evidence over two numbers of a vector at each moment, and where in the picture each moment's lie."""
    recorded = seed.recorded
    area = recorded.plane["area"][:, seed.row].astype(float)  # [moments, 2, ends]
    usable = np.isfinite(area).all(axis=2) & (area[..., 1] > area[..., 0])
    known = np.asarray(usable.all(axis=1))
    seen = area[known] if known.any() else np.array([[[0.0, 1.0]] * 2])
    low, high = seen[..., 0].min(axis=0), seen[..., 1].max(axis=0)
    at = (area - low[:, None]) / (high - low)[:, None]
    parts = np.stack([at[:, 0, 0], 1 - at[:, 1, 1], at[:, 0, 1] - at[:, 0, 0], at[:, 1, 1] - at[:, 1, 0]], axis=1)
    widths = {name: array for name, array in recorded.plane.items() if name not in ("area", "numbers")}
    shades = {name: shaded(np.sqrt(array[:, seed.row])) for name, array in widths.items()}  # small ones are seen, too
    names = recorded.names.get("numbers", ())
    return {
        "side": recorded.plane["std"].shape[2],
        "numbers": [names[k] if names else f"number {k}" for k in recorded.plane["numbers"].tolist()],
        "low": low.tolist(),
        "high": high.tolist(),
        "parts": np.where(known[:, None], parts, 0.0).round(4).tolist(),
        "ends": {name: [end**2 for end in ends] for name, (_, ends) in shades.items()},
        "arrays": {name: text for name, (text, _) in shades.items()},
    }
