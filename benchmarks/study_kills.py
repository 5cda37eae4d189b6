"""Kills a study's processes at random moments, and holds its end against a study that nobody killed.

Usage: python benchmarks/study_kills.py [--kills 20] [--out results/study_kills.json]

Two commands `uppertail study` share a folder of cells, with one worker process each. At random moments one of the four
processes, drawn at random, is killed by SIGKILL: a command, which takes its worker with it, or a worker, which its
command replaces. A command that was killed is called again. At the end every cell must be done; none may have been
begun again once it was done, nor while another process worked on it; and the episodes and networks of each must be
those of the study that was not killed, to the bit. Takes ten to twenty minutes on two CPU cores.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.studies import claim
from uppertail.training.checkpoints import file as checkpoint
from uppertail.training.process.hardware import hardware

STUDY = """
base:
  env: Chain
  seeds: 2
  steps: 65536
  episodes: 1000000
  width: 32
  hidden_layers: 1
  checkpoint_every: 2048
grid:
  env.length: [4, 6, 8, 10]
  policy: [UCB, Thompson]
  distribution: [Gaussian, Categorical]
"""
LONGEST = 15.0
"""Seconds between two kills, at most."""


def began(file: Path, folder: Path) -> "subprocess.Popen[bytes]":
    """A command of its own."""
    command = [sys.executable, "-m", "uppertail", "study", str(file), "--out", str(folder), "--workers", "1", "--quiet"]
    return subprocess.Popen(command)


def children(process: int) -> list[int]:
    """The processes that a process began."""
    tasks = Path("/proc", str(process), "task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def kill_one(commands: "list[subprocess.Popen[bytes]]", draw: random.Random) -> str:
    """Kills one of the processes; which."""
    place = draw.randrange(len(commands))
    workers = children(commands[place].pid)
    if workers and draw.random() < 0.5:
        os.kill(workers[0], signal.SIGKILL)
        return "worker"
    commands[place].kill()
    commands[place].wait()
    return "command"


def outcome(cell: Path) -> tuple[bytes, str]:
    """What of a cell must not depend on kills."""
    return (cell / records.EPISODES).read_bytes(), checkpoint.digest(checkpoint.read(cell / records.NETWORKS)[1])


def begins(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """The claims of each cell, in order, without those by which a command lets a failed cell be tried again."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for path in sorted((folder / "claims").glob("*.jsonl")):
        lines = claim.lines(path.read_bytes())
        if not (lines[1:] and "after" in lines[1]):
            found.setdefault(path.name.split(".jsonl")[0].rpartition(".")[0], []).append(lines)
    return found


def measure(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kills until there were enough kills, then lets both commands come to their end."""
    file, draw = folder / "study.yaml", random.Random(seed)
    file.write_text(STUDY)
    whole, shared = folder / "whole", folder / "shared"
    start = time.perf_counter()
    if began(file, whole).wait():
        raise SystemExit("The study without kills failed.")
    undisturbed = time.perf_counter() - start
    start = time.perf_counter()
    commands = [began(file, shared), began(file, shared)]
    killed: list[str] = []
    left = 16
    while len(killed) < kills and left:
        time.sleep(draw.uniform(0, LONGEST))
        killed.append(kill_one(commands, draw))
        left = 16 - sum("done" in [line.get("outcome") for line in each[-1]] for each in begins(shared).values())
        print(f"kill {len(killed)} of {kills}: a {killed[-1]}; {left} cells left", flush=True)
        commands = [each if each.poll() is None else began(file, shared) for each in commands]
    codes = [command.wait() for command in commands]
    found = begins(shared)
    cells = sorted(path.name for path in (whole / "cells").iterdir())
    done = {name: [lines[1:] and lines[1]["outcome"] == "done" for lines in each] for name, each in found.items()}
    overlapping = [
        name
        for name, each in found.items()
        for before, after in itertools.pairwise(each)
        if before[1:] and before[1]["ended"] > after[0]["began"]
    ]
    return {
        "study": STUDY,
        "seed": seed,
        "cells": len(cells),
        "kills": {kind: killed.count(kind) for kind in ("command", "worker")},
        "seconds": {"undisturbed, one worker": round(undisturbed), "two commands": round(time.perf_counter() - start)},
        "exit_codes": codes,
        "begins": sum(map(len, found.values())),
        "begins_that_were_killed": sum(not lines[1:] for each in found.values() for lines in each),
        "lost": [name for name in cells if not any(done.get(name, []))],
        "done_twice": [name for name, each in done.items() if sum(map(bool, each)) > 1 or any(each[:-1])],
        "worked_on_by_two": overlapping,
        "other_numbers": [n for n in cells if outcome(whole / "cells" / n) != outcome(shared / "cells" / n)],
        "commands_that_shared": len({lines[0]["pid"] for each in found.values() for lines in each if lines[1:]}),
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
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print({name: value for name, value in results.items() if name not in ("study", "hardware")})
    sys.exit(any(results[name] for name in ("lost", "done_twice", "worked_on_by_two", "other_numbers")))
