"""Workers as jobs: through submitit's local executor, where it is installed."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
import yaml

from uppertail.cli import main
from uppertail.cli.study_worker import work_in
from uppertail.errors import InputError
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder
from uppertail.studies.slurm import submit

BASE = {"env.length": 3, "seeds": 1, "width": 8, "hidden_layers": 1, "replay_size": 999, "episodes": 1_000_000}


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"base": {**BASE, "steps": 60_000, "checkpoint_every": 1}, "grid": {"seed": [0]}, "slurm": {"mem_gb": 1}}
    Path("study.yaml").write_text(yaml.safe_dump(asked))
    definition, folder = Definition.read(Path("study.yaml")), StudyFolder(tmp_path / "out")
    folder.make(definition)
    return definition, folder


def test_without_submitit_its_extra_is_named(study, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert main(["study", "study.yaml", "--out", "out", "--launcher", "slurm"]) == 2
    assert "pip install 'uppertail[slurm]'" in capsys.readouterr().err


def test_where_there_is_no_slurm_it_is_said(study):
    pytest.importorskip("submitit", reason="submitit is not installed")
    with pytest.raises(InputError, match="call it where `sbatch` works"):
        submit(study[1].path, work_in, 1, {})


def test_a_job_at_its_time_limit_is_queued_again_and_goes_on_from_the_checkpoint(study):
    pytest.importorskip("submitit", reason="submitit is not installed")
    definition, folder = study
    (job,) = submit(folder.path, work_in, 1, {"timeout_min": 5}, cluster="local")
    checkpoints = folder.cell(definition.cells[0]) / "checkpoints"
    end = time.monotonic() + 120
    while not list(checkpoints.glob("step-*")):
        assert time.monotonic() < end and job.state == "RUNNING", job.stderr()
        time.sleep(0.01)
    (began,) = folder.claims().begins(definition.cells[0].name)[0]
    os.kill(began["pid"], signal.SIGUSR2)  # what Slurm sends before the time limit
    assert job.result() == 0
    first, second = folder.claims().begins(definition.cells[0].name)
    assert (first[1]["outcome"], second[1]["outcome"]) == ("released", "done")
    assert first[0]["pid"] != second[0]["pid"]
    log = (folder.cell(definition.cells[0]) / "log.jsonl").read_text().splitlines()
    steps = [yaml.safe_load(line)["step"] for line in log]
    assert steps == sorted(set(steps)) and steps[-1] >= 60_000
