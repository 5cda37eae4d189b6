"""Our learners and published methods on tables with chance."""

import json
import statistics

from experiments.chance.colosseum import COMMUNICATING
from experiments.tables.cells import RESULTS, number
from uppertail.records import median_episode

TASKS = {"jackpot": "Jackpot", "door": "Door", "river_swim": "RiverSwim", "six_arms": "SixArms"}

METHODS = {
    "least_squares": "least squares",
    "posterior": "the same, `PosteriorSampling`",
    "optimistic_value": "optimistic value",
    "mbie_eb": "MBIE-EB",
    "mbie": "MBIE",
    "rmax": "R-MAX",
    "psrl": "PSRL",
    "q_learning": "Q-learning",
}


PUBLISHED = "0.28 (UCRL2)"
"""The lowest average of those that Colosseum's authors print (docs/chance.md)."""


def peers() -> list[list[str]]:
    """What each earned while learning, and when its greedy policy was good for good."""
    rows = [["task", "method", "good at the end", "good from", "return while learning", "share of the best"]]
    for task, name in TASKS.items():
        for method, shown in METHODS.items():
            if (path := RESULTS / "chance" / f"{task}-{method}.json").exists():
                run = json.loads(path.read_text(encoding="utf-8"))
                earned, good = run["return_while_learning"], f"{run['good_seeds']} of {run['seeds']}"
                of = "episode" if min(run["episodes"]) > 1 else "step"  # one that never ends is one episode
                first, error = median_episode(run[f"good_from_{of}"]), statistics.stdev(earned) / len(earned) ** 0.5
                rows.append([
                    name, shown, good, "never" if first is None else f"{of} {number(first)}",
                    f"{_digits(statistics.mean(earned))} ± {_digits(error)}",
                    f"{statistics.mean(run['share_while_learning']):.2f}",
                ])  # fmt: skip
    return rows


def regrets(method: str) -> list[float]:
    """The normalized regret per step in each of Colosseum's communicating tables; the mean over seeds."""
    paths = [RESULTS / "colosseum" / f"communicating_{table}-{method}.json" for table in range(len(COMMUNICATING))]
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    return [statistics.mean(run["normalized_regret"]) for run in runs]


def colosseum() -> list[list[str]]:
    """The regrets in all of these tables, and their means."""
    found = {shown: each for method, shown in METHODS.items() if (each := regrets(method))}
    rows = [["table", "lazy", *found]]
    for table, of in enumerate(COMMUNICATING):
        name = of.kind + f" {of.size}" * (of.kind != "Taxi") + f", {of.rooms} rooms" * (of.kind == "MiniGridRooms")
        rows.append([name, f"{of.lazy:g}", *(f"{each[table]:.3f}" for each in found.values())])
    rows.append(["**mean of the 20**", "", *(f"**{statistics.mean(each):.3f}**" for each in found.values())])
    return rows


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1e4 else f"{value:.2e}".replace("e+0", "e")
