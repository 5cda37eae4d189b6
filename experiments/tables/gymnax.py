"""gymnax's environments by the defaults and by rejax's DQN, from experiments/tasks/gymnax_table.py."""

import itertools
from typing import Any

from experiments.provenance import RESULTS
from experiments.tables.cells import read

LEARNERS = ("UpperTail", "rejax DQN")


def gymnax() -> list[list[str]]:
    """Each environment: returns of random actions, then of each learner's seeds, in training and by greedy actions."""
    told = (f"{name}, {when}" for name in LEARNERS for when in ("training", "greedy"))
    rows = [["environment", "steps", "random", *told]]
    cells = {(row["env"], row["steps"], row["method"]): row["seeds"] for row in read("gymnax_table.json")["rows"]}
    for name, steps in sorted({(name, steps) for name, steps, _ in cells}, key=lambda each: (each[1], each[0])):
        random = _returns(cells[name, steps, "random"], "greedy")
        learned = [_returns(cells[name, steps, each], when) for each in LEARNERS for when in ("tenths", "greedy")]
        rows.append([name, f"{steps:,}", random, *learned])
    return rows


def minatar() -> list[list[str]]:
    """Games of 1,000,000 frames: the last tenth of training, and greedy episodes, of each seed."""
    rows = [
        ["game", "random", "UpperTail, last tenth of training", "UpperTail, greedy", "DQN at 1,000,000, in MinAtar"]
    ]
    cells = {(row["env"], row["method"]): row["seeds"] for row in read("minatar_1m.json")["rows"]}
    for game, dqn in read("minatar/published.json")["DQN at 1,000,000 frames"].items():
        (random,), seeds = (cells[f"{game}-MinAtar", method] for method in ("random", "UpperTail"))
        told = (", ".join(f"{value:.1f}" for value in values) for values in zip(*map(_ends, seeds), strict=True))
        rows.append([game, f"{_ends(random)[0]:.1f}", *told, f"about {dqn}"])
    return rows


def _ends(seed: dict[str, Any]) -> tuple[float, float]:
    return seed["tenths"][-1], seed["greedy"]


def freeway() -> list[list[str]]:
    """Each seed's returns along its run."""
    short = next(row for row in read("minatar_1m.json")["rows"] if row["env"] == "Freeway-MinAtar")
    return [["seed", "steps", "returns", "greedy"]] + [
        [str(seed), f"{run['steps']:,}", ", ".join(f"{each:.0f}" for each in found["tenths"]), f"{found['greedy']:.0f}"]
        for run in (short, read("minatar/freeway-defaults.json"))
        for seed, found in enumerate(run["seeds"])
    ]


def _returns(seeds: list[dict[str, Any]], when: str) -> str:
    """The returns of all seeds: a mean, or the last of several."""
    values = [seed[when][-1] if isinstance(seed[when], list) else seed[when] for seed in seeds]
    texts = [f"{value:.0f}" if abs(value) >= 20 else f"{value:.2f}" for value in values]
    return ", ".join(texts).replace("-0.00", "0.00")


METHODS = {
    "defaults": "the defaults",
    "epsilon_greedy": "the same network, epsilon-greedy",
    "optimistic_value": "one optimistic value",
}
GAMES = ("Seaquest", "Breakout", "Asterix", "SpaceInvaders", "Freeway")


def worth() -> list[list[str]]:
    """Each game by each method: the last tenth of training, and greedy episodes, of each seed."""
    rows = [["game", "", "last tenth of training", "greedy"]]
    for game, (method, shown) in itertools.product(GAMES, METHODS.items()):
        if (RESULTS / (name := f"minatar/{game}-{method}.json")).exists():
            cell = read(name)
            told = [each[-1] for each in cell["tenths"]], cell["greedy"]
            rows.append([game, shown, *(", ".join(f"{value:.1f}" for value in values) for values in told)])
    return rows
