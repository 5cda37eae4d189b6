"""The reader of run folders: what it refuses, damaged files, runs that diverged, and code that it never runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
import safetensors.numpy

import reported
from experiments.robustness import mutations
from uppertail import records
from uppertail.cli import main
from uppertail.cli.train import parse_request
from uppertail.errors import InputError
from uppertail.records import RunFolder, digest, find_runs, run_folder, write_arrays, write_config, write_summary
from uppertail.training import checkpoint
from uppertail.yaml_files import content_of, read_options


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a small run that recorded."""
    return shutil.copytree(reported.run(), tmp_path / "run")


NAMES = ("summary.json", "episodes.npz", "distributions.npz", "config.yaml", "networks.safetensors", "log.jsonl")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_is_read_or_refused_in_a_sentence(name: str, run: Path) -> None:
    found = mutations.damage(run, name, 40, 0)
    assert found.keys() <= {"sentence", "read"}, found
    assert name == "log.jsonl" or found["sentence"] > 10


@pytest.mark.parametrize("name", ["episodes.npz", "distributions.npz"])
def test_arrays_that_no_run_wrote_are_refused(name: str, run: Path) -> None:
    """One number changes in a file that is whole, and so does its checksum; the sentence names the file."""
    whole = read(run, name)
    with np.load(run / name) as file:
        arrays = dict(file)
    np.savez(run / name, **arrays)
    with pytest.raises(InputError, match=rf"{name} is missing or damaged"):
        read(run, name)
    write_arrays(run / name, arrays)
    assert repr(read(run, name)) == repr(whole)
    changed = {key: array.copy() for key, array in arrays.items()}
    changed["step"].flat[-1] += 1
    content = (run / name).read_bytes()
    write_arrays(run / name, changed)
    comment = content[-64:]
    (run / name).write_bytes((run / name).read_bytes()[:-64] + comment)
    with pytest.raises(InputError, match=rf"{name} is missing or damaged"):
        read(run, name)


def read(run: Path, name: str) -> Any:
    folder = RunFolder(run)
    return folder.episodes if name == "episodes.npz" else folder.distributions


def test_a_summary_that_no_run_wrote_is_refused(run: Path) -> None:
    path, summary = run / "summary.json", RunFolder(run).summary
    assert {**summary, "sha256": ANY} == json.loads(path.read_text())
    path.write_text(path.read_text().replace('"seeds": 2,', '"seeds": 3,'))
    with pytest.raises(InputError, match=r"summary\.json is missing or damaged: train again"):
        RunFolder(run).summary  # noqa: B018
    write_summary(path, {**summary, "wall_seconds": 3})
    assert RunFolder(run).summary["wall_seconds"] == 3


FORGED: list[tuple[str, Any]] = [
    ("seeds", 10**9),
    ("seeds", "2"),
    ("episodes", [150]),
    ("episodes", [150, 10**400]),
    ("first_success_episode", [151, None]),
    ("solved_episode", {"0": 1}),
    ("kept", [0.5, 2.0]),
    ("success", {"return": "1"}),
    ("settings", {"seed": 0}),
    ("settings", {"seed": 0, "discount": -1}),
    ("settings", {"seed": [0], "discount": 0.9}),
    ("env", {}),
    ("policy", "UCB"),
    ("hardware", {"machine": "\ud800"}),
    ("wall_seconds", float("inf")),
    ("diverged", {"seed": 0}),
]
"""Entries of a summary.json that has its right checksum."""


@pytest.mark.parametrize(("name", "value"), FORGED, ids=str)
def test_a_forged_summary_is_refused(name: str, value: Any, run: Path) -> None:
    summary = {**RunFolder(run).summary, name: value}
    (run / "summary.json").write_text(json.dumps({**summary, "sha256": digest({}, json.dumps(summary))}))
    with pytest.raises(InputError, match=r"summary\.json is missing or damaged: train again"):
        RunFolder(run).summary  # noqa: B018


ARRAYS: list[tuple[str, Callable[[np.ndarray], Any]]] = [
    ("mean", lambda mean: mean[..., 0]),
    ("mean", lambda mean: mean.astype(complex)),
    ("step", lambda step: step.astype(float)),
    ("step", lambda step: step[:0]),
    ("states", lambda states: states + 99),
    ("states", lambda states: np.full_like(states, -1)),
    ("table/next_state", lambda after: after - 1),
    ("table/start_state", lambda start: start + 4),
    ("table/probability", lambda chance: chance * np.nan),
    ("z/mean", lambda mean: mean[:, :1]),
    ("names/states", lambda names: np.array(["one"])),
    ("rows", lambda rows: rows + 99),
    ("rows", lambda rows: np.array([1, 2])),
    ("visits", lambda visits: visits - 1),
    ("plane/std", lambda std: np.ones(1)),
    ("other", lambda other: np.ones(1)),
]
"""Changes of distributions.npz with its right checksum; an array that was not there is made of nothing."""


@pytest.mark.parametrize(("name", "change"), ARRAYS, ids=lambda each: str(each)[:20])
def test_forged_distributions_are_refused(name: str, change: Callable[[np.ndarray], Any], run: Path) -> None:
    with np.load(run / "distributions.npz") as file:
        arrays = dict(file)
    write_arrays(run / "distributions.npz", {**arrays, name: change(arrays.get(name, np.zeros(0)))})
    with pytest.raises(InputError, match=r"distributions\.npz is missing or damaged"):
        RunFolder(run).distributions  # noqa: B018


HEADERS = ["[" * 100_000, "5", "null", '{"format": 2}', '{"format": 1}', '{"format": 1, "asked": {}, "step": 1}']


@pytest.mark.parametrize("header", HEADERS, ids=lambda text: text[:20])
def test_a_forged_header_is_refused(header: str, run: Path) -> None:
    texts = {checkpoint.HEADER: header, checkpoint.DIGEST: digest({}, header)}
    (run / "networks.safetensors").write_bytes(safetensors.numpy.save({}, texts))
    with pytest.raises(InputError, match=r"networks\.safetensors is damaged: delete it"):
        checkpoint.LearnedFile.read(run)


def test_a_file_that_unpacks_to_more_than_memory_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert RunFolder(run).episodes
    monkeypatch.setattr(run_folder, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"episodes\.npz is missing or damaged"):
        RunFolder(run).episodes  # noqa: B018


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
YAML = {"bomb": BOMB, "merged": BOMB.replace("[x]", "{x: 1}").replace("[*", "{<<: [*").replace("]\n", "]}\n")}
YAML |= {"cycle": "x: &a [*a]", "cycle of keys": "x: &a {b: *a}", "long": "x: " + "1" * 2_000_000}


@pytest.mark.parametrize("text", YAML.values(), ids=YAML)
def test_yaml_that_grows_without_end_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=r"holds more than 200,000 values|has more than 1,000,000 bytes"):
        read_options(tmp_path / "config.yaml")
    assert content_of(text) == text


def test_another_environment_than_that_of_the_networks_is_refused(run: Path, refused: Any) -> None:
    whole = RunFolder(run).config or {}
    options = {name: each for name, each in whole.items() if not name.startswith("env.")}
    write_config(run / "config.yaml", json.dumps({**options, "env": "DeepSea"}) + "\n")
    assert "asks for DeepSea, but the run was in Chain" in refused(["evaluate", str(run)])
    write_config(run / "config.yaml", json.dumps({**whole, "seeds": 60_000}) + "\n")
    assert "asks for 60000 seeds, but the run had 2" in refused(["evaluate", str(run)])


@pytest.mark.parametrize("name", ["a" * 300, "nul\0", "\udcff"])
def test_names_that_no_file_can_have_are_refused(name: str, refused: Any) -> None:
    for command in (["inspect", name], ["report", name], ["report", "x", "--out", name], ["train", "--out", name]):
        assert "cannot be the name of a folder" in refused(command)


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


def test_a_run_of_a_version_with_fewer_settings_is_read_unless_a_new_one_is_given() -> None:
    """Each new setting of an environment made all earlier runs in it those of another one."""
    plain, given = (
        parse_request(["--env", "CartPole-v1", "--seeds", "1", *more]) for more in ([], ["--env.stack", "2"])
    )
    before = {name: each for name, each in records.describe(plain.built.env).items() if name != "stack"}
    asked = {"environment": before, "settings": {"seeds": 1}}
    plain.require_same(asked)
    with pytest.raises(InputError, match="asks for Gym, but the run was in Gym, with other settings"):
        given.require_same(asked)
