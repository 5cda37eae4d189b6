"""What is asked for is taken as it is, or refused in a sentence: names of folders, truth values, states."""

import dataclasses
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from uppertail import Categorical, Chain, FrozenLake, GaussianMixture, Settings, records
from uppertail.cli.commands import COMMANDS
from uppertail.cli.train import parse_request
from uppertail.encodings import OneHot, Scalar, Thermometer, Vector, require_state
from uppertail.errors import InputError

FOLDERS = {
    "train": "out", "exact": "out", "watch": "folder", "evaluate": "folder", "resume": "folder",
}  # fmt: skip


@pytest.mark.parametrize("command", FOLDERS)
@pytest.mark.parametrize("name", ["#1", "null", "~", "1e3", "yes", "[a]", "a: b"])
def test_the_name_of_a_folder_is_taken_as_it_is(command: str, name: str) -> None:
    """Read as YAML, '#1' is a comment, and so nothing."""
    option = FOLDERS[command]
    parsed = COMMANDS[command].parse([f"--{option}={name}"] if option == "out" else [name])
    assert str(parsed[option]) == name


def test_so_is_that_of_a_file() -> None:
    assert COMMANDS["watch"].parse(["run", "--gif=#1"]).gif == "#1"


def test_those_who_start_at_once_get_different_folders(tmp_path: Path) -> None:
    claimed, begin = [], threading.Barrier(8)

    def claim() -> None:
        begin.wait()
        claimed.extend(records.claim_unused(tmp_path / "runs", "name") for _ in range(5))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {folder.name for folder in claimed} == {"name", *(f"name-{number}" for number in range(2, 41))}
    assert all(folder.is_dir() and not list(folder.iterdir()) for folder in claimed)


def test_a_run_without_out_takes_the_next_name_when_another_was_faster(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    request = parse_request(["--env.length", "3"])
    planned = Path("runs", request.name)
    planned.mkdir(parents=True)
    assert request.claim() == planned.with_name(f"{planned.name}-2")


PARTS = [
    (part, field.name)
    for part in (Settings, Chain, FrozenLake, Categorical, GaussianMixture)
    for field in dataclasses.fields(part)
    if field.type is bool
]


def test_there_are_truth_values_to_try() -> None:
    assert len(PARTS) == 2


@pytest.mark.parametrize(("part", "name"), PARTS)
def test_a_truth_value_is_one(part: Any, name: str) -> None:
    """Outside of tests nothing checks the types of arguments; here it is gone around."""
    built = part()
    for value in ("no", "False", 0, 1, None, 0.0):
        object.__setattr__(built, name, value)
        with pytest.raises(InputError, match=f"^{name} is {value!r}: use true or false"):
            built.__post_init__()
    for value in (True, np.True_):
        object.__setattr__(built, name, value)
        built.__post_init__()
        assert getattr(built, name) is True


@pytest.mark.parametrize("encoding", [OneHot(5), Scalar(5), Thermometer(5)])
def test_a_state_that_there_is_not_is_refused_where_it_is_known(encoding: Any) -> None:
    for state in (5, 99, -1, np.int32(5), np.array([0, 1])):
        with pytest.raises(InputError, match="from 0 to 4"):
            require_state(encoding, state)
    for state in (0, 4, np.int64(4), jax.numpy.array(4)):
        require_state(encoding, state)
    assert jax.jit(lambda state: (require_state(encoding, state), state)[1])(99) == 99
    require_state(Vector((0.0,), (1.0,)), np.array([99.0]))


@pytest.mark.parametrize(
    ("encoding", "good", "wrong", "sentence"),
    [
        (OneHot(5), 4, 99, "observation is 99"),
        (Vector((0.0,) * 4, (1.0,) * 4), jax.numpy.zeros(4), 3, r"shape \(\): give one of shape \(4,\)"),
    ],
)
def test_an_agent_refuses_it(encoding: Any, good: Any, wrong: Any, sentence: str) -> None:
    from uppertail import Gaussian
    from uppertail.networks import PerAction
    from uppertail.training.method import Method, resolved

    method, settings = resolved(Method(Gaussian(scale=1.0), network=PerAction(4, 1)), Settings(), encoding)
    learner = method.learns(method.encoding(encoding), settings)
    agent, network = learner.agent, learner.init(jax.random.key(0), jax.numpy.asarray(good)[None], 2).network
    assert agent.returns(network, good).mean.shape == (2,)
    with pytest.raises(InputError, match=sentence):
        agent.returns(network, wrong)
