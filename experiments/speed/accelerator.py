"""Steps per second on the device that JAX finds, by number of seeds: a GPU beside the CPU of one machine.

Usage: python -m experiments.speed.accelerator [--out results/accelerator/gpu.json] [--task NAME ...]
       JAX_PLATFORMS=cpu python -m experiments.speed.accelerator --out results/accelerator/cpu.json

Each row is one run by the defaults. Rows that are in the file stay. Images need `uppertail[gymnax]`.
"""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import jax

import uppertail as ut
from experiments.common import options, write
from uppertail.records import RunRecord
from uppertail.training.process import hardware


def of_images(**settings: Any) -> RunRecord:
    """A network by gradient descent from images of a compiled environment."""
    return ut.train(ut.Gymnax("Breakout-MinAtar"), **settings).record


def of_network(**settings: Any) -> RunRecord:
    """A network beside counts."""
    return ut.train(ut.Chain(100), learner=ut.GradientDescent(), **settings).record


def of_table(**settings: Any) -> RunRecord:
    """Least squares."""
    return ut.train(ut.Chain(100), **settings).record


def of_host(**settings: Any) -> RunRecord:
    """A network beside kernel counts, where Python steps."""
    return ut.train("CartPole-v1", **settings).record


TASKS: dict[str, tuple[Callable[..., RunRecord], int, tuple[int, ...]]] = {
    "images": (of_images, 20_000, (10, 1, 100)),
    "network": (of_network, 20_000, (10, 1, 100)),
    "table": (of_table, 20_000, (10, 1)),
    "host": (of_host, 2_000, (1,)),
}
"""What is trained, for how many steps of each seed, and with how many seeds."""


def name_of(device: Any) -> str:
    """A GPU's name, which JAX does not tell of all."""
    if device.platform != "gpu":
        return device.platform
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def main() -> None:
    """Runs what is asked for and not in the file yet."""
    asked, device = options(__doc__, "results/accelerator/gpu.json", task=TASKS), jax.devices()[0]
    rows = json.loads(asked.out.read_text(encoding="utf-8"))["rows"] if asked.out.exists() else []
    there = [(row["task"], row["seeds"], row["platform"]) for row in rows]
    for task, seeds in [(task, seeds) for task, (_, _, counts) in TASKS.items() for seeds in counts]:
        if task not in asked.task or (task, seeds, device.platform) in there:
            continue
        run, steps, _ = TASKS[task]
        found = run(seeds=seeds, steps=steps, episodes=10**7).summary()
        times = {name: found[name] for name in ("steps_per_second", "compile_seconds", "wall_seconds")}
        rows.append({"task": task, "seeds": seeds, "platform": device.platform, "device": name_of(device), **times})
        write(asked.out, {"rows": rows, "hardware": hardware()}, indent=1)
        print(f"{task:8} {seeds:4} seeds, {device.platform}: {times['steps_per_second']:,.0f} steps/s", flush=True)


if __name__ == "__main__":
    main()
