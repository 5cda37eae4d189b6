"""Dots: environment steps per second of every contestant, by depth."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from uppertail.analysis.figures import COLORS, own_style, save

OURS, PEERS = COLORS[0], "0.6"


@own_style
def draw(stem: Path, document: dict[str, Any]) -> None:
    """Draws a dot for each row of a contest. A bar would mislead, since a logarithmic axis has no 0.

    Args:
        stem: path without ending; .svg and .png are written.
        document: what `contest` returned.
    """
    rows = document["rows"]
    depths = sorted({row["hidden_layers"] for row in rows})
    heights = [sum(row["hidden_layers"] == depth for row in rows) for depth in depths]
    figure = Figure(figsize=(9.0, 0.3 * len(rows) + 1.6), layout="constrained")
    panels = figure.subplots(len(depths), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, depth in zip(panels, depths, strict=True):
        shown = [row for row in rows if row["hidden_layers"] == depth]
        names = [row["label"].rpartition(", ")[0] for row in shown]
        colors = [OURS if row["ours"] else PEERS for row in shown]
        axes.scatter([row["steps_per_second"] for row in shown], names, color=colors, s=36, zorder=3)
        for place, row in enumerate(shown):
            times = row.get("times", {}).get("DQN")
            text = f"   {row['steps_per_second']:,.0f}" + (f"  ({times:g} × DQN)" if times else "")
            axes.text(row["steps_per_second"], place, text, va="center", fontsize=8)
        axes.set(title=f"{depth} hidden layer{'s'[: depth > 1]}", xscale="log")
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(axis="both", alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    rates = [row["steps_per_second"] for row in rows]
    panels[-1].set(xlabel="environment steps per second, of all seeds together", xlim=(min(rates) / 2, max(rates) * 6))
    save(figure, stem)
