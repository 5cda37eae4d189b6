"""A changed environment function is not the one that a run's checkpoints were made with; the same one is."""

import functools
import importlib.util
import inspect
import linecache
import os
import subprocess
import sys
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from uppertail import Chain, Checkpoints, FromGymnasium, Gaussian, Settings, train
from uppertail.environments.gymnasium.from_gymnasium import fingerprint
from uppertail.errors import InputError

PROGRAM = """
import gymnasium
SIZE = 3
class Own(gymnasium.Env):
    def __init__(self, size): self.size = size
    def step(self, action): return self.other(action) + 1
    def other(self, action): return action in {"x", "y", "z"}
def paid(size): return 7 * size
def make(size=2): return [Own(paid(size + SIZE)) for _ in range(1)][0]
"""

CHANGES = {
    "an operator": ("+ SIZE", "- SIZE"),
    "a constant": ("range(1)", "range(2)"),
    "a global": ("SIZE = 3", "SIZE = 4"),
    "a default": ("size=2", "size=1"),
    "a function that it calls": ("7 * size", "8 * size"),
    "the environment's own code": ("+ 1\n", "+ 2\n"),
    "a method that another calls": ('"z"}', '"w"}'),
}


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], Any]:
    """The function that a file with this program defines."""

    def load(program: str) -> Any:
        path = tmp_path / f"own_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(program)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module.make

    return load


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_function_has_another_fingerprint(change: str, made: Callable[[str], Any]) -> None:
    before, after = CHANGES[change]
    assert PROGRAM.count(before) == 1
    assert fingerprint(made(PROGRAM)) != fingerprint(made(PROGRAM.replace(before, after)))
    assert fingerprint(made(PROGRAM)) == fingerprint(made(f"# a comment\n\n{PROGRAM}"))


def test_without_source_bytecode_counts() -> None:
    """As where a program is typed in."""
    first, again, other = ({}, {}, {})
    for names, program in ((first, PROGRAM), (again, PROGRAM), (other, PROGRAM.replace("+ SIZE", "- SIZE"))):
        exec(program, names)
    assert fingerprint(first["make"]) == fingerprint(again["make"]) != fingerprint(other["make"])


def test_where_source_cannot_be_cut_out_bytecode_counts() -> None:
    """As of a lambda on a line that begins a text of several lines."""
    linecache.cache["cut"] = (14, None, ['made = """lambda'], "cut")
    first, again, other = ({}, {}, {})
    for names, program in ((first, "lambda: 1"), (again, "lambda: 1"), (other, "lambda: 2")):
        exec(compile(f"made = {program}", "cut", "exec"), names)
    with pytest.raises(tokenize.TokenError):
        inspect.getsource(first["made"])
    assert fingerprint(first["made"]) == fingerprint(again["made"]) != fingerprint(other["made"])


def test_arguments_count_wherever_they_are_bound() -> None:
    def of(size: int) -> Any:
        return lambda: Ends(size)

    makes = [of(1), of(2), functools.partial(Ends, 1), functools.partial(Ends, 2), Ends(1), Ends(2), Ends]
    assert len({fingerprint(make) for make in makes}) == len(makes)
    assert fingerprint(of(1)) == fingerprint(of(1))


def test_what_an_environment_has_come_to_does_not_count() -> None:
    env = gymnasium.make("Taxi-v4")
    before = fingerprint(env)
    env.reset(seed=3)
    env.step(0)
    assert fingerprint(env) == before != fingerprint(gymnasium.make("Taxi-v4", is_rainy=True))


@pytest.mark.slow
def test_every_process_finds_the_same() -> None:
    code = (
        f"from uppertail.environments.gymnasium.from_gymnasium import fingerprint\n{PROGRAM}\nprint(fingerprint(make))"
    )
    prints = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert prints[0] == prints[1]


class Ends(gymnasium.Env[Any, Any]):
    """Begins at 0 whatever it is given, and pays what it is given."""

    observation_space, action_space = spaces.Discrete(2), spaces.Discrete(2)

    def __init__(self, pay: float) -> None:
        self.pay = pay

    def reset(self, **kwargs: Any) -> Any:
        super().reset(seed=kwargs.get("seed"))
        return 0, {}

    def step(self, action: Any) -> Any:
        return 1, float(self.pay), True, False, {}


@pytest.mark.slow
def test_checkpoints_of_another_function_are_not_taken_for_its_own(tmp_path: Any) -> None:
    settings = Settings(seeds=1, episodes=3, rollout_steps=4, batch_size=4, replay_size=8)

    def run(pay: float) -> float:
        result = train(
            FromGymnasium(lambda: Ends(pay), returns=(0, 9)),
            Gaussian(),
            settings=settings,
            checkpoints=Checkpoints(tmp_path),
        )
        return result.record.episodes[0].returns.mean()

    assert run(1.0) == 1.0
    assert run(1.0) == 1.0  # from the checkpoint
    with pytest.raises(InputError, match=r"was made with code [0-9a-f]{12}, not [0-9a-f]{12}"):
        run(2.0)


def test_other_builders_are_described_as_before() -> None:
    assert not hasattr(Chain(), "code")
    assert np.all([len(FromGymnasium(Ends(1)).code) == 12])
