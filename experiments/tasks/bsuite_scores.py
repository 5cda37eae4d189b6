"""Scores bsuite's log by bsuite's own code, beside published scores: a result file and a radar chart.

Usage: python -m experiments.tasks.bsuite_scores [--csv runs/bsuite/csv/seed-0] [--out results/bsuite]

`uppertail study experiments/tasks/bsuite.yaml` writes the log. bsuite scores unfinished runs, too, and experiments of
which only some settings were run: `finished` is true where all settings had all of their episodes. Experiments that the
log lacks keep the scores that the result file has.
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

from experiments.common import options, write

LEFT_OUT = ("mnist",)
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
            "asked": sweep.EPISODES[settings[0]],
            "episodes": run,
        }
    return found


def tagged() -> dict[str, set[str]]:
    """The experiments with each tag, without those that the study leaves out."""
    names = {tag: {each.partition(sweep.SEPARATOR)[0] for each in ids} for tag, ids in sweep.TAGS.items()}
    kept = {tag: {name for name in each if not name.startswith(LEFT_OUT)} for tag, each in names.items()}
    return {tag: each for tag, each in kept.items() if each}


def by_tag(score_of: dict[str, float]) -> dict[str, float]:
    """The mean score of the experiments with each tag, where all of these have a score."""
    whole = {tag: names for tag, names in tagged().items() if names <= score_of.keys()}
    return {tag: round(float(np.mean([score_of[name] for name in names])), 4) for tag, names in whole.items()}


def ids_run(found: dict[str, Any]) -> dict[str, list[int]]:
    """For each tag, how many ids were run, and how many there are."""
    there = {tag: [found[name] for name in names & found.keys()] for tag, names in tagged().items()}
    return {
        tag: [sum(len(one["episodes"]) for one in each), sum(one["settings"] for one in each)]
        for tag, each in there.items()
    }


def radar(columns: dict[str, dict[str, float]], title: str, path: Path) -> None:
    """Draws the scores of agents by tag."""
    plt.rcdefaults()  # bsuite's import has changed the style
    tags = [*next(iter(columns.values()))]
    angles = np.linspace(0, 2 * np.pi, len(tags) + 1)
    figure, axes = plt.subplots(figsize=(6.4, 5), subplot_kw={"polar": True})
    for place, (agent, score_of) in enumerate(columns.items()):
        values = [score_of[tag] for tag in (*tags, tags[0])]
        axes.plot(angles, values, label=agent, linewidth=1.2 if place else 3, zorder=2 if place else 3)
    axes.set_thetagrids(np.degrees(angles[:-1]), [tag.replace("_", "\n") for tag in tags])
    axes.tick_params(axis="x", pad=18)
    axes.set(ylim=(0, 1), yticks=(0.25, 0.5, 0.75, 1.0), rlabel_position=np.degrees(angles[1]) / 2)
    axes.legend(loc="upper left", bbox_to_anchor=(1.2, 1.0), frameon=False)
    axes.set_title(title, pad=24)
    figure.savefig(path, bbox_inches="tight", dpi=150)


if __name__ == "__main__":
    settings = options(__doc__, "results/bsuite", csv="runs/bsuite/csv/seed-0")
    path = settings.out / "scores.json"
    earlier = json.loads(path.read_text(encoding="utf-8"))["experiments"] if path.exists() else {}
    found = dict(sorted((earlier | scores(Path(settings.csv))).items()))
    published = json.loads((settings.out / "published.json").read_text(encoding="utf-8"))["scores"]
    columns = {"UpperTail": {name: each["score"] for name, each in found.items()}} | published
    tags = {agent: by_tag({name: each[name] for name in found}) for agent, each in columns.items()}
    write(path, {"experiments": found, "tags": tags, "ids_by_tag": ids_run(found)})
    if len(tags["UpperTail"]) > 2:
        whole = all(each["finished"] for each in found.values())
        radar(tags, "bsuite" if whole else "bsuite, UpperTail by part of the runs", settings.out / "radar.png")
    for tag, score in tags["UpperTail"].items():
        print(f"tag {tag:20} {score:5.2f}")
    for name, each in found.items():
        share = f"{len(each['episodes'])} of {each['settings']} settings"
        print(f"{name:20} {each['score']:5.2f}, {share}{'' if each['finished'] else ', unfinished'}")
