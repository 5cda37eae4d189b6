"""An environment that says `terminated` at its own time limit is named."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from uppertail.cli import main
from uppertail.training.loop import StepRecord
from uppertail.training.rollouts import Ends
from uppertail.types import Transition

RANDOM = np.random.default_rng(0)


def episodes(observations: list[np.ndarray], terminated: bool = True) -> Ends:
    """Episodes of these observations, each of which ends with the last of them."""
    ends = Ends()
    for seen in observations:
        count = len(seen) - 1
        last, none = np.arange(count) == count - 1, np.zeros(count, np.int32)
        zeros: Any = np.zeros(count, np.float32)
        columns: tuple[Any, ...] = seen[:-1], none, zeros, last & terminated, seen[1:], none
        records: tuple[Any, ...] = last, zeros, np.arange(1, count + 1), zeros, last
        ends.add(Transition(*columns), StepRecord(*records))
    return ends


WALKS = [RANDOM.integers(3, size=21) for _ in range(6)]
CLOCKS = [np.column_stack([RANDOM.normal(size=21), np.arange(21)]).astype(np.float32) for _ in range(6)]


@pytest.mark.parametrize(
    ("ends", "looks"),
    [
        (episodes(WALKS), True),
        (episodes(WALKS, terminated=False), False),
        (episodes([*WALKS, RANDOM.integers(3, size=30)]), False),
        (episodes([np.arange(21)] * 6), False),
        (episodes([each[:, :1] for each in CLOCKS]), True),
        (episodes(CLOCKS), False),
        (episodes([each[:6] for each in WALKS]), False),
    ],
    ids=["states", "truncated", "one is longer", "states tell", "numbers", "a clock tells", "short"],
)
def test_ends_look_like_a_limit_if_nothing_seen_explains_them(ends: Ends, looks: bool) -> None:
    assert ends.look_like_a_limit == looks


class Hall(gymnasium.Env[int, int]):
    """A ring of three states without an end, except after `limit` steps; None: none."""

    observation_space: Any = spaces.Discrete(3)
    action_space: Any = spaces.Discrete(2)

    def __init__(self, limit: int | None) -> None:
        self.limit, self.taken, self.at = limit, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        self.taken = self.at = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.taken, self.at = self.taken + 1, (self.at + 1 + action) % 3
        return self.at, 0.0, self.taken == self.limit, False, {}


def test_an_environment_that_ends_its_episodes_needs_no_time_limit(tmp_path: Path, capsys: Any) -> None:
    """What declares none was told to set one, also where all its episodes end by themselves."""
    gymnasium.register("UpperTailHall-v0", Hall)  # pyright: ignore[reportArgumentType]
    asked = ["train", "--env", "Gym", "--env.id", "UpperTailHall-v0", "--steps", "64", "--seeds", "1"]
    for limit, words in (("5", []), ("null", ["no episode ended in 64 steps", "set a time limit"])):
        kwargs = ["--env.kwargs", f"{{limit: {limit}}}", "--env.returns", "[0, 1]", "--out", str(tmp_path / limit)]
        assert main([*asked, *kwargs]) == 0
        told = capsys.readouterr().err
        assert all(each in told for each in words)
        assert ("time limit" in told) == bool(words)


@pytest.mark.slow
def test_a_run_names_a_limit_that_terminates_and_one_that_is_missing() -> None:
    settings = ut.Settings(seeds=1, episodes=8, steps=128)
    for limit, words in ((13, "max_episode_steps: 12"), (None, "no episode ended in 128 steps")):
        with pytest.warns(UserWarning, match=words):
            ut.train(ut.FromGymnasium(lambda limit=limit: Hall(limit), returns=(0, 1)), settings=settings)
