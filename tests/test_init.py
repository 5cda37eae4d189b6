"""`--init`: a run starts from what another one learned."""

import errno
import os
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import uppertail as ut
from uppertail.cli import main
from uppertail.cli import train as cli_train
from uppertail.training import checkpoint
from worlds import Cell

pytestmark = pytest.mark.usefixtures("own_folder")

CHAIN = ["train", "--env", "Chain", "--env.length", "8", "--rollout_steps", "16", "--seeds", "2", "--quiet"]


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The folder of a run that has learned its Chain."""
    folder = tmp_path_factory.mktemp("learned") / "run"
    assert main([*CHAIN, "--steps", "3000", "--out", str(folder)]) == 0
    assert ut.load(folder).record.greedy_returns == [1.0, 1.0]
    return folder


def test_a_run_starts_from_what_another_one_learned(learned):
    """A few steps do not suffice to learn a Chain of eight states; another time limit is another environment."""
    few = ["--steps", "16", "--env.time_limit", "9"]
    assert main([*CHAIN, *few, "--out", "from_nothing"]) == 0
    assert main([*CHAIN, *few, "--out", "from_there", "--init", str(learned)]) == 0
    found = [ut.load(name).record.greedy_returns for name in ("from_nothing", "from_there")]
    assert found == [[0.0, 0.0], [1.0, 1.0]]
    assert f"init: {learned}" in Path("from_there", "config.yaml").read_text()


def test_another_range_of_returns_is_not_that_of_what_was_learned(refused):
    """The given range was ignored, and the first one's was used."""
    pays = ["train", "--env", "experiments.tasks.users_environments:Advertisement-v0", "--quiet", "--seeds", "1"]
    assert main([*pays, "--steps", "64", "--out", "first"]) == 0
    given = refused([*pays, "--steps", "64", "--env.returns", "[0, 900]", "--init", "first", "--out", "second"])
    assert "init is first, whose run was made with --env.returns left out, not [0.0, 900.0]: use the same" in given


def test_a_large_end_is_not_kept_unless_it_is_asked_for(monkeypatch, refused):
    few = [*CHAIN, "--steps", "16", "--out"]
    monkeypatch.setattr(cli_train, "MOST_BYTES", 1000)
    assert main([*few, "large"]) == main([*few, "asked", "--checkpoint_every", "99999"]) == 0
    assert not Path("large", "checkpoints").exists() and list(Path("asked", "checkpoints").iterdir())
    assert "no checkpoint to start from: train that run with --checkpoint_every N" in refused(
        [*few, "new", "--init", "large"]
    )


def test_an_end_that_cannot_be_kept_costs_no_results(monkeypatch, capsys):
    real = checkpoint.write

    def full(path, *content):
        if path.parent.name == "checkpoints":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *content)

    said = "cannot be written (No space left on device): results are kept, but no run can go on from this end."
    assert main([*CHAIN, "--steps", "16", "--out", "before"]) == 0
    monkeypatch.setattr(checkpoint, "write", full)
    assert main([*CHAIN, "--steps", "16", "--out", "x, and y"]) == 0
    assert f"checkpoints/step-000000016.safetensors {said}" in capsys.readouterr().err
    assert Path("x, and y", "summary.json").is_file()
    assert main(["resume", "before", "--steps", "32"]) == 0
    assert said in capsys.readouterr().err
    assert ut.load("before").record.asked["settings"]["steps"] == 32


def test_a_run_that_was_stopped_is_not_resumed_with_more_steps(refused):
    assert main([*CHAIN, "--until", "solved", "--out", "solved"]) == 0
    assert "was stopped before its limits (until solved): `uppertail train --init solved` starts" in refused(
        ["resume", "solved", "--steps", "9999999"]
    )


def test_it_keeps_what_was_stored_and_chosen_too(learned):
    again = ut.train(ut.Chain(length=8), init=learned, seeds=2, steps=512, rollout_steps=16)
    assert again.record.greedy_returns == [1.0, 1.0]
    assert again.record.solved_episode == [50, 50]  # the first that can be: nothing is tried again


def test_each_seed_starts_from_the_one_in_its_place(learned, capsys):
    """Also where the new run has fewer; the seeds of a Chain differ in which action leads on."""
    few = ["--steps", "16", "--seeds", "1", "--init", str(learned)]
    assert main([*CHAIN, *few, "--out", "first"]) == 0
    assert "whose run had 2 seeds: the last of them is left out here." in capsys.readouterr().err
    assert ut.load("first").record.greedy_returns == [1.0]
    assert main([*CHAIN, *few, "--seed", "1", "--out", "other"]) == 0  # what seed 0 learned, in the Chain of seed 1
    assert ut.load("other").record.greedy_returns == [0.0]


@pytest.mark.slow
def test_in_loops_of_python_too():
    cell = ut.FromGymnasium(Cell, features="hashed", returns=(0, 8))
    asked = ut.Settings(seeds=1, steps=1024, rollout_steps=16)
    ut.train(cell, settings=asked, checkpoints=ut.Checkpoints("cell"))
    again = ut.train(cell, init="cell", seeds=1, steps=32, rollout_steps=16)
    assert again.record.episodes[0].returns[1:].tolist() == [8.0] * 3  # the first action is chosen before
    assert again.record.greedy_returns == [8.0]


def test_what_does_not_fit_is_refused_in_a_sentence_and_leaves_no_folder(learned, refused):
    def sentence(*changes):
        error = refused([*CHAIN, "--steps", "16", "--out", "new", "--init", str(learned), *changes])
        assert not Path("new").exists()
        return error

    assert "was made with length 8, not 9, and has other observations" in sentence("--env.length", "9")
    assert "whose run had 2 seeds: use --seeds 2, or fewer." in sentence("--seeds", "3")
    assert "was made with learner LeastSquares, not GradientDescent" in sentence("--learner", "GradientDescent")
    assert "was made with distribution Gaussian, not PointMass" in sentence("--distribution", "PointMass")
    assert "init is nowhere, which is no folder: give that of a run." in sentence("--init", "nowhere")


class Numbers(Cell):
    """The same, seen as two numbers that do not repeat."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(size=2).astype(np.float32), {}

    def step(self, action):
        _, reward, terminated, truncated, info = super().step(action)
        return self.np_random.uniform(size=2).astype(np.float32), reward, terminated, truncated, info


@pytest.mark.slow
def test_a_run_in_a_world_of_another_kind_is_refused_in_a_sentence(learned):
    """Before, a traceback, or a sentence about a part that nobody had given."""
    with pytest.raises(ut.InputError, match=r"whose run was made with .*, and has other observations or actions: "):
        ut.train(ut.FromGymnasium(Cell, features="hashed", returns=(0, 8)), init=learned, seeds=1, steps=32)
    with pytest.raises(
        ut.InputError,
        match=r"does not go with what is asked for here \(Least squares learns tables, but numbers stay numbers here\)",
    ):
        ut.train(ut.FromGymnasium(Numbers, returns=(0, 1)), init=learned, seeds=1, steps=32)
    ut.train(ut.FromGymnasium(Cell, returns=(0, 8)), checkpoints=ut.Checkpoints("cell"), seeds=1, steps=32)
    with pytest.raises(ut.InputError, match=r"whose run was made with .*, and has other observations or actions: "):
        ut.train(ut.Chain(length=8), init="cell", seeds=1, steps=32)


def test_the_cause_is_named_and_not_what_only_differs(tmp_path):
    def lake(size, **more):
        return ut.Gym("FrozenLake-v1", kwargs={"map_name": size}, **more)

    names = ["left", "down", "right", "up"]
    ut.train(lake("4x4", action_names=names), checkpoints=ut.Checkpoints(tmp_path), seeds=1, steps=32)
    with pytest.raises(ut.InputError, match="whose run was made with map_name 4x4, not 8x8, and has other"):
        ut.train(lake("8x8"), init=tmp_path, seeds=1, steps=32)
