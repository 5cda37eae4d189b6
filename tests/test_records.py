"""Records: what counts as solved, what the files hold, which folders may be written."""

import json
import threading

import numpy as np
import pytest

from uppertail import records
from uppertail.errors import InputError
from uppertail.records import Episodes, RunRecord, Success


def episodes_of(returns):
    lengths = np.arange(1, len(returns) + 1)
    return Episodes(np.asarray(returns, np.float32), lengths, np.cumsum(lengths))


def record_of(*seeds, **changes):
    fields = {
        "asked": {
            "environment": {"name": "Chain", "length": 10},
            "distribution": {"name": "Gaussian"},
            "policy": {"name": "UCB"},
            "network": {"name": "PerAction"},
            "replay": {"name": "Uniform"},
            "target": {"name": "Online"},
            "settings": {"seed": 0, "discount": 0.9},
            "measured_returns": None,
        },
        "success": Success(1.0),
        "floor_episodes": 6.0,
        "episodes": [episodes_of(seed) for seed in seeds],
        "env_steps": [10 for _ in seeds],
        "greedy_returns": [1.0 for _ in seeds],
        "wall_seconds": 3.0,
        "compile_seconds": 1.0,
        "training_seconds": 2.0,
        "interrupted": False,
        "diverged": None,
        "hardware": {},
    }
    return RunRecord(**{**fields, **changes})


def test_solved_is_the_first_episode_whose_last_50_returns_average_0_9():
    returns = [0.0] * 20 + [1.0] * 60
    # at episode 20 + k the last 50 hold k ones (k <= 50): 45 of 50 at episode 65
    assert episodes_of(returns).solved(Success(1.0)) == 65
    by_hand = next(e for e in range(50, 81) if np.mean(returns[e - 50 : e]) >= 0.9)
    assert by_hand == 65


def test_solved_needs_50_episodes_and_scales_with_the_success_return():
    assert episodes_of([1.0] * 49).solved(Success(1.0)) is None
    assert episodes_of([1.0] * 50).solved(Success(1.0)) == 50
    assert episodes_of([1.0] * 50).solved(Success(3.0)) is None
    assert episodes_of([2.7] * 50).solved(Success(3.0)) == 50
    assert episodes_of([0.0] * 500).solved(Success(1.0)) is None


@pytest.mark.parametrize(("success", "last"), [(-110.0, -121.0), (-10.0, -11.0), (0.0, 0.0), (200.0, 180.0)])
def test_solved_allows_for_a_tenth_below_the_success_return_whatever_its_sign(success, last):
    assert episodes_of([last] * 50).solved(Success(success)) == 50
    assert episodes_of([last - 0.01] * 50).solved(Success(success)) is None


def test_first_success_counts_from_1():
    assert episodes_of([0, 0, 1, 0]).first_success(Success(1.0)) == 3
    assert episodes_of([0, 0]).first_success(Success(1.0)) is None


def test_final_success_rate_is_over_the_last_100_episodes():
    assert episodes_of([0.0] * 50 + [1.0] * 75).final_success_rate(Success(1.0)) == 0.75
    assert Episodes.none().final_success_rate(Success(1.0)) is None


@pytest.mark.parametrize(
    ("after", "kept", "fall"),
    [
        ([1.0] * 10, 1.0, 0),
        ([1, 0, 0, 1], 0.5, 2),
        ([0, 0, 0], 0.0, 3),
        ([1, 1, 0], 2 / 3, 1),
        ([0, 1, 0, 0, 1, 0], 1 / 3, 2),
        ([], None, None),
    ],
    ids=str,
)
def test_kept_counts_all_episodes_after_solving(after, kept, fall):
    """Solved at episode 95: the first at which 45 of the last 50 succeed."""
    seed = episodes_of([0.0] * 50 + [1.0] * 45 + after)
    assert seed.solved(Success(1.0)) == 95
    assert seed.kept(Success(1.0)) == (None if kept is None else pytest.approx(kept))
    assert seed.longest_fall(Success(1.0)) == fall


def test_a_seed_that_was_not_solved_kept_nothing():
    seed = episodes_of([0.0] * 80)
    assert seed.kept(Success(1.0)) is None
    assert seed.longest_fall(Success(1.0)) is None


TAXI = Success(8.0, episodes=100)
"""As Gymnasium declares it; the best return of an episode is 3 to 14 by where it starts, and 7.93 on average."""


def test_a_threshold_judges_the_mean_of_100_episodes_and_no_single_one():
    """Half of the episodes of the best policy are below 8, and still it solves Taxi and keeps it."""
    seed = episodes_of([-200.0] * 30 + [4.0, 12.0] * 200)
    assert (seed.first_success(TAXI), seed.solved(TAXI)) == (130, 130), "one of -200 is among the 100 before"
    assert (seed.kept(TAXI), seed.longest_fall(TAXI), seed.final_success_rate(TAXI)) == (1.0, 0, 1.0)
    assert seed.kept(Success(8.0)) == pytest.approx(0.5, abs=0.01), "what single episodes said"


def test_a_seed_with_a_threshold_falls_where_the_mean_of_100_is_a_tenth_below():
    seed = episodes_of([8.0] * 100 + [0.0] * 20 + [8.0] * 130)
    # ten failures leave 7.2: there are more among the last 100 from episode 111 until 209
    assert (seed.solved(TAXI), seed.longest_fall(TAXI)) == (100, 99)
    assert seed.kept(TAXI) == pytest.approx(1 - 99 / 150)


@pytest.mark.parametrize("count", [0, 1, 99])
def test_fewer_than_100_episodes_are_not_judged_by_a_threshold(count):
    seed = episodes_of([20.0] * count)
    assert (seed.first_success(TAXI), seed.solved(TAXI), seed.kept(TAXI), seed.final_success_rate(TAXI)) == (None,) * 4
    assert episodes_of([20.0] * 100).solved(TAXI) == 100


def test_episodes_played_after_training_are_judged_by_their_own_mean():
    played = np.array([[4.0, 11.0, 8.0], [4.0, 4.0, 12.0], [7.0, 7.5, 7.1]])
    assert TAXI.rate(played).tolist() == [1.0, 0.0, 1.0]  # means 7.67, 6.67, 7.2: a tenth below is allowed for
    assert Success(8.0).rate(played).tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])
    record = record_of([12.0] * 100, success=TAXI, greedy_returns=[7.5])
    assert (record.greedy_solves, record.summary()["success"]["episodes"]) == ([True], 100)


def test_extended_keeps_only_ended_episodes_with_their_step():
    ended = np.array([False, True, False, False, True])
    grown = Episodes.none().extended(ended, np.arange(5.0, dtype=np.float32), np.arange(5), first_step=101)
    np.testing.assert_array_equal(grown.returns, [1, 4])
    np.testing.assert_array_equal(grown.lengths, [1, 4])
    np.testing.assert_array_equal(grown.end_steps, [102, 105])


def test_until_stops_at_whichever_limit_comes_first():
    seed = episodes_of([0.0] * 5)  # ends at steps 1, 3, 6, 10, 15
    assert seed.until(3, None).returns.size == 3
    assert seed.until(99, 10).returns.size == 4
    assert seed.until(99, 9).returns.size == 3
    assert seed.until(2, 10).returns.size == 2


def test_summary_has_every_promised_key_and_is_json():
    summary = record_of([0.0] * 3 + [1.0] * 60, [0.0] * 10).summary()
    promised = {
        "env", "distribution", "policy", "seeds", "episodes", "env_steps", "wall_seconds", "compile_seconds",
        "compilations",
        "steps_per_second", "first_success_episode", "solved_episode", "final_success_rate", "final_greedy_return",
        "floor_episodes", "first_success_over_floor", "failed", "targets_outside_support",
        "network", "replay", "target",
    }  # fmt: skip
    assert promised <= summary.keys()
    assert summary["first_success_episode"] == [4, None]
    assert summary["solved_episode"] == [50, None]  # 47 of the first 50
    assert summary["steps_per_second"] == 10.0
    json.dumps(summary, allow_nan=False)


def test_numbers_that_are_not_finite_are_none():
    summary = record_of([3e38, 3e38, np.inf], greedy_returns=[np.inf], outside_share=np.nan).summary()
    json.dumps(summary, allow_nan=False)
    assert (summary["final_return"], summary["final_greedy_return"]) == ([None], [None])


def test_processes_that_write_one_file_do_not_share_another(tmp_path, monkeypatch):
    """Another process begins and ends between two steps of this one."""
    replace, path = type(tmp_path).replace, tmp_path / "evaluation-greedy.json"

    def another(partial, target):
        monkeypatch.setattr(type(tmp_path), "replace", replace)
        monkeypatch.setattr(threading, "get_native_id", lambda: 7)
        records.write_text(path, "theirs")
        return replace(partial, target)

    monkeypatch.setattr(type(tmp_path), "replace", another)
    records.write_text(path, "ours")
    assert path.read_text() == "ours"
    assert [*tmp_path.iterdir()] == [path]


def test_multiple_of_the_floor_is_the_median_over_seeds():
    seeds = [[0.0] * 11 + [1.0], [0.0] * 5 + [1.0], [0.0] * 17 + [1.0]]
    assert record_of(*seeds).summary()["first_success_over_floor"] == 12 / 6
    assert record_of([1.0], [0.0], [0.0]).summary()["first_success_over_floor"] is None
    assert "floor_episodes" not in record_of([1.0], floor_episodes=None).summary()


def test_a_seed_that_never_got_there_counts_as_later_than_all_others():
    assert records.median_episode([3, None, 5]) == 5
    assert records.median_episode([3, None, None]) is None
    assert [records.episode_text(each) for each in (10.5, 1234.0, None)] == ["10.5", "1,234", "never"]


def test_arrays_pad_with_nan_where_seeds_differ_in_count(tmp_path):
    record = record_of([0.0, 1.0, 1.0], [1.0])
    records.write_run(tmp_path, record)
    arrays = np.load(tmp_path / records.EPISODES)
    np.testing.assert_array_equal(arrays["return"], [[0, 1, 1], [1, np.nan, np.nan]])
    np.testing.assert_array_equal(arrays["length"], [[1, 2, 3], [1, np.nan, np.nan]])
    np.testing.assert_array_equal(arrays["step"], [[1, 3, 6], [1, np.nan, np.nan]])
    assert json.loads((tmp_path / records.SUMMARY).read_text())["seeds"] == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {records.EPISODES, records.SUMMARY}


def test_a_folder_is_claimed_once(tmp_path):
    folder = tmp_path / "deep" / "run"
    records.claim_folder(folder, overwrite=False)
    assert list(folder.iterdir()) == []
    with pytest.raises(InputError, match="--overwrite"):
        records.claim_folder(folder, overwrite=False)
    (folder / records.SUMMARY).write_text("{}")
    records.claim_folder(folder, overwrite=True)
    assert list(folder.iterdir()) == []


LEFT = [
    "config.yaml", ".config.yaml", "config-next.yaml", "episodes.npz", "summary.json", "curve.png", "report.html",
    "networks.safetensors", "distributions.npz", "evaluation-greedy.json", "log.jsonl",
    "wandb-id.txt", "tensorboard/events.out.tfevents.1", "checkpoints/step-000001024.safetensors",
    "checkpoints/.step-000002048.safetensors", ".123-summary.json", ".7-evaluation-greedy.json",
]  # fmt: skip
"""What a run may leave, a dot before it where its process was killed."""


@pytest.mark.parametrize("other", ["thesis.tex", "checkpoints/notes", "tensorboard/notes"])
def test_overwrite_takes_all_that_a_run_left_away_but_nothing_else(other, tmp_path):
    for name in (*LEFT, other):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("years of work")
    with pytest.raises(InputError, match="holds more than a run's files"):
        records.claim_folder(tmp_path, overwrite=True)
    assert all((tmp_path / name).read_text() == "years of work" for name in (*LEFT, other))
    (tmp_path / other).unlink()
    records.claim_folder(tmp_path, overwrite=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        records.claim_folder(tmp_path / "file" / "run", overwrite=False)
    with pytest.raises(InputError, match="is a file"):
        records.claim_folder(tmp_path / "file", overwrite=True)


def test_unused_folder_counts_up(tmp_path):
    assert records.unused_folder(tmp_path, "run").name == "run"
    (tmp_path / "run").mkdir()
    (tmp_path / "run-2").mkdir()
    assert records.unused_folder(tmp_path, "run").name == "run-3"


@pytest.mark.parametrize(("reward", "steps", "mark"), [(0.01, 100, 1.0), (0.001, 1000, 1.0), (-0.1, 10, -1.0)])
def test_a_return_is_a_success_though_32_bits_lose_some_of_it(reward: float, steps: int, mark: float) -> None:
    """A hundred rewards of 0.01 are 0.99999934 there, which is no failure; 0.999 of the mark is one."""
    returns = np.cumsum(np.full(steps, reward, np.float32), dtype=np.float32)[-1:]
    assert returns[0] < mark
    success, less = Success(mark), returns - np.float32(0.001)
    assert success.judged(returns).all() and not success.judged(less).any()
    assert success.rate(returns[None]) == 1 and success.rate(less[None]) == 0


def test_a_mark_of_0_is_reached_though_32_bits_lose_some() -> None:
    returns = np.cumsum(np.array([0.1] * 10 + [-1.0], np.float32), dtype=np.float32)[-1:] - np.float32(2e-7)
    assert returns[0] < 0 and Success(0.0).judged(returns).all() and not Success(0.0).judged(returns - 1e-3).any()
