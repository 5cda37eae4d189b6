"""Our learners and published methods on tables with chance."""

import statistics

from experiments.tables.cells import RESULTS, number, read
from uppertail.records import median_episode

TASKS = {
    "jackpot": "Jackpot",
    "door": "Door",
    "river_swim": "RiverSwim",
    "river_swim_measured": "RiverSwim, range measured",
    "six_arms": "SixArms",
}

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


def peers() -> list[list[str]]:
    """What each earned while learning, and when its greedy policy was good for good."""
    rows = [["task", "method", "good at the end", "good from", "return while learning", "share of the best"]]
    for task, name in TASKS.items():
        for method, shown in METHODS.items():
            if (RESULTS / (file := f"chance/{task}-{method}.json")).exists():
                run = read(file)
                earned, good = run["return_while_learning"], f"{run['good_seeds']} of {run['seeds']}"
                of = "episode" if min(run["episodes"]) > 1 else "step"  # one that never ends is one episode
                first, error = median_episode(run[f"good_from_{of}"]), statistics.stdev(earned) / len(earned) ** 0.5
                rows.append([
                    name, shown, good, "never" if first is None else f"{of} {number(first)}",
                    f"{_digits(statistics.mean(earned))} ± {_digits(error)}",
                    f"{statistics.mean(run['share_while_learning']):.2f}",
                ])  # fmt: skip
    return rows


def colosseum() -> list[list[str]]:
    """The normalized regret per step in each of Colosseum's communicating tables, and the means over all of them."""
    shown = {each: METHODS[each] for each in ("least_squares", "optimistic_value", "q_learning")}
    rows = [["`communicating_N`", "table", "lazy", *shown.values()]]
    found = list[list[float]]()
    for each in range(20):
        runs = [read(f"colosseum/communicating_{each}-{method}.json") for method in shown]
        found.append([statistics.mean(run["normalized_regret"]) for run in runs])
        of = runs[0]["env"]
        name = of["kind"] + f" {of['size']}" * (of["kind"] != "Taxi") + ", plain rewards" * (not of["betas"])
        rows.append([f"{each}", name, f"{of['lazy']:g}", *(f"{one:.3f}" for one in found[-1])])
    means = (statistics.mean(each) for each in zip(*found, strict=True))
    return [*rows, ["mean", "", "", *(f"**{each:.3f}**" for each in means)]]


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1e4 else f"{value:.2e}".replace("e+0", "e")
