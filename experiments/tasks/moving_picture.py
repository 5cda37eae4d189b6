"""Draws README's moving picture: DeepSea's cells and the return distributions along its diagonal, while it is learned.

Usage: python -m experiments.tasks.moving_picture [--out docs/deep-sea.gif]
"""

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import uppertail as ut
from experiments.common import options
from experiments.pictures import frame, write_gif
from uppertail.records import Distributions

SIZE = 10
SECONDS = 0.4  # how long each picture is seen
LEFT, RIGHT = "tab:gray", "tab:blue"


def recorded() -> tuple[Distributions, np.ndarray]:
    """One seed's distributions, and for each cell of the diagonal the action that moves right."""
    result = ut.train(ut.DeepSea(SIZE), seeds=1, episodes=40, record="distributions")
    assert result.distributions is not None
    table = result.distributions.table["next_state"][0]
    diagonal = np.arange(SIZE) * (SIZE + 1)
    rights = np.array([int(np.argmax(table[state].reshape(2, -1)[:, 0] % SIZE)) for state in diagonal])
    return result.distributions, rights


def picture(found: Distributions, moment: int, rights: np.ndarray) -> Image.Image:
    """The cells, dark where something is unknown, and both actions' distributions in each cell of the diagonal."""
    mean, std = found.mean[moment, 0], found.std[moment, 0]
    figure = Figure(figsize=(7.2, 3.4), dpi=90, layout="constrained")
    cells, lines = figure.subplots(1, 2, width_ratios=(1, 1.25))
    unknown = np.tril((std.max(axis=1) / found.std[0, 0].max()).reshape(SIZE, SIZE))
    cells.imshow(np.ma.masked_where(np.tri(SIZE) == 0, unknown), cmap="Blues", vmin=0, vmax=1)
    cells.set(title=f"episode {found.episode[moment, 0]}: what is unknown", xticks=[], yticks=[])
    cells.spines[:].set_visible(False)
    values = np.linspace(-0.5, 1.5, 400)
    for row in range(SIZE):
        for action, color in ((1 - rights[row], LEFT), (rights[row], RIGHT)):
            state = row * (SIZE + 1)
            center, width = mean[state, action], max(std[state, action], 0.02)
            density = 0.85 * np.exp(-(((values - center) / width) ** 2) / 2)
            lines.fill_between(values, SIZE - row, SIZE - row + density, color=color, alpha=0.55, linewidth=0)
    lines.set(title="returns on the diagonal: left, right", yticks=[], xlim=(-0.5, 1.5), ylim=(0.8, SIZE + 1.2))
    lines.spines[["left", "right", "top"]].set_visible(False)
    return frame(figure)


if __name__ == "__main__":
    given = options(__doc__, "docs/deep-sea.gif")
    found, rights = recorded()
    moments = np.unique(found.episode[:, 0], return_index=True)[1]
    write_gif(given.out, [picture(found, moment, rights) for moment in moments], SECONDS)
