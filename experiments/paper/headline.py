"""What `make run` does: the randomized Chain of length 100 by least squares, and by networks of the paper's families.

Each method is `uppertail train`, in a folder of its own; then one table, one picture of all learning curves, and a
report. Further options are those of `uppertail train`, such as `--until solved`, which `make run` gives.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.common import ended
from experiments.provenance import record
from uppertail import cli, records
from uppertail.analysis.figures import learning_curves
from uppertail.records import episode_text, median_episode

LAYERS = ("--network.hidden_layers", "2", "--network.width", "256", "--batch_size", "16")
NETWORKS = ("--learner", "GradientDescent", "--evidence", "NoEvidence", *LAYERS)
"""Networks alone, whose picture README shows; the defaults of `--evidence Counts` are for one hidden layer."""

METHODS: dict[str, Sequence[str]] = {
    "LeastSquares": ("--distribution", "Gaussian"),
    "Gaussian": ("--distribution", "Gaussian", *NETWORKS),
    "Categorical": ("--distribution", "Categorical", *NETWORKS),
    "GaussianMixture": ("--distribution", "GaussianMixture", *NETWORKS),
    "EpsilonGreedy": ("--distribution", "PointMass", "--policy", "EpsilonGreedy"),
}
"""Name of a method to its options; everything else is the default of `uppertail train`."""

RUN = ["--env", "Chain", "--env.length", "100", "--seeds", "5", "--episodes", "1200", "--record", "distributions"]


def main(folder: Path, methods: Mapping[str, Sequence[str]], run: Sequence[str], quiet: bool = False) -> int:
    """Trains each method into `folder/cells/METHOD`, where `uppertail report` looks for several runs.

    Returns:
        The exit code of the first run that did not end well, such as 130 after Ctrl-C; 0 if all did.

    Raises:
        InputError: the folder cannot be used.
    """
    records.claim_folder(folder)
    (folder / "cells").mkdir()
    rows, curves, code = [], {}, 0
    for label, method in methods.items():
        out = folder / "cells" / label
        words = ["train", *run, *method, "--out", str(out)]
        code = cli.main([*words, *["--quiet"] * quiet])
        if (out / records.SUMMARY).exists():
            record(out / records.SUMMARY)
            found = records.RunFolder(out)
            rows.append({"method": label, **_numbers(found.summary)})
            curves[label] = found.episodes
        if code:
            break
    if rows and not quiet:
        cli.print_table(rows, texts=("method",))
    if curves:
        learning_curves(folder / "curves.png", "Randomized Chain of length 100", curves)
    if rows:
        cli.main(["report", str(folder), *["--quiet"] * quiet])
    return code


def _numbers(summary: dict[str, Any]) -> dict[str, str]:
    """The row of a run, from its summary."""
    solved, kept = summary["solved_episode"], [share for share in summary["kept"] if share is not None]
    return {
        "seeds solved": f"{sum(at is not None for at in solved)} of {len(solved)}",
        "first success": episode_text(median_episode(summary["first_success_episode"])),
        "solved at": episode_text(median_episode(solved)),
        "kept, worst seed": f"{min(kept):.3f}" if kept else "-",
        "seconds": f"{summary['wall_seconds']:.0f}",
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="folder for the results (default: runs/headline)")
    given, words = parser.parse_known_args()
    ended(lambda: main(given.out or records.unused_folder(Path("runs"), "headline"), METHODS, [*RUN, *words]))
