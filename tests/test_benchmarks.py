"""What the benchmarks import from the package is there; they are not run here, and most need other packages."""

import ast
import functools
import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
BENCHMARKS = sorted(FOLDER.rglob("*.py"))
OURS = ("uppertail", "reproduction", "contest", "documents")


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}"), name


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """benchmarks/minigrid_marks.py."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("minigrid_marks")


def test_minigrid_is_solved_when_twenty_episodes_are_near_the_best(marks: Any) -> None:
    """Nineteen good ones are too few; a poor one among them counts until it is the twenty-first from the end."""
    returns, lengths = np.array([0.0] + [0.9] * 20), np.full(21, 3)
    assert marks.solved_at(returns, lengths, 1.0) == (21, 63)
    assert marks.solved_at(returns[:20], lengths[:20], 1.0) is None
    assert marks.solved_at(returns[1:20], lengths[1:20], 1.0) is None
    assert marks.solved_at(returns, lengths, 1.001) is None


def test_minigrid_s_own_returns_fall_with_the_steps(marks: Any) -> None:
    found = marks.own_returns(np.array([0.1, 0.0, 1.0]), np.array([50, 100, 100]), 100)
    np.testing.assert_allclose(found, [0.55, 0.0, 0.1])


def test_minigrid_s_results_are_marked_by_their_own_returns(marks: Any) -> None:
    paths = sorted((FOLDER.parent / "results" / "minigrid").glob("*-seeds-*.json"))
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


@pytest.fixture
def blackjack(monkeypatch: pytest.MonkeyPatch) -> Any:
    """benchmarks/blackjack.py."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("blackjack")


PLAYERS, DEALERS = ([1, 10], [10, 10, 1], [10, 9], [5, 4]), ([10, 1], [7, 7, 7], [10, 8])


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("dealer", DEALERS)
def test_blackjack_pays_as_the_benchmark_counts(
    player: list[int], dealer: list[int], blackjack: Any, monkeypatch: pytest.MonkeyPatch
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


def test_a_natural_draws_as_often_as_the_dealer_has_one(blackjack: Any) -> None:
    lost = {shown: 1.0 - blackjack.stick_on_a_natural(shown) for shown in blackjack.CARDS}
    assert lost == pytest.approx({**dict.fromkeys(range(2, 10), 0.0), 1: 4 / 13, 10: 1 / 13})
    assert blackjack.mean_return(None) == pytest.approx(-0.0431, abs=5e-5)
