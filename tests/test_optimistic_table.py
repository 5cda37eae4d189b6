"""experiments/peers/optimistic_table.py: the stored first successes again, and its backups by hand."""

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import uppertail as ut
from experiments.peers.count_bonus import played
from experiments.peers.optimistic_table import FIRST_STD, Agent, first_success
from uppertail.training.loop import seed_keys

STORED = Path(__file__).parents[1] / "results" / "optimistic_table" / "DeepSea-10-spread.json"


def options(**changed: Any) -> argparse.Namespace:
    defaults = {"learner": "spread", "low": 2.0, "high": 2.0, "bonus": 0.1, "discount": 0.999, "episodes": 50}
    return argparse.Namespace(**defaults | changed)


@pytest.mark.slow
def test_the_spread_finds_the_treasure_when_it_did_before() -> None:
    found = [first_success(ut.DeepSea(10), seed, options()) for seed in range(4)]
    assert found == json.loads(STORED.read_text())["first_success_episode"][:4]


@pytest.mark.parametrize(
    ("learner", "mean", "std"),
    [
        ("spread", 0.25 * 1.0 + 0.75 * (1.0 + 0.5 * 0.0), None),
        ("optimistic", 0.25 * 1.0 + 0.75 * (1.0 + 0.5 * 4.0), 0.0),
        ("count", 0.05 + 0.25 * 1.0 + 0.75 * (1.0 + 0.5 * 4.2), 0.0),
    ],
)
def test_a_backup_of_two_outcomes_by_hand(learner: str, mean: float, std: float | None) -> None:
    """State 0 pays 1 in action 0, and ends once, and leads to the untried state 1 three times. Returns reach 4."""
    mdp: Any = argparse.Namespace(
        next_state=np.array([[[0, 1]], [[0, 1]]]), terminated=np.array([[[True, False]], [[True, False]]]), time_limit=9
    )
    agent = Agent(mdp, (0.0, 4.0), np.random.default_rng(0), options(learner=learner, discount=0.5))
    means, stds, n, reward_sum = agent.table
    n[0, 0], reward_sum[0, 0] = [1, 3], [1, 3]
    agent.back_up()
    assert means[0, 0] == pytest.approx(mean)
    expected = std
    if expected is None:  # the variance of both outcomes, whose means are equal
        expected = np.sqrt(0.25 * (4 * 1e-4) ** 2 + 0.75 * (0.5 * 4 * FIRST_STD) ** 2)
    assert stds[0, 0] == pytest.approx(expected)
    assert means[1, 0] == {"spread": 0.0, "optimistic": 4.0, "count": 4.2}[learner]


@pytest.mark.slow
def test_a_count_bonus_finds_the_treasure_and_is_judged_without_it() -> None:
    """On DeepSea 4 the best return is 0.99; the greedy policy of the same data has no bonus to collect."""
    mdp: Any = jax.device_get(ut.DeepSea(4).build(seed_keys(0).environment))
    found = played(mdp, 2048, 0.98, 0, bonus=0.1)
    assert found["good"] and found["from"] is not None and found["share"] > 0.9
    assert not played(mdp, 2048, 1.01, 0, bonus=0.1)["good"]
