"""In a notebook one line shows that a run compiles, and then how far it is."""

import sys
import types
from typing import Any

import pytest

import uppertail as ut
from uppertail.training.train import updating_line


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook's line has held; packages of notebooks are stood in for."""
    held: list[str] = []

    def display(data: dict[str, str], raw: bool, display_id: bool | None = None) -> Any:
        assert raw and (display_id or held)  # no second output
        held.append(data["text/plain"])
        return types.SimpleNamespace(update=display)

    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=object))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    return held


@pytest.mark.slow
def test_one_line_shows_compiling_and_then_progress(lines: list[str]) -> None:
    def stop(progress: ut.Progress) -> ut.Stop:  # the caller's own callback still has its turn
        return ut.Stop(f"after {progress.episodes[0]} episodes")

    result = ut.train(ut.Toy(), settings=ut.Settings(seeds=1, episodes=10**6), on_chunk=stop)
    assert lines[0] == "compiling"
    assert lines[-1].startswith("  0%  1/1 solved, 100% success, ")
    assert lines[-1].split()[5] == str(result.record.stopped).split()[1]


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with updating_line() as show:
        assert show(None) is None  # pyright: ignore[reportArgumentType]
    assert capsys.readouterr() == ("", "")
