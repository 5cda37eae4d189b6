"""A moving picture of the width over MountainCar's position and speed along a run of least squares.

Usage: python -m experiments.tasks.width_picture [--out docs/mountain-car.gif] [--seed 0] [--episodes 30]

One seed by the defaults. Each frame is a recorded moment: the standard deviation of the best action's return at each
position and speed, the observations since the frame before, and the returns of the episodes so far.
"""

import argparse
import io
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import uppertail as ut
from uppertail.analysis.figures import own_style

SECONDS, LAST_SECONDS = 0.35, 4.0
"""How long each frame and the last one are shown."""

COLORS = 128
"""Colors of the file."""


class Seen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """MountainCar, which keeps what it showed."""

    made: list["Seen"] = []  # noqa: RUF012 - all of them, those of the evaluation, too

    def __init__(self) -> None:
        super().__init__(gymnasium.make("MountainCar-v0"))
        self.observations = list[np.ndarray]()
        Seen.made.append(self)

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self.observations.append(np.array(result[0]))
        return result


@own_style
def frame(result: ut.TrainingResult, observations: np.ndarray, moment: int) -> Image.Image:
    """The picture of one moment."""
    recorded, episodes = result.distributions, result.record.episodes[0]
    assert recorded is not None
    width, area, step = recorded.plane["std"][:, 0], recorded.plane["area"][moment, 0], recorded.step[:, 0]
    figure = Figure(figsize=(8.2, 3.6), layout="constrained", dpi=80)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    shown = left.imshow(
        width[moment],
        origin="lower",
        aspect="auto",
        extent=(*area[0], *area[1]),
        cmap="Blues",
        vmin=0,
        vmax=width.max(),
    )
    figure.colorbar(shown, ax=left, label="standard deviation of the return")
    since = observations[step[max(moment - 1, 0)] : step[moment]]
    left.plot(since[:, 0], since[:, 1], ".", color="#D55E00", markersize=2)
    left.set(xlabel="position", ylabel="speed", title=f"after {step[moment]:,} steps", xlim=area[0], ylim=area[1])
    done = int(recorded.episode[moment, 0])
    right.plot(np.arange(1, done + 1), episodes.returns[:done], ".-", color="#0072B2", linewidth=0.8)
    right.set(xlabel="episode", ylabel="return", xlim=(0, len(episodes.returns) + 1), ylim=(-205, -75))
    right.spines[["top", "right"]].set_visible(False)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return Image.open(file).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE)


def main() -> None:
    """Trains, and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/mountain-car.gif"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=30)
    asked = parser.parse_args()
    settings = ut.Settings(seeds=1, seed=asked.seed, episodes=asked.episodes)
    result = ut.train(ut.FromGymnasium(Seen), settings=settings, record="distributions")
    observations = np.array(max(Seen.made, key=lambda each: len(each.observations)).observations)
    assert result.distributions is not None
    frames = [frame(result, observations, moment) for moment in range(len(result.distributions.step))]
    times = [round(1000 * SECONDS)] * (len(frames) - 1) + [round(1000 * LAST_SECONDS)]
    frames[0].save(asked.out, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
    print(f"{asked.out}: {len(frames)} frames, {asked.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
