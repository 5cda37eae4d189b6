"""Moving pictures of the documentation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

COLORS = 128


def frame(figure: Figure) -> Image.Image:
    """A figure as one picture of several."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(COLORS)


def write_gif(path: Path, frames: Sequence[Image.Image], seconds: float, last: float = 3.0) -> None:
    """Writes frames that play in a loop, each seen for so many seconds, and the last one for `last`."""
    first, *others = frames
    times = [1000 * seconds] * len(others) + [1000 * last]
    first.save(path, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
