"""What a seed does beyond its own limit, while its chunk goes on, counts for nothing."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from uppertail import Settings
from uppertail.learners import Metrics
from uppertail.records import SOLVED_WINDOW, Episodes, Success
from uppertail.training.ledger import History, Ledger, Milestone, Progress
from uppertail.training.loop import StepRecord

NAN = math.nan


def extended(ledger: Ledger, ended: list[list[list[int]]], values: list[list[list[float]]]) -> Progress:
    """Adds a chunk to a ledger: [seeds, iterations, steps or updates]."""
    ends, numbers = np.array(ended, bool), np.array(values, np.float32)
    columns: Any = (
        ends,
        np.ones(ends.shape, np.float32),
        np.ones(ends.shape, np.int32),
        numbers,
        numbers > 0,
        ends & False,
    )
    records = StepRecord(*columns)
    metrics = Metrics(numbers, 2 * numbers, numbers, 3 * numbers)  # pyright: ignore
    start = np.arange(len(ends), dtype=float)
    return ledger.extend(records, metrics, (start, 2 * start))


@pytest.mark.parametrize(
    ("limits", "ended"),
    [
        ({"episodes": 2}, [[[1, 0], [0, 1], [0, 0], [0, 0]], [[0, 1], [0, 0], [0, 1], [0, 0]]]),
        ({"episodes": 9, "steps": 3}, [[[0, 0], [0, 0], [0, 0], [0, 0]]] * 2),
    ],
)
def test_updates_count_up_to_the_iteration_in_which_a_seed_reaches_its_limit(limits, ended):
    """Seed 1 of the first case reaches its limit an iteration later; a limit of 3 steps is reached in the second."""
    later = "steps" not in limits
    values = [
        [[0.5] * 2, [0.25] * 2, [NAN] * 2, [NAN] * 2],
        [[1.0] * 2, [0.75] * 2, [0.5 if later else NAN] * 2, [NAN] * 2],
    ]
    settings = Settings(seeds=2, rollout_steps=2, updates_per_rollout=2, replay_size=2, **limits)
    ledger = Ledger(settings, Success(1.0))
    progress = extended(ledger, ended, values)
    counted = [0.5, 0.25, 1.0, 0.75, *([0.5] if later else [])]
    assert ledger.diverged is None
    assert ledger.over
    assert progress.loss == pytest.approx(np.mean(counted))
    assert progress.gradient_norm == pytest.approx(2 * np.mean(counted))
    assert progress.sweeps == pytest.approx(3 * np.mean(counted))
    assert progress.outside == pytest.approx(np.mean(counted)) == ledger.outside_share
    assert ledger.updates == 2 * len(counted)
    assert progress.exploratory == 1.0


def test_a_loss_at_the_limit_itself_still_counts():
    ledger = Ledger(
        Settings(seeds=1, rollout_steps=2, updates_per_rollout=1, replay_size=2, episodes=1, seed=7), Success(1.0)
    )
    extended(ledger, [[[0, 0], [0, 1], [0, 0]]], [[[0.0], [NAN], [NAN]]])
    assert ledger.diverged == {"seed": 7, "step": 4}


def test_episodes_are_added_and_judged_as_if_at_once():
    """Chunks of several lengths; solved at 0.9: the window of 50 episodes may lie in two chunks."""
    returns = np.random.default_rng(0).uniform(0.5, 1.2, 300).astype(np.float32)
    whole = Episodes(returns, np.arange(300), 2 * np.arange(300))
    goals = (0.8, 0.88, whole.returns[120:170].mean(dtype=float), 2.0)
    for length in (1, 7, 49, 50, 51, 300):
        history, found = History(Episodes.none()), [Milestone(1, goal, SOLVED_WINDOW) for goal in goals]
        for first in range(0, 300, length):
            history.add(Episodes(*(column[first : first + length] for column in dataclasses.astuple(whole))))
            for milestone in found:
                milestone.look([history.episodes])
        assert [milestone.at[0] for milestone in found] == [whole.reached(goal) for goal in goals]
        np.testing.assert_array_equal(dataclasses.astuple(history.episodes), dataclasses.astuple(whole))
    assert whole.reached(goals[2]) is not None and whole.reached(2.0) is None


def test_a_seed_at_its_limit_is_not_reported():
    ledger = Ledger(Settings(seeds=2, rollout_steps=1, replay_size=2, episodes=1), Success(1.0))
    extended(ledger, [[[1]], [[0]]], [[[0.0]], [[0.0]]])
    progress = extended(ledger, [[[0]], [[0]]], [[[math.inf]], [[-0.25]]])
    assert (progress.loss, progress.gradient_norm, progress.outside) == (-0.25, -0.5, -0.25)
    assert (progress.exploratory, progress.start_mean, progress.start_std) == (0.0, 1.0, 2.0)


def test_an_episode_that_is_cut_short_soon_counts_as_if_it_had_gone_on() -> None:
    """Two rewards of 1 and a limit, at a discount of 0.9: for ever they would come to 10. A goal ends it for good."""
    for cut, repeats, discount, expected in (
        (True, 1, 0.9, 10.0),
        (False, 1, 0.9, 1.9),
        (True, 2, 0.9, 1.9 / (1 - 0.9**2)),  # one action of two steps
        (True, 1, 0.6, 1.9 / (1 - 0.6**2)),  # 36% of the value of going on come later
        (True, 1, 0.31, 1.9 / (1 - 0.31**2)),  # 9.6% do
        (True, 1, 0.29, 1.9),  # 8.4%: the discount does not look beyond it
        (True, 1, 1.0, 1.9),
    ):
        ledger = Ledger(Settings(seeds=1, rollout_steps=2, discount=discount), Success(1.0), repeats=repeats)
        ends, earned = np.array([[[False, True]]]), np.array([[[1.0, 1.9]]], np.float32)
        columns: Any = ends, earned, np.array([[[1, 2]]], np.int32), earned, ends, ends & cut
        nothing: Any = np.zeros((1, 1, 1), np.float32)
        ledger.extend(StepRecord(*columns), Metrics(nothing, nothing, nothing, nothing), (np.zeros(1), np.zeros(1)))
        assert ledger.seen.tolist() == pytest.approx([0.0, 1.9])
        assert ledger.going_on.tolist() == pytest.approx([0.0, expected])
        sooner: Any = *columns[:2], np.array([[[1, 1]]], np.int32), *columns[3:]
        ledger.extend(StepRecord(*sooner), Metrics(*[nothing] * 4), (np.zeros(1), np.zeros(1)))
        assert ledger.going_on.tolist() == pytest.approx([0.0, expected]), "a goal may have cut this one short"
        restored = Ledger(Settings(seeds=1, rollout_steps=2, discount=discount), Success(1.0))
        restored.restore(ledger.arrays(), 2, None, ledger.programs.state())
        assert (*restored.going_on, restored.longest_cut) == (*ledger.going_on, ledger.longest_cut)
        older = {name: each for name, each in ledger.arrays().items() if name != "going_on"}
        restored.restore(older, 2, None, ledger.programs.state())
        assert restored.going_on.tolist() == restored.seen.tolist() == ledger.seen.tolist()
