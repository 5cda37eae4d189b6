"""Networks beside counts of pixels, in pictures that hardly repeat."""

import statistics

from experiments.provenance import RESULTS
from experiments.tables.cells import read

TASKS = {
    "flicker": "12 x 12, a row flickers",
    "scaled": "the same, 48 x 48 pixels",
    "snow": "12 x 12, 2% of the pixels lit at random",
}
SHOWN = {
    "defaults": "the defaults",
    "network_alone": "the network alone, as for compiled images",
    "whole_images": "whole images counted",
    "optimistic_value": "one optimistic value",
    "no_evidence": "no evidence, epsilon-greedy",
    "count_bonus": "a count bonus as reward, epsilon-greedy",
}


def found() -> list[list[str]]:
    """The first success, the share of the last 20 episodes that are one, and the greedy policy after them."""
    rows = [["pictures", "", "steps", "first success in episode", "of the last 20", "greedy", "seconds"]]
    for task, about in TASKS.items():
        for method, shown in SHOWN.items():
            name = f"pictures/{task}-{method}.json"
            if not (RESULTS / name).exists():
                continue
            cell = read(name)
            first = [each + 1 for each in cell["first"] if each is not None]
            when = f"{statistics.median(first):g} ({max(first)}), " if first else ""
            rows.append([
                about, shown, f"{cell['steps']:,}", f"{when}{len(first)} of {len(cell['first'])}",
                ", ".join(f"{each:.2f}" for each in cell["last"]), ", ".join(f"{each:.4g}" for each in cell["greedy"]),
                f"{statistics.median(cell['training_seconds']):.0f}",
            ])  # fmt: skip
    return rows
