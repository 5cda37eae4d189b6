"""The tables of README.md and docs/results.md, made from the result files: so that they cannot drift from them.

Usage: python benchmarks/document_tables.py [--check]

A table stands below a line `<!-- table: NAME -->`. Without --check the documents are written anew; with it, nothing is
written, and the exit code says whether there was anything to write.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uppertail.records import episode_text, median_episode

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "results.md")

DEFAULTS = [(10, "Gaussian"), (25, "Gaussian"), (50, "Gaussian"), (100, "Gaussian"), (100, "Categorical")]
"""Chain and family of each run by the defaults."""

LENGTHS, DEPTHS, FAMILIES = (10, 25, 50, 100), (1, 2, 3), ("Gaussian", "Categorical")

RELEASED = {
    (10, "Gaussian"): "191-318",
    (25, "Gaussian"): "448-513",
    (50, "Gaussian"): "498-653",
    (100, "Gaussian"): "609, 708",
    (10, "Categorical"): "420-584",
    (25, "Categorical"): "655-687",
    (50, "Categorical"): "692-770",
    (100, "Categorical"): "947, 1,329",
}
"""Episodes at which the authors' released code solved its seeds, two or three of them."""

FAILURES = [
    *(("PointMass, epsilon-greedy", "PointMass", length, 2) for length in LENGTHS),
    *(("GaussianMixture, UCB", "GaussianMixture", length, 1) for length in LENGTHS),
    *(("GaussianMixture, UCB", "GaussianMixture", length, 2) for length in (10, 25)),
    *(("GaussianMixture as released, UCB", "GaussianMixture-as-released", length, 1) for length in LENGTHS),
    *(("GaussianMixture as released, UCB", "GaussianMixture-as-released", length, 2) for length in (10, 25)),
]
"""Method, name of its runs, length and hidden layers, of what does not work."""


def summary(folder: str) -> dict[str, Any]:
    """What a run wrote."""
    return json.loads((RESULTS / folder / "summary.json").read_text(encoding="utf-8"))


def by_defaults(length: int, family: str) -> dict[str, Any]:
    """A run by the defaults."""
    return summary(f"defaults/{family}-{length}-2-hidden-4-updates")


def before(family: str, length: int, depth: int) -> dict[str, Any]:
    """A run by the defaults before decision 11."""
    return summary(f"chain/{family}-{length}-{depth}-hidden-2-updates")


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


def readme_defaults() -> list[list[str]]:
    """README: the Chain by the defaults, beside the released code."""
    rows = [
        ["Chain", "method", "solved", "first success", "times length", "solved at", "kept", "released code solved at"]
    ]
    for length, family in DEFAULTS:
        run = by_defaults(length, family)
        first = median_episode(run["first_success_episode"]) or float("nan")
        rows.append([
            str(length), f"{family}, UCB", of_seeds(run["solved_episode"]), number(first), f"{first / length:.2f}",
            number(median_episode(run["solved_episode"])), least(run["kept"]), RELEASED[length, family],
        ])  # fmt: skip
    return rows


def defaults() -> list[list[str]]:
    """The same with the latest seed and the longest fall."""
    rows = [[
        "Chain", "method", "solved", "first success, median (x length, x floor)", "solved at, median (last)",
        "kept, worst seed", "longest fall",
    ]]  # fmt: skip
    for length, family in DEFAULTS:
        run = by_defaults(length, family)
        first, solved = median_episode(run["first_success_episode"]) or float("nan"), run["solved_episode"]
        rows.append([
            str(length), f"{family}, UCB", of_seeds(solved),
            f"{number(first)} ({first / length:.2f}, {run['first_success_over_floor']:.1f})",
            f"{number(median_episode(solved))} ({last(solved)})", least(run["kept"]), str(max(run["longest_fall"])),
        ])  # fmt: skip
    return rows


def older() -> list[list[str]]:
    """Before decision 11, with two hidden layers."""
    rows = [[
        "Chain", "method", "solved", "first success", "times floor", "solved at, median (last)", "at the end >= 0.9",
        "released code solved at",
    ]]  # fmt: skip
    for length in LENGTHS:
        for family in FAMILIES:
            run = before(family, length, 2)
            solved = run["solved_episode"]
            rows.append([
                str(length), f"{family}, UCB", of_seeds(solved),
                episode_text(median_episode(run["first_success_episode"])), f"{run['first_success_over_floor']:.1f}",
                f"{episode_text(median_episode(solved))} ({last(solved)})", ends_well(run), RELEASED[length, family],
            ])  # fmt: skip
    return rows


def depths() -> list[list[str]]:
    """Before decision 11, by depth."""
    rows = [["Chain", "method", "one hidden layer", "two", "three"]]
    for length in LENGTHS:
        for family in FAMILIES:
            runs = [before(family, length, depth) for depth in DEPTHS]
            cells = [
                f"{of_seeds(run['solved_episode'])}: {episode_text(median_episode(run['solved_episode']))} "
                f"({last(run['solved_episode'])}), {ends_well(run).split()[0]} kept"
                for run in runs
            ]
            rows.append([str(length), family, *cells])
    return rows


def failures() -> list[list[str]]:
    """Before decision 11, what does not work."""
    rows = [["Chain", "method", "hidden layers", "ever succeeded", "solved", "at the end >= 0.9",
             "greedy return at the end"]]  # fmt: skip
    for method, name, length, depth in FAILURES:
        run = before(name, length, depth)
        greedy = run["final_greedy_return"]
        rows.append([
            str(length), method, str(depth), of_seeds(run["first_success_episode"]), of_seeds(run["solved_episode"]),
            ends_well(run), f"{sum(greedy) / len(greedy):.2f}",
        ])  # fmt: skip
    return rows


def ends_well(run: dict[str, Any]) -> str:
    """Seeds whose success rate over the last 100 episodes is at least 0.9."""
    return of_seeds([rate >= 0.9 for rate in run["final_success_rate"]])


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "readme-defaults": readme_defaults,
    "defaults": defaults,
    "before": older,
    "depths": depths,
    "failures": failures,
}
"""The tables by the names that documents have for them."""


def markdown(rows: list[list[str]]) -> str:
    """A table, its headings first."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def renewed(text: str) -> str:
    """A document with its tables made anew.

    Raises:
        KeyError: it asks for a table that there is not.
    """

    def table(found: re.Match[str]) -> str:
        return f"{found[1]}{markdown(TABLES[found[2]]())}"

    return re.sub(r"(<!-- table: ([\w-]+) -->\n\n?)(?:\|.*\n)*", table, text)


def main(check: bool) -> int:
    """Writes the documents, or says which of them are not what the results say."""
    stale = [
        path for path in DOCUMENTS if renewed(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")
    ]
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is not what its results say' if check else 'is written anew'}")
        if not check:
            path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tables of documents, from results.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    sys.exit(main(parser.parse_args().check))
