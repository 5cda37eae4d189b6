"""Claims and workers: with what trains replaced, and with real processes that are killed."""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from uppertail.errors import InputError
from uppertail.studies import claim as claiming
from uppertail.studies.cells import Cell
from uppertail.studies.claims import LOSSES, Claims
from uppertail.studies.worker import run_cell, work

SCRIPT = """
import functools, sys, time
from pathlib import Path
from uppertail.studies.claims import Claims
from uppertail.studies.worker import run_cell, work
sys.path.insert(0, {tests!r})
from test_study_claims import cells, run_of
folder = Path({folder!r})
def command(arguments):
    time.sleep({seconds})
    return run_of(arguments)
claims = Claims(folder / "claims")
work(cells({count}), claims, functools.partial(run_cell, folder / "cells", command), poll=0.01)
"""


def cells(count):
    return [Cell(f"cell-{number}", {"seed": number}, {"seed": number}) for number in range(count)]


def save_episodes(folder, values):
    ones = np.ones(values.shape)
    np.savez(folder / "episodes.npz", **{"return": values, "length": ones, "step": ones.cumsum(axis=1)})


def run_of(arguments):
    """What `uppertail train` leaves, without training."""
    folder = Path(arguments[arguments.index("--out") + 1])
    folder.mkdir(parents=True, exist_ok=True)
    seed = next(argument.partition("=")[2] for argument in arguments if argument.startswith("--seed="))
    save_episodes(folder, np.full((1, 3), float(seed)))
    summary = {"seeds": 1, "interrupted": False, "diverged": None, "wall_seconds": 0.0}
    summary |= {"first_success_episode": [None], "solved_episode": [None], "episodes": [3]}
    (folder / "summary.json").write_text(json.dumps(summary))
    for name in ("config.yaml", "networks.safetensors", "curve.png"):
        (folder / name).write_text(name)
    return 0


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "claims").mkdir()
    (tmp_path / "cells").mkdir()
    return tmp_path


@pytest.fixture
def claims(folder):
    return Claims(folder / "claims", beat=0.02)


def worked(count, folder, claims, command):
    return work(cells(count), claims, functools.partial(run_cell, folder / "cells", command), poll=0.01)


def standing(claims, cell="cell-0"):
    return claims.standings([cell])[cell]


def started(folder, count, seconds):
    script = SCRIPT.format(tests=str(Path(__file__).parent), folder=str(folder), count=count, seconds=seconds)
    return subprocess.Popen([sys.executable, "-c", script])


def wait_for(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def begins(folder):
    """Every claim: cell and number to its lines."""
    return {path.stem: claiming.lines(path.read_bytes()) for path in sorted((folder / "claims").iterdir())}


def test_of_many_that_claim_a_cell_one_succeeds(claims, folder):
    fresh, attempts = standing(claims), []
    barrier = threading.Barrier(16)

    def take():
        barrier.wait()
        attempts.append(Claims(folder / "claims").take("cell-0", fresh))

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mine = [claim for claim in attempts if claim is not None]
    assert len(mine) == 1
    assert standing(claims).state == "running"
    mine[0].end("done", seconds=1.0)
    assert standing(claims).state == "done"


def test_a_released_cell_is_claimed_again_and_a_failed_one_is_not(claims):
    taken(claims).end("released")
    assert (standing(claims).state, standing(claims).number) == ("waiting", 1)
    taken(claims).end("failed", message="no luck")
    assert (standing(claims).state, standing(claims).message) == ("failed", "no luck")


def test_a_process_that_is_killed_loses_its_cell_at_once(folder, claims):
    with started(folder, 1, 60) as process:
        wait_for(lambda: standing(claims).began)
        process.send_signal(signal.SIGSTOP)  # a process that sleeps is alive
        assert standing(claims).state == "running"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert standing(claims).state == "waiting"
    assert worked(1, folder, claims, run_of)
    first, second = begins(folder).values()
    assert len(first) == 1 and second[1]["outcome"] == "done"


def taken(claims):
    claim = claims.take("cell-0", standing(claims))
    assert claim is not None
    return claim


def elsewhere(monkeypatch, claims):
    """A claim of a process on another machine."""
    with monkeypatch.context() as patch:
        patch.setattr(claiming, "machine", lambda: "another")
        return taken(claims)


def test_on_another_machine_signs_of_life_count_and_not_locks(folder, claims, monkeypatch):
    claim = elsewhere(monkeypatch, claims)
    watcher = Claims(folder / "claims", patience=0.15)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:  # several times its patience
        assert standing(watcher).state == "running"
        time.sleep(0.01)
    claim.over.set()  # as if its machine had lost its power
    wait_for(lambda: standing(watcher).state == "waiting")
    assert standing(watcher).number == 1
    os.close(claim.descriptor)


def test_a_machine_with_another_clock_is_not_taken_for_dead(folder, claims, monkeypatch):
    claim = elsewhere(monkeypatch, claims)
    claim.over.set()
    watcher = Claims(folder / "claims", patience=60)
    os.utime(claim.path, (0, 0))
    assert standing(watcher).state == "running"
    os.close(claim.descriptor)


def test_who_was_taken_for_dead_and_wakes_up_is_told(folder, claims, monkeypatch):
    told = []
    sleeper = Claims(folder / "claims", beat=0.02, lost=told.append)
    claim = elsewhere(monkeypatch, sleeper)
    assert not told
    other = taken(claims)
    wait_for(lambda: told)
    assert told[0] == claim.path
    claim.end("done")
    assert standing(claims).state == "running"  # the later claim counts
    other.end("done")


def test_a_claim_without_a_word_is_not_taken_for_dead_at_once(folder, claims):
    """Its process has made the file, and not yet written or locked it."""
    (folder / "claims" / "cell-0.0001.jsonl").touch()
    assert standing(claims).state == "running"
    (folder / "claims" / "cell-0.0001.jsonl").write_bytes(b"\0\0\n")  # after a loss of power
    assert standing(claims).state == "running"


def test_a_cell_that_kills_its_process_again_and_again_has_failed(folder, claims):
    for number in range(1, LOSSES + 1):
        assert standing(claims).state == "waiting"
        (folder / "claims" / f"cell-0.{number:04d}.jsonl").write_text(
            json.dumps({"machine": claiming.machine(), "pid": 1, "began": ""}) + "\n"
        )
    assert standing(claims).state == "failed"
    assert "out of memory" in standing(claims).message


def test_two_processes_share_the_cells_and_do_each_once(folder):
    count = 12
    with started(folder, count, 0.05), started(folder, count, 0.05):
        pass
    found = begins(folder)
    assert set(found) == {f"cell-{number}.0001" for number in range(count)}
    assert all(lines[1]["outcome"] == "done" for lines in found.values())
    assert len({lines[0]["pid"] for lines in found.values()}) == 2


def test_kills_lose_no_cell_and_do_none_twice(folder, claims):
    """Each kill costs the cell that was being worked on, and only that one is begun again."""
    count, kills = 6, 4
    for _ in range(kills):
        with started(folder, count, 0.1) as process:
            before = len(begins(folder))
            wait_for(lambda before=before: len([each for each in begins(folder).values() if each]) > before)
            time.sleep(0.15)
            process.kill()
    assert worked(count, folder, claims, run_of)
    found = begins(folder)
    done = [name for name, lines in found.items() if lines[1:] and lines[1]["outcome"] == "done"]
    assert len(done) == len({name.partition(".")[0] for name in done}) == count
    assert count <= len(found) <= count + kills


def test_a_failing_cell_does_not_stop_the_others(folder, claims, capsys):
    def command(arguments):
        if "--seed=1" in arguments:
            raise RuntimeError("a bug of one's own")
        if "--seed=2" in arguments:
            sys.stderr.write("uppertail: seed is 2: use another.\n")
            return 2
        return run_of(arguments)

    assert worked(4, folder, claims, command)
    standings = claims.standings([cell.name for cell in cells(4)])
    assert [each.state for each in standings.values()] == ["done", "failed", "failed", "done"]
    assert standings["cell-1"].message == "RuntimeError: a bug of one's own"
    assert standings["cell-2"].message == "seed is 2: use another."
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_lets_go_of_the_cell(folder, claims):
    assert not worked(2, folder, claims, lambda arguments: 130)
    assert standing(claims).state == "waiting"
    assert len(begins(folder)) == 1


def test_a_cell_with_a_checkpoint_is_resumed(folder, claims):
    asked = []

    def command(arguments):
        asked.append(arguments)
        return run_of(["train", "--seed=0", "--out", str(folder / "cells" / "cell-0")])

    (folder / "cells" / "cell-0" / "checkpoints").mkdir(parents=True)
    (folder / "cells" / "cell-0" / "config.yaml").touch()
    (folder / "cells" / "cell-0" / "checkpoints" / "step-000000512.safetensors").touch()
    assert worked(1, folder, claims, command)
    assert asked == [["resume", str(folder / "cells" / "cell-0"), "--quiet"]]


def test_a_cell_that_was_finished_as_its_process_died_is_not_done_again(folder, claims):
    run_of(["--seed=0", "--out", str(folder / "cells" / "cell-0")])
    asked = []
    assert worked(1, folder, claims, lambda arguments: asked.append(arguments) or 1)
    assert not asked
    assert standing(claims).state == "done"


def test_a_full_disk_is_said(folder, claims, monkeypatch):
    def full(descriptor, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\): what is done is kept"):
        worked(1, folder, claims, run_of)
    assert not list((folder / "claims").iterdir())


def test_who_ended_while_it_was_looked_at_is_not_taken_for_dead(folder, claims, monkeypatch):
    """The claim is read, its owner ends it and lets go, and only then the lock is looked at."""
    claim = taken(claims)
    alive = claims._alive

    def late(*arguments):
        claim.end("done", seconds=1.0)
        return alive(*arguments)

    monkeypatch.setattr(claims, "_alive", late)
    assert standing(claims).state == "done"
