"""Ten environments as users bring them."""

from collections.abc import Iterator
from typing import Any

from experiments.provenance import RESULTS
from experiments.tables.cells import read


def users() -> list[list[str]]:
    """What each seed's greedy policy earns, beside a rule by hand and random actions; what was exported and shown."""
    rows = [["environment", "steps", "learned by", "random", "rule by hand", "learned", "exported", "in the report"]]
    for path in sorted((RESULTS / "users").glob("[A-Z]*.json")):
        cell = read(f"users/{path.name}")
        exported = [f".{kind}" for kind, each in cell["exported"].items() if each["code"] == 0]
        states = cell["report"]["states"]
        rows.append([
            cell["env"], f"{cell['steps']:,}", cell["learner"], f"{cell['random']:.2f}",
            f"{cell['rule']:.2f}{' (best)' * cell['best']}", ", ".join(f"{each:.2f}" for each in cell["greedy"]),
            " and ".join(exported) or "no",
            ", ".join([f"{states} state{'s' * (states > 1)}", *cell["report"]["pictures"]]),
        ])  # fmt: skip
    return rows


ENOUGH = 0.9
"""Learned: a policy that is at least this far on the way from random actions to the rule by hand."""

METHODS: tuple[str, ...] = ("UpperTail", "SB3's DQN", "SB3's PPO")


def peers() -> list[list[str]]:
    """What each seed's greedy policy earns after as many steps, beside ours; the last row counts what was learned."""
    rows, learned = [["environment", "steps", *METHODS]], dict.fromkeys(METHODS, 0)
    for cell, greedy in earned():
        rows.append([cell["env"], f"{cell['steps']:,}", *map(_earned, greedy.values())])
        for method, each in greedy.items():
            learned[method] += is_learned(cell, each)
    return [*rows, ["learned", "", *(f"{each} of {len(rows) - 1}" for each in learned.values())]]


def earned() -> Iterator[tuple[dict[str, Any], dict[str, list[float | None]]]]:
    """Each environment, and what the seeds of each method earn; None: it cannot be trained there."""
    runs = read("users/peers.json")["runs"]
    for path in sorted((RESULTS / "users").glob("[A-Z]*.json")):
        cell = read(f"users/{path.name}")
        of = {name: [run["greedy"] for run in runs if _is_of(run, cell, name)] for name in METHODS[1:]}
        yield cell, {METHODS[0]: cell["greedy"], **of}


def is_learned(cell: dict[str, Any], greedy: list[float | None]) -> bool:
    """Whether all seeds have learned it."""
    least = cell["random"] + ENOUGH * (cell["rule"] - cell["random"])
    return all(each is not None and each >= least for each in greedy)


def _is_of(run: dict[str, Any], cell: dict[str, Any], name: str) -> bool:
    return run["env"] == cell["env"] and name.endswith(run["algorithm"])


def _earned(greedy: list[float | None]) -> str:
    return ", ".join(f"{each:.2f}" for each in greedy if each is not None) or "cannot take it"
