"""All states of a table in their places: a picture for each moment of a run."""

import base64
from typing import Any

import numpy as np
from jaxtyping import Int

from uppertail.reports.seeds import OPTIMISM, Seed


def pack(array: Any, kind: Any) -> str:
    """Numbers in the form that the page unpacks: little-endian, in base 64."""
    whole = np.rint(array) if np.issubdtype(kind, np.integer) else array
    return base64.b64encode(np.ascontiguousarray(whole, np.dtype(kind).newbyteorder("<")).tobytes()).decode()


MOST_CELLS = 1024


def grid(seed: Seed) -> dict[str, Any] | None:
    """All states in their places: visits, upper bound and greedy action at each moment."""
    table, recorded = seed.table, seed.recorded
    assert table is not None
    assert recorded.visits is not None
    count, rows = table.num_states, recorded.rows
    if count > MOST_CELLS:
        return None
    columns = -(-count // rows) if rows > 1 else min(count, 25)
    upper = np.nan_to_num((recorded.mean + OPTIMISM * recorded.std)[:, seed.row].max(axis=2), posinf=0, neginf=0)
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
        "upper": pack(255 * (upper - low) / max(high - low, 1e-9), np.uint8),
        "most": float(np.expm1(visits.max())),
        "visits": pack(255 * visits / max(visits.max(), 1e-9), np.uint8),
        "arrow": pack(arrow[here[:, 0], greedy], np.uint8),
    }


ARROWS = "·×★↑↓←→↖↗↙↘"
"""The arrows by number: the action stays, ends without a reward, ends with one, or moves in a direction."""

WAYS = {(-1, 0): 3, (1, 0): 4, (0, -1): 5, (0, 1): 6, (-1, -1): 7, (-1, 1): 8, (1, -1): 9, (1, 1): 10, (0, 0): 0}


def _arrows(way: Int[np.ndarray, "states actions 2"]) -> Int[np.ndarray, "states actions"]:
    flat = [WAYS[int(down), int(right)] for down, right in way.reshape(-1, 2)]
    return np.array(flat).reshape(way.shape[:2])
