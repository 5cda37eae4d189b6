"""Dask's workers: real processes, some of which are killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test_study_work import cells, leave_run
from uppertail.errors import InputError
from uppertail.studies import pool
from uppertail.studies.folder import STUDY, StudyFolder
from uppertail.studies.pool import Work

pytest.importorskip("distributed", reason="Dask's distributed is not installed")
CLIENT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_study_pool import begin, connected
from test_study_work import cells
from uppertail.studies import pool
from uppertail.studies.pool import Work
if __name__ == "__main__":
    with connected(Path({folder!r}), 1) as client:
        list(pool.outcomes(Work(Path({folder!r}), begin), iter(cells(1)), client))
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("cells", "outcomes"):
        (tmp_path / name).mkdir()
    (tmp_path / STUDY).touch()
    return StudyFolder(tmp_path)


def connected(folder, workers=2, scheduler=None, launcher="here", jobs=()):
    return pool.connected(workers, scheduler, launcher, dict(jobs), folder)


def ended(folder, train, count=2, **options):
    with connected(folder.path, **options) as client:
        return {cell.name: each for cell, each in pool.outcomes(Work(folder.path, train), iter(cells(count)), client)}


def begin(cell, place, beside):
    """Says which process began the cell, and works for a minute."""
    (place.parent / f"{cell.name}.{os.getpid()}").touch()
    time.sleep(60)


def share(cell, place, beside):
    """Waits until two processes have begun cells."""
    mark = place.parent / f"pid-{os.getpid()}"
    mark.touch()
    (place.parent / f"{cell.name}-begun").touch(exist_ok=False)
    end = time.monotonic() + 60
    while len(list(place.parent.glob("pid-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    leave_run(cell, place)


def kill_the_first(cell, place, beside):
    """Kills its own worker, the first time that cell-0 is begun; cell-1 always."""
    mark = place.parent / f"{cell.name}-begun"
    if cell.name == "cell-1" or not mark.exists():
        mark.touch()
        if cell.name != "cell-2":
            os.kill(os.getpid(), signal.SIGKILL)
    leave_run(cell, place)


def wait_for(holds, seconds=60):
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def gone(process):
    """Whether a process has ended; one that nobody has waited for counts."""
    try:
        return ") Z" in Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return True


@pytest.mark.slow
def test_two_workers_share_the_cells_and_do_each_once(folder):
    found = ended(folder, share, 6)
    assert {outcome.state for outcome in found.values()} == {"done"}
    assert len(found) == 6
    assert len(list((folder.path / "cells").glob("pid-*"))) == 2


@pytest.mark.slow
def test_the_usual_port_of_a_dashboard_stays_free(folder):
    with connected(folder.path, workers=1) as client:
        assert client.scheduler_info()["services"]["dashboard"] != 8787


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_a_cell_that_always_kills_its_own_has_failed(folder):
    found = ended(folder, kill_the_first, 3)
    assert {name: outcome.state for name, outcome in found.items()} == {
        "cell-0": "done",
        "cell-1": "failed",
        "cell-2": "done",
    }
    assert found["cell-1"].message == "its worker died 3 times without a message, killed or out of memory"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_workers_end_with_a_command_that_is_killed(folder):
    script = folder.path / "client.py"
    script.write_text(CLIENT.format(tests=str(Path(__file__).parent), folder=str(folder.path)))
    with subprocess.Popen([sys.executable, str(script)]) as client:
        (mark,) = wait_for(lambda: list((folder.path / "cells").glob("cell-0.*")))
        client.kill()
    assert wait_for(lambda: gone(int(mark.suffix[1:])))


def started(*command):
    module = f"from distributed.cli.dask_{command[0]} import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", module, *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.mark.slow
def test_a_running_cluster_is_used_and_its_end_is_a_sentence(folder, monkeypatch):
    file = folder.path / "scheduler.json"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    scheduler = started(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
    )
    wait_for(file.exists)
    worker = started("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard")
    try:
        with connected(folder.path, scheduler=address(file)) as client:
            for _ in pool.outcomes(Work(folder.path, leave_run), iter(cells(2)), client):
                pass
            assert all(folder.outcome(f"cell-{number}") for number in range(2))
            found = pool.outcomes(Work(folder.path, begin), iter(cells(3)), client)
            assert [next(found)[1].state for _ in range(2)] == ["done", "done"]  # they had ended before
            scheduler.kill()
            with pytest.raises(InputError, match="The Dask scheduler is gone; finished cells are kept"):
                next(found)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def address(file):
    import json

    return json.loads(file.read_text())["address"]


def test_a_scheduler_that_does_not_answer_is_a_sentence(folder, monkeypatch):
    monkeypatch.setattr(pool, "TIMEOUT", 0.3)
    with pytest.raises(InputError, match=r"no Dask scheduler at tcp://127.0.0.1:1 .*: start it"):
        ended(folder, leave_run, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InputError, match=r"no Dask scheduler at nowhere"):
        ended(folder, leave_run, scheduler="nowhere://x")


def test_without_dask_the_package_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install distributed`, or use --workers 1"):
        ended(folder, leave_run)


def test_without_dask_jobqueue_that_package_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(
        InputError, match=r"launcher pbs needs the package dask-jobqueue: install it with `pip install dask-jobqueue`"
    ):
        ended(folder, leave_run, launcher="pbs")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # dask-jobqueue's own, half made
def test_where_there_are_no_jobs_it_is_said(folder, monkeypatch):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(InputError, match="There is no bsub here: run the command where it works"):
            ended(folder, leave_run, launcher="lsf")
    monkeypatch.setattr("shutil.which", lambda command: command)
    with pytest.raises(InputError, match=r"The jobs cannot be made \(.*memmory.*\): correct jobs"):
        ended(folder, leave_run, launcher="slurm", jobs={"memmory": "4GB"})
