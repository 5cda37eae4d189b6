"""The tables of README and docs/decisions, as Markdown, from the summaries in results/.

Usage: python benchmarks/tables.py [results/chain | results/ablations | results/reproduction]
"""

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import common  # noqa: F401 - for `reproduction`
from reproduction import FIGURES
from uppertail.records import episode_text, median_episode


def row(name: str, summary: dict[str, Any]) -> str:
    """One run: seeds solved, median and latest episode, final success, greedy return."""
    first, solved = summary["first_success_episode"], summary["solved_episode"]
    count = sum(episode is not None for episode in solved)
    rates = summary["final_success_rate"]
    kept = sum(rate >= 0.9 for rate in rates)
    cells = [
        name,
        f"{count} of {len(solved)}",
        episode_text(median_episode(first)),
        episode_text(median_episode(solved)),
        episode_text(max(solved) if count == len(solved) else None),
        f"{summary['first_success_over_floor']:.1f}" if summary["first_success_over_floor"] else "-",
        f"{kept} of {len(rates)}",
        f"{sum(summary['final_greedy_return']) / len(rates):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def after_solving(folder: Path) -> str:
    """Share of successes among the episodes after each seed was solved: mean over seeds and the worst one."""
    summary, returns = _summary(folder / "summary.json"), np.load(folder / "episodes.npz")["return"]
    rates = [
        np.mean(later[~np.isnan(later)] >= 1.0)
        for later in (row[solved:] for row, solved in zip(returns, summary["solved_episode"], strict=True) if solved)
        if later.size
    ]
    return f"{np.mean(rates):.2f} ({min(rates):.2f})" if rates else "-"


def _summary(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def table(folder: Path) -> str:
    """All runs of a folder."""
    headings = (
        "run, seeds solved, first success, solved at, last seed solved at, times floor, kept, greedy return, "
        "success rate after solving: mean (worst seed)"
    )
    paths = sorted(folder.glob("*/summary.json"), key=lambda path: _natural(path.parent.name))
    rows = [f"{row(path.parent.name, _summary(path))} {after_solving(path.parent)} |" for path in paths]
    return "\n".join([f"| {headings.replace(', ', ' | ')} |", "| --- " * 9 + "|", *rows])


def figures(folder: Path) -> str:
    """The numbers of every figure of the paper that was made there."""
    tables = []
    for name in FIGURES:
        if (folder / name / "summary.json").exists():
            figure = importlib.import_module(f"reproduction.{name.replace('-', '_')}")
            if rows := figure.table(_summary(folder / name / "summary.json")):
                lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
                tables.append("\n".join([f"{name}:", "", *(f"| {' | '.join(line)} |" for line in lines)]))
    return "\n\n".join(tables)


def _natural(name: str) -> list[Any]:
    return [part.zfill(6) if part.isdigit() else part for part in name.split("-")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tables of results, as Markdown.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results/chain"))
    given = parser.parse_args().folder
    print(figures(given) if (given / "chain" / "summary.json").exists() else table(given))
