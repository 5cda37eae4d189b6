"""Tables and numbers of README.md and docs/, made from the result files: so that they cannot drift from them.

A table stands below a line `<!-- table: NAME -->`, a number in prose right behind `<!-- value: NAME -->`.
"""

import re
from pathlib import Path

from experiments.provenance import ROOT
from experiments.registry import Rows, tables
from experiments.tables.values import VALUES

TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n\n?)(?:\|.*\n)*\n*")
VALUE = re.compile(r"(<!-- value: ([\w.-]+) -->)([-+]?\d(?:[\d.,]*\d)?)")


def pages() -> list[Path]:
    """README and all pages of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def markdown(rows: Rows) -> str:
    """A table, its headings first."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def renewed(text: str) -> str:
    """A page with its tables and numbers made anew.

    Raises:
        KeyError: it asks for a table or a number that there is not.
    """
    made = tables()
    text = TABLE.sub(lambda found: f"{found[1]}{markdown(made[found[2]]())}\n", text)
    text = VALUE.sub(lambda found: found[1] + VALUES[found[2]](), text)
    return text.rstrip("\n") + "\n"


def stale() -> dict[Path, str]:
    """The pages that do not say what the results say, and what they ought to be."""
    found = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if "<!-- table: " in text or "<!-- value: " in text:
            found[page] = (text, renewed(text))
    return {page: new for page, (old, new) in found.items() if old != new}
