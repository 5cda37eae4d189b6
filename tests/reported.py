"""A small run that recorded, which the tests of reports share."""

import functools
import shutil
import tempfile
from pathlib import Path

from uppertail.cli import main
from uppertail.records import RunFolder, write_summary

OPTIONS = ["--env.length", "4", "--seeds", "2", "--network.width", "8", "--replay_size", "256"]
OPTIONS += ["--batch_size", "16"]


@functools.cache
def kept() -> tempfile.TemporaryDirectory[str]:
    """The folder of the run, until the tests are over."""
    folder = tempfile.TemporaryDirectory(prefix="uppertail-report-")
    asked = [*OPTIONS, "--episodes", "150", "--record", "distributions", "--quiet"]
    assert main(["train", *asked, "--out", f"{folder.name}/run"]) == 0
    return folder


def run() -> Path:
    """A Chain of length 4, two seeds, with distributions."""
    return Path(kept().name, "run")


def elsewhere(parent: Path) -> Path:
    """The same run without its recording, as if of another environment."""
    shutil.copytree(run(), parent / "other")
    (parent / "other" / "distributions.npz").unlink()
    summary = RunFolder(parent / "other").summary
    summary["env"]["length"] = 5
    write_summary(parent / "other" / "summary.json", summary)
    return parent / "other"
