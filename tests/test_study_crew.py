"""The worker processes of one machine, as real processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from uppertail.errors import InputError
from uppertail.studies.crew import Crew

WORKER = """
import pathlib, sys, time
from uppertail.studies.crew import end_with_parent
end_with_parent()
folder = pathlib.Path(sys.argv[1])
{act}
"""
PARENT = """
import sys
from uppertail.studies.crew import Crew
Crew([sys.executable, "-c", {worker!r}, {folder!r}], 1).run(lambda pid: True, lambda: None, poll=0.01)
"""
SLEEP = "(folder / str(__import__('os').getpid())).touch(); time.sleep(60)"


def worker(folder, act):
    return [sys.executable, "-c", WORKER.format(act=act), str(folder)]


def wait_for(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone(process):
    """Whether a process has ended; one that nobody has waited for counts."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:  # noqa: PTH123
        return ") Z" in stat.read()


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    act = """
import os
if not (folder / "first").exists():
    (folder / "first").touch()
    os.kill(os.getpid(), 9)
(folder / "second").touch()
"""
    Crew(worker(tmp_path, act), 1).run(lambda process: True, lambda: None, poll=0.01)
    assert (tmp_path / "second").exists()


def test_workers_that_cannot_even_begin_stop_the_study(tmp_path, capfd):
    crew = Crew(worker(tmp_path, "raise ImportError('not here')"), 2)
    with pytest.raises(InputError, match="ended with exit code 1, so the study stops"):
        crew.run(lambda process: False, lambda: None, poll=0.01)
    assert capfd.readouterr().err.count("ImportError: not here") in (3, 4)  # two begin side by side


def test_a_worker_that_is_killed_before_it_claims_a_cell_is_replaced_too(tmp_path):
    act = """
import os
number = len(list(folder.iterdir()))
(folder / str(number)).touch()
os.kill(os.getpid(), 9 if number < 2 else 0)
"""
    Crew(worker(tmp_path, act), 1).run(lambda process: False, lambda: None, poll=0.01)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = PARENT.format(worker=WORKER.format(act=SLEEP), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        wait_for(lambda: list(tmp_path.iterdir()))
        parent.kill()
    wait_for(lambda: gone(int(next(tmp_path.iterdir()).name)))


def test_ctrl_c_reaches_the_workers_once_and_waits_for_them(tmp_path):
    act = """
try:
    (folder / "begun").touch()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.2)
    (folder / "kept").touch()
    sys.exit(130)
"""

    def show():
        if (tmp_path / "begun").exists():
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Crew(worker(tmp_path, act), 1).run(lambda process: True, show, poll=0.01)
    assert (tmp_path / "kept").exists()


def test_a_worker_has_one_thread_of_work(tmp_path):
    act = "(folder / 'threads').write_text(__import__('os').environ['PJRT_NPROC'])"
    Crew(worker(tmp_path, act), 1).run(lambda process: True, lambda: None, poll=0.01)
    assert (tmp_path / "threads").read_text() == os.environ.get("PJRT_NPROC", "1")
