"""gymnax's environments by the defaults and by rejax's DQN, from experiments/tasks/gymnax_table.py."""

from typing import Any

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


def _returns(seeds: list[dict[str, Any]], when: str) -> str:
    """The returns of all seeds: a mean, or the last of several."""
    values = [seed[when][-1] if isinstance(seed[when], list) else seed[when] for seed in seeds]
    texts = [f"{value:.0f}" if abs(value) >= 20 else f"{value:.2f}" for value in values]
    return ", ".join(texts).replace("-0.00", "0.00")
