"""The appendix's drawing of the Chain: ordered, and randomized as seed 0 draws it."""

from pathlib import Path
from typing import Any

from uppertail.analysis.chain_domain_figure import chain_domain_figure
from uppertail.environments import Chain
from uppertail.experiments.cells import Cell, CellResult
from uppertail.experiments.reproduction import Figure
from uppertail.records.described import describe
from uppertail.training.seeds import seed_keys

LENGTH, SEED = 7, 0
CHAINS = {"ordered": Chain(length=LENGTH, ordered=True), f"randomized, seed {SEED}": Chain(length=LENGTH)}


def cells(quick: bool) -> list[Cell]:
    """Nothing is computed."""
    del quick
    return []


def finish(folder: Path, results: dict[str, CellResult], quick: bool) -> dict[str, Any]:
    """Draws it from the tables."""
    del results, quick
    key = seed_keys(SEED).environment
    chain_domain_figure(folder / "chain-domain", {label: chain.build(key) for label, chain in CHAINS.items()})
    return {"seed": SEED, "chains": {label: describe(chain) for label, chain in CHAINS.items()}}


def table(summary: dict[str, Any]) -> list[dict[str, str]]:
    """A drawing has no numbers."""
    del summary
    return []


FIGURE = Figure("chain-domain", cells, finish, table)
