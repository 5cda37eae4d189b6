"""Output in the terminal: the progress of a run, and tables."""

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from uppertail.records import RunRecord, episode_text, median_episode
from uppertail.training.ledger import Progress as TrainingProgress


@contextlib.contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Callable[[TrainingProgress], None]]:
    """Yields the callback that keeps a progress bar up to date; a quiet one shows nothing."""
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=3)),
        BarColumn(bar_width=6),
        TextColumn("{task.fields[status]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=11)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
    )
    console = Console(stderr=True)  # one that is no terminal, such as a file, shows nothing: it may be full
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, expand=True) as bar:
        task = bar.add_task(label, total=1.0, status="compiling")

        def show(now: TrainingProgress) -> None:
            bar.update(task, completed=now.fraction, status=now.text)

        yield show


def print_table(rows: Sequence[Mapping[str, str]], title: str | None = None, texts: Collection[str] = ()) -> None:
    """Prints rows of numbers by their headings; the columns of these headings hold texts."""
    look: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
    table = Table(title=title, show_edge=False, pad_edge=False, **look)
    for heading in rows[0]:
        is_text = heading in texts
        justify = "left" if is_text else "right"
        table.add_column(heading, justify=justify, no_wrap=not is_text, overflow="fold", vertical="bottom")
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)


def print_results(title: str, label: str, record: RunRecord) -> None:
    """Prints the results of a run over its seeds."""
    row = {heading: value for heading, value in {"method": label, **_results(record)}.items() if value is not None}
    print_table([row], title, texts=("method",))


def _results(record: RunRecord) -> dict[str, str | None]:
    """The numbers of a run by their headings; None where there is nothing to say."""
    kept = [share for share in record.kept if share is not None]
    floor = None if record.floor_episodes is None else episode_text(record.first_success_over_floor, ".1f")
    of_success = {
        "seeds\nsolved": _count(record.solved_episode),
        "median\nfirst\nsuccess": episode_text(median_episode(record.first_success_episode)),
        "median\nsolved\nat": episode_text(median_episode(record.solved_episode)),
        "\ntimes\nfloor": floor,
        "\nworst\nkept": f"{math.floor(min(kept) * 1000) / 10:.4g}%" if kept else None,  # never rounded up to the whole
        "greedy\nseeds\nsolve": _count([solves or None for solves in record.greedy_solves]),
    }
    return {
        **(of_success if record.has_success else {"\nlast\nreturn": _mean(record.final_returns)}),
        "\ngreedy\nreturn": _mean(record.greedy_returns),
        "\nsteps\nper s": f"{record.steps_per_second:,.0f}",
    }


def _count(values: Sequence[object]) -> str:
    return f"{sum(value is not None for value in values)}/{len(values)}"


def _mean(values: Sequence[float | None]) -> str | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return f"{sum(known) / len(known):.4g}" if known else None
