"""`uppertail resume`: a run that a real signal killed, and what else may be in the way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from killed import RESULTS, SHORT, TIMES, TINY, killed_run
from uppertail import Chain, Checkpoints, PerAction, Settings, records, train
from uppertail.cli import main
from uppertail.cli import train as command
from uppertail.records import locked
from uppertail.training import checkpoint
from uppertail.training.compiled import CompiledDriver
from uppertail.training.train import drive

LONG = [*TINY, "--episodes", "1000000", "--steps", "8192"]
FILES = {"config.yaml", "log.jsonl", *RESULTS}


pytestmark = pytest.mark.usefixtures("own_folder")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def summary(folder):
    return records.RunFolder(folder).summary


def assert_same_results(folder, other):
    assert {entry.name for entry in folder.iterdir()} == {*FILES, "checkpoints"}
    assert (folder / "episodes.npz").read_bytes() == (other / "episodes.npz").read_bytes()
    networks = [checkpoint.read(each / "networks.safetensors")[1] for each in (folder, other)]
    assert records.digest(networks[0]) == records.digest(networks[1])
    one, two = ({k: v for k, v in summary(each).items() if k not in TIMES} for each in (folder, other))
    assert one == two


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert main(["train", *SHORT, "--quiet", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def killed(finished, tmp_path):
    return killed_run(finished, tmp_path)


@pytest.mark.slow
def test_a_run_killed_by_a_signal_ends_as_if_it_had_not_been(tmp_path):
    """Also without checkpoints: they change nothing."""
    assert main(["train", *LONG, "--quiet", "--out", "whole"]) == 0
    command = [sys.executable, "-m", "uppertail"]
    long = [*command, "train", *LONG, "--checkpoint_every", "1", "--quiet", "--out", "killed"]
    with subprocess.Popen(long) as process:
        while not list(Path("killed", "checkpoints").glob("step-*")):
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(0.02)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not Path("killed", "summary.json").exists()
    assert subprocess.run([*command, "resume", "killed", "--quiet"], check=False).returncode == 0
    assert_same_results(tmp_path / "killed", tmp_path / "whole")


def test_resume_ends_with_the_same_results_and_says_where_it_goes_on(killed, finished, capsys):
    assert main(["resume", str(killed)]) == 0
    printed = capsys.readouterr().out
    assert "Going on from step-000001024.safetensors." in printed
    assert f"Results in {killed}" in printed.replace("\n", "")
    assert_same_results(killed, finished)
    first, second = (
        checkpoint.read(each / "checkpoints" / "step-000002048.safetensors")[1] for each in (killed, finished)
    )
    assert records.digest(first) == records.digest(second)


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_begins_again(killed, finished, capsys):
    shutil.rmtree(killed / "checkpoints")
    assert main(["resume", str(killed)]) == 0
    assert "no checkpoint yet" in capsys.readouterr().out
    assert_same_results(killed, finished)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["--learner Imitation --distribution PointMass --policy Softmax", "--network Ensemble --policy MemberThompson"],
)
def test_a_run_of_each_kind_goes_on_with_the_parts_that_it_filled_in(method, tmp_path):
    """An imitation could not: what had been filled in beside it counted as given."""
    run = [
        "train",
        *["--env", "Chain", "--env.length", "5", "--seeds", "1", "--quiet", "--episodes", "1000000"],
        *method.split(),
    ]
    for out, steps in (("whole", "512"), ("run", "256")):
        assert main([*run, "--steps", steps, "--out", out]) == 0
    assert main(["resume", "run", "--steps", "512", "--quiet"]) == 0
    networks = [checkpoint.read(tmp_path / each / "networks.safetensors")[1] for each in ("whole", "run")]
    assert records.digest(networks[0]) == records.digest(networks[1])


@pytest.mark.slow
def test_ctrl_c_and_resume_end_like_a_run_without(finished, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(
            command,
            "drive",
            lambda run, _, *more: drive(run, lambda progress: os.kill(os.getpid(), signal.SIGINT), *more),
        )
        assert main(["train", *SHORT, "--out", "run"]) == 130
    assert "`uppertail resume run` continues the run" in capsys.readouterr().err
    assert summary(tmp_path / "run")["interrupted"]
    assert main(["resume", "run", "--quiet"]) == 0
    assert_same_results(tmp_path / "run", finished)


def test_a_run_of_the_command_line_is_at_hand_in_python(finished, monkeypatch):
    monkeypatch.setattr(CompiledDriver, "advance", None)  # there is nothing left to train
    settings = Settings(seeds=2, replay_size=999, batch_size=16, episodes=1_000_000, steps=2048)
    network = PerAction(width=8, normalization="layer")  # a width alone changes what is usual
    result = train(Chain(4), settings=settings, network=network, checkpoints=Checkpoints(finished))
    assert result.record.env_steps == [2048, 2048]
    assert_same_results(finished, finished)


def test_a_finished_run_is_left_as_it_is(finished, capsys):
    before = contents(finished)
    assert main(["resume", str(finished)]) == 0
    assert "is finished" in capsys.readouterr().out
    assert contents(finished) == before


@pytest.mark.slow
def test_a_finished_run_goes_on_to_more_steps_as_if_they_had_been_asked_for(finished, tmp_path, refused):
    shutil.copytree(finished, tmp_path / "run")
    assert main(["resume", "run", "--steps", "3072", "--quiet"]) == 0
    longer = [*SHORT, "--steps", "3072"]
    assert main(["train", *longer, "--quiet", "--out", "whole"]) == 0
    assert_same_results(tmp_path / "run", tmp_path / "whole")
    assert "steps: 3072" in (tmp_path / "run" / "config.yaml").read_text()
    before = contents(tmp_path / "run")
    assert "already goes to step 3072: use more" in refused(["resume", "run", "--steps", "3072"])
    assert contents(tmp_path / "run") == before


def test_a_new_limit_is_only_a_wish_until_the_longer_run_has_results(finished, tmp_path, monkeypatch, capsys):
    def die(*_):
        raise KeyboardInterrupt

    shutil.copytree(finished, tmp_path / "run")
    before = contents(tmp_path / "run")
    monkeypatch.setattr(command, "drive", die)
    assert main(["resume", "run", "--steps", "3072", "--quiet"]) == 130
    assert "steps: 3072" in (tmp_path / "run" / "config-next.yaml").read_text()
    assert main(["resume", "run", "--quiet"]) == 130  # goes on to the new limit
    (tmp_path / "run" / "config-next.yaml").unlink()
    assert contents(tmp_path / "run") == before
    capsys.readouterr()
    assert main(["resume", "run"]) == 0
    assert "is finished" in capsys.readouterr().out


def test_a_run_that_ended_by_its_episodes_goes_no_further(finished, tmp_path, refused):
    """What its seeds did after their last episode is no run."""
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "config.yaml").write_text(
        (tmp_path / "run" / "config.yaml").read_text().replace("episodes: 1000000", "episodes: 5")
    )
    before = contents(tmp_path / "run")
    assert "No checkpoint in run" in refused(["resume", "run", "--steps", "4096"])
    assert contents(tmp_path / "run") == before


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RESULTS, None])
def test_a_run_killed_while_it_wrote_its_results_writes_them_again(name, finished, tmp_path, monkeypatch):
    """None: its summary holds nothing."""
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / (name or "summary.json")).unlink()
    if name is None:
        (tmp_path / "run" / "summary.json").write_text("[]")
    monkeypatch.setattr(CompiledDriver, "advance", None)  # there is nothing left to train
    assert main(["resume", "run", "--quiet"]) == 0
    assert_same_results(tmp_path / "run", finished)


def replaced(folder, before, after):
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace(before, after))


def no_checkpoints(folder):
    shutil.rmtree(folder / "checkpoints")
    replaced(folder, "checkpoint_every: 1024", "checkpoint_every: null")


HARM = [
    (lambda folder: (folder / "config.yaml").unlink(), "holds checkpoints of ut.train alone"),
    (shutil.rmtree, "is not the folder of a run"),
    (no_checkpoints, "train again, with --checkpoint_every N if it may be killed"),
    (lambda folder: replaced(folder, "replay_size: 999", "replay_size: 99"), "was made with replay_size 999, not 99"),
    (lambda folder: replaced(folder, "length: 4", "length: 5"), "was made with length 4, not 5"),
    (lambda folder: (folder / "config.yaml").write_text("seeds: [1"), "is not valid YAML"),
    (lambda folder: os.truncate(folder / "config.yaml", 50), "config.yaml' is not valid YAML"),
    (lambda folder: [os.truncate(path, 100) for path in (folder / "checkpoints").iterdir()], "No checkpoint in"),
]


@pytest.mark.parametrize(("harm", "sentence"), HARM)
def test_what_cannot_be_resumed_gets_a_sentence_and_stays_as_it_is(harm, sentence, killed, refused):
    harm(killed)
    before = contents(killed)
    assert sentence in refused(["resume", str(killed), "--quiet"])
    assert contents(killed) == before


def test_a_run_that_diverged_goes_no_further(finished, tmp_path, refused):
    shutil.copytree(finished, tmp_path / "run")
    path, asked = tmp_path / "run" / "summary.json", summary(tmp_path / "run")
    records.write_summary(path, asked | {"diverged": {"seed": 1, "step": 16}})
    before = contents(tmp_path / "run")
    assert "the loss of seed 1 became NaN or infinite, by environment step 16" in refused(["resume", "run"])
    assert contents(tmp_path / "run") == before


@pytest.mark.slow
def test_a_damaged_checkpoint_is_passed_over_in_a_line(finished, killed, capsys):
    last = killed / "checkpoints" / "step-000002048.safetensors"
    last.write_bytes((finished / "checkpoints" / last.name).read_bytes()[:-1])
    assert main(["resume", str(killed), "--quiet"]) == 0
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{last.name} is damaged: the run continues from step-000001024.safetensors instead" in error
    assert_same_results(killed, finished)


def test_a_second_process_on_the_same_folder_is_refused(killed, refused):
    with locked(killed):
        before = contents(killed)
        assert "is in use by another process" in refused(["resume", str(killed)])
        assert "is in use by another process" in refused(["train", *SHORT, "--overwrite", "--out", str(killed)])
        assert contents(killed) == before


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_the_last_good_checkpoint(killed, finished, monkeypatch, refused):
    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    good = killed / "checkpoints" / "step-000001024.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        error = refused(["resume", str(killed), "--quiet"])
    assert f"(No space left on device), and the last good one is {good}" in error
    assert list((killed / "checkpoints").iterdir()) == [good]
    assert main(["resume", str(killed), "--quiet"]) == 0  # there is room again
    assert_same_results(killed, finished)


@pytest.mark.parametrize("every", ["0", "-5", "1.5"])
def test_an_impossible_distance_between_checkpoints_leaves_nothing(every, tmp_path, refused):
    assert f"checkpoint_every is {every}" in refused(["train", *TINY, "--checkpoint_every", every, "--out", "out"])
    assert list(tmp_path.iterdir()) == []
