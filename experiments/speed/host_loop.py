"""Environment steps per second on CartPole-v1, where Python makes the steps, beside Stable-Baselines3's DQN.

Usage: python -m experiments.speed.host_loop --peer PYTHON [--out results/host_loop.json] [--steps 6000]

PYTHON is the interpreter of an environment made from experiments/peers/requirements.txt. Both train at width 256 with
two hidden layers, an update of 32 per 16 steps, in turns, each on one thread of the same machine; medians count.
UpperTail's network is one per action, so twice as large as DQN's here. Neither compilation (UpperTail) nor a first
short run (both) is counted. Takes about five minutes.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from experiments.common import options, write

REPETITIONS = 5
LOAD = {
    "evidence": "NoEvidence",
    "batch_size": 32,
    "rollout_steps": 16,
    "updates_per_rollout": 1,
    "network.width": 256,
    "network.hidden_layers": 2,
}
OURS = {
    "UpperTail, scaled observations": {"seeds": 1, "env.features": "scaled"},
    "UpperTail, scaled observations, 4 environments": {"seeds": 1, "num_envs": 4, "env.features": "scaled"},
    "UpperTail, scaled observations, 5 seeds": {"seeds": 5, "env.features": "scaled"},
    "UpperTail, random features": {"seeds": 1},
}
"""What `uppertail train` is given."""


def ours(options: dict[str, Any], steps: int, repetition: int) -> dict[str, Any]:
    """The summary of one run of UpperTail."""
    given = {"env": "Gym", "env.id": "CartPole-v1", "seed": repetition, "episodes": 10**9, "steps": steps}
    words = [f"--{name}={value}" for name, value in {**given, **LOAD, **options}.items()]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["uppertail", "train", *words, f"--out={folder}/run", "--quiet"], check=True)
        return json.loads(Path(folder, "run", "summary.json").read_text(encoding="utf-8"))


def peer(python: str, steps: int) -> dict[str, Any]:
    """One run of Stable-Baselines3's DQN."""
    command = [python, "-m", "experiments.peers.sb3", "throughput", "--steps", str(steps)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def measure(python: str, steps: int) -> dict[str, Any]:
    """All of them `REPETITIONS` times, in turns."""
    rates: dict[str, list[float]] = {}
    last: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for repetition in range(REPETITIONS):
        last = peer(python, steps)
        rates.setdefault("Stable-Baselines3 DQN", []).append(last["steps_per_second"])
        for label, changed in OURS.items():
            own = ours(changed, steps, repetition)
            rates.setdefault(label, []).append(round(own["steps_per_second"], 1))
        print({label: values[-1] for label, values in rates.items()}, flush=True)
    medians = {label: statistics.median(values) for label, values in rates.items()}
    return {
        "setting": {"env": "CartPole-v1", "steps": steps, "repetitions": REPETITIONS, **LOAD},
        "median_steps_per_second": medians,
        "times_peer": {label: round(rate / medians["Stable-Baselines3 DQN"], 2) for label, rate in medians.items()},
        "all": rates,
        "hardware": {"uppertail": own["hardware"]},
        "peer": {name: last[name] for name in ("versions", "cpu")},
    }


if __name__ == "__main__":
    given = options(__doc__, "results/host_loop.json", peer="", steps=6_000)
    if not given.peer:
        sys.exit("Which peer? --peer PYTHON, of an environment made from experiments/peers/requirements.txt")
    write(given.out, measure(given.peer, given.steps))
