"""Tasks that are changed as a stranger's would be, beside the unchanged ones."""

from experiments.provenance import RESULTS
from experiments.tables.cells import read

SHOWN = {
    "nothing": "nothing",
    "scaled": "observations x 1,000",
    "shifted": "observations + 100",
    "rotated": "observations rotated",
    "constants": "6 constants of an episode",
    "noise": "2 fresh and 2 slow noises",
    "rewards-scaled": "rewards x 100",
    "rewards-higher": "rewards + 0.5",
    "rewards-lower": "rewards - 0.5",
    "limit-halved": "time limit halved",
    "step-halved": "steps half as long",
    "all-but-rotated": "units, numbers and rewards together",
    "all": "the same, and rotated",
}


def changes() -> list[list[str]]:
    """The mean return of the last 30 episodes of each seed, and the mean of all against the unchanged task."""
    rows = [["", "changed", "last 30 episodes", "of the unchanged task", "left out", "steps of an action"]]
    for env in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1"):
        for name, words in SHOWN.items():
            if not (RESULTS / f"invariance/{env}-{name}.json").exists():
                continue
            cell, plain = (read(f"invariance/{env}-{each}.json") for each in (name, "nothing"))
            mean, usual = (sum(each["last_returns"]) / len(each["last_returns"]) for each in (cell, plain))
            left_out = ", ".join(map(str, cell["chosen"]["left_out"] or ())) or "-"
            each = ", ".join(f"{value:.0f}" for value in cell["last_returns"])
            rows.append([env, words, each, f"{mean / usual:.2f}", left_out, str(cell["chosen"]["action_repeat"])])
    return rows
