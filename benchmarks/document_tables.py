"""The tables of README.md and of pages in docs/, made from the result files: so that they cannot drift from them.

Usage: python benchmarks/document_tables.py [--check]

A table stands below a line `<!-- table: NAME -->`. Without --check the documents are written anew; with it, nothing is
written, and the exit code says whether there was anything to write.
"""

import argparse
import re
import sys
from collections.abc import Callable

from documents import bsuite, grids, gymnax, limits, older, parts, reproduction, rich, solved, speeds, uncertainties
from documents.cells import ROOT

PAGES = (
    "least-squares",
    "learned-features",
    "results",
    "uncertainties",
    "minigrid",
    "reproduction",
    "performance",
    "parts",
    "bsuite",
    "comparison",
)
DOCUMENTS = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in PAGES))

TABLES: dict[str, Callable[[], list[list[str]]]] = {
    "solved": solved.solved,
    "solved-vectors": solved.vectors,
    "solved-ablations": solved.ablations,
    "solved-chance": solved.chance,
    "solved-chance-brief": solved.chance_in_brief,
    "rich": rich.rich,
    "rich-torso": rich.torso,
    "limits-chain": limits.of_limits("chain", "depth", "long"),
    "limits-keeping": limits.of_limits("keeping"),
    "limits-lake": limits.lakes,
    "limits-tables": limits.tables,
    "minigrid": grids.grids,
    "minigrid-greedy": grids.greedy,
    "limits-sea": limits.of_limits("sea"),
    "before": older.older,
    "depths": older.depths,
    "failures": older.failures,
    "uncertain": uncertainties.uncertain,
    "reproduce-chain": reproduction.chain,
    "reproduce-frozen-lake": reproduction.lake,
    "reproduce-policy-evaluation": reproduction.evaluation,
    "reproduce-uncertainties": reproduction.uncertainties,
    "bench": speeds.contest,
    "speeds": speeds.speeds,
    "scaling": speeds.growth,
    "parts": parts.parts,
    "bsuite": bsuite.scores,
    "gymnax": gymnax.gymnax,
}
"""The tables by the names that documents have for them."""


def markdown(rows: list[list[str]]) -> str:
    """A table, its headings first."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def renewed(text: str) -> str:
    """A document with its tables made anew.

    Raises:
        KeyError: it asks for a table that there is not.
    """

    def table(found: re.Match[str]) -> str:
        return f"{found[1]}{markdown(TABLES[found[2]]())}\n"

    return re.sub(r"(<!-- table: ([\w-]+) -->\n\n?)(?:\|.*\n)*\n*", table, text).rstrip("\n") + "\n"


def main(check: bool) -> int:
    """Writes the documents, or says which of them are not what the results say."""
    stale = [
        path for path in DOCUMENTS if renewed(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")
    ]
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is not what its results say' if check else 'is written anew'}")
        if not check:
            path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tables of documents, from results.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    sys.exit(main(parser.parse_args().check))
