"""Runs and checkpoints of an older version: they play on, and they go on as if that version did.

tests/data/older/README.md says how they were made.
"""

import dataclasses
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from uppertail import (
    Categorical,
    Chain,
    Checkpoints,
    Distinct,
    InputError,
    Online,
    PerAction,
    Periodic,
    Settings,
    Thompson,
    Uniform,
    load,
    train,
)
from uppertail.cli import main
from uppertail.cli.train import parse_request
from uppertail.distributions import Gaussian, GaussianMixture
from uppertail.networks import Ensemble
from uppertail.records import older
from uppertail.records.described import describe
from uppertail.training.checkpoints import tensors
from uppertail.training.method import Method

STORED = Path(__file__).parent / "data" / "older"
DEFAULTS: dict[str, Any] = {
    "learning_rate": 5e-4,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
    "batch_size": 32,
    "updates_per_rollout": 2,
    "on_policy": "fresh",
}
"""What that version did if nothing was said."""

PYTHON = Settings(seeds=2, width=4, hidden_layers=1, bias=True, replay_size=64, steps=512, episodes=100_000, **DEFAULTS)
"""The settings of the run in `python`."""


PARTS: dict[str, Any] = {
    "network": PerAction(input_init="glorot", input_gain=1.0),
    "replay": Uniform(),
    "target": Online(),
}
"""What it was made of, before there was a choice."""


@pytest.fixture
def folder(tmp_path):
    """A copy of the runs."""
    return shutil.copytree(STORED, tmp_path / "older")


def on_in_python(folder, settings=PYTHON, **parts: Any):
    lines: list[str] = []
    place = Checkpoints(folder / "python", say=lines.append)
    result = train(Chain(3), Categorical(bins=5), Thompson(), settings, checkpoints=place, **{**PARTS, **parts})
    assert not [line for line in lines if "began elsewhere" not in line]
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "cart"])
def test_an_older_run_plays_on_and_goes_on_as_the_older_version_did(name, folder):
    """A compiled one and one that Python steps, with random features and measured returns."""
    run = folder / name
    assert main(["evaluate", str(run), "--episodes", "2", "--policy", "trained", "--quiet"]) == 0
    played = json.loads((run / "evaluation-trained.json").read_text())
    assert (played["networks"]["env_steps"], len(played["seeds"][0]["returns"])) == (256, 2)
    weights = safetensors.numpy.load_file(run / "networks.safetensors")
    loaded = tensors.to_named(load(run).networks)
    assert weights.keys() == loaded.keys()
    for path, weight in weights.items():
        np.testing.assert_array_equal(loaded[path], weight)

    assert main(["resume", str(run), "--quiet"]) == 0
    assert (run / "episodes.npz").read_bytes() == (folder / f"{name}-episodes.npz").read_bytes()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["interrupted"], summary["env_steps"]) == (False, 512)
    assert [summary[part]["name"] for part in ("network", "replay", "target")] == ["PerAction", "Uniform", "Online"]
    assert (summary["settings"]["width"], summary["network"]["width"]) == (4, 4)


def test_an_older_run_is_watched(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("pygame", reason="Gymnasium draws with pygame: install uppertail[watch]")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert main(["watch", str(folder / "cart"), "--gif", str(tmp_path / "cart.gif")]) == 0
    assert "Episode 1: return" in capsys.readouterr().out
    assert (tmp_path / "cart.gif").stat().st_size > 0


@pytest.mark.slow
def test_an_older_run_of_ones_own_program_goes_on_as_the_older_version_did(folder):
    arrays = on_in_python(folder).record.arrays()
    expected = np.load(folder / "python-episodes.npz")
    assert set(expected) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name])
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # pyright: ignore[reportArgumentType]
    assert content.getvalue() == (folder / "python-episodes.npz").read_bytes()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"replay": Distinct()}, "was made with replay Uniform, not Distinct"),
        ({"target": Periodic(8)}, "was made with target Online, not Periodic"),
        ({"settings": {"adam_epsilon": 1e-5}}, "was made with adam_epsilon 1e-08, not 1e-05"),
        ({"settings": {"adam_betas": (0.9, 0.99)}}, r"was made with adam_betas \[0\.9, 0\.999\], not \[0\.9, 0\.99\]"),
        ({"settings": {"width": 8}}, "was made with width 4, not 8"),
    ],
    ids=str,
)
def test_what_an_older_run_did_not_do_is_refused_in_a_sentence(changes, sentence, folder):
    settings = Settings(**{**vars(PYTHON), **changes.pop("settings", {})})
    with pytest.raises(InputError, match=rf"^No checkpoint .* can be used \(step-000000256.safetensors {sentence}\): "):
        on_in_python(folder, settings, **changes)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("adam_epsilon: 1.0e-05", "adam_epsilon 1e-08, not 1e-05"), ("replay: Distinct", "replay Uniform, not Distinct")],
)
@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_what_an_older_config_is_given_today_is_refused_in_a_sentence(command, line, sentence, folder, capsys):
    config = folder / "chain" / "config.yaml"
    config.write_text(f"{config.read_text()}{line}\n")
    assert main([command, str(folder / "chain"), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert f"was made with {sentence}" in error
    assert error.count("\n") == 1


# The one place that knows


def test_what_was_not_asked_takes_what_runs_did_before(monkeypatch):
    """By `BEFORE` where it says something, which is not today's default here; else by the default."""
    monkeypatch.setitem(older.BEFORE, "settings", {"adam_epsilon": 0.5})
    method = Method()
    asked = {"settings": {"width": 3, "hidden_layers": 1, "bias": True, "discount": 0.25}, "replay": {"name": "Mine"}}
    whole = older.complete(asked, {**method.parts, "settings": Settings()})
    assert (whole["settings"]["adam_epsilon"], whole["settings"]["adam_betas"]) == (
        0.5,
        list(Settings().adam_betas),
    )
    assert (whole["settings"]["discount"], whole["settings"]["width"]) == (0.25, 3)
    assert {name: whole["network"][name] for name in ("name", "width", "hidden_layers", "bias")} == {
        "name": "PerAction",
        "width": 3,
        "hidden_layers": 1,
        "bias": True,
    }
    assert (whole["target"], whole["replay"]) == ({"name": "Online"}, {"name": "Mine"})
    assert asked["settings"] == {"width": 3, "hidden_layers": 1, "bias": True, "discount": 0.25}


@dataclasses.dataclass(frozen=True)
class Later:
    """A part that has more settings today."""

    needed: int
    pair: tuple[float, ...] = (1.0, math.inf)
    each: dict[str, int] = dataclasses.field(default_factory=lambda: {"a": 1})
    hidden: int = dataclasses.field(default=3, repr=False)


def test_defaults_are_completed_as_files_hold_them():
    whole = older.complete({"replay": {"name": "Later"}}, {"replay": Later(2)})
    assert whole["replay"] == {"name": "Later", "needed": None, "pair": [1.0, "inf"], "each": {"a": 1}}
    assert whole["replay"] == {**describe(Later(2)), "needed": None}


def test_a_config_of_ones_own_takes_todays_defaults(monkeypatch):
    """Only a file that a run wrote has all of the first options."""
    monkeypatch.setitem(older.BEFORE, "settings", {"adam_epsilon": 0.5})
    written = dict.fromkeys(older.FIRST_OPTIONS)
    assert older.complete_options(written)["adam_epsilon"] == 0.5
    assert older.complete_options({**written, "adam_epsilon": 0.1})["adam_epsilon"] == 0.1
    assert older.complete_options({"width": 8}) == {"width": 8}


def test_an_older_config_is_completed_before_it_is_read(monkeypatch):
    """What it says itself holds, and what is said beside it."""
    monkeypatch.setitem(older.BEFORE, "settings", {"adam_epsilon": 0.5, "adam_betas": [0.5, 0.5]})
    monkeypatch.setitem(older.BEFORE, "network", {"name": "PerAction", "activation": "relu"})
    config = str(STORED / "chain" / "config.yaml")
    built = parse_request(["--config", config, "--adam_betas", "[0.5, 0.75]"]).built
    assert (built.adam_epsilon, built.adam_betas, built.width) == (0.5, (0.5, 0.75), 4)
    assert (built.network.activation, built.network.normalization) == ("relu", "none")
    assert parse_request([]).built.adam_epsilon == Settings().adam_epsilon


def test_a_mixture_of_an_older_run_keeps_the_distance_that_it_was_learned_by():
    """There was no choice then; a file that names its distance, or one of one's own, is taken as it is."""
    mixture = {"class_path": "uppertail.GaussianMixture", "init_args": {"components": 3}}
    written = {**dict.fromkeys(older.FIRST_OPTIONS), "distribution": mixture}
    assert older.complete_options(written)["distribution"]["init_args"] == {"components": 3, "distance": "l2"}
    assert older.complete_options({"distribution": mixture})["distribution"] == mixture
    asked = {"distribution": {"name": "GaussianMixture", "components": 3}}
    whole = older.complete(asked, {"distribution": GaussianMixture()})
    assert (whole["distribution"]["distance"], whole["distribution"]["components"]) == ("l2", 3)
    assert (
        older.complete({"distribution": {"name": "Gaussian"}}, {"distribution": Gaussian()})["distribution"]["distance"]
        == Gaussian().distance
    )


def test_an_ensemble_of_an_older_run_keeps_priors_that_are_networks():
    """A class of the same name that is somebody's own is taken as it is."""
    ensemble = {"class_path": "uppertail.Ensemble", "init_args": {"members": 3}}
    own = {"class_path": "my_package.Ensemble", "init_args": {"members": 3}}
    for part, expected in ((ensemble, {"members": 3, "prior": "network"}), (own, {"members": 3})):
        written = {**dict.fromkeys(older.FIRST_OPTIONS), "network": part}
        assert older.complete_options(written)["network"]["init_args"] == expected
    asked = {"network": {"name": "Ensemble", "members": 3}}
    assert older.complete(asked, {"network": Ensemble()})["network"]["prior"] == "network"
