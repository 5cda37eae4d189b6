"""What the tables of all subjects are made of: result files, and how their numbers are told."""

import json
from typing import Any

from experiments.provenance import RESULTS
from uppertail.records import episode_text


def read(name: str) -> dict[str, Any]:
    """A result file, by its path in results."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def summary(folder: str) -> dict[str, Any]:
    """What a run wrote."""
    return read(f"{folder}/summary.json")


def number(value: float | None, digits: int = 1) -> str:
    """A number of episodes; whole ones without a point."""
    return episode_text(value, ",.0f" if value is None or value == int(value) else f",.{digits}f")


def of_seeds(values: list[Any]) -> str:
    """How many seeds there is something of."""
    return f"{sum(value not in (None, False) for value in values)} of {len(values)}"


def last(episodes: list[int | None]) -> str:
    """The seed that took longest."""
    return "never" if None in episodes else episode_text(max(filter(None, episodes)))


def least(kept: list[float | None]) -> str:
    """The worst seed, never rounded up."""
    return f"{int(min(value for value in kept if value is not None) * 1000) / 1000:.3f}"


def seeds_above(values: list[float], target: float) -> str:
    """How many seeds are above a target."""
    return f"{sum(value > target for value in values)} of {len(values)}"
