"""Frames of an environment as an animated GIF."""

import io
from pathlib import Path
from typing import Any

from PIL import Image

from uppertail import records

MOST_PIXELS = 400_000_000
"""The most pixels of all frames together, which stay in memory: 1,666 frames of 600 x 400 take 400 MB."""

COLOURS = 256
HELD = 1000
"""Milliseconds for which the last frame of an episode stays."""

SHORTEST = 20
"""Milliseconds of the shortest frame: browsers slow down shorter ones."""


class Animation:
    """Frames in order, each with the time that it stays.

    Args:
        frames_per_second: speed of the animation; above 50, frames are left out to keep the speed.
    """

    def __init__(self, frames_per_second: float) -> None:
        self.every = max(1, round(frames_per_second * SHORTEST / 1000))
        self.duration = round(self.every * 1000 / frames_per_second)
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []
        self.pixels = self.seen = 0

    @property
    def full(self) -> bool:
        """Whether there is no room for another frame."""
        return self.pixels >= MOST_PIXELS

    def add(self, frame: Any, last: bool) -> None:
        """Adds a frame, an array of [rows, columns, red green blue], if there is room for it."""
        self.seen += 1
        if self.full or not (last or (self.seen - 1) % self.every == 0):
            return
        self.frames.append(Image.fromarray(frame).convert("RGB").quantize(COLOURS))
        self.durations.append(max(self.duration, HELD) if last else self.duration)
        self.pixels += frame.shape[0] * frame.shape[1]
        if last:
            self.seen = 0

    def write(self, path: Path) -> None:
        """Writes the GIF, whole or not at all; it plays in a loop.

        Raises:
            OSError: it cannot be written.
        """
        content = io.BytesIO()
        settings: dict[str, Any] = {"duration": self.durations, "loop": 0, "disposal": 1}
        first, *others = self.frames
        first.save(content, "GIF", save_all=True, append_images=others, **settings)
        records.write_bytes(path, content.getvalue())
