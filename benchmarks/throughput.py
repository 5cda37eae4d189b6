"""Environment steps per second of the compiled training loop, compile time apart.

Usage: python benchmarks/throughput.py [--out results/throughput.json]

The Chain of length 100, 10 seeds, width 256, one update of 32 per 16 environment steps. Takes about five minutes on
two CPU cores. Repetitions of the configurations are interleaved, because machines are noisy; medians are reported.
"""

import argparse
import json
import statistics
from pathlib import Path

from uppertail import UCB, Categorical, Chain, Gaussian, GaussianMixture, Settings
from uppertail.training.train import train

REPETITIONS = 5
STEPS = 4_096
CONFIGURATIONS = ((Gaussian(), 1), (Gaussian(), 2), (Gaussian(), 3), (Categorical(), 2), (GaussianMixture(), 2))
LOAD = {"batch_size": 32, "rollout_steps": 16, "updates_per_rollout": 1}


def measure() -> dict[str, object]:
    """Runs every configuration `REPETITIONS` times, interleaved."""
    rows: dict[str, list[dict[str, float]]] = {}
    hardware: dict[str, object] = {}
    for repetition in range(REPETITIONS):
        for family, depth in CONFIGURATIONS:
            settings = Settings(seeds=10, seed=repetition, episodes=10**9, steps=STEPS, hidden_layers=depth, **LOAD)
            record = train(Chain(length=100), family, UCB(), settings).record
            label = f"{type(family).__name__}, {depth} hidden layer{'s'[: depth > 1]}"
            row = {"steps_per_second": record.steps_per_second, "compile_seconds": record.compile_seconds}
            rows.setdefault(label, []).append(row)
            hardware = record.hardware
            print(f"{label}: {record.steps_per_second:,.0f} environment steps/s", flush=True)
    medians = {
        label: {key: round(statistics.median(row[key] for row in repeated), 1) for key in repeated[0]}
        for label, repeated in rows.items()
    }
    setting = {"env": "Chain, length 100", "seeds": 10, "width": 256, **LOAD}
    return {
        "setting": {**setting, "steps_per_seed": STEPS, "repetitions": REPETITIONS},
        "median": medians,
        "all": rows,
        "hardware": hardware,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Environment steps per second of the compiled training loop.")
    parser.add_argument("--out", type=Path, default=Path("results/throughput.json"))
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(measure(), indent=2) + "\n")
