"""Holds the runs of two checkouts against each other, byte for byte: what a change left as it was, and what not.

Usage: python -m experiments.robustness.same_bytes BEFORE AFTER [--only PATTERN] [--keep DIR] [--prefix COMMAND]

Each case of same_bytes_cases.py, a small training run on the CPU, is run by the code in BEFORE/src and by that in
AFTER/src, with this interpreter and the same environment variables. Said is whether episodes.npz holds the same arrays,
and whether networks.safetensors does: their names, types, shapes and bytes. The exit code is 1 if the episodes of any
case differ, or a case did not run. A change of the last bits alone may reach the networks and no episode: look at both
columns. With --keep, the results of BEFORE are kept for later calls on this machine, if its src is as committed. On two
CPU cores, shared with other work, one side takes 6 minutes if its programs are compiled already, and 20 if not.
"""

import argparse
import hashlib
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors.numpy

from experiments.robustness.same_bytes_cases import CASES, RESUMED, command
from experiments.robustness.same_bytes_runs import HERE, FailedError, train

NEWER_OPTIONS = {
    "train": ("--replay=Uniform --target=Online --adam_betas=[0.9,0.999] --adam_epsilon=1e-8"),
    "--distribution=GaussianMixture": "--distribution.distance=l2",
}
"""What AFTER alone is told, so that it does what BEFORE did without being told: `{"--policy=UCB": "--policy.new=1"}`
gives an option to each case whose command has all of these words; `"train"` is a word of every command. These are for
a BEFORE that has no parts for replay, target and network."""

FILES = ("episodes.npz", "networks.safetensors")
Arrays = Mapping[str, np.ndarray]


def newer(words: list[str]) -> list[str]:
    """A case's command as AFTER is told it."""
    return [*words, *(new for old, text in NEWER_OPTIONS.items() if {*old.split()} <= {*words} for new in text.split())]


def committed(checkout: Path) -> str | None:
    """The commit of a checkout; None if its src is not as committed."""
    git = ["git", "-C", str(checkout)]
    changed = subprocess.run([*git, "status", "--porcelain", "--", "src"], capture_output=True, text=True, check=False)
    if changed.returncode or changed.stdout:
        return None
    return subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def kept_in(keep: Path | None, commit: str | None, case: str) -> Path | None:
    """Where the results of a case are kept: another commit, command, package or number of cores has another place."""
    if keep is None or commit is None:
        return None
    packages = map(importlib.metadata.version, ("jax", "jaxlib", "numpy", "optax", "equinox", "gymnasium"))
    corridors = (HERE / "corridors.py").read_text(encoding="utf-8")
    facts = [commit, *command(case), str(case in RESUMED), *packages, sys.version, str(os.cpu_count()), corridors]
    return keep / f"{case}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"


def results(checkout: Path, case: str, words: list[str], prefix: list[str], kept: Path | None) -> tuple[Arrays, Arrays]:
    """The arrays of the two files of a case: those kept, or else those of a run now.

    Raises:
        FailedError: it did not run, or no episode ended in it.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept if kept and kept.exists() else Path(temporary, "run")
        if folder != kept:
            train(checkout, case, words, prefix, folder)
        with np.load(folder / FILES[0]) as file:
            episodes = dict(file)
        networks = safetensors.numpy.load_file(folder / FILES[1]) if (folder / FILES[1]).exists() else {}
        if not episodes["return"].size:
            raise FailedError("no episode ended")
        if kept and folder != kept:
            partial = kept.with_name(f".{kept.name}-{os.getpid()}")
            partial.mkdir(parents=True)
            for name in FILES:
                shutil.copy(folder / name, partial)
            try:
                partial.rename(kept)
            except OSError:  # another call was faster
                shutil.rmtree(partial)
    return episodes, networks


def digest(arrays: Arrays) -> str:
    """The beginning of the SHA-256 of arrays: their names, types, shapes and bytes."""
    parts = [repr((name, one.dtype.str, one.shape)).encode() + one.tobytes() for name, one in sorted(arrays.items())]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:8]


def verdict(before: Arrays, after: Arrays) -> str:
    """`same`, or how many of all arrays are the same by name."""
    names = before.keys() | after.keys()
    same = sum(digest({"": before[name]}) == digest({"": after[name]}) for name in before.keys() & after.keys())
    return "same" if same == len(names) else f"{same} of {len(names)}"


def compare(case: str, sides: list[Path], prefix: list[str], kept: Path | None) -> tuple[list[bool], list[float]]:
    """Runs a case on both sides and prints its line: whether episodes and networks are the same, seconds of each."""
    words, found, seconds = command(case), [], []
    for checkout, told, place in zip(sides, (words, newer(words)), (kept, None), strict=True):
        began = time.perf_counter()
        try:
            found.append(results(checkout, case, told, prefix, place))
        except FailedError as error:
            print(f"{case:<20} FAILED in {checkout}: {error}", flush=True)
        seconds.append(time.perf_counter() - began)
    if len(found) < len(sides):
        return [False, False], seconds
    episodes, networks = (verdict(*pair) for pair in zip(*found, strict=True))
    count = int(np.isfinite(found[0][0]["return"]).sum())
    hashes, times = " ".join(digest(side[0]) for side in found), " ".join(f"{each:>5.1f}" for each in seconds)
    print(f"{case:<20} {episodes:<13} {networks:<9} {count:>8}  {hashes} {times}", flush=True)
    return [episodes == "same", networks == "same"], seconds


def main() -> int:
    """Runs all cases, and prints a line for each as it goes."""
    parser = argparse.ArgumentParser(description="Holds the runs of two checkouts against each other, byte for byte.")
    parser.add_argument("before", type=Path, help="the older checkout")
    parser.add_argument("after", type=Path, help="the newer checkout")
    parser.add_argument("--only", default="", help="cases whose name matches this regular expression")
    parser.add_argument("--keep", type=Path, help="where results of the older checkout are kept for later calls")
    parser.add_argument("--prefix", default="", help="what each command begins with, for example 'nice'")
    given = parser.parse_args()
    sides = [given.before.resolve(), given.after.resolve()]
    for checkout in sides:
        if not (checkout / "src" / "uppertail").is_dir():
            parser.error(f"{checkout} has no src/uppertail: give a checkout of this project.")
    if not (cases := [case for case in CASES if re.search(given.only, case)]):
        parser.error(f"no case matches {given.only!r}: use a part of one of {', '.join(CASES)}.")
    commit, prefix = committed(sides[0]), shlex.split(given.prefix)
    if given.keep and commit is None:
        print(f"{sides[0] / 'src'} is not as committed: its results are not kept.")
    print(f"{'case':<20} {'episodes.npz':<13} {'networks':<9} {'episodes':>8}  {'before':<8} {'after':<8} seconds")
    lines = {case: compare(case, sides, prefix, kept_in(given.keep, commit, case)) for case in cases}
    for place, what in enumerate(("episodes", "networks")):
        others = [case for case, (same, _) in lines.items() if not same[place]]
        print(f"{len(cases) - len(others)} of {len(cases)} cases have the same {what}", *others, sep="; not ")
    older, later = (sum(times) for times in zip(*(seconds for _, seconds in lines.values()), strict=True))
    print(f"{older:.0f} s for {sides[0]}, {later:.0f} s for {sides[1]}")
    return int(not all(same[0] for same, _ in lines.values()))


if __name__ == "__main__":
    sys.exit(main())
