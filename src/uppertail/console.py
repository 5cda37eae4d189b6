"""What a person sees in the terminal: progress while a run goes on, and a table at its end."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from uppertail.records import RunRecord, episode_text, median_episode

HEADINGS = (
    "seeds\nsolved",
    "first\nsuccess",
    "solved\nat",
    "times\nfloor",
    "\nkept",
    "greedy\nreturn",
    "steps\nper s",
)

if TYPE_CHECKING:
    from uppertail.training.results import Progress as TrainingProgress


@contextlib.contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Callable[["TrainingProgress"], None]]:
    """Yields the callback that keeps a progress bar up to date; a quiet one shows nothing."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=6),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task(label, total=1.0, status="compiling")

        def show(now: "TrainingProgress") -> None:
            status = (
                f"{now.solved}/{len(now.episodes)} solved, {now.success_rate:.0%} success, "
                f"{min(now.episodes)} episodes, {now.steps_per_second / 1000:.1f}k steps/s"
            )
            bar.update(task, completed=now.fraction, status=status)

        yield show


def results_table(title: str, runs: dict[str, RunRecord]) -> Table:
    """One row per run: seeds solved, median episodes, what the worst seed kept of its solution, speed of all seeds."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("\nmethod", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for label, record in runs.items():
        solved = record.solved_episode
        successes = (
            f"{sum(episode is not None for episode in solved)}/{len(solved)}",
            episode_text(median_episode(record.first_success_episode)),
            episode_text(median_episode(solved)),
        )
        table.add_row(
            label,
            *(successes if math.isfinite(record.success_return) else "---"),  # nobody has said what a success is
            "-" if record.floor_episodes is None else episode_text(record.first_success_over_floor, ".1f"),
            _share(min((kept for kept in record.kept if kept is not None), default=None)),
            f"{sum(record.greedy_returns) / len(record.greedy_returns):.2f}",
            f"{record.steps_per_second:,.0f}",
        )
    return table


def _share(value: float | None) -> str:
    """A share, never rounded up to the whole."""
    return "-" if value is None else f"{math.floor(value * 1000) / 10:.4g}%"


def figure_table(rows: list[dict[str, str]]) -> Table:
    """The numbers of a figure: one row each, headings as keys."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, heading in enumerate(rows[0]):
        table.add_column(heading, justify="left" if index <= 1 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    return table
