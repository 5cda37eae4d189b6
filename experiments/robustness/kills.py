"""Kills runs at random moments, resumes them, and holds their ends against runs that nobody killed.

Usage: python -m experiments run kills [--kills 20] [--runs networks table ...] [--out results/kills.json]

`--runs` names some of `RUNS`: each learner, actions that last, several environments for each seed, and a measured range
of returns that grows. Of each, a run of `uppertail train`, with a checkpoint after each compiled chunk, is killed by
SIGKILL, resumed, killed again, and so on until it comes to its end; then the next one begins, until there were so many
kills. A quarter of the moments is drawn uniformly over the time that the whole run takes, compilation included; the
others over two seconds from the process's first checkpoint. After every kill each checkpoint must be whole; at each end
the episodes, summary.json without its times, and every array of the last checkpoint must be those of the run without
kills, to the bit. A process is a fork of this one, which has imported all but not started JAX: imports take no time.
experiments/robustness/study_kills.py kills the processes of a study.
"""

import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.common import options, write
from uppertail import cli, records
from uppertail.cli import resume as _resume  # noqa: F401 - imported before the forks
from uppertail.training import checkpoint
from uppertail.training.checkpoint import UnusableCheckpointError

CHAIN = "--env Chain --env.length 20 --seeds 4"
CAR = "--env Gym --env.id MountainCar-v0 --env.returns [-200,0] --seeds 2"
CRUMBS = "--env Gym --env.id experiments.robustness.corridors:Crumbs-v0 --seeds 2"
NETWORK = "--network.width 32"
RUNS = {
    "table": (f"{CHAIN} --learner LeastSquares", 98_304, 1_024),
    "growing_range": (f"{CRUMBS} --num_envs 2", 4_096, 512),
    "environments": (f"{CAR} {NETWORK} --learner GradientDescent --num_envs 4 --rollout_steps 16", 4_096, 1_024),
    "kernel_counts": (f"{CAR} --env.action_repeat 4", 4_096, 1_024),
    "networks": (f"{CHAIN} {NETWORK}", 32_768, 1_024),
    "imitation": (f"{CHAIN} {NETWORK} --learner Imitation --distribution PointMass --policy Softmax", 16_384, 1_024),
}
"""The options of each run, its steps, and the steps between checkpoints."""
ANYWHEN = 0.25
TRAINING_SECONDS = 2.0
TIMES = ("wall_seconds", "compile_seconds", "compilations", "steps_per_second")


def train(run: str, folder: Path) -> list[str]:
    """The command of a run."""
    settings, steps, every = RUNS[run]
    limits = ["--episodes", "1000000", "--steps", str(steps), "--checkpoint_every", str(every)]
    return ["train", *settings.split(), *limits, "--quiet", "--overwrite", "--out", str(folder)]


def call(command: list[str]) -> None:
    """What a process does."""
    sys.exit(cli.main(command))


def killed(command: list[str], folder: Path, delay: float, training: bool) -> bool:
    """Runs a command and kills it after a delay; whether that was before its end.

    Args:
        command: the command.
        folder: the run's folder.
        delay: seconds until the kill.
        training: whether they count from its first checkpoint, not from its start.
    """
    before, process = files(folder), multiprocessing.get_context("fork").Process(target=call, args=(command,))
    process.start()
    while training and process.is_alive() and not files(folder) - before:
        time.sleep(0.01)
    process.join(delay)
    if process.is_alive():
        process.kill()
        process.join()
        return True
    if process.exitcode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.exitcode}.")
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
    seconds, hardware = time.perf_counter() - began, records.RunFolder(whole).summary["hardware"]
    rows: list[dict[str, Any]] = []
    lives: list[dict[str, Any]] = []
    exact, ends = 0, 0
    while len(rows) < kills or lives:
        command = ["resume", str(run), "--quiet"] if (run / records.CONFIG).exists() else train(name, run)
        training = draw.random() >= ANYWHEN
        delay = draw.uniform(0, TRAINING_SECONDS if training else seconds) if len(rows) < kills else 3600.0
        if killed(command, run, delay, training):
            lives.append({"command": command[0], "delay": round(delay, 3), "training": training, **found(run)})
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
            "command": " ".join(["uppertail", *train(name, Path("DIR"))]),
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
        "hardware": hardware,
    }


if __name__ == "__main__":
    given = options(__doc__, "results/kills.json", kills=20, seed=0, runs=RUNS)  # the seed is that of the delays
    document: dict[str, Any] = {}
    for each in given.runs:
        with tempfile.TemporaryDirectory() as temporary:
            document[each] = measure(each, given.kills, given.seed, Path(temporary))
        write(given.out, document)
        print(each, {name: value for name, value in document[each].items() if isinstance(value, int)}, flush=True)
    sys.exit(any(row["exact_resumes"] < given.kills or row["damaged_checkpoints"] for row in document.values()))
