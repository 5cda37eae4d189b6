"""Tables with chance: published methods and our learners on the same tasks, judged alike (docs/chance.md).

    python -m experiments.chance --out results/chance                                  # everything
    python -m experiments.chance --tasks jackpot river_swim --methods least_squares posterior mbie_eb --seeds 20

Each task and method is one run of all seeds side by side. It prints, over seeds: how many end with a good greedy
policy; the median episode, and step, from which on it stayed good; what the greedy policy is worth as a share of the
best; the return while learning as a share of the best, then its mean and standard error; the regret; and, in tasks
that never end, the normalized regret per step, 0 for the best policy and 1 for the worst. With --out, each run is a
JSON file, and what is there already is not run again. --options changes settings of the methods, such as '{"bonus":
0.1}' for MBIE-EB.
"""

import argparse
import fnmatch
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from experiments import common
from experiments.chance.play import OURS, PEERS, measure
from experiments.chance.tasks import TASKS
from uppertail.records import describe, episode_text, median_episode
from uppertail.training.process import hardware

QUICK = ["jackpot", "door", "river_swim", "six_arms", "risky_arm", "noisy_chain_20", "deep_sea_10", "lake_8x8"]
FORM = "{:<15} {:<16} {:>8} {:>8} {:>8} {:>7} {:>7} {:>22} {:>10} {:>10} {:>7}"
HEAD = ["task", "method", "good", "episode", "step", "greedy", "earned", "return, s.e.", "regret", "per step", "s"]


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any]:
    """The first seed of a stored result, made again."""
    name, _, method = stem.rpartition("-")
    task, seeds = TASKS[name]._replace(steps=stored["steps"]), [stored["seed"]]
    found = measure(task, method, seeds, stored["discount"], stored["options"])
    return {each: found[each] for each in ("good_from_step", "greedy_share", "return_while_learning")}


def main() -> None:
    """Runs what is asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument(
        "--tasks",
        nargs="+",
        default=QUICK,
        metavar="TASK",
        help="names, or patterns such as 'ergodic_*': " + ", ".join(TASKS),
    )
    asked.add_argument("--methods", nargs="+", choices=[*OURS, *PEERS], default=[*OURS, *PEERS])
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--seeds", type=int, default=10)
    asked.add_argument("--discount", type=float, default=0.995)
    asked.add_argument("--steps", type=int, help="environment steps of each seed; by default as the task has it")
    asked.add_argument("--options", type=json.loads, default={}, help="settings of the methods, as JSON")
    asked.add_argument("--out", type=Path, help="a folder for the results")
    given = asked.parse_args()
    found = {each: fnmatch.filter(TASKS, each) for each in given.tasks}
    if unknown := [each for each, names in found.items() if not names]:
        asked.error(f"unknown tasks: {', '.join(unknown)}; --help names all")
    print(FORM.format(*HEAD))
    for name in itertools.chain(*found.values()):
        task = TASKS[name]._replace(steps=given.steps) if given.steps else TASKS[name]
        for method in given.methods:
            if task.measured and method in PEERS:
                continue  # they know the range of returns
            path = given.out / f"{name}-{method}.json" if given.out else None
            if path is None or not path.exists():
                settings = {"seed": given.seed, "seeds": given.seeds, "discount": given.discount, "steps": task.steps}
                seeds = [*range(given.seed, given.seed + given.seeds)]
                document = {"task": name, "env": describe(task.environment), "method": method, **settings}
                document |= {"options": given.options} | measure(task, method, seeds, given.discount, given.options)
                document |= {"load": os.getloadavg()[0], "hardware": hardware()}
                if path:
                    common.write(path, document, indent=None)
            else:
                document = json.loads(path.read_text(encoding="utf-8"))
            show(document)


def show(document: dict) -> None:
    """One line of the table."""
    earned = np.array(document["return_while_learning"])
    error = earned.std(ddof=1) / len(earned) ** 0.5 if len(earned) > 1 else np.nan
    shares = [share for share in document["share_while_learning"] if share is not None]
    print(
        FORM.format(
            document["task"],
            document["method"],
            f"{document['good_seeds']}/{len(earned)}",
            *(episode_text(median_episode(document[f"good_from_{of}"])) for of in ("episode", "step")),
            f"{np.mean(document['greedy_share']):.3f}",
            f"{np.mean(shares):.3f}" if shares else "-",
            f"{earned.mean():.4g} +- {error:.2g}",
            f"{np.mean(document['regret']):.4g}" if shares else "-",
            f"{np.mean(document['normalized_regret']):.3f}" if None not in document["normalized_regret"] else "-",
            f"{document['seconds']:.0f}",
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
