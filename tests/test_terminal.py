"""What the terminal shows of a run: never silence, headings that explain themselves, and what comes next."""

import io
import re
import signal
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from rich.console import Console
from rich.progress import Progress

from uppertail.cli import main, print_table
from uppertail.cli.train import Status
from uppertail.training.process import StopRequest
from worlds import Cell


def test_the_bar_says_what_the_run_does() -> None:
    now = [100.0]
    bar = Progress(Status(), console=Console(file=io.StringIO()), get_time=lambda: now[0])
    task = bar.add_task("", total=1.0, status="")

    def shown() -> str:
        return Status().render(bar.tasks[0]).plain

    assert shown() == "compiling (0 s; cached next time)"
    now[0] += 12
    assert shown() == "compiling (12 s; cached next time)"
    bar.update(task, completed=0.5, status="8 episodes")
    assert shown() == "8 episodes"
    bar.update(task, completed=1.0)
    now[0] += 3
    assert shown() == "playing greedy episodes (3 s)"
    asked = StopRequest()
    asked.ask(signal.SIGINT)
    assert Status(asked).render(bar.tasks[0]).plain == "stopping (Ctrl-C again: at once)"


def test_a_title_is_not_folded_to_the_width_of_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"a": "1"}], "my_package:MyEnvironment-v0, seeds: [2]")
    assert capsys.readouterr().out.splitlines()[0] == "my_package:MyEnvironment-v0, seeds: [2]"


LINES = {
    20: ["one", "solved after: never", "text: a [long] one", "that folds", "", "two", "solved after: 7", "text: b"],
    28: ["one", "solved after: never", "text: a [long] one that", "folds", "", "two", "solved after: 7", "text: b"],
    29: [
        "     solved",
        "      after  text",
        "─" * 29,
        "             a [long] one",
        "one   never  that folds",
        "two       7  b",
    ],
}
"""What is shown of a table in so many columns; from 29 on, it fits."""


@pytest.mark.parametrize("width", LINES)
def test_a_table_that_does_not_fit_is_lines(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table = ("one", "never", "a [long] one that folds"), ("two", "7", "b")
    print_table([dict(zip(("", "solved\nafter", "text"), row, strict=True)) for row in table], texts=("text",))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == LINES[width]


def test_headings_have_two_words_and_a_run_says_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--env", "Toy", "--seeds", "1", "--episodes", "64", "--out", "run"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:3] == [
        "seeds first solved stays greedy greedy steps",
        "method solved success after solved solves return per s",
    ]
    assert lines[-2:] == ["Results in run", "Next: uppertail report run"]


class Stalls(Cell):
    """Its motor stalls after more steps than are taken before a run."""

    taken = 0

    def step(self, action: Any) -> Any:
        self.taken += 1
        if self.taken == 2_500:
            raise RuntimeError("the motor stalled")
        return super().step(action)


gymnasium.register("Testing/Stalls-v0", lambda **_: Stalls())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "goes_on"), [(["--checkpoint_every", "512"], "; `uppertail resume run` continues the run"), ([], "")]
)
def test_a_run_that_an_environment_ends_says_where_it_is(
    every: list[str], goes_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--env", "Gym", "--env.id", "Testing/Stalls-v0", "--env.returns", "[0, 8]", "--env.features", "hashed"]
    limits = ["--seeds", "1", "--steps", "4096", *every]
    said = refused(["train", *asked, *limits, "--quiet", "--out", "run"])
    where = f"What was learned until then is in run{goes_on}."
    assert re.search(r"raised RuntimeError: the motor stalled \(test_.* \d+\)\. ", said) and said.endswith(f"{where}\n")
    assert Path("run", "networks.safetensors").is_file()
