"""Kills a study's processes at random moments, and compares its end with a study that nobody killed.

Usage: python -m experiments.robustness.study_kills [--kills 20] [--out results/study_kills.json]

A Dask scheduler, two workers and the command `uppertail study --scheduler` are four processes. At random moments a
process of a kind, drawn at random, is killed by SIGKILL. Whatever has ended is started again, the command with the same
arguments. At the end every cell must be done; none may have changed after it was done; and the episodes and networks of
each must be those of the study that was not killed, to the bit.
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.common import write
from uppertail import records
from uppertail.training import checkpoint
from uppertail.training.process import hardware

STUDY = """
base:
  env: Chain
  seeds: 2
  steps: 98304
  episodes: 1000000
  network.width: 32
  checkpoint_every: 4096
grid:
  env.length: [4, 5]
  policy: [UCB, Thompson]
  distribution: [Gaussian, Categorical]
"""
LONGEST = 12.0
"""Seconds between two kills, at most."""
DASK = "from distributed.cli.dask_{} import main; main()"


def python(*command: str, log: Path) -> "subprocess.Popen[bytes]":
    """A process of its own, whose output goes to a file."""
    with log.open("a") as output:
        return subprocess.Popen([sys.executable, *command], stdout=output, stderr=output)


class Cluster:
    """The processes of a study, by kind.

    Args:
        folder: where the study's file, its folder and the output are.
    """

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = str(found.getsockname()[1])
        address, log = f"tcp://127.0.0.1:{port}", folder / "log"
        common = ("--no-dashboard",)
        worker = ("-c", DASK.format("worker"), address, "--nthreads", "1", "--no-nanny", *common)
        study = ("-m", "uppertail", "study", str(folder / "study.yaml"), "--out", str(folder / "killed"), "--quiet")
        self.commands = {
            "scheduler": ("-c", DASK.format("scheduler"), "--host", "127.0.0.1", "--port", port, *common),
            "worker": worker,
            "worker 2": worker,
            "command": (*study, "--scheduler", address),
        }
        self._log, self.processes = log, dict[str, "subprocess.Popen[bytes]"]()

    def begin(self) -> None:
        """Starts what does not run."""
        for name, command in self.commands.items():
            if name not in self.processes or self.processes[name].poll() is not None:
                self.processes[name] = python(*command, log=self._log)

    def kill(self, kind: str, draw: random.Random) -> None:
        """Kills one process of a kind."""
        process = self.processes[draw.choice([name for name in self.processes if name.startswith(kind)])]
        process.kill()
        process.wait()


def done(folder: Path) -> dict[str, str]:
    """The checksums of the cells that are done, as one text each."""
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("outcomes/*.json")}
    return {name: json.dumps(each["sha256"]) for name, each in found.items() if each["state"] == "done"}


def result(cell: Path) -> tuple[bytes, str]:
    """What of a cell must not depend on kills."""
    return (cell / records.EPISODES).read_bytes(), records.digest(checkpoint.read(cell / records.NETWORKS)[1])


def steps(cell: Path) -> list[int]:
    """The steps of a cell's log."""
    return [json.loads(line)["step"] for line in (cell / records.LOG).read_text().splitlines()]


def measure(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kills until there were enough kills, then lets the command come to its end."""
    file, draw = folder / "study.yaml", random.Random(seed)
    file.write_text(STUDY)
    whole, killed = folder / "whole", folder / "killed"
    command = ("-m", "uppertail", "study", str(file), "--out", str(whole), "--workers", "1", "--quiet")
    start = time.perf_counter()
    if python(*command, log=folder / "log").wait():
        raise SystemExit(f"The study without kills failed: {(folder / 'log').read_text()}")
    undisturbed, start = time.perf_counter() - start, time.perf_counter()
    cells = sorted(path.name for path in (whole / "cells").iterdir())
    cluster, count, first, code = Cluster(folder), dict.fromkeys(("scheduler", "worker", "command"), 0), {}, None
    cluster.begin()
    try:
        while sum(count.values()) < kills and len(first) < len(cells):
            time.sleep(draw.uniform(0, LONGEST))
            kind = draw.choice(list(count))
            cluster.kill(kind, draw)
            count[kind] += 1
            first = done(killed) | first
            print(f"kill {sum(count.values())} of {kills}: {kind}; {len(first)} of {len(cells)} done", flush=True)
            cluster.begin()
        while (code := cluster.processes["command"].wait()) != 0:
            print(f"the command ended with {code}, and is called again", flush=True)
            time.sleep(1)
            cluster.begin()
    finally:
        for process in cluster.processes.values():
            process.kill()
            process.wait()
    last = done(killed)
    return {
        "study": STUDY,
        "seed": seed,
        "cells": len(cells),
        "kills": count,
        "seconds": {"undisturbed, one worker": round(undisturbed), "killed": round(time.perf_counter() - start)},
        "exit_code": code,
        "lost": [name for name in cells if name not in last],
        "done_twice": [name for name, sums in first.items() if last.get(name) != sums],
        "steps_done_twice": [n for n in cells if (each := steps(killed / "cells" / n)) != sorted(set(each))],
        "other_numbers": [n for n in cells if result(whole / "cells" / n) != result(killed / "cells" / n)],
        "hardware": hardware(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kills a study's processes at random moments, and looks at its end.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, default=Path("results/study_kills.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        results = measure(options.kills, options.seed, Path(temporary))
    write(options.out, results)
    print({name: value for name, value in results.items() if name not in ("study", "hardware")})
    sys.exit(
        sum(results["kills"].values()) < options.kills
        or any(results[name] for name in ("lost", "done_twice", "steps_done_twice", "other_numbers"))
    )
