"""A small run that recorded, which the tests of reports share."""

import functools
import json
import shutil
import tempfile
from pathlib import Path

from uppertail.cli import main

OPTIONS = ["--env.length", "4", "--seeds", "2", "--width", "8", "--hidden_layers", "1", "--replay_size", "256"]
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
    summary = json.loads((parent / "other" / "summary.json").read_text())
    summary["env"]["length"] = 5
    (parent / "other" / "summary.json").write_text(json.dumps(summary))
    return parent / "other"
