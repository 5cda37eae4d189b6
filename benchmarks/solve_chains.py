"""The Chain of lengths 10, 25, 50, 100 with every method: the runs that docs/results.md is made of.

Usage: python benchmarks/solve_chains.py [--out results/chain] [--methods Gaussian Categorical] [--hidden_layers 2]

Each cell is one `uppertail train` with seeds 0 to 9 and 3,000 episodes; cells that are there already are kept. The
grid of one method takes about 10 minutes on one CPU core at two hidden layers, 3 at one, 20 at three.
"""

import argparse
from pathlib import Path

from uppertail.cli import main

LENGTHS = (10, 25, 50, 100)
METHODS = {
    "Gaussian": ["--distribution", "Gaussian", "--policy", "UCB"],
    "Categorical": ["--distribution", "Categorical", "--policy", "UCB"],
    "GaussianMixture": ["--distribution", "GaussianMixture", "--policy", "UCB"],
    "GaussianMixture-as-released": [
        *("--distribution", "GaussianMixture", "--policy", "UCB"),
        *(
            "--distribution.released_std",
            "true",
            "--distribution.distance",
            "l2",
            "--distribution.printed_loss",
            "true",
        ),
    ],
    "PointMass": ["--distribution", "PointMass", "--policy", "EpsilonGreedy"],
}
SETTINGS = ["--seeds", "10", "--quiet"]


def solve(out: Path, methods: list[str], hidden_layers: int, updates: int, lengths: list[int], episodes: int) -> None:
    """Runs the cells that are not there yet."""
    for method in methods:
        for length in lengths:
            folder = out / f"{method}-{length}-{hidden_layers}-hidden-{updates}-updates"
            if (folder / "summary.json").exists():
                continue
            network = ["--hidden_layers", str(hidden_layers), "--updates_per_rollout", str(updates)]
            network += ["--episodes", str(episodes)]
            cell = ["--env", "Chain", "--env.length", str(length), *METHODS[method], *network]
            code = main(["train", *cell, *SETTINGS, "--overwrite", "--out", str(folder)])
            print(f"{folder.name}: exit code {code}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Solves Chains of four lengths with every method.")
    parser.add_argument("--out", type=Path, default=Path("results/chain"))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--hidden_layers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    given = parser.parse_args()
    solve(given.out, given.methods, given.hidden_layers, given.updates, given.lengths, given.episodes)
