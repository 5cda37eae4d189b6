"""Loggers: every number under its name, a log that goes on after a kill without a step twice, what is not installed."""

import dataclasses
import importlib
import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import uppertail as ut
from killed import SHORT, TINY, killed_run
from uppertail import records
from uppertail.cli import main
from uppertail.cli.train import parse_request
from uppertail.errors import InputError
from uppertail.loggers import JSONL, TensorBoard, WandB, metrics

PROGRESS = ut.Progress(
    episodes=[3, 6], solved=1, success_rate=0.25, fraction=0.5, env_steps=40, steps_per_second=1000.0, loss=-1.5,
    gradient_norm=2.5, sweeps=3.0, outside=0.125, exploratory=0.375, mean_return=0.75, mean_length=8.0,
    start_mean=0.625, start_std=0.0625, compilations=4, step=20, chunk_steps=10,
)  # fmt: skip
NUMBERS = {
    "return/mean": 0.75,
    "episode/length": 8.0,
    "episode/count": 4.5,
    "success/rate": 0.25,
    "success/solved_seeds": 1,
    "learning/loss": -1.5,
    "learning/gradient_norm": 2.5,
    "learning/sweeps": 3.0,
    "learning/targets_outside_support": 0.125,
    "exploration/share": 0.375,
    "start/mean": 0.625,
    "start/std": 0.0625,
    "time/steps_per_second": 1000.0,
    "time/compilations": 4,
}


pytestmark = pytest.mark.usefixtures("own_folder")


def at(step, chunk_steps=10, **changed):
    return dataclasses.replace(PROGRESS, step=step, chunk_steps=chunk_steps, **changed)


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def steps(path):
    return [line["step"] for line in lines(path)]


def events(path):
    """The events of one file, in order."""
    content, found = path.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event = importlib.import_module("tensorboardX.proto.event_pb2").Event()
        event.ParseFromString(content[12 : 12 + length])
        found.append(event)
        content = content[16 + length :]
    return found


def scalars(folder):
    """What TensorBoard shows: a start at some step takes back what earlier files say of that step and later ones."""
    shown = {}
    for path in sorted(folder.iterdir()):
        for event in events(path):
            if event.session_log.status == event.session_log.START:
                shown = {key: value for key, value in shown.items() if key[0] < event.step}
            for value in event.summary.value:
                assert (event.step, value.tag) not in shown
                shown[event.step, value.tag] = value.simple_value
    return shown


def test_every_number_has_its_name():
    assert metrics(PROGRESS) == NUMBERS
    measured = {field.name for field in dataclasses.fields(ut.Progress)}
    assert len(NUMBERS) == len(measured - {"fraction", "env_steps", "step", "chunk_steps", "greedy_return"})


def test_jsonl_has_a_line_for_each_chunk_at_once():
    with JSONL("deep/log.jsonl") as log:
        log(at(10))
        assert lines("deep/log.jsonl") == [{"step": 10, **NUMBERS}]
        log(at(20, loss=2.0))
        assert lines("deep/log.jsonl")[1] == {"step": 20, **NUMBERS, "learning/loss": 2.0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null(value):
    with JSONL("log.jsonl") as log:
        log(at(10, mean_return=value))
    text = Path("log.jsonl").read_text()
    assert "NaN" not in text and "Infinity" not in text
    assert lines("log.jsonl") == [{"step": 10, **NUMBERS, "return/mean": None}]


def log_twice(kind, path, between=lambda: None):
    """The chunks of a run, and those of the same run, which goes back to step 20."""
    with kind(path) as log:
        for progress in (at(10), at(20), at(25, chunk_steps=5), at(30, chunk_steps=5)):
            log(progress)
    between()
    with kind(path) as log:  # within the same second, too
        log(at(30, loss=7.0))
        log(at(40))


def test_a_log_goes_on_from_the_step_that_the_run_goes_back_to():
    def half_a_line():
        with Path("log.jsonl").open("a") as file:
            file.write('{"step": 40, "return/me')

    log_twice(JSONL, "log.jsonl", half_a_line)
    assert steps("log.jsonl") == [10, 20, 30, 40]
    assert lines("log.jsonl")[2]["learning/loss"] == 7.0


def test_a_run_from_its_first_step_begins_the_log_again():
    log = JSONL("log.jsonl")
    for _ in range(2):  # also one and the same logger
        with log:
            log(at(10))
            log(at(20))
    assert steps("log.jsonl") == [10, 20]
    with JSONL("log.jsonl") as other:
        other(at(10))
    assert steps("log.jsonl") == [10]


def test_a_chunk_without_a_step_is_not_logged():
    with JSONL("log.jsonl") as log:
        log(at(10))
        log(at(10, chunk_steps=0))
        log(at(20))
    assert steps("log.jsonl") == [10, 20]


@pytest.mark.parametrize("line", ["years of work\n", "[1]\n", '{"name": 3}\n'])
def test_another_file_is_not_taken_for_a_log(line):
    Path("notes").write_text(line)
    with pytest.raises(InputError, match=r"notes is not a log .*: move it away, or choose another file"):
        JSONL("notes")
    assert Path("notes").read_text() == line


def test_a_log_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(InputError, match=r"cannot be written .*: make room"):
        JSONL(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_ends_in_a_sentence():
    log = JSONL("log.jsonl")
    log.begin(0)
    assert log._file is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._file.fileno())
    os.close(full)
    with pytest.raises(InputError, match="No space left on device"):
        log.write(1, NUMBERS)
    log.close()


def test_tensorboard_reads_every_number_back(tmp_path):
    with TensorBoard("events") as log:
        log(at(10, loss=math.nan))
        shown = scalars(tmp_path / "events")  # before it is closed
        assert shown == {(10, name): value for name, value in NUMBERS.items() if name != "learning/loss"}
        log(at(20))
    assert scalars(tmp_path / "events")[20, "learning/loss"] == -1.5


def test_tensorboard_goes_on_from_the_step_that_the_run_goes_back_to(tmp_path):
    log_twice(TensorBoard, "events")
    shown = scalars(tmp_path / "events")
    assert {step for step, _ in shown} == {10, 20, 30, 40}
    assert shown[30, "learning/loss"] == 7.0


STAND_IN = """
import types
calls = []
class Error(Exception): pass
errors = types.SimpleNamespace(Error=Error)
refused = False
def login():
    calls.append("login")
    if refused: raise Error("api_key not configured\\n(no-tty).")
class Run:
    def log(self, numbers, step): calls.append((step, numbers))
    def finish(self): calls.append("finish")
def init(**arguments):
    calls.append(arguments)
    return Run()
"""


@pytest.fixture
def wandb(tmp_path, monkeypatch):
    """A module of that name that writes down what is asked of it."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "wandb.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    yield importlib.import_module("wandb")
    del sys.modules["wandb"]


def test_wandb_goes_on_with_the_run_of_its_id(wandb):
    records.write_text(Path("config.yaml"), "width: 8\n")
    with WandB(".", name="mine") as log:
        log(at(10, loss=math.nan))
        log(at(20))
    with WandB(".", project="other") as log:
        log(at(20))
    with WandB(".", mode="offline") as log:  # and a run that begins again is another one
        log(at(10))
    left_out = {name: value for name, value in NUMBERS.items() if name != "learning/loss"}
    first, second, third = (call for call in wandb.calls if isinstance(call, dict))
    assert wandb.calls == [
        "login", first, (10, left_out), (20, NUMBERS), "finish",
        "login", second, (20, NUMBERS), "finish",
        third, (10, NUMBERS), "finish",
    ]  # fmt: skip
    same = {"resume": "allow", "config": {"width": 8}}
    assert first == {"id": first["id"], "project": "uppertail", "name": "mine", **same}
    assert second == {"id": first["id"], "project": "other", **same}
    assert third == {"id": third["id"], "project": "uppertail", "mode": "offline", **same}
    assert first["id"] != third["id"]
    assert Path("wandb-id.txt").read_text().strip() == third["id"]


def test_wandb_takes_its_project_from_where_it_is_always_taken(wandb, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "thesis")
    with WandB(".") as log:
        log(at(10))
    assert wandb.calls[1]["project"] == "thesis"


def test_nobody_logged_in_at_wandb_ends_in_a_sentence_before_anything(wandb, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(wandb, "refused", True)
    assert main(["train", *TINY, "--logger", "wandb", "--out", "run"]) == 2
    sentence = "Weights & Biases cannot be used (api_key not configured (no-tty)): call `wandb login`"
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("extra", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_missing_package_is_named_before_anything_is_written(extra, package, tmp_path, monkeypatch, refused):
    monkeypatch.setitem(sys.modules, package, None)
    error = refused(["train", *TINY, "--logger", extra, "--out", "run"])
    assert f"The logger {extra} needs the package {package}: install it with `pip install {package}`." in error
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_wandb_left_is_not_the_package(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / "wandb").mkdir()
    with pytest.raises(InputError, match="The logger wandb needs the package wandb"):
        WandB(".")


BAD = {
    "misspelt": ("tensorbord", "Unknown logger 'tensorbord': use tensorboard, wandb, or the import path of a class"),
    "second": ("[tensorboard, aim]", "Unknown logger 'aim'"),
    "no logger": ("uppertail.Chain", "Unknown logger 'uppertail.Chain'"),
    "broken": ("broken.Mine", "The logger broken.Mine cannot be imported (oh): correct it there."),
    "null": ("null", "Unknown logger 'null'"),
    "number": ("3", "Unknown logger '3'"),
}


@pytest.mark.parametrize(("name", "sentence"), BAD.values(), ids=BAD)
def test_an_unknown_logger_ends_in_a_sentence_before_anything_is_written(name, sentence, tmp_path, refused):
    (tmp_path / "broken.py").write_text("raise ValueError('oh')\n")
    error = refused(["train", *TINY, "--logger", name, "--out", "run"])
    assert sentence in error
    assert name != "tensorbord" or "Did you mean tensorboard?" in error
    assert not (tmp_path / "run").exists()


def test_a_config_file_may_name_one_logger_but_no_number(refused):
    Path("config.yaml").write_text("logger: aim\n")
    assert "Unknown logger 'aim'" in refused(["train", "--config", "config.yaml"])
    Path("config.yaml").write_text("logger: 3\n")
    assert "logger is 3: use a list or text." in refused(["train", "--config", "config.yaml"])


OWN = """
from uppertail.loggers import Logger
class Mine(Logger):
    def __init__(self, folder): self.path = folder.parent / "mine.txt"
    def begin(self, step): self.told = [step]
    def write(self, step, numbers): self.told += [step, len(numbers)]
    def close(self): self.path.write_text(repr(self.told))
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with three loggers, two of them named."""
    place = tmp_path_factory.mktemp("finished")
    (place / "own_logger.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place))
        asked = ["--logger", "[tensorboard, own_logger.Mine]", "--quiet", "--out", str(place / "run")]
        assert main(["train", *SHORT, *asked]) == 0
    return place / "run"


@pytest.fixture
def killed(finished, tmp_path):
    """A run's folder as if it had been killed while it wrote a line, a chunk after its last checkpoint."""
    folder = killed_run(finished, tmp_path)
    (folder / "log.jsonl").write_bytes((finished / "log.jsonl").read_bytes()[:-50])
    config = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(config.replace("- own_logger.Mine\n", "").rstrip() + "\n")
    return folder


def but_for_times(numbers):
    return [{name: value for name, value in line.items() if not name.startswith("time/")} for line in numbers]


@pytest.mark.slow
def test_a_run_is_logged_everywhere_chunk_by_chunk(finished):
    assert steps(finished / "log.jsonl") == [1024, 2048]
    assert (finished.parent / "mine.txt").read_text() == "[0, 1024, 14, 2048, 14]"
    for line in lines(finished / "log.jsonl"):
        assert set(line) == {"step", *NUMBERS}
        assert [name for name, value in line.items() if value is None] == ["learning/sweeps"]  # of a network
    shown = [name for name in NUMBERS if name != "learning/sweeps"]
    written = {(line["step"], name): line[name] for line in lines(finished / "log.jsonl") for name in shown}
    assert scalars(finished / "tensorboard") == pytest.approx(written)


@pytest.mark.slow
def test_a_killed_run_ends_with_the_log_of_one_that_was_not(killed, finished):
    assert main(["resume", str(killed), "--quiet"]) == 0
    assert but_for_times(lines(killed / "log.jsonl")) == but_for_times(lines(finished / "log.jsonl"))
    assert len(list((killed / "tensorboard").iterdir())) == 2
    ours, whole = (
        {key: value for key, value in scalars(run / "tensorboard").items() if not key[1].startswith("time/")}
        for run in (killed, finished)
    )
    assert ours == whole


def test_a_killed_run_needs_its_loggers_too(killed, monkeypatch, refused):
    before = (killed / "log.jsonl").read_bytes()
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert "pip install tensorboardX" in refused(["resume", str(killed), "--quiet"])
    assert (killed / "log.jsonl").read_bytes() == before


@pytest.mark.slow
def test_from_python_a_logger_is_a_callback():
    settings = ut.Settings(seeds=1, episodes=1_000_000, steps=2048, replay_size=99, batch_size=8)
    with ut.loggers.JSONL("log.jsonl") as log:
        result = ut.train(ut.Chain(length=4), settings=settings, on_chunk=log)
    assert steps("log.jsonl") == [1024, 2048]
    assert lines("log.jsonl")[-1]["episode/count"] == result.record.episodes[0].returns.size


def test_loggers_are_at_hand_and_import_their_packages_only_when_they_are_built():
    code = (
        "import sys, uppertail as ut; assert 'uppertail.loggers' not in sys.modules; "
        "ut.loggers.JSONL, ut.loggers.WandB; assert not {'tensorboardX', 'wandb'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["--logger", "[a, b.C]"], ["a", "b.C"]),
        (["--logger", "b.C"], "b.C"),
        ([], []),
    ],
)  # fmt: skip
def test_several_loggers_are_kept_however_they_are_given(given, taken):
    assert parse_request(given).built.logger == taken
