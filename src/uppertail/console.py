"""What a person sees in the terminal: progress while a run goes on, and a table at its end."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from uppertail.records import RunRecord, episode_text, median_episode

if TYPE_CHECKING:
    from uppertail.training.results import Progress as TrainingProgress

NARROW = 60
"""Columns of a terminal below which a table has a line for each number."""


@contextlib.contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Callable[["TrainingProgress"], None]]:
    """Yields the callback that keeps a progress bar up to date; a quiet one shows nothing."""
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=4)),
        BarColumn(bar_width=6),
        TextColumn("{task.fields[status]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=9)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, expand=True) as bar:
        task = bar.add_task(label, total=1.0, status="compiling")

        def show(now: "TrainingProgress") -> None:
            bar.update(task, completed=now.fraction, status=status(now))

        yield show


def status(now: "TrainingProgress") -> str:
    """How far a run is and how well it does: its successes if they are defined, else its returns."""
    least = min(now.episodes)
    if math.isfinite(now.success_rate):
        doing = f"{now.solved}/{len(now.episodes)} solved, {now.success_rate:.0%} success"
    else:
        doing = f"return {now.mean_return:.4g}" if math.isfinite(now.mean_return) else "no episode yet"
    return f"{doing}, {least} episode{'s'[: least != 1]}, {now.steps_per_second / 1000:.1f}k/s"


class Row(NamedTuple):
    """One column of the table of results.

    Args:
        heading: over the column.
        value: the text for a run; None where there is nothing to say.
    """

    heading: str
    value: Callable[[RunRecord], str | None]


def _of_successes(value: Callable[[RunRecord], str]) -> Callable[[RunRecord], str | None]:
    """A value for runs whose environment defines success; None for others."""
    return lambda record: value(record) if record.has_success else None


def results_table(title: str, runs: dict[str, RunRecord], width: int | None = None) -> Table:
    """One row per run: its results over seeds, and its speed with all seeds together.

    Args:
        title: above the table.
        runs: the runs by their names.
        width: columns of the terminal, if that is known: in a narrow one each number has a line of its own.
    """
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    rows = {row.heading: [row.value(record) for record in runs.values()] for row in ROWS}
    told = {heading: values for heading, values in rows.items() if any(value is not None for value in values)}
    if width is not None and width < NARROW:
        return _narrow(table, list(runs), told)
    table.add_column("method", min_width=14, vertical="bottom")
    for heading in told:
        table.add_column(heading, justify="right", no_wrap=True)
    for label, *values in zip(runs, *told.values(), strict=True):
        table.add_row(label, *(value or "-" for value in values))
    return table


def _narrow(table: Table, labels: list[str], told: dict[str, list[str | None]]) -> Table:
    """The same with a line for each number."""
    table.show_header = False
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for number, label in enumerate(labels):
        table.add_row(f"[bold]{label}[/bold]", "")
        for heading, values in told.items():
            table.add_row(f"  {' '.join(heading.split())}", values[number] or "-")
    return table


def _count(values: Sequence[object]) -> str:
    return f"{sum(value is not None for value in values)}/{len(values)}"


def _median(episodes: list[int | None]) -> str:
    return episode_text(median_episode(episodes))


def _times_floor(record: RunRecord) -> str | None:
    return None if record.floor_episodes is None else episode_text(record.first_success_over_floor, ".1f")


def _mean(values: Sequence[float | None]) -> str | None:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.4g}" if known else None


def _share(value: float | None) -> str | None:
    """A share, never rounded up to the whole."""
    return None if value is None else f"{math.floor(value * 1000) / 10:.4g}%"


ROWS = (
    Row("seeds\nsolved", _of_successes(lambda record: _count(record.solved_episode))),
    Row("median\nfirst\nsuccess", _of_successes(lambda record: _median(record.first_success_episode))),
    Row("median\nsolved\nat", _of_successes(lambda record: _median(record.solved_episode))),
    Row("\ntimes\nfloor", _times_floor),
    Row("\nworst\nkept", lambda record: _share(min((kept for kept in record.kept if kept is not None), default=None))),
    Row(
        "greedy\nseeds\nsolve",
        _of_successes(lambda record: _count([solves or None for solves in record.greedy_solves])),
    ),
    Row("\nlast\nreturn", lambda record: None if record.has_success else _mean(record.final_returns)),
    Row("\ngreedy\nreturn", lambda record: _mean(record.greedy_returns)),
    Row("\nsteps\nper s", lambda record: f"{record.steps_per_second:,.0f}"),
)
"""The columns of the table of results; one without a value for any run is left out."""
