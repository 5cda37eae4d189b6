"""`--record distributions`: what is recorded is what was there, costs no result, and outlives a kill."""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.cli import main
from uppertail.environments.gymnasium.vector import episode_seed
from uppertail.errors import InputError
from uppertail.records import RunFolder
from uppertail.training import recording

pytestmark = pytest.mark.slow

TINY = ut.Settings(seeds=2, episodes=120, replay_size=256, batch_size=16, updates_per_rollout=1)
OPTIONS = ["--env.length", "4", "--seeds", "2", "--network.width", "4", "--replay_size", "256"]
LIMITS = ["--updates_per_rollout", "1", "--episodes", "100000", "--steps", "2048", "--checkpoint_every", "1024"]
LIMITS += ["--batch_size", "16"]


@functools.cache
def trained(record: str | None) -> ut.TrainingResult:
    return ut.train(ut.Chain(4), settings=TINY, record=record)


def recorded(result: ut.TrainingResult) -> Any:
    """What it recorded; with every array, which are there in tables."""
    assert result.distributions is not None
    return result.distributions


def test_recording_changes_no_result():
    plain, other = trained(None), trained("distributions")
    assert plain.distributions is None
    for one, same in zip(plain.record.episodes, other.record.episodes, strict=True):
        assert one.returns.tobytes() == same.returns.tobytes()
        assert one.end_steps.tobytes() == same.end_steps.tobytes()
    jax.tree.map(np.testing.assert_array_equal, plain.networks, other.networks)


def test_the_last_moment_is_what_was_learned_and_the_first_is_what_it_began_with():
    result, found = trained("distributions"), recorded(trained("distributions"))
    for row in range(2):
        z = [result.agent.returns(result.network(row), state) for state in range(4)]
        np.testing.assert_allclose(found.mean[-1, row], [each.mean for each in z], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            found.parameters["std"][-1, row, :, 0], [each.std for each in z], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(found.std[-1, row], [each.std for each in z], rtol=1e-5)
    assert found.step[0].tolist() == found.episode[0].tolist() == [0, 0]
    assert not found.visits[0].any()
    assert np.all(found.std[0] > 0.5)  # wide, before anything was learned


def test_data_are_counted_up_to_the_seeds_own_limit():
    """In a Chain every episode begins in state 0, and goes from s to s + 1: visits of a state are episodes so long."""
    record, found = trained("distributions").record, recorded(trained("distributions"))
    for row, seed in enumerate(record.episodes):
        assert found.episode[-1, row] == seed.returns.size == 120
        total = found.visits[-1, row].sum()
        assert total == found.step[-1, row]
        assert total - record.env_steps[row] in range(
            record.asked["settings"]["rollout_steps"]
        )  # the rollout that it ended in
        longer = [(seed.lengths > state).sum() for state in range(4)]
        over = found.visits[-1, row].sum(axis=1) - longer
        assert np.all((over >= 0) & (over < record.asked["settings"]["rollout_steps"]))
    assert np.all(np.diff(found.visits, axis=0) >= 0)
    assert np.all((found.last == 0) == (found.visits == 0))
    assert np.all(found.last.max(axis=(2, 3)) == found.step)  # the last step of all was some action's


def test_moments_lie_ever_further_apart():
    assert np.all(np.diff(recorded(trained("distributions")).step[:, 0]) >= 0)
    due = recording.moments()
    assert due[:10] == [1, 2, 3, 4, 5, 6, 7, 9, 11, 13]
    assert len(due) == recording.MOMENTS - 2
    assert due[-1] > 10**8


def test_a_large_table_is_recorded_along_the_greedy_path(monkeypatch):
    monkeypatch.setattr(recording, "NUMBERS", recording.MOMENTS * 2 * 2 * 6 * 3)  # room for three states
    result = ut.train(ut.Chain(4), settings=TINY, record="distributions")
    found = recorded(result)
    assert found.states.shape[2] == 3
    for row in range(2):
        path, mdp = [0], jax.tree.map(lambda leaf, row=row: leaf[row], result.environments)
        while len(path) < 3:
            action = int(np.argmax(result.agent.returns(result.network(row), path[-1]).mean))
            if mdp.terminated[path[-1], action, 0]:
                break
            path.append(int(mdp.next_state[path[-1], action, 0]))
        assert found.states[-1, row, : len(path)].tolist() == path
        assert np.all(found.states[-1, row, len(path) :] == -1)


def test_where_observations_are_no_states_those_along_the_path_are_recorded_and_a_plane():
    settings = ut.Settings(seeds=1, episodes=9999, steps=256, rollout_steps=32)
    builder = ut.Gym("CartPole-v1", action_repeat=2)
    result = ut.train(builder, settings=settings, record="distributions", record_over=(2, 3))
    found = recorded(result)
    assert not found.of_states
    assert found.path is not None
    assert found.mean.shape == (found.step.shape[0], 1, found.path.shape[1], 2)
    assert found.step[:, 0].tolist() == [0, 64, 128, 192, 256]
    assert found.names == {
        "actions": ("left", "right"),
        "numbers": ("position", "velocity", "angle", "angular velocity"),
        "states": found.names["states"],
    }
    plane = found.plane
    assert plane["numbers"].tolist() == [2, 3]
    np.testing.assert_allclose(plane["area"][:, 0, 0], [[-0.41887903, 0.41887903]] * 5, rtol=1e-6)  # as declared
    assert np.all(np.diff(plane["area"][:, 0, 1, 1]) >= 0)  # no bounds are declared: as far as was seen
    observation, _ = builder.make().reset(seed=episode_seed(0, 0, 0))
    for row, column in ((0, 0), (29, 3), (14, 20)):  # the angle goes with the column, its velocity with the row
        (left, right), (low, high) = plane["area"][-1, 0]
        share = (np.array([column, row]) + 0.5) / 30
        there = np.array(
            [*observation[:2], left + share[0] * (right - left), low + share[1] * (high - low)], np.float32
        )
        network, there = result.network(0), jnp.asarray(there)
        z, evidence = result.agent.returns(network, there), network.evidence(there)
        assert evidence is not None
        best = int(np.argmax(z.mean))
        assert plane["std"][-1, 0, row, column] == pytest.approx(float(z.std[best]), rel=0.01)
        assert plane["evidence"][-1, 0, row, column] == pytest.approx(float(evidence[best]), rel=0.01, abs=1e-4)
    np.testing.assert_allclose(plane["evidence"][0], 1, rtol=1e-5)  # nothing was seen


def test_observations_along_a_path_have_numbers_in_inspect_and_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = ["--env", "CartPole-v1", "--env.action_repeat", "1", "--env.left_out", "[0]", "--seeds", "1", "--steps", "64"]
    few += ["--network", "PerAction", "--network.width", "4", "--evidence", "NoEvidence"]
    assert main(["train", *few, "--record", "distributions", "--quiet", "--out", "cart"]) == 0
    found = RunFolder(Path("cart")).distributions
    assert found is not None
    assert found.plane["numbers"].tolist() == [1, 2], "number 0 is left out"
    assert main(["inspect", "cart", "--state", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["state_name"]) == (1, found.names["states"][1])
    assert shown["actions"][0]["mean"] == pytest.approx(float(found.mean[-1, 0, 1, 0]))
    assert [each["state"] for each in shown["path"]] == [*range(len(found.names["states"]))]
    assert main(["inspect", "cart", "--state", "99"]) == 2
    last = len(found.names["states"]) - 1
    assert f"give one from 0 to {last}" in capsys.readouterr().err
    assert main(["report", "cart", "--states", "99", "--out", "page"]) == 2
    assert f"use 0 to {last}" in capsys.readouterr().err


def test_a_run_that_was_killed_records_what_it_would_have(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *OPTIONS, *LIMITS, "--record", "distributions", "--quiet", "--out", "whole"]) == 0
    shutil.copytree("whole", "killed")
    for name in ("episodes.npz", "summary.json", "distributions.npz", "checkpoints/step-000002048.safetensors"):
        Path("killed", name).unlink()
    assert main(["resume", "killed", "--quiet"]) == 0
    whole, killed = (RunFolder(Path(name)).distributions for name in ("whole", "killed"))
    assert whole and killed
    assert whole.arrays().keys() == killed.arrays().keys()
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(array, killed.arrays()[name])
    assert json.loads(Path("killed", "summary.json").read_text())["interrupted"] is False


def test_what_cannot_be_recorded_or_read_is_a_sentence(tmp_path, refused):
    with pytest.raises(InputError, match="record is 'all': use distributions"):
        ut.train(ut.Chain(4), settings=TINY, record="all")
    for over, record, words in (
        ((0, 1), "distributions", "an observation has 0 numbers: leave it out"),
        ((0, 1), None, "but nothing is recorded"),
    ):
        with pytest.raises(InputError, match=words):
            ut.train(ut.Chain(4), settings=TINY, record=record, record_over=over)
    with pytest.raises(InputError, match="use two different numbers from 0 to 3"):
        ut.train(ut.Gym("CartPole-v1"), settings=TINY, record="distributions", record_over=(1, 4))
    assert "record is all" in refused(["train", "--record", "all"])
    assert RunFolder(tmp_path).distributions is None
    (tmp_path / "distributions.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(InputError, match="damaged"):
        RunFolder(tmp_path).distributions  # noqa: B018
