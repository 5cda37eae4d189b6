"""What was computed is kept, whatever fails after it: pictures, full outputs, links to folders."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from experiments.paper.drawing.curve_panels import curve_panels
from uppertail import records
from uppertail.analysis import figures
from uppertail.cli import main, picture
from uppertail.errors import InputError
from uppertail.exact.discrete import ExactReturn
from uppertail.records import Episodes

TINY = ["--env.length", "2", "--seeds", "1", "--episodes", "4", "--network.width", "4", "--quiet"]
RESULTS = {"config.yaml", "log.jsonl", "episodes.npz", "summary.json", "networks.safetensors", "checkpoints"}
SEED = Episodes(np.array([0.0, 1.0], np.float32), np.array([1, 1]), np.array([1, 2]))
HELP = [sys.executable, "-m", "uppertail", "--help"]
RETURN = {(0, 0): ExactReturn(np.array([1.0]), np.array([1.0]))}


pytestmark = pytest.mark.usefixtures("own_folder")


def fails(*_: Any, **__: Any) -> None:
    raise RuntimeError("no ink.")


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


# Pictures


@pytest.mark.slow
def test_a_picture_that_fails_is_a_line_after_the_results(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(figures.Figure, "savefig", fails)
    assert main(["train", *TINY, "--out", "run"]) == 0
    assert {path.name for path in Path("run").iterdir()} == RESULTS
    assert capsys.readouterr().err == "uppertail: The picture curve.png cannot be drawn (RuntimeError: no ink).\n"


def test_so_is_one_for_which_matplotlib_cannot_be_imported(capsys: Any) -> None:
    with picture(Path("a/b.png")):
        raise ImportError("No module named 'matplotlib'")
    assert "b.png cannot be drawn (ImportError: No module named 'matplotlib')." in capsys.readouterr().err
    with pytest.raises(OSError, match="room"), picture(Path("b.png")):
        raise OSError("no room")


def test_an_exact_result_is_printed_before_it_is_drawn(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(figures.Figure, "savefig", fails)
    assert main(["exact", "--env", "Toy", "--discount", "1"]) == 0
    captured = capsys.readouterr()
    assert "enumeration" in captured.out and "Figure in" not in captured.out
    assert captured.err.endswith("cannot be drawn (RuntimeError: no ink).\n")


def test_so_it_is_where_the_picture_is_too_large_a_file(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(figures, "write_bytes", full)
    assert main(["exact", "--env", "Toy", "--discount", "1", "--out", "e", "--json"]) == 2
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["returns"]) == 6
    assert captured.err == "uppertail: The output e cannot be written (File too large): choose another --out.\n"


@pytest.mark.parametrize(
    "draw",
    [
        lambda path: figures.learning_curves(path, "Title", {"A": [SEED]}),
        lambda path: figures.return_panels(path, "Title", RETURN),
        lambda path: curve_panels(path.with_suffix(""), "Title", {"a": {"A": [SEED]}}),
    ],
)
def test_a_matplotlibrc_changes_no_picture(draw: Any) -> None:
    draw(Path("a.png"))
    mine: dict[Any, Any] = {
        "text.usetex": True,
        "font.size": 30.0,
        "axes.facecolor": "red",
        "figure.dpi": 5.0,
        "savefig.bbox": "tight",
    }
    with matplotlib.rc_context(mine):
        draw(Path("b.png"))
        assert matplotlib.rcParams["font.size"] == 30.0
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()


def program(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_backend_that_cannot_be_imported_does_not_matter() -> None:
    Path("matplotlibrc").write_text("backend: nothing\ntext.usetex: true\n")
    draws = (
        "import os, numpy as np; from pathlib import Path; from uppertail.analysis.figures import learning_curves;"
        "from uppertail.records import Episodes;"
        "two = np.ones(2, int); learning_curves(Path('a.png'), 'A', {'B': [Episodes(two + 0.5, two, two)]});"
        "assert os.environ['MPLBACKEND']"
    )
    done = program(draws, MPLBACKEND="module://matplotlib_inline.no_such_backend")
    assert done.returncode == 0, done.stderr
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


# Standard output


class Full(io.StringIO):
    def write(self, text: str) -> int:
        full()
        return len(text)


def test_a_full_standard_output_ends_nothing(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["exact", "--env", "Toy", "--discount", "1", "--out", "e"]) == 2
    assert Path("e", "exact.png").read_bytes().startswith(b"\x89PNG")
    err = capsys.readouterr().err
    assert err.endswith(
        "uppertail: Standard output cannot be written ([Errno 27] File too large): its text is lost, but no file is.\n"
    )
    assert isinstance(sys.stdout, Full)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_help_for_a_full_device_or_a_closed_pipe_is_no_traceback() -> None:
    with Path("/dev/full").open("w") as nowhere:
        done = subprocess.run(HELP, stdout=nowhere, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(HELP, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_letters_that_standard_output_does_not_know_are_escaped(monkeypatch: Any) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["exact", "--env", "Toy", "--discount", "1", "--out", "ψ"]) == 0
    assert raw.getvalue().endswith(b"Figure in \\u03c8/exact.png\n")


# Folders


@pytest.mark.parametrize("name", [records.CHECKPOINTS, records.TENSORBOARD])
@pytest.mark.parametrize("dangling", [False, True])
def test_overwrite_leaves_a_run_whose_folder_is_a_link(name: str, dangling: bool, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    (run / records.SUMMARY).write_text("years of work")
    (run / name).symlink_to(elsewhere)
    if not dangling:
        elsewhere.mkdir()
        (elsewhere / "step-000000001.safetensors").touch()
        (elsewhere / "events.out.tfevents.1").touch()
    with pytest.raises(InputError, match=rf"has a link in place of its folder {name}, .*: remove the link, or choose"):
        records.claim_folder(run, overwrite=True)
    assert (run / records.SUMMARY).read_text() == "years of work"
    assert (run / name).is_symlink()
    assert dangling or len(list(elsewhere.iterdir())) == 2


@pytest.mark.parametrize("name", [records.SUMMARY, "checkpoints/step-000000001.safetensors"])
def test_overwrite_leaves_a_folder_that_is_called_like_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / records.CONFIG).touch()
    with pytest.raises(InputError, match="holds more than a run's files"):
        records.claim_folder(tmp_path, overwrite=True)
    assert (tmp_path / records.CONFIG).exists()
