"""Stochastic environments, by experiments/tasks/uncertainties.py."""

import json
import statistics

from experiments.tables.cells import RESULTS, last, number, of_seeds
from experiments.tables.solved import CHANCE
from uppertail.records import median_episode

UNCERTAIN = {
    **CHANCE,
    "chain_100": "Chain 100",
    "certain_deep_sea_20": "DeepSea 20",
    "certain_deep_sea_50": "DeepSea 50",
}
"""Environments of experiments/tasks/uncertainties.py, as they are told."""

METHODS = {
    "ucb": "UCB",
    "paper": "the paper's",
    "member": "one optimistic member",
    "member_half": "the same, within 0.5",
    "double": "DoubleUCB",
    "boot_dqn": "bootstrapped DQN",
}
"""Its methods, likewise."""


def uncertain() -> list[list[str]]:
    """What experiments/tasks/uncertainties.py has run."""
    rows = [[
        "environment", "method", "good at the end", "good from episode, median (last)", "first success, median",
        "worst greedy policy", "regret per episode, median", "takes the sure arm, worst seed", "steps", "seconds",
    ]]  # fmt: skip
    for env, name in UNCERTAIN.items():
        for method, told in METHODS.items():
            path = RESULTS / "uncertainties" / f"{env}-{method}.json"
            if not path.exists():
                continue
            run = json.loads(path.read_text(encoding="utf-8"))
            good, sure, first = run["good_from_episode"], run["took_the_sure_arm"], run["first_success_episode"]
            regret = statistics.median(lost / of for lost, of in zip(run["regret"], run["episodes"], strict=True))
            rows.append([
                name, told, of_seeds(good), f"{number(median_episode(good))} ({last(good)})",
                number(median_episode(first)) if any(first) else "", f"{min(run['share_of_best']):.2f}",
                f"{regret:.2f}", "" if None in sure else f"{min(sure):.2f}", f"{run['settings']['steps']:,}",
                f"{run['training_seconds']:,.0f}",
            ])  # fmt: skip
    return rows
