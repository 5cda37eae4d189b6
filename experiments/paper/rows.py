"""Numbers as a table in the terminal."""

from rich.box import SIMPLE_HEAD
from rich.table import Table


def rows_table(rows: list[dict[str, str]]) -> Table:
    """The numbers of a figure: one row each, headings as keys."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, heading in enumerate(rows[0]):
        table.add_column(heading, justify="left" if index <= 1 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    return table
