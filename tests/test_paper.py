"""The paper's figures end to end at tiny sizes: what is written, what is kept, what is refused."""

import dataclasses
import io
import json
import signal
from typing import Any

import jax
import numpy as np
import pytest

from experiments.certificates import differences
from experiments.paper import (
    FIGURES,
    cells,
    chain,
    chain_distributions,
    command,
    frozen_lake,
    headline,
    moment_cell,
    policy_evaluation,
    toy,
    training_cell,
    uncertainties,
)
from experiments.paper.cells import Cell, CellResult, UnusableCellError
from uppertail.distributions import Gaussian
from uppertail.environments import Chain
from uppertail.errors import InputError
from uppertail.policies import UCB
from uppertail.records import locked
from uppertail.training.process import interruptible
from uppertail.training.settings import Settings
from uppertail.training.train import train

TINY: dict[str, Any] = {"batch_size": 16, "replay_size": 999}


@pytest.fixture
def small(monkeypatch):
    settings = Settings(seeds=2, episodes=20, **TINY)
    for module, labels in (
        (chain, ["Gaussian, UCB", "PointMass, epsilon-greedy"]),
        (frozen_lake, ["Categorical, Thompson"]),
    ):
        monkeypatch.setattr(module, "QUICK_SETTINGS", settings)
        monkeypatch.setattr(module, "METHODS", {label: module.METHODS[label] for label in labels})
    monkeypatch.setattr(chain, "QUICK_LENGTHS", (3,))
    monkeypatch.setattr(chain, "OURS", {})
    monkeypatch.setattr(toy, "QUICK_SETTINGS", settings)
    monkeypatch.setattr(toy, "PARTWAY", 8)
    monkeypatch.setattr(toy, "CONVERGED", 16)
    monkeypatch.setattr(chain_distributions, "SETTINGS", Settings(seeds=1, **TINY))
    monkeypatch.setattr(chain_distributions, "MOMENTS", (3,))
    monkeypatch.setattr(policy_evaluation, "SETTINGS", Settings(seeds=2, episodes=10**6, **TINY))
    monkeypatch.setattr(policy_evaluation, "ENVIRONMENTS", {"Toy": (policy_evaluation.ENVIRONMENTS["Toy"][0], 320)})
    monkeypatch.setattr(policy_evaluation, "DRAWS", 100)
    label = "Categorical, sampled loss"
    monkeypatch.setattr(policy_evaluation, "QUICK_FAMILIES", (label,))
    toy_alone = {"Toy": (uncertainties.ENVIRONMENTS["Toy"][0], 640)}
    monkeypatch.setattr(uncertainties, "ENVIRONMENTS", toy_alone)
    monkeypatch.setattr(uncertainties, "NETWORK", dataclasses.replace(uncertainties.NETWORK, members=2, width=8))
    monkeypatch.setattr(uncertainties, "DRAWS", 100)


def test_fig_2_has_what_the_defaults_do_beside_the_papers_form():
    parts = {cell.name: cell.settings["parts"] for cell in chain.cells(quick=True)}
    assert parts["10-defaults-Gaussian"] == {}
    assert parts["10-Gaussian"]["replay"] == {"name": "Uniform"}
    assert parts["10-Gaussian"]["target"] == {"name": "Online"}


@pytest.fixture(scope="module")
def trained():
    """What one training run gave, for tests of what is done with it."""
    return train(Chain(length=3), Gaussian(), UCB(), Settings(seeds=2, episodes=20, **TINY))


@pytest.fixture
def calls(small, trained, monkeypatch):
    """Training that costs nothing, and what it was called with."""
    calls = []

    def train_at_once(*arguments, **parts):
        calls.append(arguments)
        return trained

    monkeypatch.setattr(training_cell, "train", train_at_once)
    return calls


def figures(name, folder, *options):
    return command.main([name, "--quick", "--out", str(folder), *options])


@pytest.mark.slow
def test_all_figures_are_made_and_a_second_call_repeats_nothing(small, tmp_path, capsys, monkeypatch):
    assert figures("all", tmp_path / "all") == 0
    for name in FIGURES:
        folder = tmp_path / "all" / name
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["figure"], summary["quick"]) == (name, True)
        assert name != "frozen-lake" or summary["fewest_steps"] == 14  # seven to the right, seven down
        assert (folder / f"{name}.svg").stat().st_size > 1000
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    written = {path: path.read_bytes() for path in (tmp_path / "all").rglob("*") if path.is_file()}
    capsys.readouterr()
    for module, name in (
        (moment_cell, "snapshot"),
        (training_cell, "train"),
        (uncertainties, "stages"),
    ):
        monkeypatch.setattr(module, name, _must_not_be_called)
    assert figures("all", tmp_path / "all") == 0
    assert {path: path.read_bytes() for path in written} == written


def test_a_damaged_cell_is_named_and_only_it_is_computed_again(calls, tmp_path, capsys):
    assert figures("chain", tmp_path / "chain") == 0
    summary = (tmp_path / "chain" / "summary.json").read_text()
    cell = tmp_path / "chain" / "cells" / "3-Gaussian.npz"
    cell.write_bytes(cell.read_bytes()[:-30])
    capsys.readouterr()
    assert figures("chain", tmp_path / "chain") == 0
    said = capsys.readouterr().out
    assert "3-Gaussian: its file is damaged, so it is computed again." in said
    assert "3-PointMass: kept from an earlier call." in said
    assert len(calls) == 2 + 1
    assert (tmp_path / "chain" / "summary.json").read_text() == summary


@pytest.mark.parametrize("damage", ["cut", "empty", "array", "document"])
def test_every_damage_to_a_cell_is_noticed(damage, tmp_path):
    cell = Cell("one", {}, _must_not_be_called)
    cells.write(tmp_path, cell, CellResult({"value": 1}, {"x": np.arange(1000.0)}))
    path = tmp_path / "one.npz"
    whole = path.read_bytes()
    others: dict[str, bytes] = {}
    for name, content in (("array", {"x": np.zeros(3)}), ("document", {"document": np.array("{}")})):
        file = io.BytesIO()
        np.savez(file, **content)  # pyright: ignore[reportArgumentType]
        others[name] = file.getvalue()
    path.write_bytes({"cut": whole[:-30], "empty": b"", **others}[damage])
    with pytest.raises(UnusableCellError, match="damaged"):
        cells.read(tmp_path, cell)


def test_no_flipped_bit_changes_what_a_cell_says(tmp_path):
    cell = Cell("one", {}, _must_not_be_called)
    cells.write(tmp_path, cell, CellResult({"value": 1}, {"x": np.arange(9.0)}))
    path = tmp_path / "one.npz"
    whole, noticed = path.read_bytes(), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            kept = cells.read(tmp_path, cell)
        except UnusableCellError:
            noticed += 1
        else:  # a date, say
            assert kept is not None
            assert kept.document == {"value": 1}
            np.testing.assert_array_equal(kept.arrays["x"], np.arange(9.0))
    assert noticed > len(whole) / 2


def test_a_cell_of_other_settings_is_computed_again(calls, tmp_path, capsys, monkeypatch):
    assert figures("chain", tmp_path / "chain", "--quiet") == 0
    monkeypatch.setattr(chain, "QUICK_SETTINGS", Settings(seeds=2, episodes=21, **TINY))
    assert figures("chain", tmp_path / "chain") == 0
    said = capsys.readouterr().out
    assert said.count("it was computed with other settings, so it is computed again") == 2
    assert len(calls) == 2 + 2


def test_ctrl_c_keeps_the_finished_cells(calls, trained, tmp_path, capsys, monkeypatch):
    def interrupted_the_second_time(*arguments, **parts):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return trained

    monkeypatch.setattr(training_cell, "train", interrupted_the_second_time)
    with pytest.raises(KeyboardInterrupt):
        figures("chain", tmp_path / "chain")
    assert f"--out {tmp_path / 'chain'}" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "chain" / "cells").glob("*.npz")] == ["3-Gaussian.npz"]
    assert not (tmp_path / "chain" / "summary.json").exists()
    assert figures("chain", tmp_path / "chain") == 0
    assert len(calls) == 2 + 1


def test_a_training_run_that_was_stopped_is_no_finished_cell(small, trained, tmp_path, monkeypatch):
    stopped = dataclasses.replace(trained, record=dataclasses.replace(trained.record, interrupted=True))
    monkeypatch.setattr(training_cell, "train", lambda *arguments, **parts: stopped)
    with pytest.raises(KeyboardInterrupt):
        figures("chain", tmp_path / "chain", "--quiet")
    assert not (tmp_path / "chain" / "cells").exists()


def test_ctrl_c_when_a_cell_is_nearly_done_keeps_it_and_stops(calls, trained, tmp_path, monkeypatch):
    def trained_and_interrupted(*arguments, **parts):
        with interruptible():  # as training does, which then finds nothing left to stop
            signal.raise_signal(signal.SIGINT)
        calls.append(arguments)
        return trained

    monkeypatch.setattr(training_cell, "train", trained_and_interrupted)
    with pytest.raises(KeyboardInterrupt):
        figures("chain", tmp_path / "chain", "--quiet")
    assert [path.name for path in (tmp_path / "chain" / "cells").glob("*.npz")] == ["3-Gaussian.npz"]
    assert len(calls) == 1


def test_all_interrupted_goes_on_with_the_command_that_it_names(small, tmp_path, capsys, monkeypatch):
    def interrupted(*arguments, **parts):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(moment_cell, "snapshot", interrupted)
        with pytest.raises(KeyboardInterrupt):
            figures("all", tmp_path / "all")
    assert f"--out {tmp_path / 'all'} goes on" in capsys.readouterr().out


def test_the_numbers_of_a_training_run(trained):
    episodes = np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, np.nan]])
    document = {
        "solved_episode": [3, None],
        "first_success_episode": [2, None],
        "first_success_over_floor": None,
        "final_success_rate": [0.9, 0.5],
        "final_greedy_return": [1.0, 0.0],
        "env_steps": 12,
        "wall_seconds": 1.6,
        "hardware": {},
    }
    arrays = {"return": episodes, "length": episodes * 0 + 2, "step": np.cumsum(episodes * 0 + 2, axis=1)}
    row = training_cell.numbers(CellResult(document, arrays))
    assert (row["solved"], row["kept"], row["seeds"]) == (1, 1, 2)
    assert row["mean_return"] == [0.375, 0.0, 0.75]
    assert row["final_success_rate"] == [0.7, 0.5, 0.9]
    assert row["greedy_return"] == [0.5, 0.0, 1.0]
    assert row["solved_share"] == [
        0.5,
        0.0945,
        0.9055,
    ]  # Wilson: (p + z^2/2n +- z sqrt(p q / n + z^2/4n^2)) / (1 + z^2/n)
    assert training_cell.training_row({"method": "A", **row})["solved"] == "1/2"


def test_the_optimal_path_of_the_toy_is_the_product_of_its_choices():
    mdp = toy.ENVIRONMENT.build(jax.random.key(0))
    chosen = np.array([[0.3, 0.7], [0.2, 0.8], [0.5, 0.5]])
    assert toy._along_the_optimal_path(mdp, toy._optimal_values(mdp), chosen) == pytest.approx(0.3 * 0.2)


def test_an_unknown_figure_is_refused_with_the_names_of_all(capsys):
    with pytest.raises(SystemExit):
        command.main(["no-such-figure"])
    error = capsys.readouterr().err
    assert all(name in error for name in ("no-such-figure", *FIGURES, "all"))


def refused(*arguments):
    with pytest.raises(InputError) as error:
        command.main([str(each) for each in arguments])
    return str(error.value)


def test_another_figures_folder_is_refused_and_left_alone(tmp_path):
    folder = tmp_path / "figure"
    assert command.main(["chain-domain", "--out", str(folder), "--quiet"]) == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for request in (["toy"], ["chain-domain", "--quick"], ["all"]):
        error = refused(*request, "--out", folder)
        assert 'holds {"figure": "chain-domain", "quick": false}, not {' in error
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_in_use_is_refused(tmp_path):
    folder = tmp_path / "figure"
    assert command.main(["chain-domain", "--out", str(folder), "--quiet"]) == 0
    with locked(folder):
        assert "in use by another process" in refused("chain-domain", "--out", folder)


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("a file")
    for name in ("mine", "file"):
        assert "holds something else" in refused("toy", "--out", tmp_path / name)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    (tmp_path / "marked").mkdir()
    (tmp_path / "marked" / "figure.json").write_bytes(b"{\xff")
    assert "holds {\N{REPLACEMENT CHARACTER}, not" in refused("toy", "--out", tmp_path / "marked")


def test_a_cell_comes_back_as_it_was_written(tmp_path):
    cell = Cell("one", {"pair": (1, 2)}, _must_not_be_called)
    assert cells.read(tmp_path, cell) is None
    cells.write(tmp_path, cell, CellResult({"value": 0.1, "none": None}, {"x": np.arange(3.0)}))
    kept = cells.read(tmp_path, cell)
    assert kept is not None
    assert kept.document == {"value": 0.1, "none": None}
    np.testing.assert_array_equal(kept.arrays["x"], np.arange(3.0))
    with pytest.raises(UnusableCellError, match="other settings"):
        cells.read(tmp_path, Cell("one", {"pair": (1, 3)}, _must_not_be_called))


def _must_not_be_called(*arguments, **settings):
    raise AssertionError("This was to be kept.")


@pytest.mark.slow
def test_the_headline_is_runs_with_one_table_one_picture_and_a_report(tmp_path, capsys):
    methods = {name: headline.METHODS[name] for name in ("Gaussian", "EpsilonGreedy")}
    run = "--env Chain --env.length 4 --seeds 2 --episodes 40 --network.width 8 --record distributions"
    assert headline.main(tmp_path / "h", methods, run.split()) == 0
    printed = capsys.readouterr().out
    assert "Gaussian, UCB" in printed and "EpsilonGreedy" in printed and "/2" in printed
    assert (tmp_path / "h" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "h" / "report.html").exists()
    for name in methods:
        assert json.loads((tmp_path / "h" / "cells" / name / "summary.json").read_text())["settings"]["seeds"] == 2
    with pytest.raises(InputError, match="exists"):
        headline.main(tmp_path / "h", methods, run.split())


@pytest.mark.slow
def test_the_first_seed_of_a_cell_is_made_again(small, tmp_path, monkeypatch):
    assert figures("chain", tmp_path / "chain", "--quiet") == 0
    path = tmp_path / "chain" / "cells" / "3-Gaussian.npz"
    stored = cells.stored(path)
    monkeypatch.setattr(chain, "LENGTHS", (3,))
    monkeypatch.setattr(chain, "SETTINGS", chain.QUICK_SETTINGS)
    again = command.again(path.stem, stored)
    assert again is not None and len(again["returns"]) == 1 and len(stored["returns"]) == 2
    assert differences(stored, again) == []
    stored["lengths"][0][-1] += 1
    assert differences(stored, again) == ["lengths"]
    assert command.again("no such cell", stored) is None
