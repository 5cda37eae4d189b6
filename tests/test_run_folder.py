"""The reader of run folders: what it refuses, damaged files, runs that diverged, and code that it never runs."""

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

import reported
from experiments.robustness import mutations
from uppertail.cli import main
from uppertail.errors import InputError
from uppertail.records import RunFolder, find_runs, write_arrays, write_summary


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a small run that recorded."""
    return shutil.copytree(reported.run(), tmp_path / "run")


NAMES = ("summary.json", "episodes.npz", "distributions.npz", "config.yaml", "networks.safetensors")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_is_read_or_refused_in_a_sentence(name: str, run: Path) -> None:
    found = mutations.damage(run, name, 40, 0)
    assert found.keys() <= {"sentence", "read"}, found
    assert found["sentence"] > 10


@pytest.mark.parametrize("name", ["episodes.npz", "distributions.npz"])
def test_arrays_that_no_run_wrote_are_refused(name: str, run: Path) -> None:
    """One number changes in a file that is whole, and so does its checksum; the sentence names the file."""
    whole = read(run, name)
    with np.load(run / name) as file:
        arrays = dict(file)
    np.savez(run / name, **arrays)
    with pytest.raises(InputError, match=rf"{name} is missing or damaged"):
        read(run, name)
    write_arrays(run / name, arrays)
    assert repr(read(run, name)) == repr(whole)
    changed = {key: array.copy() for key, array in arrays.items()}
    changed["step"].flat[-1] += 1
    content = (run / name).read_bytes()
    write_arrays(run / name, changed)
    comment = content[-64:]
    (run / name).write_bytes((run / name).read_bytes()[:-64] + comment)
    with pytest.raises(InputError, match=rf"{name} is missing or damaged"):
        read(run, name)


def read(run: Path, name: str) -> Any:
    folder = RunFolder(run)
    return folder.episodes if name == "episodes.npz" else folder.distributions


def test_a_summary_that_no_run_wrote_is_refused(run: Path) -> None:
    path, summary = run / "summary.json", RunFolder(run).summary
    assert {**summary, "sha256": ANY} == json.loads(path.read_text())
    path.write_text(path.read_text().replace('"seeds": 2,', '"seeds": 3,'))
    with pytest.raises(InputError, match=r"summary\.json is missing or damaged: train again"):
        RunFolder(run).summary  # noqa: B018
    write_summary(path, {**summary, "seeds": 3})
    assert RunFolder(run).summary["seeds"] == 3


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "3", '"x"', "[" * 100_000])
def test_what_is_no_summary_is_refused(text: str, run: Path) -> None:
    (run / "summary.json").write_text(text)
    with pytest.raises(InputError, match="damaged"):
        RunFolder(run).summary  # noqa: B018
    assert not RunFolder(run).finished


def test_a_link_to_itself_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="is not the folder of a run"):
        find_runs([tmp_path / "loop"])


@pytest.mark.slow
def test_a_run_that_diverged_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    asked = [*reported.OPTIONS, "--learning_rate", "1e30", "--episodes", "200", "--record", "distributions"]
    assert main(["train", *asked, "--quiet", "--out", out]) == 2
    recorded = RunFolder(Path(out)).distributions
    assert recorded is not None and np.isnan(recorded.mean).any()
    capsys.readouterr()
    assert main(["inspect", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["actions"][0]["mean"] is None
    assert main(["inspect", out]) == 0
    assert main(["report", out, "--quiet"]) == 0
