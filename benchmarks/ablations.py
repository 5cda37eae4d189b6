"""One change at a time on the Chain: the runs behind docs/decisions and the differences in docs/reproduction.md.

The seeds are ones that no result is reported from.

Usage: python benchmarks/ablations.py [--out results/ablations] [--only bias]

Seeds 100 to 104, 1,500 episodes where nothing else is said. Cells that are there already are kept. All of them take an
hour or so on one CPU core.
"""

import json
import sys
from pathlib import Path

from common import options
from uppertail.cli import main

COMMON = ["--policy", "UCB", "--seed", "100", "--seeds", "5", "--episodes", "1500", "--quiet", "--overwrite"]
INTERRUPTED = 130
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
SHORT = ["--env.length", "25", "--hidden_layers", "1"]
ENCODING = {
    f"encoding-{family}-{length}-{encoding}{'-biases' * bias}": [
        *("--distribution", family, *SHORT, "--env.length", str(length)),
        *("--env.encoding", encoding, "--bias", str(bias).lower()),
    ]
    for family in FAMILIES
    for length in (10, 25)
    for encoding, bias in (
        *(("one_hot", False), ("scalar", False), ("thermometer", False)),
        *(("scalar", True), ("thermometer", True)),
    )
}
REPLAY_START = {
    f"replay_start-{family}-{start}": ["--distribution", family, *SHORT, "--replay_start", str(start)]
    for family in (*FAMILIES, "GaussianMixture")
    for start in (0, 5000)
}
ON_POLICY = {
    f"on_policy-{family}-{which}": ["--distribution", family, *SHORT, "--on_policy", which]
    for family in FAMILIES
    for which in ("fresh", "all", "none")
}
TERMINAL_STD = {
    f"terminal_std-{std}": [*SHORT, "--env.length", "50", "--distribution.terminal_std", std, "--episodes", "3000"]
    for std in ("1e-4", "1e-3", "1e-2", "1e-1")
}
CLIP = {
    f"gradient_clip-{family}-{clip}": ["--distribution", family, *SHORT, "--gradient_clip", clip]
    for family in (*FAMILIES, "GaussianMixture")
    for clip in ("1", "1e9")
}
DISTANCE = {
    f"distance-{distance}": [*SHORT, "--distribution.distance", distance]
    for distance in ("cross_entropy", "kl", "bhattacharyya", "hellinger", "wasserstein")
}
LOSS_SAMPLES = {
    f"loss_samples-{family}-{count}": ["--distribution", family, *SHORT, "--loss_samples", str(count)]
    for family in (*FAMILIES, "GaussianMixture")
    for count in (0, 1, 8)
}
THOMPSON = {
    f"thompson-{family}-{draws}": [
        *("--distribution", family, *SHORT, "--policy", "Thompson", "--policy.draws", str(draws)),
    ]
    for family in FAMILIES
    for draws in (1, 4, 16)
}
MIXTURE = {
    f"mixture-{length}-std-{std}-loss-{loss}": [
        *("--distribution", "GaussianMixture", *SHORT, "--env.length", str(length)),
        *("--distribution.released_std", str(std == "released").lower()),
        *("--distribution.distance", "l2", "--distribution.printed_loss", str(loss == "printed").lower()),
    ]
    for length in (10, 50)
    for std in ("right", "released")
    for loss in ("right", "printed")
}
PRINTED = {
    f"printed-Categorical-{form}": ["--distribution", "Categorical", *SHORT, *change]
    for form, change in (
        ("right", []),
        ("std", ["--distribution.printed_std", "true"]),
        ("projection", ["--distribution.printed_projection", "true"]),
    )
}
EPSILON = {
    f"epsilon-{family}": ["--distribution", family, *SHORT, "--env.length", "10", "--policy", "EpsilonGreedy"]
    for family in (*FAMILIES, "GaussianMixture", "PointMass")
}
LAKE = {
    f"lake-GaussianMixture-{count}-samples": [
        *("--env", "FrozenLake", "--distribution", "GaussianMixture", "--policy", "Thompson", "--hidden_layers", "1"),
        *("--updates_per_rollout", "4", "--episodes", "2000", "--loss_samples", str(count)),
    ]
    for count in (0, 8)
}
SCALE = {
    "scale-1": ["--env", "Toy", "--distribution.scale", "1"],
    "scale-of-the-range": ["--env", "Toy"],
}
GROUPS = {
    "bias": BIAS,
    "beta": BETA,
    "updates": UPDATES,
    "long": LONG,
    "encoding": ENCODING,
    "replay_start": REPLAY_START,
    "on_policy": ON_POLICY,
    "terminal_std": TERMINAL_STD,
    "gradient_clip": CLIP,
    "distance": DISTANCE,
    "loss_samples": LOSS_SAMPLES,
    "thompson": THOMPSON,
    "mixture": MIXTURE,
    "printed": PRINTED,
    "epsilon": EPSILON,
    "lake": LAKE,
    "scale": SCALE,
}


def ablate(out: Path, only: list[str]) -> None:
    """Runs the cells that are not there yet."""
    for group in only:
        for name, change in GROUPS[group].items():
            folder = out / name
            if not _finished(folder / "summary.json"):
                code = main(["train", *COMMON, *change, "--out", str(folder)])
                print(f"{name}: exit code {code}", flush=True)
                if code == INTERRUPTED:
                    sys.exit(code)


def _finished(summary: Path) -> bool:
    return summary.exists() and not json.loads(summary.read_text(encoding="utf-8"))["interrupted"]


if __name__ == "__main__":
    given = options(__doc__, "results/ablations", only=GROUPS)
    ablate(given.out, given.only)
