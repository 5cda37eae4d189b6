"""What the tables of all subjects are made of: result files, and how their numbers are told."""

import json
from pathlib import Path
from typing import Any

from uppertail.records import episode_text

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"

KINDS = ("Gaussian", "Categorical", "GaussianMixture")


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


def runs_of(study: str) -> list[dict[str, Any]]:
    """The summaries of a study's runs."""
    paths = (RESULTS / "limit" / study).glob("*/summary.json")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def kind_of(run: dict[str, Any]) -> int:
    """The place of a run's family in tables."""
    return KINDS.index(run["distribution"]["name"])
