"""The tables of README.md and of pages in docs/, made from the result files: so that they cannot drift from them.

Usage: python benchmarks/document_tables.py [--check]

A table stands below a line `<!-- table: NAME -->`. Without --check the documents are written anew; with it, nothing is
written, and the exit code says whether there was anything to write.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from uppertail.records import episode_text, median_episode

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DOCUMENTS = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("results", "uncertainties", "minigrid")))

KINDS = ("Gaussian", "Categorical", "GaussianMixture")

README_ROWS = [
    ("chain", "env.length=100,distribution=Gaussian", "609, 708"),
    ("chain", "env.length=100,distribution=Categorical", "947, 1,329"),
    ("chain", "env.length=100,distribution=GaussianMixture", "-"),
    ("long", "env.length=1000,seeds=5,episodes=1500", "-"),
    ("sea", "env.size=20,distribution=Gaussian", "407"),
    ("sea", "env.size=50,distribution=Gaussian", "2,066"),
    ("sea", "env.size=50,distribution=Categorical", "2,066"),
]
"""Study and cell of the rows of README, and what others need: see there."""

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


UNCERTAIN = {
    "risky_arm": "RiskyArm",
    "noisy_chain_20": "Chain 20, slips, noise",
    "deep_sea_10": "stochastic DeepSea 10",
    "deep_sea_20": "stochastic DeepSea 20",
    "deep_sea_30": "stochastic DeepSea 30",
    "lake_4x4": "slippery FrozenLake 4x4",
    "lake_8x8": "slippery FrozenLake 8x8",
    "chain_100": "Chain 100",
    "certain_deep_sea_20": "DeepSea 20",
    "certain_deep_sea_50": "DeepSea 50",
}
"""Environments of benchmarks/uncertainties.py, as they are told."""

METHODS = {"ucb": "UCB", "paper": "the paper's", "double": "DoubleUCB", "boot_dqn": "bootstrapped DQN"}
"""Its methods, likewise."""


def summary(folder: str) -> dict[str, Any]:
    """What a run wrote."""
    return json.loads((RESULTS / folder / "summary.json").read_text(encoding="utf-8"))


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


class Limit(NamedTuple):
    """A run by the defaults, and how it is told.

    Args:
        study: the study that it is a cell of.
        cell: its name there.
        size: its length or size.
        run: its summary.
    """

    study: str
    cell: str
    size: int
    run: dict[str, Any]

    @property
    def first(self) -> float:
        """The median episode of the first success."""
        return median_episode(self.run["first_success_episode"]) or float("nan")

    @property
    def method(self) -> str:
        """Family and policy, and the hidden layers where there are more than one."""
        layers = self.run["settings"]["hidden_layers"]
        return f"{self.run['distribution']['name']}, UCB" + (f", {layers} hidden layers" if layers > 1 else "")

    @property
    def twin(self) -> float | None:
        """The same without a network, by the same family; None: not computed."""
        kind = "chain" if self.run["env"]["name"] == "Chain" else "deep_sea"
        name = f"{kind}-{self.size}-{self.run['distribution']['name']}"
        for path in (RESULTS / "twin" / f"{name}.json", RESULTS / "twin" / f"{name}-c-constant.json"):
            if path.exists():
                return json.loads(path.read_text(encoding="utf-8"))["median_first_success"]
        return None


def limit(study: str, cell: str) -> Limit:
    """A run by the defaults."""
    run = summary(f"limit/{study}/{cell}")
    return Limit(study, cell, run["env"].get("length") or run["env"]["size"], run)


def limits(*studies: str) -> list[Limit]:
    """All runs of studies, the small before the large."""
    folders = [path.parent for study in studies for path in (RESULTS / "limit" / study).glob("*/summary.json")]
    found = [limit(folder.parent.name, folder.name) for folder in folders]
    return sorted(found, key=lambda each: (each.size, KINDS.index(each.run["distribution"]["name"]), each.cell))


def readme_limits() -> list[list[str]]:
    """README: some runs by the defaults, beside what others published."""
    rows = [["environment", "method", "solved", "first success", "twin", "kept", "others"]]
    for study, cell, others in README_ROWS:
        each = limit(study, cell)
        rows.append([
            f"{each.run['env']['name']} {each.size:,}", each.method, of_seeds(each.run["solved_episode"]),
            number(each.first), "-" if each.twin is None else number(each.twin), least(each.run["kept"]), others,
        ])  # fmt: skip
    return rows


def of_limits(*studies: str) -> Callable[[], list[list[str]]]:
    """All runs of studies by the defaults."""

    def rows() -> list[list[str]]:
        heading = [
            "size",
            "method",
            "solved",
            "first success, median (of all seeds)",
            "over the twin",
            "over the floor",
        ]
        table = [[*heading, "solved at, median (last)", "kept, worst seed", "longest fall", "episodes", "seconds"]]
        for each in limits(*studies):
            run, first = each.run, each.run["first_success_episode"]
            known = [episode for episode in first if episode is not None]
            floor = run.get("first_success_over_floor")
            table.append([
                f"{each.size:,}", each.method, of_seeds(run["solved_episode"]),
                f"{number(each.first)} ({min(known):,}-{last(first)})",
                "-" if each.twin is None else f"{each.first / each.twin:.2f}",
                "-" if floor is None else f"{floor:.1f}",
                f"{number(median_episode(run['solved_episode']))} ({last(run['solved_episode'])})",
                least(run["kept"]), str(max(fall for fall in run["longest_fall"] if fall is not None)),
                f"{run['settings']['episodes']:,}", f"{run['wall_seconds']:,.0f}",
            ])  # fmt: skip
        return table

    return rows


def lakes() -> list[list[str]]:
    """FrozenLake 8x8 by the defaults, but for the discount."""

    def place(run: dict[str, Any]) -> tuple[Any, ...]:
        return -run["settings"]["discount"], kind_of(run), run["policy"]["name"]

    return [
        ["method", "discount", "greedy policy reaches the goal", "first success, median", "solved", "kept, worst seed"],
        *(
            [
                f"{run['distribution']['name']}, {run['policy']['name']}",
                f"{run['settings']['discount']:g}",
                of_seeds([value > 0.99 for value in run["final_greedy_return"]]),
                number(median_episode(run["first_success_episode"])),
                of_seeds(run["solved_episode"]),
                least(run["kept"]),
            ]
            for run in sorted(runs_of("lake"), key=place)
        ),
    ]


def tables() -> list[list[str]]:
    """Taxi and CliffWalking by the defaults."""

    def told(returns: list[float]) -> str:
        return ", ".join(f"{value:.2f}".removesuffix(".00") for value in returns)

    return [
        ["environment", "steps", "return of the last 100 training episodes", "of 20 greedy ones", "seconds"],
        *(
            [
                run["env"]["id"],
                f"{run['settings']['steps']:,}",
                told(run["final_return"]),
                told(run["final_greedy_return"]),
                f"{run['wall_seconds']:,.0f}",
            ]
            for run in sorted(runs_of("tables"), key=lambda run: run["env"]["id"])
        ),
    ]


def grids() -> list[list[str]]:
    """MiniGrid: when each seed was solved."""

    def told(run: dict[str, Any]) -> list[str]:
        steps = ["not" if step is None else f"{step:,}" for step in run["solved_step"]]
        limit = run["asked"]["settings"]["steps"]
        return [run["env"], of_seeds(run["solved_step"]), "; ".join(steps), f"{limit:,}", f"{run['wall_seconds']:,.0f}"]

    runs = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((RESULTS / "minigrid").glob("*-seeds-*.json"))
    ]
    return [
        ["environment", "solved", "after these steps, each seed", "limit of steps", "seconds, all seeds"],
        *map(told, runs),
    ]


def runs_of(study: str) -> list[dict[str, Any]]:
    """The summaries of a study's runs."""
    paths = (RESULTS / "limit" / study).glob("*/summary.json")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def kind_of(run: dict[str, Any]) -> int:
    """The place of a run's family in tables."""
    return KINDS.index(run["distribution"]["name"])


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


def uncertain() -> list[list[str]]:
    """What benchmarks/uncertainties.py has run."""
    rows = [["environment", "method", "good at the end", "good from episode, median (last)", "worst greedy policy",
             "regret per episode, median", "takes the sure arm, worst seed", "steps", "seconds"]]  # fmt: skip
    for env, name in UNCERTAIN.items():
        for method, told in METHODS.items():
            path = RESULTS / "uncertainties" / f"{env}-{method}.json"
            if not path.exists():
                continue
            run = json.loads(path.read_text(encoding="utf-8"))
            good, sure = run["good_from_episode"], run["took_the_sure_arm"]
            regret = statistics.median(lost / of for lost, of in zip(run["regret"], run["episodes"], strict=True))
            rows.append([
                name, told, of_seeds(good), f"{number(median_episode(good))} ({last(good)})",
                f"{min(run['share_of_best']):.2f}", f"{regret:.2f}", "" if None in sure else f"{min(sure):.2f}",
                f"{run['settings']['steps']:,}", f"{run['training_seconds']:,.0f}",
            ])  # fmt: skip
    return rows


TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "readme-limits": readme_limits,
    "limits-chain": of_limits("chain", "depth", "long"),
    "limits-keeping": of_limits("keeping"),
    "limits-lake": lakes,
    "limits-tables": tables,
    "minigrid": grids,
    "limits-sea": of_limits("sea"),
    "before": older,
    "depths": depths,
    "failures": failures,
    "uncertain": uncertain,
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
        return f"{found[1]}{markdown(TABLES[found[2]]())}\n"

    return re.sub(r"(<!-- table: ([\w-]+) -->\n\n?)(?:\|.*\n)*\n*", table, text).rstrip("\n") + "\n"


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
