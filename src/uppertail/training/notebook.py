"""Progress in a Jupyter notebook: one line, written anew while a run goes on."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from uppertail.training.progress import Progress

PAUSE = 0.2
"""The fewest seconds between two lines."""


def is_notebook() -> bool:
    """Whether this process is a notebook's kernel; it imports nothing to find out."""
    return "ipykernel" in sys.modules and sys.modules["IPython"].get_ipython() is not None


@contextlib.contextmanager
def updating_line() -> Iterator[Callable[[Progress], None]]:
    """Shows that a run compiles; yields the callback that shows its progress instead, and does nothing elsewhere."""
    if not is_notebook():
        yield lambda progress: None
        return
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    line = display({"text/plain": "compiling"}, raw=True, display_id=True)
    last, shown = "", time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last, shown
        last = f"{progress.fraction:4.0%}  {progress.text}"
        if time.monotonic() >= shown + PAUSE:
            line.update({"text/plain": last}, raw=True)
            shown = time.monotonic()

    try:
        yield show
    finally:
        line.update({"text/plain": last}, raw=True)
