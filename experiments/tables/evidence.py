"""Networks beside kernel counts, on tasks and seeds that chose nothing."""

import statistics

from experiments.provenance import RESULTS
from experiments.tables.cells import read
from experiments.tasks.evidence import METHODS, TASKS, file_of

SHOWN = {
    "gaussian": "the defaults",
    "optimistic_value": "one optimistic value",
    "no_evidence": "no evidence, epsilon-greedy",
}


def reached() -> list[list[str]]:
    """The mean of the judged episodes and when the goal was reached: the median seed, the worst, and of how many."""
    rows = [["task", "", "seeds", "episodes", "mean return (worst)", "goal", "reached at episode (last)", "steps"]]
    for task in TASKS:
        for method in METHODS:
            if not (RESULTS / "evidence" / file_of(task, method)).exists():
                continue
            cell = read(f"evidence/{file_of(task, method)}")
            means, found = cell["judged"], [each for each in cell["reached"] if each is not None]
            when = "-" if cell["goal"] is None else f"{len(found)} of {len(means)}"
            if found:
                when = f"{statistics.median(found):g} ({max(found)}), {when}"
            goal = "-" if cell["goal"] is None else f"{cell['goal']:g} over {cell['window']}"
            rows.append([
                task, SHOWN[method], str(len(means)), "{} to {}".format(*cell["judged_episodes"]),
                f"{statistics.median(means):.1f} ({min(means):.1f})", goal, when,
                f"{statistics.median(cell['env_steps']):,.0f}",
            ])  # fmt: skip
    return rows
