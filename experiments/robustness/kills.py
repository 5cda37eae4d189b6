"""Kills a run at random moments, resumes it, and holds its end against a run that nobody killed.

Usage: python -m experiments.robustness.kills [--kills 100] [--run networks] [--out results/kills.json]

One run of `uppertail train`, with a checkpoint after each compiled chunk, is killed by SIGKILL, resumed, killed again,
and so on until it comes to its end; then the next run begins, until there were so many kills. A quarter of the moments
is drawn uniformly over the time that the whole run takes, start and compilation included; the others over two seconds
from the process's first checkpoint. After every kill each checkpoint must be whole; at each end the episodes,
summary.json without its times, and every array of the last checkpoint must be those of the run without kills, to the
bit. Takes five to ten seconds a kill on two CPU cores. `--run` names one of `RUNS`: each learner, actions that last,
and several environments for each seed. experiments/robustness/study_kills.py kills the processes of a study.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.common import options, write
from uppertail import records
from uppertail.training import checkpoint
from uppertail.training.checkpoint import UnusableCheckpointError
from uppertail.training.process import hardware

COMMAND = [sys.executable, "-m", "uppertail"]
CHAIN = "--env Chain --env.length 20 --seeds 4"
CAR = "--env Gym --env.id MountainCar-v0 --env.returns [-200,0] --seeds 2"
NETWORK = "--network.width 32"
RUNS = {
    "networks": (f"{CHAIN} {NETWORK}", 98_304, 1_024),
    "least_squares": (f"{CHAIN} --learner LeastSquares", 98_304, 1_024),
    "imitation": (f"{CHAIN} {NETWORK} --learner Imitation --distribution PointMass --policy Softmax", 16_384, 1_024),
    "neighbors": (f"{CAR} --learner NearestNeighbors --env.action_repeat 4", 4_096, 1_024),
    "landmarks": (f"{CAR} --learner LeastSquares --env.action_repeat 4", 4_096, 1_024),
    "environments": (f"{CAR} {NETWORK} --learner GradientDescent --num_envs 4 --rollout_steps 16", 4_096, 1_024),
}
"""The options of each run, its steps, and the steps between checkpoints."""
ANYWHEN = 0.25
TRAINING_SECONDS = 2.0
TIMES = ("wall_seconds", "compile_seconds", "compilations", "steps_per_second")


def train(run: str, folder: Path) -> list[str]:
    """The command of a run."""
    settings, steps, every = RUNS[run]
    limits = ["--episodes", "1000000", "--steps", str(steps), "--checkpoint_every", str(every)]
    return [*COMMAND, "train", *settings.split(), *limits, "--quiet", "--overwrite", "--out", str(folder)]


def killed(command: list[str], folder: Path, delay: float, training: bool) -> bool:
    """Runs a command and kills it after a delay; whether that was before its end.

    Args:
        command: the command.
        folder: the run's folder.
        delay: seconds until the kill.
        training: whether they count from its first checkpoint, not from its start.
    """
    before = files(folder)
    with subprocess.Popen(command) as process:
        while training and process.poll() is None and not files(folder) - before:
            time.sleep(0.01)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}.")
    return False


def files(folder: Path) -> set[Path]:
    """The checkpoints in a run's folder."""
    return set((folder / records.CHECKPOINTS).glob(records.CHECKPOINT_PATTERN))


def found(folder: Path) -> dict[str, Any]:
    """What a kill left: the step of the last checkpoint, and whether one was being written, or is damaged."""
    steps, damaged = [0], 0
    for path in files(folder):
        try:
            steps.append(checkpoint.read(path)[0].step)
        except UnusableCheckpointError:
            damaged += 1
    writing = any((folder / records.CHECKPOINTS).glob(f".{records.CHECKPOINT_PATTERN}"))
    return {"step": max(steps), "while_writing": writing, "damaged": damaged}


def outcome(folder: Path) -> tuple[bytes, dict[str, Any], str]:
    """All of a finished run that must not depend on kills."""
    summary = records.RunFolder(folder).summary
    arrays = records.digest(checkpoint.read(max(files(folder)))[1])
    left = {name: value for name, value in summary.items() if name not in TIMES}
    return (folder / records.EPISODES).read_bytes(), left, arrays


def measure(name: str, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kills and resumes until there were enough kills and the run of the last one has come to its end."""
    whole, run, draw = folder / "whole", folder / "run", random.Random(seed)
    began = time.perf_counter()
    killed(train(name, whole), whole, 3600, training=False)
    seconds = time.perf_counter() - began
    rows: list[dict[str, Any]] = []
    lives: list[dict[str, Any]] = []
    exact, ends = 0, 0
    while len(rows) < kills or lives:
        command = [*COMMAND, "resume", str(run), "--quiet"] if (run / records.CONFIG).exists() else train(name, run)
        training = draw.random() >= ANYWHEN
        delay = draw.uniform(0, TRAINING_SECONDS if training else seconds) if len(rows) < kills else 3600.0
        if killed(command, run, delay, training):
            lives.append({"command": command[3], "delay": round(delay, 3), "training": training, **found(run)})
            rows.append(lives[-1])
            print(f"kill {len(rows)} of {kills}: {lives[-1]}", flush=True)
            continue
        same = outcome(run) == outcome(whole)
        ends += 1
        exact += len(lives) * same
        print(f"end of a run with {len(lives)} kills: {'the same' if same else 'ANOTHER'} to the bit", flush=True)
        lives = []
        shutil.rmtree(run)
    return {
        "setting": {
            "command": " ".join(["uppertail", *train(name, Path("DIR"))[3:]]),
            "seed": seed,
            "seconds": round(seconds, 1),
        },
        "kills": kills,
        "exact_resumes": exact,
        "damaged_checkpoints": sum(row["damaged"] for row in rows),
        "kills_while_writing": sum(row["while_writing"] for row in rows),
        "kills_before_the_first_checkpoint": sum(row["step"] == 0 for row in rows),
        "runs": ends,
        "all": rows,
        "hardware": hardware(),
    }


if __name__ == "__main__":
    given = options(__doc__, "results/kills.json", kills=100, seed=0, run="networks")  # the seed is that of the delays
    with tempfile.TemporaryDirectory() as temporary:
        results = measure(given.run, given.kills, given.seed, Path(temporary))
    write(given.out, results)
    print({name: value for name, value in results.items() if name not in ("all", "hardware", "setting")})
    sys.exit(results["exact_resumes"] != given.kills or results["damaged_checkpoints"] > 0)
