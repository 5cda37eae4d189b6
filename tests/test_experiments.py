"""Experiments: their imports, births and certificates, and what two of them count; none is run here."""

import ast
import functools
import importlib
import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from experiments import __main__, certificates, provenance
from experiments.provenance import RESULTS, checksum, entries, record, state
from experiments.registry import EXPERIMENTS, Experiment, tables
from experiments.tasks import blackjack
from experiments.tasks import minigrid_marks as marks
from uppertail.errors import InputError

FOLDER = RESULTS.parent / "experiments"
FILES = sorted(FOLDER.rglob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_an_experiment_imports_is_there(path: Path) -> None:
    """Most need packages that are not here."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        root, _, rest = node.module.partition(".")
        if root == "uppertail":
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}"), name
        elif root == "experiments":
            place = FOLDER.joinpath(*rest.split(".")) if rest else FOLDER
            source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            defined = {found for each in ast.parse(source.read_text(encoding="utf-8")).body for found in names_of(each)}
            for name in (alias.name for alias in node.names):
                assert name in defined or (place / name).with_suffix(".py").exists() or (place / name).is_dir(), name


def names_of(node: ast.stmt) -> list[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def test_every_experiment_has_a_module_that_runs_and_one_that_makes_first_seeds_again() -> None:
    for name, each in EXPERIMENTS.items():
        source = FOLDER.joinpath(*each.command.split()[0].split("."))
        source = source.with_suffix(".py")
        text = source.read_text(encoding="utf-8")
        assert '__name__ == "__main__"' in text, name
        assert ("\ndef again(stem: str, stored: dict[str, Any])" in text) == each.again, name
        assert list(each.files()), name


def test_every_table_stands_on_a_page() -> None:
    pages = [RESULTS.parent / "README.md", *(RESULTS.parent / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in tables() if f"<!-- table: {name} -->" not in text] == []


SETTINGS = {"settings": {"seed": 0, "seeds": 1}}  # of one of the runs that a result sums up


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A result of an experiment of its own, made by a tree."""
    path = tmp_path / "one.json"
    path.write_text(
        json.dumps({"first": [3, 5], "curve": [[1, 2, 3], [4]], "wall_seconds": 8.0, "seeds": [0, 1], **SETTINGS})
    )
    experiment = Experiment("", "tasks.again", (), (), again=True)
    monkeypatch.setattr(Experiment, "files", lambda _: iter([path]))
    monkeypatch.setattr(certificates, "EXPERIMENTS", {"mine": experiment})
    monkeypatch.setattr(certificates, "RESULTS", tmp_path)
    for module in (provenance, certificates):
        monkeypatch.setattr(module, "birth", lambda: {"commit": "c", "tree": "old", "dirty": False})
    record(path, "python -m mine")
    return path


def test_a_birth_says_code_machine_command_and_seeds(result: Path) -> None:
    found = entries(result.parent)["one.json"]
    assert found["sha256"] == checksum(result)
    made = found["birth"]
    assert (made["tree"], made["dirty"], made["command"], made["seeds"]) == ("old", False, "python -m mine", [0, 1])
    assert made["versions"].keys() >= {"python", "uppertail", "jax"} and len(made["load"]) == 2 and made["processor"]
    record(result, "another command")
    assert entries(result.parent)["one.json"] == found  # it is the same file
    result.write_text("{}")
    record(result, "python -m mine --peer /home/me/.venv/bin/python --out=/home/me/x.json results/y")
    command = entries(result.parent)["one.json"]["birth"]["command"]
    assert command == "python -m mine --peer python --out=x.json results/y"  # no machine's own paths


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ({"birth": "unknown"}, "unknown"),
        ({"birth": "unknown", "certified": "here"}, "certified"),
        ({"birth": {"tree": "here", "dirty": False}}, "born"),
        ({"birth": {"tree": "here", "dirty": True}}, "older"),
        ({"birth": {"tree": "other"}, "certified": "other"}, "older"),
        ({"birth": {}}, "older"),
        ({"birth": "published"}, "published"),
    ],
)
def test_what_is_known_of_a_result(entry: dict[str, Any], known: str) -> None:
    assert state(entry, "here") == known
    assert state(entry, None) in ("unknown", "older", "published")


def certified(
    again: Any, monkeypatch: pytest.MonkeyPatch, longest: float = 60.0, only: Sequence[str] = ("",)
) -> tuple[int, list[str]]:
    module = type("module", (), {"again": staticmethod(again)})
    monkeypatch.setattr(importlib, "import_module", lambda name: module)
    monkeypatch.setattr(certificates, "birth", lambda: {"tree": "new", "dirty": False})
    said: list[str] = []
    return certificates.certify_all(["mine"], longest, said.append, only), said


def test_a_first_seed_that_comes_out_the_same_certifies(result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert certificates.uncertified("new") == {"mine": {"older": ["one"]}}
    assert certified(lambda stem, stored: pytest.fail("made again"), monkeypatch, only=["two"]) == (0, [])
    assert certified(lambda stem, stored: {"first": [3], "curve": [[1, 2]]}, monkeypatch)[0] == 0
    assert entries(result.parent)["one.json"]["certified"] == "new"
    assert certificates.uncertified("new") == {}
    said = certified(lambda stem, stored: pytest.fail("made again"), monkeypatch)[1]
    assert said == []


@pytest.mark.parametrize(
    ("again", "longest", "words"),
    [
        ({"first": [4], "curve": [[1]]}, 60.0, "OTHERWISE: first"),
        ({"first": [3], "curve": [[1, 3]]}, 60.0, "OTHERWISE: curve"),
        ({"first": [3], "curve": [[]]}, 60.0, "OTHERWISE: curve"),
        ({"none": [3]}, 60.0, "OTHERWISE: all"),
        ({"first": [3]}, 3.0, "left out, takes about 4 s"),
        (None, 60.0, "no command makes"),
    ],
)
def test_one_that_does_not_certifies_nothing(
    again: Any, longest: float, words: str, result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, said = certified(lambda stem, stored: again, monkeypatch, longest)
    assert other == ("OTHERWISE" in words) and words in said[0] and "made on" not in said[0]
    monkeypatch.setattr(certificates, "processor", lambda: "Another, 2 cores")
    said = certified(lambda stem, stored: again, monkeypatch, longest)[1]
    assert (", here Another, 2 cores)" in said[0]) == bool(other)
    assert "certified" not in entries(result.parent)["one.json"]


@pytest.mark.parametrize("code", [{}, {"tree": "new", "dirty": True}])
def test_code_that_is_not_committed_certifies_nothing(
    code: dict[str, Any], result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "birth", lambda: code)
    with pytest.raises(InputError, match="Commit"):
        certificates.certify_all(["mine"], 60.0, print)


def test_a_changed_a_strange_and_a_lost_result_are_named(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "ROOT", tmp_path)
    monkeypatch.setattr(certificates.documents, "stale", dict)
    assert list(certificates.faults()) == []
    (tmp_path / "two.json").write_text("{}")
    (told, unnoted) = certificates.faults()
    assert "two.json belongs to no experiment" in told and "two.json is not as its manifest.json" in unnoted
    (tmp_path / "two.json").unlink()
    result.write_text("{}")
    assert "one.json is not as its manifest.json" in next(certificates.faults())
    result.unlink()
    monkeypatch.setattr(Experiment, "files", lambda _: iter(()))
    assert list(certificates.faults()) == ["manifest.json names one.json, which is not there."]


@pytest.mark.parametrize("python", [None, "python3"])
def test_run_notes_what_the_command_made_and_nothing_else(
    python: str | None, result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made.json"
    before = entries(tmp_path)
    monkeypatch.setattr(Experiment, "files", lambda _: iter(path for path in (result, made) if path.exists()))
    monkeypatch.setattr(__main__, "EXPERIMENTS", {"mine": Experiment("", "tasks.mine --out here", (), ())})
    monkeypatch.setattr(sys, "argv", [])
    asked = ["experiments.tasks.mine", "--out", "here", "--seeds", "3"]

    def called(command: list[str], check: bool) -> Any:
        assert command == ["python3", "-m", *asked]
        made.write_text("{}")
        return subprocess.CompletedProcess(command, 3)

    def here(module: str, run_name: str, alter_sys: bool) -> None:
        assert [module, *sys.argv[1:]] == asked
        made.write_text("{}")
        sys.exit(3)

    monkeypatch.setattr(subprocess, "run", called)
    monkeypatch.setattr(runpy, "run_module", here)
    assert __main__.main(["run", "mine", *(["--python", python] if python else []), "--seeds", "3"]) == 3
    found = entries(tmp_path)
    assert found["one.json"] == before["one.json"]
    assert found["made.json"]["birth"]["command"] == "python -m experiments.tasks.mine --out here --seeds 3"


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


def test_minigrid_is_solved_when_twenty_episodes_are_near_the_best() -> None:
    """Nineteen good ones are too few; a poor one among them counts until it is the twenty-first from the end."""
    returns, lengths = np.array([0.0] + [0.9] * 20), np.full(21, 3)
    assert marks.solved_at(returns, lengths, 1.0) == (21, 63)
    assert marks.solved_at(returns[:20], lengths[:20], 1.0) is None
    assert marks.solved_at(returns[1:20], lengths[1:20], 1.0) is None
    assert marks.solved_at(returns, lengths, 1.001) is None


def test_minigrid_s_own_returns_fall_with_the_steps() -> None:
    found = marks.own_returns(np.array([0.1, 0.0, 1.0]), np.array([50, 100, 100]), 100)
    np.testing.assert_allclose(found, [0.55, 0.0, 0.1])


def test_minigrid_s_results_are_marked_by_their_own_returns() -> None:
    paths = sorted((RESULTS / "minigrid").glob("*-seeds-*.json"))
    assert paths
    for path in paths:
        run = json.loads(path.read_text(encoding="utf-8"))
        for place, (returns, lengths) in enumerate(zip(run["returns"], run["lengths"], strict=True)):
            told = run["solved_episode"][place], run["solved_step"][place]
            found = marks.solved_at(np.array(returns), np.array(lengths), run["best_return"][place])
            assert (found or (None, None)) == told, path.name
    for row in json.loads((paths[0].parent / "peers.json").read_text(encoding="utf-8"))["runs"]:
        found = marks.solved_at(np.array(row["returns"]), np.array(row["lengths"]), row["best_return"])
        assert (found or (None, None)) == (row["solved_episode"], row["solved_step"]), row["algorithm"]


PLAYERS, DEALERS = ([1, 10], [10, 10, 1], [10, 9], [5, 4]), ([10, 1], [7, 7, 7], [10, 8])


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("dealer", DEALERS)
def test_blackjack_pays_as_the_benchmark_counts(
    player: list[int], dealer: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gymnasium's own environment, with hands that are dealt and a player who sticks."""
    env: Any = gymnasium.make("Blackjack-v1").unwrapped
    env.reset(seed=0)
    env.player, env.dealer = player, dealer
    paid = env.step(blackjack.STICK)[1]
    holds, against = (functools.reduce(blackjack.Hand.plus, hand, blackjack.NOTHING) for hand in (player, dealer))
    monkeypatch.setattr(blackjack, "dealer", lambda _: {against.total: 1.0})
    if player == [1, 10]:
        assert paid == (0.0 if dealer == [10, 1] else 1.0)
    else:
        assert paid == blackjack.stick(holds, dealer[0])


def test_a_natural_draws_as_often_as_the_dealer_has_one() -> None:
    lost = {shown: 1.0 - blackjack.stick_on_a_natural(shown) for shown in blackjack.CARDS}
    assert lost == pytest.approx({**dict.fromkeys(range(2, 10), 0.0), 1: 4 / 13, 10: 1 / 13})
    assert blackjack.mean_return(None) == pytest.approx(-0.0431, abs=5e-5)
