"""What `--record distributions` costs: the same runs with and without it, turn by turn, in one process.

Writes results/recording.json: seconds of processor time from the first chunk to the last, of each repetition, and the
size of what was recorded. Processor time, because a machine that others use takes none of it away.
"""

import io
import json
import statistics
import time

import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.training.process import hardware

clock = time.process_time


def main() -> None:
    """Runs the benchmark."""
    asked = options(__doc__, "results/recording.json", length=100, seeds=2, episodes=400, repetitions=3)
    settings = ut.Settings(seeds=asked.seeds, seed=100, episodes=asked.episodes)
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    size = 0
    for _ in range(asked.repetitions):
        for name, record in (("without", None), ("with", "distributions")):
            marks: list[float] = []
            chain = ut.Chain(asked.length)
            result = ut.train(chain, settings=settings, on_chunk=lambda _, to=marks: to.append(clock()), record=record)
            seconds[name].append(round(marks[-1] - marks[0], 3))
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
        "processor_seconds": seconds,
        "ratio_of_medians": round(ratio, 4),
        "ratio_of_the_fastest": round(least, 4),
        "bytes": size,
        "hardware": hardware(),
    }
    write(asked.out, document)
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
