"""Scores bsuite's log by bsuite's own code, beside published scores: a result file and a radar chart.

Usage: python benchmarks/bsuite_scores.py [--csv runs/bsuite/csv/seed-0] [--out results/bsuite]

`uppertail study benchmarks/studies/bsuite.yaml` writes the log. bsuite scores unfinished runs, too, and experiments of
which only some settings were run: `finished` is true where all settings had all of their episodes.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from bsuite import sweep
from bsuite.experiments import summary_analysis
from bsuite.logging import csv_load

from common import options, write

LEFT_OUT = ("mnist", "memory")
"""How the names of experiments begin that the study leaves out; no tag counts them."""

# bsuite 0.3.6 calls two methods that pandas has removed.
pd.Series.append = lambda self, other: pd.concat([self, other])
pd.Series.iteritems = pd.Series.items


def scores(folder: Path) -> dict[str, Any]:
    """bsuite's score of each experiment in its log, and how much of it was run."""
    log = csv_load.load_one_result_set(str(folder))
    episodes = log.groupby("bsuite_id")["episode"].max()
    found = {}
    for row in summary_analysis.bsuite_score(log).to_dict("records"):
        settings = getattr(sweep, row["bsuite_env"].upper())
        run = {each: int(episodes[each]) for each in settings if each in episodes}
        found[row["bsuite_env"]] = {
            "score": round(float(row["score"]), 4),
            "finished": bool(row["finished"]) and len(run) == len(settings),
            "settings": len(settings),
            "episodes": run,
        }
    return found


def by_tag(score_of: dict[str, float]) -> dict[str, float]:
    """The mean score of the experiments with each tag, where all of these have a score."""
    means = {}
    for tag, ids in sweep.TAGS.items():
        names = {each.partition(sweep.SEPARATOR)[0] for each in ids if not each.startswith(LEFT_OUT)}
        if names and names <= score_of.keys():
            means[tag] = round(float(np.mean([score_of[name] for name in names])), 4)
    return means


def radar(columns: dict[str, dict[str, float]], path: Path) -> None:
    """Draws the scores of agents by tag."""
    tags = [*next(iter(columns.values()))]
    angles = np.linspace(0, 2 * np.pi, len(tags) + 1)
    figure, axes = plt.subplots(figsize=(6.4, 5), subplot_kw={"polar": True})
    for place, (agent, score_of) in enumerate(columns.items()):
        values = [score_of[tag] for tag in (*tags, tags[0])]
        axes.plot(angles, values, label=agent, linewidth=1.2 if place else 2.5)
    axes.set_thetagrids(np.degrees(angles[:-1]), [tag.replace("_", " ") for tag in tags])
    axes.set_ylim(0, 1)
    axes.legend(loc="upper left", bbox_to_anchor=(1.1, 1.0), frameon=False)
    figure.savefig(path, bbox_inches="tight", dpi=150)


if __name__ == "__main__":
    settings = options(__doc__, "results/bsuite", csv="runs/bsuite/csv/seed-0")
    found = scores(Path(settings.csv))
    published = json.loads((settings.out / "published.json").read_text(encoding="utf-8"))["scores"]
    columns = {"UpperTail": {name: each["score"] for name, each in found.items()}} | published
    tags = {agent: by_tag({name: each[name] for name in found}) for agent, each in columns.items()}
    write(settings.out / "scores.json", {"experiments": found, "tags": tags})
    if len(tags["UpperTail"]) > 2:
        radar(tags, settings.out / "radar.png")
    for name, each in found.items():
        share = f"{len(each['episodes'])} of {each['settings']} settings"
        print(f"{name:20} {each['score']:5.2f}, {share}{'' if each['finished'] else ', unfinished'}")
