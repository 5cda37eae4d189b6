"""The work on a cell: with what trains replaced, and with a real process that is killed."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from uppertail.cli import resume, study
from uppertail.errors import InputError
from uppertail.parts import PARTS
from uppertail.records import RunFolder, write_arrays, write_summary
from uppertail.studies import folder as of_folder
from uppertail.studies.cells import LOSSES, LOST, Cell
from uppertail.studies.definition import Definition
from uppertail.studies.folder import STUDY, StudyFolder
from uppertail.studies.pool import Work

HOLD = """
import sys, time
from pathlib import Path
from uppertail.studies.folder import StudyFolder
with StudyFolder(Path(sys.argv[1])).working_on("cell-0"):
    print("held", flush=True)
    time.sleep(600)
"""

PER_SEED = ("first_success_episode", "solved_episode", "kept", "longest_fall", "final_success_rate", "final_return")
SUMMARY = {
    **{part: {"name": "X"} for part in PARTS},
    **dict.fromkeys(("wall_seconds", "compile_seconds", "steps_per_second", "targets_outside_support"), 0.0),
    "compilations": 0,
    **{name: [None] for name in (*PER_SEED, "final_greedy_return", "greedy_solves")},
    **dict.fromkeys(("measured_returns", "stopped", "diverged", "failed", "success")),
    "settings": {"seed": 0, "discount": 0.9},
    "seeds": 1,
    "episodes": [3],
    "env_steps": 3,
    "interrupted": False,
    "hardware": {},
}


def cells(count):
    return [Cell(f"cell-{number}", {"seed": number}, {"seed": number}) for number in range(count)]


def save_episodes(place, values):
    """The returns of each seed's episodes, and their means in the summary that is there."""
    path = place / "summary.json"
    write_summary(path, {**RunFolder(place).summary, "final_return": values[:, -100:].mean(axis=1).tolist()})
    ones = np.ones(values.shape)
    write_arrays(place / "episodes.npz", {"return": values, "length": ones, "step": ones.cumsum(axis=1)})


def leave_run(cell, place, beside=()):
    """What `uppertail train` leaves, without training."""
    place.mkdir(parents=True, exist_ok=True)
    write_summary(place / "summary.json", SUMMARY)
    save_episodes(place, np.full((1, 3), float(cell.options.get("seed", 0))))
    for name in ("config.yaml", "networks.safetensors", "curve.png"):
        (place / name).write_text(name)


@pytest.fixture
def folder(tmp_path):
    made = StudyFolder(tmp_path)
    for name in ("cells", "outcomes"):
        (tmp_path / name).mkdir()
    (tmp_path / STUDY).touch()
    return made


def never(cell, place, beside):
    pytest.fail("it has ended")


def test_a_cell_ends_once_even_if_two_work_on_it(folder):
    trained = []

    def slow(cell, place, beside):
        trained.append(cell.name)
        time.sleep(0.2)
        leave_run(cell, place)

    work, outcomes = Work(folder.path, slow), []
    threads = [threading.Thread(target=lambda: outcomes.append(work(cells(1)[0]))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trained == ["cell-0"]
    assert [outcome.state for outcome in outcomes] == ["done", "done"]
    assert outcomes[0] == folder.outcome("cell-0")
    assert Work(folder.path, never)(cells(1)[0]) == outcomes[0]


def test_the_cell_of_a_process_that_is_killed_is_free_at_once(folder):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder.path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        process.send_signal(signal.SIGKILL)
    assert Work(folder.path, leave_run)(cells(1)[0]).state == "done"


def test_a_failing_cell_says_why(folder, capsys):
    def fails(cell, place, beside):
        raise RuntimeError("a bug of one's own") if cell.name == "cell-0" else InputError("seed is 1: use another.")

    found = [Work(folder.path, fails)(cell) for cell in cells(2)]
    assert [each.state for each in found] == ["failed", "failed"]
    assert [each.message for each in found] == ["RuntimeError: a bug of one's own", "seed is 1: use another."]
    assert "Traceback" in capsys.readouterr().err


def test_a_cell_without_results_has_failed(folder):
    assert Work(folder.path, lambda *_: None)(cells(1)[0]).message == "it ended without results"


def test_ctrl_c_lets_go_of_the_cell(folder):
    def interrupted(cell, place, beside):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Work(folder.path, interrupted)(cells(1)[0])
    assert folder.outcome("cell-0") is None
    assert Work(folder.path, leave_run)(cells(1)[0]).state == "done"


def dies_at(folder):
    def died(cell, place, beside):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Work(folder.path, died)(cells(1)[0])


def test_a_cell_that_ends_its_process_again_and_again_has_failed(folder):
    for _ in range(LOSSES):
        dies_at(folder)
    assert Work(folder.path, never)(cells(1)[0]) == LOST
    assert Work(folder.path, leave_run)(cells(2)[1]).state == "done"
    assert list((folder.path / "outcomes").glob("*.tries")) == []


def test_processes_that_leave_a_checkpoint_may_end_as_often_as_they_like(folder):
    checkpoints = folder.cell(cells(1)[0]) / "checkpoints"
    checkpoints.mkdir(parents=True)
    for step in range(LOSSES + 1):
        dies_at(folder)
        (checkpoints / f"step-{step:012d}.safetensors").touch()
        os.utime(folder.path / "outcomes" / "cell-0.tries", (later := time.time() + 9, later))  # a clock was set back
    assert Work(folder.path, leave_run)(cells(1)[0]).state == "done"


def test_the_next_command_counts_anew(folder):
    for _ in range(LOSSES):
        dies_at(folder)
    folder.make(Definition("", cells(1)))
    assert Work(folder.path, leave_run)(cells(1)[0]).state == "done"


def test_a_cell_that_was_finished_as_its_process_died_is_not_done_again(folder):
    leave_run(cells(1)[0], folder.cell(cells(1)[0]))
    assert Work(folder.path, never)(cells(1)[0]).state == "done"


def test_a_torn_outcome_is_none(folder):
    Work(folder.path, leave_run)(cells(1)[0])
    path = folder.path / "outcomes" / "cell-0.json"
    path.write_bytes(path.read_bytes()[:-9])
    assert folder.outcome("cell-0") is None
    assert Work(folder.path, never)(cells(1)[0]).state == "done"


def test_a_cell_with_a_checkpoint_is_resumed(folder, monkeypatch):
    (cell,), asked = cells(1), []
    place = folder.cell(cell)
    (place / "checkpoints").mkdir(parents=True)
    (place / "config.yaml").touch()
    (place / "checkpoints" / "step-000000512.safetensors").touch()
    monkeypatch.setattr(resume, "go_on", lambda *arguments: asked.append(arguments) or 0)
    study.train(cell, place, [])
    assert asked == [(place, None, True, True, [])]


def test_a_worker_that_does_not_see_the_folder_is_told(tmp_path):
    with pytest.raises(InputError, match=r"there is no study in .*elsewhere on this machine: use a folder that all"):
        Work(tmp_path / "elsewhere", never)(cells(1)[0])


def test_a_full_disk_is_said(folder, monkeypatch):
    def full(path, document):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(of_folder, "write_json", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        Work(folder.path, leave_run)(cells(1)[0])
