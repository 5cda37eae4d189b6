"""All episodes of a run as one table."""

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from uppertail.records.episodes import Episodes


def table_of(seeds: Sequence[int], episodes: Sequence[Episodes]) -> Any:
    """A row for each finished episode: seed, episode (counted from 1), return, length, step where it ended.

    Returns:
        A pandas.DataFrame where pandas is installed, else a structured NumPy array with the same columns.
    """
    counts = [each.returns.size for each in episodes]
    columns = {
        "seed": np.repeat(np.asarray(seeds, np.int64), counts),
        "episode": np.concatenate([np.arange(1, count + 1) for count in counts]),
        "return": np.concatenate([each.returns for each in episodes]),
        "length": np.concatenate([each.lengths for each in episodes]),
        "step": np.concatenate([each.end_steps for each in episodes]),
    }
    if importlib.util.find_spec("pandas") is not None:
        import pandas  # pyright: ignore[reportMissingImports]

        return pandas.DataFrame(columns)
    table = np.empty(sum(counts), [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table
