"""`uppertail report`: the numbers in the page are those of the run; nothing comes from elsewhere."""

import base64
import dataclasses
import errno
import gzip
import json
import re
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import reported
import uppertail as ut
from test_records import record_of
from uppertail import records
from uppertail.cli import main
from uppertail.cli.train import _results
from uppertail.errors import InputError
from uppertail.records import Distributions, Episodes, RunFolder, find_runs
from uppertail.reports import details, groups, maps, page
from uppertail.reports.opening import opening
from uppertail.reports.seeds import Seed, built_in, kind_of
from uppertail.training.loop import seed_keys
from uppertail.training.recording import with_environment


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), np.dtype(kind).newbyteorder("<"))


def document(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="text/plain" id="report-data">(.*?)</script>', text, re.S)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.mark.slow
def test_the_file_has_all_that_it_needs_and_the_runs_own_numbers(tmp_path, capsys):
    other, out = reported.elsewhere(tmp_path), tmp_path / "report.html"
    assert main(["report", str(reported.run()), str(other), "--out", str(out)]) == 0
    assert f"Report in {out}" in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    assert out.stat().st_size < 2e6
    assert not re.search(
        r'(?:src|href)\s*=\s*["\']|@import|url\(', re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    )
    assert text.count("<section") == 2  # of different environments: separated
    assert "Chain, length 4" in text
    assert "Chain, length 5" in text
    first, second = document(out)["groups"]
    assert len(first["details"]) == 2
    assert second["details"] == []
    recorded, detail = RunFolder(reported.run()).distributions, first["details"][0]
    assert recorded
    shape = (len(recorded.step), len(detail["states"]), 2)
    for name, array in (("mean", recorded.mean), ("upper", recorded.mean + 2 * recorded.std)):
        np.testing.assert_allclose(
            unpacked(detail[name], np.float32).reshape(shape), array[:, 0, detail["states"]], rtol=1e-6
        )
    np.testing.assert_array_equal(
        unpacked(detail["visits"], np.int32).reshape(shape),
        recorded.visits[:, 0, detail["states"]],  # pyright: ignore
    )
    assert main(["report", str(reported.run()), "--out", str(out), "--states", "[2]", "--quiet"]) == 0  # again
    assert [each["states"] for each in document(out)["groups"][0]["details"]] == [[2], [2]]


def test_a_report_says_how_a_run_is_made_again_and_what_was_chosen(tmp_path):
    """The path of its options as it was given; a blank does not break it."""
    copied = tmp_path / "own runs"
    shutil.copytree(reported.run(), copied)
    said = page._provenance("it", RunFolder(copied))
    assert f"train --config &#x27;{copied}/config.yaml&#x27; --out NEW" in said
    chosen = RunFolder(copied).summary["plan"]["learner"]
    assert f"learner: &quot;{chosen['value']}&quot; ({chosen['reason']})" in said
    assert " environment steps of 2 seeds, from 0 to 1. " in said and "discount: 0.995" in said


@pytest.mark.slow
def test_runs_are_found_by_their_files_also_those_of_a_study(tmp_path):
    for name in ("Gaussian", "PointMass"):
        shutil.copytree(reported.run(), tmp_path / "study" / "cells" / name)
    one, other = find_runs([tmp_path / "study"])
    assert (one.path.name, one.method, one.seeds) == ("Gaussian", "Gaussian, UCB", [0, 1])
    assert other.log[0]["step"] > 0
    (group,) = groups.groups([one, other], [])
    assert group.methods == ["Gaussian", "PointMass"]


def test_a_cell_is_called_as_its_study_names_it(tmp_path):
    names = ["value%20alone,env.length=4", "%22a%22", "policy=UCB", "policy=UCB,learner.name=%22x%22"]
    for name in names:
        shutil.copytree(reported.run(), tmp_path / "cells" / name)
    made = groups.groups([RunFolder(tmp_path / "cells" / name) for name in names], [])
    by_options = ["Gaussian, UCB (policy=UCB)", 'Gaussian, UCB (policy=UCB, learner.name="x")']
    assert made[0].methods == ["value alone, env.length=4", '"a"', *by_options]
    text = page.page("", made, "")
    assert "<summary>value alone, env.length=4: " in text
    assert f"--config {tmp_path}/cells/value%20alone,env.length=4/config.yaml" in text  # the folder itself


def episodes(returns):
    count = len(returns)
    return Episodes(np.asarray(returns, np.float32), np.ones(count, np.int64), np.arange(1, count + 1))


def test_a_seed_that_never_got_there_is_censored_and_one_that_fell_is_seen_to():
    """Solved at 55 (45 of 50 succeed), then 30 successes and failures: 24 of 50 are left at the 26th failure."""
    fell = episodes([0.0] * 10 + [1.0] * 75 + [0.0] * 40)
    stayed, never = episodes([1.0] * 100), episodes([0.0] * 80)
    run = RunFolder(reported.run())
    reached = {"first_success_episode": [11, 1, None], "solved_episode": [55, 50, None]}
    run.__dict__.update(episodes=[fell, stayed, never], summary={**run.summary, **reached})
    seen = groups.times(run)
    assert seen[groups.FIRST].at.tolist() == [11, 1, 80]
    assert seen[groups.FIRST].happened.tolist() == [True, True, False]
    assert seen[groups.SOLVED].at.tolist() == [55, 50, 80]
    assert seen[groups.KEPT].at.tolist() == [30 + 26, 50]
    assert seen[groups.KEPT].happened.tolist() == [True, False]
    line = groups.survival(0, seen[groups.FIRST])
    assert line["points"] == [[0, 1.0], [1, 0.666667], [11, 0.333333], [80, 0.333333]]
    row = groups.table_row("m", run, seen)
    assert (row["first success"], row["seeds solved"]) == ("11 [1, never]", "2 of 3")
    run.__dict__["summary"]["success"] = None
    assert groups.times(run) == {}
    assert groups.table_row("m", run, {})["first success"] == "–"


def test_columns_have_the_headings_of_the_terminal():
    of_terminal = {heading.replace("\n", " ") for heading in _results(record_of([1.0]))}
    assert groups.table_row("m", RunFolder(reported.run()), {}).keys() <= {"method"} | of_terminal
    assert page.COLUMNS.keys() <= of_terminal


MEAN = np.array([[0.0, 1.0], [0.2, 0.1], [0.5, 0.7], [0.0, 0.3]], np.float32)
STD = np.array([[1.0, 0.5], [0.3, 0.3], [0.2, 0.1], [1.0, 1.0]], np.float32)


def made_seed(policy=None):
    """One moment of a Chain of length 4 in which action 1 is right, with numbers given by hand."""
    builder, family = ut.Chain(4, ordered=True), ut.Gaussian(scale=1.0)
    shape = (1, 1, 4, 2)
    recorded = Distributions(
        step=np.full((1, 1), 32),
        episode=np.full((1, 1), 9),
        states=np.arange(4).reshape(1, 1, 4),
        mean=MEAN.reshape(shape).copy(),
        std=STD.reshape(shape).copy(),
        parameters={"mean": MEAN.reshape(1, 1, 4, 1, 2).copy(), "std": STD.reshape(1, 1, 4, 1, 2).copy()},
        visits=np.arange(8).reshape(shape),
        last=4 * np.arange(8).reshape(shape),
    )
    tables = jax.tree.map(lambda leaf: leaf[None], builder.build(seed_keys(0).environment))
    return Seed(with_environment(recorded, tables, builder), 0, family, policy or ut.UCB(), discount=0.9)


def test_what_is_shown_of_a_seed_by_hand():
    seed = made_seed()
    assert seed.path() == [0, 1]  # in state 1 the greedy action is the wrong one, which ends the episode
    shown = details.detail(seed, "by hand", [])
    assert shown["states"] == [0, 1, 2, 3]  # the path, then the most visited
    age = unpacked(shown["age"], np.int32).reshape(4, 2)
    assert age.tolist() == [[-1, 28], [24, 20], [16, 12], [8, 4]]  # never taken: -1
    exact = {(state, action): (value, p) for state, action, value, p in shown["exact"]}
    assert exact[0, 1] == (pytest.approx(0.9**3), 1.0)
    assert exact[3, 1] == (1.0, 1.0)
    assert exact[1, 0] == (0.0, 1.0)
    arrows = unpacked(shown["grid"]["arrays"]["arrow"], np.uint8)
    assert "".join(shown["grid"]["arrows"][each] for each in arrows) == "→×→★"


def seed_of(std):
    """A seed whose states have these widths, [moments, actions] of each, and a mean of 0."""
    seed, moments = made_seed(), len(std)
    repeated = {name: getattr(seed.recorded, name).repeat(moments, axis=0) for name in ("step", "episode", "states")}
    widths = np.array(std, np.float32)[:, None, None].repeat(4, axis=2)
    changed = {**repeated, "mean": np.zeros_like(widths), "std": widths, "visits": None, "last": None}
    return dataclasses.replace(seed, recorded=dataclasses.replace(seed.recorded, **changed))


@pytest.mark.parametrize(
    ("std", "opens"),
    [
        ([[1, 1], [1, 0], [0.2, 0.1], [0, 0]], 1),  # the widest action is as wide as before
        ([[1, 1], [0.9, 0.9], [0.1, 0.1]], 2),
        ([[0, 0], [np.nan, 1], [np.inf, 1], [0.5, 0.4]], 3),
        ([[np.nan, np.nan]], 0),
    ],
)
def test_it_opens_where_actions_differ(std, opens):
    assert opening(seed_of(std), [0, 3]) == opens


def test_what_diverged_is_shown_as_far_as_it_is_a_number():
    seed = made_seed()
    for array in (seed.recorded.mean, seed.recorded.std, *seed.recorded.parameters.values()):
        array[0, 0, 2:] = np.nan
    shown = details.detail(seed, "diverged", [])
    assert not np.isnan(json.loads(json.dumps(shown["grid"]["ends"], allow_nan=False))["upper"]).any()
    upper = unpacked(shown["upper"], np.float32).reshape(4, 2)
    assert np.isnan(upper).any(axis=1).tolist() == [state > 1 for state in shown["states"]]


def test_densities_are_scipys_relative_to_their_peak():
    shown = details.detail(made_seed(), "by hand", [2])
    low, high = 0.7 - shown["spread"] * 0.1, 0.7 + shown["spread"] * 0.1
    heights = unpacked(shown["height"], np.uint8).reshape(2, shown["points"])[1]
    at = np.linspace(low, high, shown["points"])
    expected = scipy.stats.norm.pdf(at, 0.7, 0.1)
    np.testing.assert_allclose(heights / 255, expected / expected.max(), atol=0.004)


def test_action_probabilities_of_policies_are_those_of_their_definitions():
    seed = made_seed(ut.UCB(low=0.0, high=4.0))
    found = details.action_shares(seed, (np.zeros((1, 1), int), np.arange(4)[None]))
    c = np.linspace(0, 4, 801)
    wins = (MEAN[0, 1] + c[:, None] * STD[0, 1]) > (MEAN[0, 0] + c[None] * STD[0, 0])
    assert found["UCB"][0, 0, 1] == pytest.approx(wins.mean(), abs=0.08)  # three standard errors of 400 decisions
    difference = scipy.stats.norm(MEAN[0, 1] - MEAN[0, 0], np.hypot(*STD[0]))
    assert found["Thompson"][0, 0, 1] == pytest.approx(difference.sf(0), abs=0.08)
    assert found["greedy"][0].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    for shares in found.values():
        np.testing.assert_allclose(shares.sum(axis=-1), 1, rtol=1e-5)


def test_parts_that_are_not_built_in_cost_only_what_needs_them():
    run = RunFolder(reported.run())
    run.__dict__["summary"] = {**run.summary, "env": {"name": "Mine"}, "distribution": {"name": "AlsoMine"}}
    (group,) = groups.groups([run], [])
    assert group.environment == "Mine"
    assert [[*each["policies"]["arrays"]] for each in group.details] == [["greedy"]] * 2
    assert "height" not in group.details[0] and "grid" in group.details[0]  # the table was recorded
    assert kind_of("env", {"name": "Mine"}) is None
    assert built_in("distribution", {"name": "Gaussian", "scale": "wide"}) is None


def test_grids_lie_in_rows():
    assert (ut.Chain(4).rows, ut.DeepSea(7).rows, ut.FrozenLake("4x4").rows) == (1, 7, 4)
    assert ut.Gym("FrozenLake-v1", kwargs={"desc": ["SF", "FF", "FG"]}).rows == 3
    assert ut.Gym("CliffWalking-v1").rows == 4


def test_bad_requests_are_sentences(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = str(reported.run())

    def refused(*arguments):
        assert main(["report", *arguments]) == 2
        return capsys.readouterr().err

    assert "Which runs?" in refused()
    (tmp_path / "empty").mkdir()
    assert "is not the folder of a run" in refused(run, "empty")
    assert "State 9 is not among those recorded" in refused(run, "--states", "[0, 9]", "--out", "r.html")
    elsewhere = str(reported.elsewhere(tmp_path))
    assert "these runs recorded no distributions" in refused(elsewhere, "--states", "1", "--out", "r.html")
    assert "There is no folder nowhere for the file r.html" in refused(run, "--out", "nowhere/r.html")
    assert "is a folder" in refused(run, "--out", "empty")
    Path("notes.html").write_text("mine")
    assert "is no report" in refused(run, "--out", "notes.html")
    assert Path("notes.html").read_text() == "mine"
    shutil.copytree(run, "damaged")
    Path("damaged", "summary.json").write_text("{")
    assert "damaged" in refused("damaged")

    def full(path, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(records, "write_text", full)
    assert "cannot be written (No space left on device)" in refused(run, "--out", "r.html")
    assert not Path("r.html").exists()


def test_a_map_has_the_shape_of_its_grid_and_marks_its_ends():
    lake = ("SFFF", "FHFH", "FFFH", "HFFG")  # Gymnasium's map 4x4
    letters = {"S": "start", "F": "", "H": "hole", "G": "goal"}
    kinds = maps.cell_kinds(ut.FrozenLake("4x4").build(jax.random.key(0)))
    assert kinds == {place: letters[letter] for place, letter in enumerate("".join(lake))}
    sea = maps.cell_kinds(ut.DeepSea(5).build(jax.random.key(0)))
    assert sorted(sea) == [5 * row + column for row in range(5) for column in range(row + 1)]  # a triangle
    assert {place: kind for place, kind in sea.items() if kind} == {0: "start", 24: "goal"}


@pytest.mark.slow
def test_inspect_shows_what_was_learned(tmp_path, capsys):
    run = reported.run()
    assert main(["inspect", str(run), "--state", "1", "--seed", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    trained = ut.load(run)
    z = trained.agent.returns(trained.network(1), 1)
    for action, row in enumerate(found["actions"]):
        assert row["mean"] == pytest.approx(float(z.mean[action]), rel=1e-4, abs=1e-6)
        assert row["upper"] == pytest.approx(float(z.mean[action] + 2 * z.std[action]), rel=1e-4, abs=1e-6)
        assert row["parameters"]["std"] == pytest.approx(float(z.std[action]), rel=1e-4, abs=1e-6)
    other = np.asarray(jnp.asarray(z.mean) + 2 * z.std)
    on_path = {row["state"]: row for row in found["path"]}
    assert on_path[0]["state"] == 0
    if 1 in on_path:
        assert abs(on_path[1]["gap"]) == pytest.approx(abs(other[0] - other[1]), rel=1e-4)
    shutil.copytree(run, tmp_path / "plain")
    (tmp_path / "plain" / "distributions.npz").unlink()
    assert main(["inspect", str(tmp_path / "plain"), "--state", "1", "--seed", "1", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    means = [row["mean"] for row in found["actions"]]
    assert [row["mean"] for row in plain["actions"]] == pytest.approx(means, rel=1e-4)
    assert main(["inspect", str(run), "--step", "40"]) == 0
    shown = capsys.readouterr().out
    assert "36 steps" in shown  # the last moment before it
    assert "Greedy path" in shown
    for arguments, words in (
        ([str(run), "--state", "4"], "There is no state 4 to look at: give one from 0 to 3."),
        ([str(run), "--seed", "7"], "There is no seed 7 in this run: give one from 0 to 1."),
        ([str(tmp_path / "plain"), "--step", "9"], "recorded no distributions"),
        ([str(run), "--step", "-1"], "step is -1"),
        ([str(tmp_path)], "is not the folder of a run"),
    ):
        assert main(["inspect", *arguments]) == 2
        assert words in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.slow
def test_inspect_calls_actions_and_states_what_the_environment_calls_them(tmp_path, capsys):
    asked = ["--env=FrozenLake", "--seeds=1", "--steps=64", "--record=distributions", "--quiet"]
    assert main(["train", *asked, f"--out={tmp_path}/run"]) == 0
    assert main(["inspect", f"{tmp_path}/run", "--state", "6"]) == 0
    shown = capsys.readouterr().out
    assert "State 6 (row 0, col 6)" in shown
    assert all(f"{number} {name}" in shown for number, name in enumerate(("left", "down", "right", "up")))
    assert main(["inspect", str(reported.run()), "--state", "1"]) == 0
    assert "State 1\n" in capsys.readouterr().out  # a Chain has no names for them


def test_damaged_episodes_are_named():
    with pytest.raises(InputError, match="damaged"):
        groups.groups(find_runs([_broken()]), [])


def _broken():
    folder = Path(reported.kept().name, "broken")
    shutil.copytree(reported.run(), folder, dirs_exist_ok=True)
    (folder / "episodes.npz").write_bytes(b"no")
    return folder
