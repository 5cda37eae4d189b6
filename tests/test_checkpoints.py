"""Checkpoints: a run that was killed and resumed is the run that was not; damage is found; nothing good is lost."""

import dataclasses
import errno
import functools
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from killed import Killed, assert_same, complain, dies_at_chunk
from uppertail import Chain, Checkpoints, Gaussian, Settings, Stop, train
from uppertail.errors import InputError
from uppertail.policies import UCB
from uppertail.records import locked
from uppertail.records.folder import LOCK
from uppertail.training import checkpoint, compiled
from uppertail.training.checkpoint import UnusableCheckpointError
from uppertail.training.checkpoints import Saver
from uppertail.training.method import Method
from uppertail.training.run import Run
from uppertail.training.train import drive

CHAIN = Chain(length=5)
CHUNK = 32


@functools.cache
def settings() -> Settings:
    """A few chunks; the replay buffer goes round, and the two seeds reach their limits in different ones.

    Which seeds do differs between processors, whose rounding does, so eight are tried.
    """
    eight = Settings(seeds=8, episodes=65, replay_size=48)
    last = [steps // CHUNK for steps in train(CHAIN, Gaussian(), UCB(), eight).record.env_steps]
    apart = next(seed for seed in range(7) if last[seed] != last[seed + 1])
    return dataclasses.replace(eight, seeds=2, seed=apart)


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr(compiled, "CHUNK_STEPS", CHUNK)


def new_run(**changes: Any) -> Run:
    return Run(CHAIN, Method(Gaussian(), UCB()), dataclasses.replace(settings(), **changes))


def stops_at(step):
    """A callback that stops a run there."""
    return lambda progress: Stop("enough") if progress.step == step else False


@pytest.fixture
def whole():
    """The run that nobody interrupts, and its number of steps after each chunk."""
    run, steps = new_run(), []
    result = drive(run, lambda progress: steps.append(run.ledger.step))
    assert len(steps) >= 5
    assert result.record.env_steps[0] // CHUNK != result.record.env_steps[1] // CHUNK
    return result, steps


@pytest.mark.slow
def test_a_run_killed_at_every_chunk_boundary_ends_like_one_that_was_not(whole, tmp_path):
    """After one chunk and its checkpoint each time."""
    result, steps = whole
    place = Checkpoints(tmp_path, every=1, say=complain)
    for _ in steps[1:]:
        with pytest.raises(Killed):
            train(CHAIN, Gaussian(), UCB(), settings(), dies_at_chunk(2), place)
    assert_same(train(CHAIN, Gaussian(), UCB(), settings(), dies_at_chunk(2), place), result)
    assert_same(train(CHAIN, Gaussian(), UCB(), settings(), complain, place), result)  # nothing is left to do


@pytest.mark.parametrize("steps", [16, 1024])
def test_chunks_change_nothing(whole, steps, monkeypatch):
    monkeypatch.setattr(compiled, "CHUNK_STEPS", steps)
    assert_same(drive(new_run(), lambda progress: None), whole[0])


def test_checkpoints_change_nothing_and_two_are_kept(whole, tmp_path):
    result, steps = whole
    seen: list[set[str]] = []

    def look(progress):
        seen.append({path.name for path in (tmp_path / "checkpoints").glob("*")})

    assert_same(drive(new_run(), look, Checkpoints(tmp_path, every=40)), result)
    look(None)
    due = {step for before, step in zip([0, *steps], steps, strict=False) if step // 40 > before // 40} | {steps[-1]}
    names = [f"step-{step:09d}.safetensors" for step in sorted(due)]
    assert 2 < len(due) < len(steps)
    assert set.union(*seen) == set(names)
    assert max(map(len, seen)) == 2
    assert seen[-1] == set(names[-2:])
    assert not (tmp_path / LOCK).exists()


def test_a_run_stopped_by_its_callback_is_finished_and_says_why(tmp_path):
    result = train(CHAIN, Gaussian(), UCB(), settings(), stops_at(64), Checkpoints(tmp_path))
    summary = result.record.summary()
    assert (summary["stopped"], summary["interrupted"], summary["diverged"]) == ("enough", False, None)
    assert result.record.env_steps == [64, 64]
    assert_same(train(CHAIN, Gaussian(), UCB(), settings(), complain, Checkpoints(tmp_path)), result)


def test_a_stop_at_the_limits_changes_nothing(whole):
    result, steps = whole
    assert_same(drive(new_run(), stops_at(steps[-1])), result)


def test_progress_carries_the_mean_loss_and_gradient_norm_of_the_seeds_that_still_run():
    run, seen = new_run(), []
    state, by_hand = run.driver.start(), []
    for _ in range(3):
        state, _, metrics = run.driver.advance(state)
        by_hand.append((np.mean(np.asarray(metrics.loss, float)), np.mean(np.asarray(metrics.gradient_norm, float))))
    drive(new_run(), lambda progress: (seen.append((progress.loss, progress.gradient_norm)), stops_at(96)(progress))[1])
    np.testing.assert_allclose(seen, by_hand, rtol=1e-12)


# What is in a checkpoint


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run's folder with two checkpoints."""
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "CHUNK_STEPS", CHUNK)
        drive(new_run(), stops_at(64), Checkpoints(folder, every=1))
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy that a test may damage."""
    shutil.copytree(saved, tmp_path / "run")
    return tmp_path / "run"


def restore(folder, say=complain, **changes):
    run = new_run(**changes)
    state = Saver(Checkpoints(folder, say=say), run).restore()
    return run, state


def newest_first(folder):
    return Checkpoints(folder).files()


def rewrite(path, header=lambda header: header, arrays=lambda arrays: arrays):
    """The same checkpoint, changed, with a checksum that is right."""
    old_header, old_arrays = checkpoint.read(path)
    checkpoint.write(path, header(old_header), arrays(old_arrays))


def damaged(path, position, bit):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def test_what_is_saved_is_what_is_restored(folder):
    run, state = restore(folder)
    assert state is not None and (run.ledger.step, run.ledger.stopped) == (64, "enough")
    header, arrays = checkpoint.read(newest_first(folder)[0])
    assert {name.partition("/")[0] for name in arrays} == {"run", "episodes"}
    jax.tree.map(
        np.testing.assert_array_equal,
        {f"run/{name}": array for name, array in checkpoint.to_named(run.driver.gather(state)).items()},
        {name: array for name, array in arrays.items() if name.startswith("run/")},
    )
    assert run.ledger.programs.training == header.seconds["training"] > 0
    assert run.ledger.programs.state()["wall"] > header.seconds["wall"] > 0


@pytest.mark.slow
def test_every_flipped_bit_is_found_or_changes_nothing(folder):
    path = newest_first(folder)[0]
    content, (header, arrays) = path.read_bytes(), checkpoint.read(path)
    random = np.random.default_rng(0)
    head = int.from_bytes(content[:8], "little") + 8
    found = 0
    for position in [*range(8), *random.integers(8, head, 150), *random.integers(head, len(content), 50)]:
        path.write_bytes(content)
        damaged(path, position, random.integers(8))
        try:
            got_header, got_arrays = checkpoint.read(path)
        except UnusableCheckpointError:
            found += 1
        else:
            assert got_header == header
            jax.tree.map(np.testing.assert_array_equal, got_arrays, arrays)
    assert found > 200


def with_array(name, array):
    """Puts another array in a checkpoint; None: none."""

    def change(old):
        return {key: each for key, each in {**old, name: array}.items() if each is not None}

    return lambda path: rewrite(path, arrays=change)


def another_config(path):
    header = checkpoint.read(path)[0]
    settings = {**header.asked["settings"], "learning_rate": 0.25}
    rewrite(path, lambda old: dataclasses.replace(old, asked={**old.asked, "settings": settings}))


DAMAGE = {
    "truncated": (lambda path: os.truncate(path, path.stat().st_size - 1), "is damaged"),
    "empty": (lambda path: os.truncate(path, 0), "is damaged"),
    "a flipped bit": (lambda path: damaged(path, -1, 0), "is damaged"),
    "another shape": (with_array("run/iteration", np.zeros(3, np.int32)), r"iteration is int32\[3\], not int32\[2\]"),
    "another type": (with_array("run/iteration", np.zeros(2, np.int64)), r"iteration is int64\[2\], not int32\[2\]"),
    "an array less": (with_array("run/iteration", None), "has another shape: iteration is missing"),
    "another config": (another_config, "was made with learning_rate 0.25, not 0.005"),
    "another environment": (
        lambda path: rewrite(path, lambda old: dataclasses.replace(old, environments="0")),
        "environments that are built differently",
    ),
}


@pytest.mark.parametrize(("harm", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_the_checkpoint_before_is_used_if_it_can_be_and_nothing_is_changed(harm, reason, folder):
    last, before = newest_first(folder)
    harm(last)
    content, lines = last.read_bytes(), []
    assert restore(folder, lines.append)[0].ledger.step == 32
    (line,) = lines
    assert re.search(reason, line)
    assert f"the run continues from {before.name} instead" in line
    harm(before)
    other = before.read_bytes()
    with pytest.raises(InputError, match=rf"No checkpoint in .* can be used \(.*{reason}.*\): (re|use the v)"):
        restore(folder)
    assert (last.read_bytes(), before.read_bytes()) == (content, other)


def test_another_format_is_refused_with_the_version_that_wrote_it(folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    with pytest.raises(InputError, match=r"has format 1 \(uppertail [\d.]+\), and this version reads 2"):
        restore(folder)


def test_other_limits_are_another_run(folder):
    with pytest.raises(InputError, match="was made with episodes 65, not 66"):
        restore(folder, episodes=66)


def test_other_ground_is_said_in_a_line(folder):
    rewrite(
        newest_first(folder)[0],
        lambda old: dataclasses.replace(old, hardware={**old.hardware, "jax": "0.1", "python": "3.0"}),
    )
    lines = []
    assert restore(folder, lines.append)[0].ledger.step == 64
    assert len(lines) == 1
    assert f"jax 0.1, here {jax.__version__}" in lines[0]
    assert "python" not in lines[0]


def test_a_damaged_checkpoint_is_neither_kept_in_place_of_a_good_one_nor_removed(folder):
    last, before = newest_first(folder)
    damaged(last, -1, 0)
    content = last.read_bytes()
    header, arrays = checkpoint.read(before)
    place = Checkpoints(folder)
    for step in (40, 48, 56):
        place.save(dataclasses.replace(header, step=step), arrays)
    assert [path.name for path in place.files()] == [f"step-{step:09d}.safetensors" for step in (64, 56, 48)]
    assert last.read_bytes() == content


def test_keys_and_numbers_without_dimensions_come_back_as_they_were():
    tree = {"key": jax.random.split(jax.random.key(5, impl="rbg"), 2), "number": jnp.float32(2), "none": None}
    back = checkpoint.from_named(jax.eval_shape(lambda: tree), checkpoint.to_named(tree))
    assert jnp.array_equal(jax.random.key_data(back["key"]), jax.random.key_data(tree["key"]))
    assert (back["key"].dtype, back["number"].shape, back["none"]) == (tree["key"].dtype, (), None)


def test_arrays_that_are_not_contiguous_are_saved_as_they_read(tmp_path, folder):
    header, _ = checkpoint.read(newest_first(folder)[0])
    columns = np.arange(6).reshape(2, 3).T
    checkpoint.write(tmp_path / "a", header, checkpoint.to_named({"a": columns}))
    np.testing.assert_array_equal(checkpoint.read(tmp_path / "a")[1]["a"], columns)


# Writing


def full_disk(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_names_the_last_good_checkpoint_and_leaves_no_trace(folder, monkeypatch):
    before = {path: path.read_bytes() for path in (folder / "checkpoints").iterdir()}
    last = newest_first(folder)[0]
    header, arrays = checkpoint.read(last)
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match=rf"cannot be written \(No space left.*the last good one is {last}"):
        Checkpoints(folder).save(dataclasses.replace(header, step=96), arrays)
    assert {path: path.read_bytes() for path in (folder / "checkpoints").iterdir()} == before


def test_the_first_checkpoint_that_fails_says_that_there_is_none(saved, tmp_path, monkeypatch):
    header, arrays = checkpoint.read(newest_first(saved)[0])
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot be written \(.*\), and there is none before it"):
        Checkpoints(tmp_path).save(header, arrays)


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name(folder, monkeypatch):
    header, arrays = checkpoint.read(newest_first(folder)[0])
    target = folder / "checkpoints" / "step-000000096.safetensors"
    order: list[tuple[str, bool]] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (order.append(("fsync", target.exists())), sync(descriptor)))
    checkpoint.write(target, header, arrays)
    assert order == [("fsync", False), ("fsync", True)]  # the file, then the folder that names it


def test_what_a_killed_process_was_writing_is_removed(folder):
    partial = folder / "checkpoints" / ".step-000000065.safetensors"
    partial.write_bytes(b"half")
    run, state = restore(folder)
    assert run.ledger.step == 64
    assert state is not None
    Saver(Checkpoints(folder), run).save(state)
    assert not partial.exists()


# Locks


def test_a_folder_is_one_process_s(tmp_path):
    with locked(tmp_path):
        with pytest.raises(InputError, match="is in use by another process"), locked(tmp_path):
            pass
        with pytest.raises(InputError, match="is in use by another process"):
            train(CHAIN, Gaussian(), UCB(), settings(), checkpoints=Checkpoints(tmp_path))
        assert (tmp_path / LOCK).exists()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK).touch()  # as a killed process leaves it
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_any_more_hides_no_error(tmp_path, monkeypatch):
    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    def fail():
        with locked(tmp_path):
            raise InputError("first of all")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(InputError, match="first of all"):
            fail()
    with locked(tmp_path):  # it was given back all the same
        pass


@pytest.mark.parametrize("made_again", [False, True])
def test_a_lock_that_its_owner_removed_in_the_meantime_is_taken_again(made_again, tmp_path, monkeypatch):
    """The second process opens the file, then the first removes it, then the second locks what has no name any more."""
    import fcntl

    flock, calls = fcntl.flock, []

    def remove_once(descriptor, operation):
        if not calls:
            (tmp_path / LOCK).unlink()
            if made_again:
                (tmp_path / LOCK).touch()
        calls.append(operation)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_once)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
        assert len(calls) == 2
        with pytest.raises(InputError), locked(tmp_path):
            pass


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"The folder .*run cannot be written .*: give the checkpoints another one"):
        train(CHAIN, Gaussian(), UCB(), settings(), checkpoints=Checkpoints(tmp_path / "file" / "run"))


def test_a_header_is_json_and_names_its_format(folder):
    import safetensors

    with safetensors.safe_open(newest_first(folder)[0], framework="numpy") as file:
        header = json.loads(file.metadata()["uppertail"])
    assert header["format"] == 1
    assert header["step"] == 64
    assert header["asked"]["settings"]["replay_size"] == 48
