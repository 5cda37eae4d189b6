"""Signals: a run that is asked to stop keeps what it learned, soon."""

import functools
import math
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

import uppertail as ut
from killed import assert_same
from uppertail.cli import main
from uppertail.cli import train as cli_train
from uppertail.training import host, process
from uppertail.training.process import interruptible
from worlds import Cell

SETTINGS = ut.Settings(seeds=2, steps=320, episodes=10**6)


class Signaled(Cell):
    """Sends this process a signal in the 40th step of all of its objects after the first chunk."""

    steps_left = math.inf

    def step(self, action: int) -> Any:
        Signaled.steps_left -= 1
        if self.steps_left == 0:
            signal.raise_signal(signal.SIGTERM)
        return super().step(action)

    @classmethod
    def after_chunk(cls, progress: object) -> None:
        cls.steps_left = min(cls.steps_left, 40)


def train(env: type[Cell], **more: Any) -> Any:
    """Trains in an environment whose range is known, so that no random policy steps it."""
    return ut.train(ut.FromGymnasium(env, returns=(0.0, 8.0)), settings=SETTINGS, **more)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [-1.0, pytest.param(3600.0, marks=pytest.mark.slow)])
def test_a_run_ends_at_its_next_rollout_and_plays_on_for_a_while(
    seconds: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """In a slow environment a chunk is a minute, as are greedy episodes; a container is killed after ten seconds.

    The run that goes on is the one that was not stopped.
    """
    monkeypatch.setattr(process, "PLAY_SECONDS", seconds)
    monkeypatch.setattr(Signaled, "steps_left", math.inf)
    monkeypatch.setattr(host, "CHUNK_STEPS", 64)
    kept = ut.Checkpoints(tmp_path / "kept", every=10**6)
    with pytest.raises(ut.TrainingInterrupted) as stop:
        train(Signaled, checkpoints=kept, on_chunk=Signaled.after_chunk)
    record = stop.value.result.record
    assert record.interrupted
    assert 64 + 20 <= record.env_steps[0] < 64 + 40  # of each seed
    assert [math.isnan(each) for each in record.greedy_returns] == [seconds < 0] * 2
    if seconds > 0:
        assert_same(train(Signaled, checkpoints=kept), train(Signaled))


def after(steps: int) -> Any:
    """Called after a chunk: a signal that comes once so many steps are made."""
    return lambda progress: signal.raise_signal(signal.SIGTERM) if progress.step >= steps else None


@pytest.mark.slow
def test_an_interruption_leaves_no_moment_in_a_run_that_goes_on(tmp_path: Any) -> None:
    """The end of what was learned until then is a moment of that result only."""
    settings = ut.Settings(seeds=1, episodes=10**6, steps=16_384)
    run = functools.partial(ut.train, ut.Chain(length=5), settings=settings, record="distributions")
    kept = ut.Checkpoints(tmp_path, every=256)
    with pytest.raises(ut.TrainingInterrupted) as stop:
        run(checkpoints=kept, on_chunk=after(512))
    results: Any = stop.value.result, run(checkpoints=kept), run()
    interrupted, resumed, whole = (result.distributions.step[:, 0].tolist() for result in results)
    assert 512 <= interrupted[-1] < 16_384 and interrupted[-1] not in whole
    assert resumed == whole


@pytest.mark.slow
def test_a_signal_at_the_end_of_a_run_interrupts_nothing(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = cli_train.drive

    def drive(run: Any, on_chunk: Any, *rest: Any) -> Any:
        return real(run, lambda progress: (after(256)(progress), on_chunk(progress))[1], *rest)

    monkeypatch.setattr(cli_train, "drive", drive)
    limits = ["--seeds", "1", "--steps", "256", "--checkpoint_every", "256"]
    assert main(["train", "--env", "Chain", "--env.length", "5", *limits, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "The run was at its end when the signal came: it is complete." in said and "Interrupted" not in said


def test_a_signal_at_the_end_stops_a_program_and_says_that_its_run_is_complete() -> None:
    """A loop over runs has to end, too."""
    with pytest.raises(ut.TrainingInterrupted, match="as the run ended: it is complete") as stopped:
        ut.train(ut.Chain(5), seeds=1, steps=256, on_chunk=after(256))
    assert not stopped.value.result.record.interrupted


def test_another_ctrl_c_ends_at_once_unless_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout` signals the process and its group, and a parent may pass on what the terminal sent to both."""
    with interruptible() as asked:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set() and asked.exit_code == 143
        monkeypatch.setattr(process, "AT_ONCE_SECONDS", -1.0)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.skipif(os.name != "posix", reason="no SIGHUP")
def test_a_closed_terminal_ends_a_run_unless_that_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with interruptible() as asked:
            signal.raise_signal(signal.SIGHUP)
        assert asked.is_set() and asked.exit_code == 129
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        with interruptible() as asked:
            signal.raise_signal(signal.SIGHUP)
        assert not asked.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no groups of processes")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_all_processes_keeps_what_was_learned(number: int, code: int, tmp_path: Any) -> None:
    """As a terminal sends Ctrl-C, and SIGHUP when it is closed: to the run and to the processes of its environments."""
    arguments = [
        "train", "--env", "Gym", "--env.id", "CartPole-v1", "--num_envs", "2", "--env.vectorization", "async",
        "--env.returns", "[0, 50]", "--seeds", "1",
        "--episodes", "1000000", "--network.width", "8", "--env.num_features", "8", "--out", "run",
        "--replay_size", "100", "--batch_size", "8", "--replay", "Uniform", "--target", "Online", "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "uppertail", *arguments],
        cwd=tmp_path,
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    try:
        log, deadline = tmp_path / "run" / "log.jsonl", time.monotonic() + 120
        while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, said.decode()
    assert {"summary.json", "episodes.npz", "networks.safetensors", "curve.png"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
