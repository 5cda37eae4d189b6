"""Numbers of 64 bits keep their digits: what is large at first is subtracted before they become 32 bits."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut


class Line(gymnasium.Env[np.ndarray, int]):
    """Shows a number that grows by `step` from `first`, of some type, and a small one."""

    action_space: Any = spaces.Discrete(2)

    def __init__(self, first: float, step: float, kind: Any) -> None:
        is_float = np.dtype(kind).kind == "f"
        bounds = (-np.inf, np.inf) if is_float else (np.iinfo(kind).min, np.iinfo(kind).max)
        self.observation_space: Any = spaces.Box(*bounds, (2,), kind)
        self.first, self.by, self.kind, self.at = first, step, kind, 0

    def seen(self) -> np.ndarray:
        return np.array([self.first, 3], self.kind) + np.array([self.at * self.by, self.at], self.kind)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.at = 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.at += 1
        return self.seen(), 0.0, self.at == 5, False, {}


@pytest.mark.parametrize(
    ("first", "step", "kind"),
    [(1.7e9, 0.25, np.float64), (-1e6, 0.001, np.float64), (2**60, 1, np.int64), (2**25, 1, np.int32)],
)
def test_large_numbers_are_subtracted_before_the_cast(first: float, step: float, kind: Any) -> None:
    builder = ut.FromGymnasium(lambda: Line(first, step, kind))
    host = builder.open(3, 1)
    read = [host.reset()[0]] + [host.step(np.array([0])).next_observation[0] for _ in range(4)]
    np.testing.assert_allclose(read, [[step * at, 3 + at] for at in range(5)], rtol=1e-6, atol=5e-8)
    assert builder.note and f"{first:.17g} from number 0" in builder.note
    again = ut.FromGymnasium(lambda: Line(first, step, kind)).interface.reading.array(read[0] * 0)
    assert again[0] == np.float32(-first), "another process subtracts the same"


@pytest.mark.parametrize(
    ("first", "kind"), [(1.7e9, np.float32), (0.3, np.float64), (2**20, np.int64), (100, np.uint8)]
)
def test_numbers_that_lose_nothing_stay_as_they_are(first: float, kind: Any) -> None:
    builder = ut.FromGymnasium(lambda: Line(first, 1, kind))
    shown = np.array([first, 3], kind)
    assert builder.interface.reading.array(shown).tolist() == shown.astype(np.float32).tolist()
    assert builder.note is None


def test_sums_in_another_order_are_the_same_number() -> None:
    array = ut.FromGymnasium(lambda: Line(1e6, 0.1, np.float64)).interface.reading.array
    one, other = (np.array([1e6 + each, 0.0]) for each in (0.0, 4e-10))
    assert one[0] != other[0] and array(one).tolist() == array(other).tolist()


def test_different_observations_that_become_one_are_named() -> None:
    class One(Line):
        def seen(self) -> np.ndarray:
            return np.array([1.0 + self.at * 1e-9, 3.0])

    class Late(One):
        """Its first two episodes end at once, with the observation that they began with."""

        episodes = 0

        def step(self, action: int) -> Any:
            self.episodes += self.at == 0
            return (self.seen(), 0.0, True, False, {}) if self.episodes < 3 else super().step(action)

    for kind in (One, Late):
        note = ut.FromGymnasium(lambda kind=kind: kind(1.0, 1e-9, np.float64)).note
        assert note and "became the same in 32 bits" in note
