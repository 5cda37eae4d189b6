"""The comparison of speeds: its arithmetic, its turns, its words; how fast anything is, is no matter of a test."""

import json
import stat
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from experiments.speed.bench import main
from experiments.speed.contest import machine
from experiments.speed.contest.chain import Chain
from experiments.speed.contest.contestants import Contestant, Ours, Peer
from experiments.speed.contest.load import Load
from experiments.speed.contest.turns import contest, contestants
from uppertail.distributions import Gaussian
from uppertail.errors import InputError

SMALL = Load(length=5, width=8, batch_size=4, rollout_steps=4, replay_size=64)


@pytest.fixture(autouse=True)
def _small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LARGE", 64)
    monkeypatch.setattr(machine, "AGAIN", 2)


def test_arithmetic_by_hand() -> None:
    """m = 2 (4 * 4 + 4 * 2) = 48: acting 2 m, an update of 32 per 16 steps twice 3 m + m / 2 + 2 m / 2."""
    assert Load(width=4).flops_per_step(hidden_layers=2, outputs=2) == 96 + 2 * (144 + 72)
    assert Load(width=4).updates_per_step == 1 / 16


def test_the_chain_that_peers_step() -> None:
    check_env(Chain(7, 1), skip_render_check=True)
    env = gymnasium.wrappers.TimeLimit(Chain(7, 1), 100)
    for stop in range(7):
        env.reset()
        for state, action in enumerate(Chain(7, 1).correct[: stop + 1]):
            last = state == stop
            found = env.step(1 - action if last else action)[:4]
            assert found == (stop if last else state + 1, 0.0, last, False)
    env.reset()
    *_, (_, reward, terminated, truncated, _) = [env.step(action) for action in Chain(7, 1).correct]
    assert (reward, terminated, truncated) == (1.0, True, False)


class Scripted(Contestant):
    """Its rates are known beforehand."""

    def __init__(self, label: str, rates: list[float]) -> None:
        self.label, self.hidden_layers, self.rates, self.closed = label, 2, rates, False

    def prepare(self, load: Load) -> None:
        self.turns = iter(self.rates)

    def rate(self, seconds: float) -> float:
        return next(self.turns)

    def facts(self, load: Load) -> dict[str, Any]:
        return {"algorithm": "DQN"}

    def close(self) -> None:
        self.closed = True


@pytest.mark.slow
def test_medians_of_turns_beside_the_peer_of_the_same_depth() -> None:
    peer, ours, said = Scripted("peer", [1.0, 50.0, 2.0]), Ours("ours, 2 layers", Gaussian(), 2, 2), []
    document = contest([peer, ours], SMALL, 3, 1e-6, said.append)
    first, second = document["rows"]
    assert (first["steps_per_second"], first["all"], first["ours"]) == (2.0, [1.0, 50.0, 2.0], False)
    assert len(second["all"]) == 3
    assert second["times"] == {"DQN": round(second["steps_per_second"] / 2.0, 1)}
    gflops = second["steps_per_second"] * SMALL.flops_per_step(2, 2) / 1e9
    assert second["gflops"] == pytest.approx(gflops, abs=0.01)
    assert second["state_megabytes"] >= 0 and document["peak_megabytes"] > 50
    assert [line for line in said if line.startswith("turn 1")] == said[2:4]
    assert peer.closed


@pytest.mark.slow
@pytest.mark.parametrize("host", [False, True])
def test_a_turn_counts_the_steps_of_all_seeds(host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Ours("ours", Gaussian(), 3, 1, host)
    ours.prepare(SMALL)
    clock = iter([0.0, 0.5, 4.0])
    monkeypatch.setattr("experiments.speed.contest.contestants.time.perf_counter", lambda: next(clock, 4.0))
    steps = 3 * 4 * ours.run.driver.iterations
    assert ours.rate(2.0) == pytest.approx(steps / 4.0)
    monkeypatch.undo()
    assert ours.facts(SMALL)["host"] is host
    ours.close()


def test_every_contestant_has_a_name_of_its_own() -> None:
    labels = [entrant.label for entrant in contestants("python")]
    assert len(set(labels)) == len(labels) == 21
    assert len(contestants(None)) == 15


def test_products_take_some_time() -> None:
    assert 0 < machine.small_products(4, 8, 2) < 1e6


def interpreter(folder: Path, script: str) -> str:
    """An executable that stands in for the peers' Python."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


def test_a_peer_is_asked_again_and_again(tmp_path: Path) -> None:
    answers = 'echo "$@" >&2; echo \'{"versions": {"torch": "2"}}\'; n=1; while read line; do n=$((n * 3)); '
    python = interpreter(tmp_path, answers + 'echo "{\\"steps_per_second\\": $n}"; done')
    peer = Peer("peer", python, "DQN", 2, 100)
    peer.prepare(SMALL)
    assert [peer.rate(1.0), peer.rate(1.0)] == [3, 9]
    assert peer.facts(SMALL)["versions"] == {"torch": "2"}
    peer.close()


def test_a_peer_that_cannot_run_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be run"):
        Peer("peer", str(tmp_path / "none"), "DQN", 2, 100).prepare(SMALL)
    peer = Peer("Some peer", interpreter(tmp_path, "exit 3"), "DQN", 2, 100)
    with pytest.raises(InputError, match=r"Some peer printed no result \(it stopped\): .*peers/requirements\.txt"):
        peer.prepare(SMALL)
    peer.close()
    peer = Peer("Some peer", interpreter(tmp_path, "echo '{\"versions\": {}}'; echo hello; cat"), "DQN", 2, 100)
    peer.prepare(SMALL)
    for words in ("hello", "again|it stopped"):
        with pytest.raises(InputError, match=words):
            peer.rate(1.0)
    peer.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--repetitions 0", "use 1 or more"),
        ("--only nothing", "No contestant's name contains 'nothing'"),
        ("--peer /no/python --only DQN", "cannot be run"),
    ],
)
def test_bad_requests(arguments: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        main(["--out", str(tmp_path / "bench"), *arguments.split()])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--repetitions", "1", "--seconds", "0.1", "--only", "Gaussian, 1 seed, 1 hidden"]
    main(["--out", str(tmp_path), *words])
    printed = capsys.readouterr().out
    assert "Gaussian, 1 seed" in printed and "GFLOP/s" in printed
    (row,) = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert row["steps_per_second"] > 0 and np.isfinite(row["share_of_small_products"])
    assert {path.name for path in tmp_path.iterdir()} == {"bench.json", "bench.svg", "bench.png", "manifest.json"}
