"""How the cost of training grows: with seeds, with the Chain's length, with the network's width, with replay.

Usage: python -m experiments.speed.scaling [--out results/scaling]

Gaussian/UCB with two hidden layers and one update of 32 per 16 steps; all but one thing as in `make bench`. Every
point is the median of three turns, taken one after another for each point. Takes about eight minutes on two CPU cores.
"""

import statistics
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import uppertail as ut
from experiments.common import options, write
from experiments.speed.contest import machine
from experiments.speed.contest.contestants import Ours
from experiments.speed.contest.load import Load
from uppertail.analysis.figures import COLORS, save
from uppertail.training.process import hardware

SEEDS, TURNS, SECONDS = 4, 3, 1.5
AXES: dict[str, list[int]] = {
    "seeds": [1, 2, 4, 10, 30, 100, 300, 1000],
    "length": [10, 30, 100, 300, 1000],
    "width": [32, 64, 128, 256, 512, 1024],
    "replay_size": [1_000, 10_000, 100_000, 1_000_000],
}
THOUSAND = {"length": 10}
"""The load of the axis of seeds: a thousand of them, on the Chain of length 10."""


def point(axis: str, value: int) -> dict[str, Any]:
    """One setting, timed."""
    load = Load(**(THOUSAND if axis == "seeds" else {axis: value}))
    seeds = value if axis == "seeds" else SEEDS
    ours = Ours(f"{seeds} seeds", ut.Gaussian(), seeds, 2)
    ours.prepare(load)
    rate = statistics.median(ours.rate(SECONDS) for _ in range(TURNS))
    facts = ours.facts(load)
    ours.close()
    row = {"axis": axis, "value": value, "steps_per_second": round(rate, 1), **facts}
    row["gflops"] = round(rate * facts["flops_per_step"] / 1e9, 2)
    row["peak_megabytes_until_then"] = round(machine.peak_megabytes())
    print(f"{axis} {value}: {rate:,.0f} steps/s, state {facts['state_megabytes']:g} MB", flush=True)
    return row


def draw(stem: Path, rows: list[dict[str, Any]]) -> None:
    """A panel for each axis: microseconds per environment step, and the arithmetic of one, scaled to meet them."""
    figure = Figure(figsize=(9.6, 6.0), layout="constrained")
    for axes, axis in zip(figure.subplots(2, 2).flat, AXES, strict=True):
        points = [row for row in rows if row["axis"] == axis]
        values = [row["value"] for row in points]
        cost = [1e6 / row["steps_per_second"] for row in points]
        axes.loglog(values, cost, "o-", color=COLORS[0], label="measured")
        middle = len(points) // 2
        expected = [row["flops_per_step"] / points[middle]["flops_per_step"] * cost[middle] for row in points]
        axes.loglog(values, expected, "--", color="0.5", label="as the arithmetic")
        axes.set(xlabel=axis.replace("_", " "), ylabel="µs per environment step", ylim=(min(cost) / 3, max(cost) * 3))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    save(figure, stem)


if __name__ == "__main__":
    out: Path = options(__doc__, "results/scaling").out
    measured = [point(axis, value) for axis, values in AXES.items() for value in values]
    write(out / "scaling.json", {"seeds_elsewhere": SEEDS, "turns": TURNS, "rows": measured, "hardware": hardware()})
    draw(out / "scaling", measured)
