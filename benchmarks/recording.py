"""What `--record distributions` costs: the same runs with and without it, turn by turn, in one process.

Writes results/recording.json: seconds in the compiled loop, of each repetition, and the size of what was recorded.
"""

import argparse
import io
import json
import statistics
from pathlib import Path

import numpy as np

import uppertail as ut
from uppertail.training.process.hardware import hardware


def main() -> None:
    """Runs the benchmark."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--length", type=int, default=100)
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--episodes", type=int, default=400)
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--out", type=Path, default=Path("results/recording.json"))
    asked = options.parse_args()
    settings = ut.Settings(seeds=asked.seeds, seed=100, episodes=asked.episodes)
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    size = 0
    for _ in range(asked.repetitions):
        for name, record in (("without", None), ("with", "distributions")):
            result = ut.train(ut.Chain(asked.length), settings=settings, record=record)
            seconds[name].append(round(result.record.training_seconds, 3))
            if result.distributions:
                content = io.BytesIO()
                np.savez_compressed(content, **result.distributions.arrays())  # pyright: ignore[reportArgumentType]
                size = content.tell()
    ratio = statistics.median(seconds["with"]) / statistics.median(seconds["without"])
    least = min(seconds["with"]) / min(seconds["without"])
    document = {
        "env": f"Chain, length {asked.length}",
        "seeds": f"{asked.seeds}, from 100",
        "episodes": asked.episodes,
        "training_seconds": seconds,
        "ratio_of_medians": round(ratio, 4),
        "ratio_of_the_fastest": round(least, 4),
        "bytes": size,
        "hardware": hardware(),
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
