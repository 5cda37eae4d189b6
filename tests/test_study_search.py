"""Searches: what is refused, and Optuna's trials with what trains replaced, where Optuna is installed."""

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import yaml

from test_study_work import leave_run, save_episodes
from uppertail.cli import main
from uppertail.cli import study as command
from uppertail.errors import InputError
from uppertail.studies.definition import Definition
from uppertail.studies.search import Search, open_study

RATE = {"low": "1e-4", "high": 1.0e-2, "log": True}
"""YAML takes a number without a point for text."""
SEARCH = {"learning_rate": RATE, "network.width": [8, 16], "seed": {"low": 0, "high": 9}}


pytestmark = pytest.mark.usefixtures("own_folder")


def written(**document):
    Path("mine.yaml").write_text(yaml.safe_dump(document))
    return "mine.yaml"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"search": {}, "trials": 3}, "search is empty"),
        ({"search": SEARCH}, "trials is None"),
        ({"search": SEARCH, "trials": 3, "grid": {"seed": [1]}}, "it has search and grid"),
        ({"search": SEARCH, "trials": 3, "metric": "reward"}, "metric is 'reward': use one of final_return"),
        (
            {"search": {"network.width": {"low": 9, "high": 8}}, "trials": 3},
            "search has network.width: .*low=9, high=8",
        ),
        ({"search": {"network.width": {"low": "few", "high": 8}}, "trials": 3}, "search has network.width: .*'few'"),
        ({"search": {"network.width": {"low": None, "high": 8}}, "trials": 3}, "search has network.width: .*NoneType"),
        ({"search": {"network.width": {"min": 9, "high": 8}}, "trials": 3}, "use {low: 1, high: 9}"),
        (
            {"search": {"network.width": {"low": 0, "high": 8, "log": True}}, "trials": 3},
            "low.*(>= 1|> 0|greater than 1)",
        ),
        ({"grid": {"seed": [1]}, "trials": 3}, "it has trials, but no search"),
    ],
)
def test_what_is_no_search_is_said(document, said):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    with pytest.raises(InputError, match=said):
        Definition.read(Path(written(**document)))


def test_both_ends_and_every_choice_are_checked(capsys):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    for search in ({"network.width": {"low": 0, "high": 9}}, {"policy": ["UCB", "UBC"]}):
        assert main(["study", written(search=search, trials=3)]) == 2
    error = capsys.readouterr().err
    assert "width is 0" in error and "Unknown policy 'UBC'" in error


def test_without_optuna_its_extra_is_named(monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install optuna" in refused(["study", written(search={"network.width": [8]}, trials=1)])


@pytest.fixture
def inline(monkeypatch):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    monkeypatch.setattr(command, "_workers", lambda config: 1)
    return lambda trains: monkeypatch.setattr(command, "train", trains)


def trains(cell, place, beside):
    """The wider and the nearer to a learning rate of 0.001, the better."""
    leave_run(cell, place)
    value = cell.options["network.width"] - abs(np.log10(cell.options["learning_rate"]) + 3)
    save_episodes(place, np.full((1, 3), value))


def outcomes():
    return sorted(path.stem for path in Path("out/outcomes").glob("*.json"))


def test_a_search_finds_what_is_better_and_goes_on(inline, refused):
    inline(trains)
    study = written(search=SEARCH, trials=12)
    assert main(["study", study, "--out", "out"]) == 0
    document = json.loads(Path("out/study.json").read_text())
    assert len(document["trials"]) == 12
    assert document["trials"][0]["options"]["network.width"] == 16
    values = [trial["value"] for trial in document["trials"]]
    assert values == sorted(values, reverse=True)
    assert len(list(Path("out/cells").iterdir())) == len(outcomes()) == 12
    assert main(["study", written(search=SEARCH, trials=14), "--out", "out", "--quiet"]) == 0
    assert len(outcomes()) == 14
    assert "is not this search" in refused(["study", written(search={"network.width": [8]}, trials=14), "--out", "out"])


def test_a_trial_that_was_cut_off_goes_on_with_its_options(inline):
    seen = []

    def cut_off(cell, place, beside):
        seen.append(cell)
        if len(seen) == 2:
            raise KeyboardInterrupt(2)
        trains(cell, place, beside)

    inline(cut_off)
    study = written(search=SEARCH, trials=3)
    assert main(["study", study, "--out", "out", "--quiet"]) == 130
    assert main(["study", study, "--out", "out", "--quiet"]) == 0
    assert len(seen) == 4 and seen[1] == seen[2]
    assert outcomes() == ["trial-0000", "trial-0001", "trial-0002"]


def test_a_trial_that_was_cut_off_while_its_options_were_drawn_gets_the_rest(inline):
    inline(trains)
    study = written(search=SEARCH, trials=1)
    assert main(["study", study, "--out", "out", "--dry-run"]) == 0
    Path("out/cells").mkdir(parents=True)
    Path("out/study.yaml").write_text(Path(study).read_text())
    trial = open_study(Path("out")).ask()
    width = trial.suggest_categorical("network.width", ["8", "16"])
    assert main(["study", study, "--out", "out", "--quiet"]) == 0
    (row,) = json.loads(Path("out/study.json").read_text())["trials"]
    assert row["options"].keys() == SEARCH.keys()
    assert row["options"]["network.width"] == int(width)


def test_a_trial_that_looks_poor_is_ended_early(inline):
    """Its mean return after each chunk says so."""
    ended = []

    def reports(cell, place, beside):
        (pruner,) = beside
        poor = int(cell.name[-4:]) == 5
        for step in (512, 1024, 1536):
            pruner(types.SimpleNamespace(step=step, mean_return=float("nan")))
            pruner(types.SimpleNamespace(step=step, mean_return=-1.0 if poor else 1.0))
        ended.append(cell.name)
        trains(cell, place, beside)

    inline(reports)
    assert main(["study", written(search=SEARCH, trials=6), "--out", "out", "--quiet"]) == 0
    states = [trial["state"] for trial in json.loads(Path("out/study.json").read_text())["trials"]]
    assert states == ["complete"] * 5 + ["pruned"]
    assert len(ended) == 5


@pytest.mark.slow
def test_a_real_run_reports_to_optuna_and_is_ended_early(inline, monkeypatch):
    reported = []

    def should_prune(trial):
        reported.append(trial.number)
        return trial.number == 1

    inline(command.train)
    monkeypatch.setattr("optuna.trial.Trial.should_prune", should_prune)
    base = {"env.length": 3, "seeds": 1, "network.width": 8, "replay_size": 99, "episodes": 200}
    study = written(base=base, search={"seed": [0, 1]}, trials=2)
    assert main(["study", study, "--out", "out", "--quiet"]) == 0
    states = {row["name"]: row["state"] for row in json.loads(Path("out/study.json").read_text())["trials"]}
    assert states == {"trial-0000": "complete", "trial-0001": "pruned"}
    assert 0 in reported and reported.count(1) == 1
    assert not Path("out/cells/trial-0001/summary.json").exists()


def test_a_trial_that_failed_counts_and_is_not_tried_again(inline, capsys):
    asked = []
    inline(lambda cell, place, beside: asked.append(cell.name))
    for _ in range(2):
        assert main(["study", written(search=SEARCH, trials=2), "--out", "out", "--quiet"]) == 1
    assert capsys.readouterr().err.count("The cell trial-0001 failed: it ended without results") == 2
    assert asked == ["trial-0000", "trial-0001"]


def test_a_trial_whose_command_died_before_optuna_was_told_is_not_run_again(inline, monkeypatch):
    inline(trains)

    def dies(search, cell, outcome):
        raise KeyboardInterrupt(9)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "tell", dies)
        assert main(["study", written(search=SEARCH, trials=1), "--out", "out", "--quiet"]) == 137
    assert outcomes() == ["trial-0000"]
    inline(lambda *_: pytest.fail("it is over"))
    assert main(["study", "mine.yaml", "--out", "out", "--quiet"]) == 0
    (row,) = json.loads(Path("out/study.json").read_text())["trials"]
    assert row["state"] == "complete"
