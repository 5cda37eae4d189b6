"""Runs by the defaults before decision 11."""

from typing import Any

from documents.cells import last, of_seeds, summary
from uppertail.records import episode_text, median_episode

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


def before(family: str, length: int, depth: int) -> dict[str, Any]:
    """A run by the defaults before decision 11."""
    return summary(f"chain/{family}-{length}-{depth}-hidden-2-updates")


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
