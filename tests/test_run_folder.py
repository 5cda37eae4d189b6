"""The reader of run folders: what it refuses, damaged files, runs that diverged, and code that it never runs."""

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reported
from uppertail.cli import main
from uppertail.errors import InputError
from uppertail.records import RunFolder, find_runs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a small run that recorded."""
    return shutil.copytree(reported.run(), tmp_path / "run")


@pytest.fixture
def mutations(monkeypatch: pytest.MonkeyPatch) -> Any:
    """benchmarks/mutations.py."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("mutations")


NAMES = ("summary.json", "episodes.npz", "distributions.npz", "config.yaml", "networks.safetensors")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_is_read_or_refused_in_a_sentence(name: str, mutations: Any, run: Path) -> None:
    found = mutations.damage(run, name, 40, 0)
    assert found.keys() <= {"sentence", "read"}, found
    assert found["sentence"] > 10


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("last", None, "its array last is missing"),
        ("visits", lambda array: array[:, :, :2], "its array visits has another type or shape"),
        ("episode", lambda array: array.astype(float), "its array episode has another type or shape"),
        ("z/mean", lambda array: array[..., 0], "its array z/mean has another type or shape"),
        ("table/reward", None, "its array table/reward is missing"),
        ("table/probability", lambda array: array / 2, "its probabilities do not sum to 1"),
        ("table/next_state", lambda array: array + 4, "its states are not among 4"),
        ("table/reward", lambda array: array * np.nan, "its array table/reward has numbers that are not finite"),
        ("rows", lambda array: array + 8, "its number of rows is impossible"),
        ("step", lambda array: array[::-1], "its steps are not in order"),
        ("names/actions", lambda _: np.array(["one"]), "its array names/actions has another type or shape"),
        ("more", lambda _: np.zeros(3), "its array more is not expected"),
        ("plane/std", lambda _: np.zeros((1, 1, 3, 3)), "its array plane/numbers is missing"),
    ],
)
def test_recorded_arrays_fit_each_other(name: str, change: Any, words: str, run: Path) -> None:
    path = run / "distributions.npz"
    with np.load(path) as file:
        arrays = dict(file)
    array = arrays.pop(name, None)
    np.savez(path, **arrays, **({} if change is None else {name: change(array)}))
    with pytest.raises(InputError, match=rf"damaged \({words}\): delete it, or train again"):
        RunFolder(run).distributions  # noqa: B018


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"interrupted": "no"}, "interrupted: use true or false"),
        ({"stopped": 3}, "stopped: use text"),
        ({"diverged": {"seed": 1}}, "diverged is not a seed and a step"),
        ({"diverged": {"seed": "1", "step": 2}}, "diverged: use a whole number"),
        ({"seeds": 3}, "episodes is not of 3 seeds"),
        ({"solved_episode": [1, 999]}, "solved_episode is beyond the episodes"),
        ({"settings": {"seed": -1, "discount": 0.9}}, "its seeds or its discount are impossible"),
        ({"policy": {}}, "name is missing"),
        ({"success": {"return": None}}, "return: use a number"),
    ],
)
def test_a_summary_is_what_a_run_could_have_written(change: dict[str, Any], words: str, run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    assert RunFolder(run).summary == summary
    (run / "summary.json").write_text(json.dumps({**summary, **change}))
    with pytest.raises(InputError, match=rf"summary\.json is damaged \(.*{words}"):
        RunFolder(run).summary  # noqa: B018


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "3", '"x"', "[" * 100_000])
def test_what_is_no_summary_is_refused(text: str, run: Path) -> None:
    (run / "summary.json").write_text(text)
    with pytest.raises(InputError, match="damaged"):
        RunFolder(run).summary  # noqa: B018
    assert not RunFolder(run).finished


def test_a_link_to_itself_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="is not the folder of a run"):
        find_runs([tmp_path / "loop"])


@pytest.mark.slow
def test_a_run_that_diverged_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    asked = [*reported.OPTIONS, "--learning_rate", "1e30", "--episodes", "200", "--record", "distributions"]
    assert main(["train", *asked, "--quiet", "--out", out]) == 2
    recorded = RunFolder(Path(out)).distributions
    assert recorded is not None and np.isnan(recorded.mean).any()
    capsys.readouterr()
    assert main(["inspect", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["actions"][0]["mean"] is None
    assert main(["inspect", out]) == 0
    assert main(["report", out, "--quiet"]) == 0
