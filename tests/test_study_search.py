"""Searches: what is refused, and Optuna's trials with what trains replaced, where Optuna is installed."""

import json
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from test_study_claims import run_of, save_episodes
from uppertail.cli import main, study_running, study_worker
from uppertail.errors import InputError
from uppertail.studies.definition import Definition

RATE = {"low": "1e-4", "high": 1.0e-2, "log": True}
"""YAML takes a number without a point for text."""
SEARCH = {"learning_rate": RATE, "width": [8, 16], "seed": {"low": 0, "high": 9}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
        ({"search": {"width": {"low": 9, "high": 8}}, "trials": 3}, "search has width: low is 9 and high is 8"),
        ({"search": {"width": {"low": "few", "high": 8}}, "trials": 3}, "low is 'few', but it must be a number"),
        ({"search": {"width": {"min": 9, "high": 8}}, "trials": 3}, "use {low: 1, high: 9}"),
        ({"search": {"width": {"low": 0, "high": 8, "log": True}}, "trials": 3}, "a low above 0"),
        ({"grid": {"seed": [1]}, "trials": 3}, "it has trials, but no search"),
    ],
)
def test_what_is_no_search_is_said(document, said):
    with pytest.raises(InputError, match=said):
        Definition.read(Path(written(**document)))


def test_both_ends_and_every_choice_are_checked(capsys):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    for search in ({"width": {"low": 0, "high": 9}}, {"policy": ["UCB", "UBC"]}):
        assert main(["study", written(search=search, trials=3)]) == 2
    error = capsys.readouterr().err
    assert "width is 0" in error and "Unknown policy 'UBC'" in error


def test_without_optuna_its_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["study", written(search={"width": [8]}, trials=1)]) == 2
    assert "pip install 'uppertail[search]'" in capsys.readouterr().err


@pytest.fixture
def inline(monkeypatch):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    monkeypatch.setattr(study_running, "run", lambda definition, folder, *_: study_worker.work_in(str(folder.path)))
    return lambda trains: monkeypatch.setattr(study_worker, "command", trains)


def asked(arguments):
    return {name: value for name, _, value in (argument.removeprefix("--").partition("=") for argument in arguments)}


def trains(arguments):
    """The wider and the nearer to a learning rate of 0.001, the better."""
    options = asked(arguments)
    run_of(arguments)
    value = int(options["width"]) - abs(np.log10(float(options["learning_rate"])) + 3)
    save_episodes(Path(arguments[arguments.index("--out") + 1]), np.full((1, 3), value))
    return 0


def test_a_search_finds_what_is_better_and_goes_on(inline, capsys):
    inline(trains)
    study = written(search=SEARCH, trials=12)
    assert main(["study", study, "--out", "out"]) == 0
    document = json.loads(Path("out/study.json").read_text())
    assert len(document["trials"]) == 12
    assert document["trials"][0]["options"]["width"] == 16
    values = [trial["value"] for trial in document["trials"]]
    assert values == sorted(values, reverse=True)
    assert len(list(Path("out/cells").iterdir())) == len(list(Path("out/claims").iterdir())) == 12
    assert main(["study", written(search=SEARCH, trials=14), "--out", "out", "--quiet"]) == 0
    assert len(list(Path("out/claims").iterdir())) == 14
    assert main(["study", written(search={"width": [8]}, trials=14), "--out", "out"]) == 2
    assert "is not this search" in capsys.readouterr().err


def test_a_trial_that_was_cut_off_goes_on_with_its_options(inline):
    seen = []

    def cut_off(arguments):
        seen.append(asked(arguments))
        return 130 if len(seen) == 2 else trains(arguments)

    inline(cut_off)
    study = written(search=SEARCH, trials=3)
    assert main(["study", study, "--out", "out", "--quiet"]) == 1
    assert main(["study", study, "--out", "out", "--quiet"]) == 0
    assert len(seen) == 4 and seen[1] == seen[2]
    assert [path.stem for path in sorted(Path("out/claims").iterdir())] == [
        *("trial-0000.0001", "trial-0001.0001", "trial-0001.0002", "trial-0002.0001")
    ]


def test_a_trial_that_looks_poor_is_ended_early(inline):
    """Its log says so, and it is interrupted as by Ctrl-C, which it heeds."""
    count = []

    def slow(arguments):
        count.append(1)
        run_of(arguments)
        folder = Path(arguments[arguments.index("--out") + 1])
        poor = len(count) > 5
        lines = [{"step": step, "return/mean": -1.0 if poor else 1.0} for step in (512, 1024, 1536)]
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if poor:
            (folder / "summary.json").unlink()
        try:
            time.sleep(10 if poor else 0.8)
        except KeyboardInterrupt:
            return 130
        return 0

    inline(slow)
    previous = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["study", written(search=SEARCH, trials=6), "--out", "out", "--quiet"]) == 0
    finally:
        signal.signal(signal.SIGINT, previous)
    states = [trial["state"] for trial in json.loads(Path("out/study.json").read_text())["trials"]]
    assert states == ["complete"] * 5 + ["pruned"]


def test_a_trial_that_failed_counts_and_is_not_tried_again(inline, capsys):
    inline(lambda arguments: 1)
    for _ in range(2):
        assert main(["study", written(search=SEARCH, trials=2), "--out", "out", "--quiet"]) == 1
    assert capsys.readouterr().err.count("The cell trial-0001 failed: it ended without results") == 2
    assert len(list(Path("out/claims").iterdir())) == 2


def test_a_trial_whose_process_died_once_it_was_told_is_not_run_again(inline):
    inline(trains)
    assert main(["study", written(search=SEARCH, trials=1), "--out", "out", "--quiet"]) == 0
    (claim,) = Path("out/claims").iterdir()
    claim.write_bytes(claim.read_bytes().splitlines(keepends=True)[0])
    inline(lambda arguments: pytest.fail("it is over"))
    assert main(["study", "mine.yaml", "--out", "out", "--quiet"]) == 0
    assert len(list(Path("out/claims").iterdir())) == 2
