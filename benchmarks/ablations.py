"""One change at a time on the Chain, with seeds that no result is reported from: the runs behind docs/decisions.

Usage: python benchmarks/ablations.py [--out results/ablations] [--only bias]

Seeds 100 to 104, 1,500 episodes. Cells that are there already are kept. Takes about 15 minutes on one CPU core.
"""

import argparse
from pathlib import Path

from uppertail.cli import main

COMMON = ["--policy", "UCB", "--seed", "100", "--seeds", "5", "--episodes", "1500", "--quiet", "--overwrite"]
FAMILIES = ("Gaussian", "Categorical")
BIAS = {
    f"bias-{family}-{length}-{layers}-hidden-{bias}": [
        *("--distribution", family, "--env.length", str(length)),
        *("--hidden_layers", str(layers), "--bias", bias),
    ]
    for family in FAMILIES
    for length, layers in ((50, 1), (100, 1), (50, 2))
    for bias in ("true", "false")
}
BETA = {
    f"beta-{beta}-{layers}-hidden": ["--distribution.beta", str(beta), "--hidden_layers", str(layers)]
    for layers in (1, 2)
    for beta in (0.0, 0.5, 1.0)
}
UPDATES = {
    f"updates-{updates}-{family}": [
        *("--distribution", family, "--hidden_layers", "1"),
        *("--updates_per_rollout", str(updates)),
    ]
    for family in FAMILIES
    for updates in (1, 2, 4)
}
LONG = {
    f"long-beta-{beta}": ["--distribution.beta", str(beta), "--env.length", "50", "--episodes", "3000"]
    for beta in (0.0, 0.5, 1.0)
}
GROUPS = {"bias": BIAS, "beta": BETA, "updates": UPDATES, "long": LONG}


def ablate(out: Path, only: list[str]) -> None:
    """Runs the cells that are not there yet."""
    for group in only:
        for name, change in GROUPS[group].items():
            folder = out / name
            if not (folder / "summary.json").exists():
                code = main(["train", *COMMON, *change, "--out", str(folder)])
                print(f"{name}: exit code {code}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One change at a time on the Chain.")
    parser.add_argument("--out", type=Path, default=Path("results/ablations"))
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    given = parser.parse_args()
    ablate(given.out, given.only)
