"""Numbers of 64 bits keep their digits: what is large at first is subtracted before they become 32 bits."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from uppertail.cli import main
from uppertail.environments.spaces import chosen_origins, read_space


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


@pytest.mark.slow
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

    class Sum(Line):
        """Its number is a sum in one order and in another: they differ in the last of 64 bits."""

        def seen(self) -> np.ndarray:
            return np.array([0.1 + 0.2 + 0.3 if self.at % 2 else 0.3 + 0.2 + 0.1, 3.0])

    assert ut.FromGymnasium(lambda: Sum(1.0, 1e-9, np.float64)).note is None
    for kind in (One, Late):
        note = ut.FromGymnasium(lambda kind=kind: kind(1.0, 1e-9, np.float64)).note
        assert note and "became the same in 32 bits" in note


@pytest.mark.parametrize(
    ("numbers", "kind", "origin"),
    [
        ([0, 4006381333931, 0, 4006381333934, 0, 4006381333933], np.int64, 4006381333933.0),  # a code is scanned
        ([-1e9, 0.5, -0.25, -1e9, 0.125, 0.75], np.float64, 0.0),  # not known yet
        ([2**63 + 5, 2**63 + 6, 2**63 + 7], np.uint64, float(2**63)),
        ([1700.5, 1800.25, 1900.0], np.float64, 1700.5),  # nothing is lost by either: as before
        ([5.0, 7.0, 6.0], np.float64, 0.0),
    ],
)
def test_the_origin_is_what_keeps_most_values_apart(numbers: list[Any], kind: Any, origin: float) -> None:
    seen = np.array([numbers], kind).T
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(*limits_of(kind), (1,), kind)})
    for ordered, place in ((False, 3), (True, 1)):  # behind a one-hot, or a number
        origins, lost = chosen_origins(space, frozenset(), [{"a": 0, "b": each} for each in seen], ordered)
        assert origins == (((place, origin),) if origin else ()) and not lost
        array = read_space(np, space, origins=origins, ordered=ordered).array
        assert len({array({"a": 0, "b": each}).tobytes() for each in seen}) == len(set(numbers))


def test_what_no_origin_keeps_apart_is_lost() -> None:
    seen = [np.array([each], np.int64) for each in (0, 2**40, 2**40 + 1, 2**50, 2**50 + 1)]
    assert chosen_origins(spaces.Box(*limits_of(np.int64), (1,), np.int64), frozenset(), seen)[1]


def limits_of(kind: Any) -> tuple[float, float]:
    return (-np.inf, np.inf) if np.dtype(kind).kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)


class Scanned(gymnasium.Env[Any, int]):
    """Shows a code, and pays for its parity; starts and alarms are of the process, whatever the seed."""

    observation_space: Any = spaces.Dict({"code": spaces.Box(0, 2**62, (1,), np.int64), "alarm": spaces.Text(8)})
    action_space: Any = spaces.Discrete(2)
    start, alarms = 0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.start = Scanned.start = Scanned.start + 1
        return self.seen(), {}

    def seen(self) -> dict[str, Any]:
        alarm = "fire" if self.alarms and self.start % 3 == 0 else "none"
        return {"code": np.array([4006381333931 + self.start % 4]), "alarm": alarm}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.seen(), float(action == self.start % 2), True, False, {}


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@pytest.mark.filterwarnings("ignore")
def test_what_was_read_off_the_first_process_is_kept_for_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another origin makes other states of the same observations, and another text makes other arrays."""
    made: Any = Scanned
    gymnasium.register("Testing/Scanned-v0", entry_point=made)
    try:
        assert main(["train", "--env.id", "Testing/Scanned-v0", "--steps", "400", "--seeds", "1", "--out", "run"]) == 0
        monkeypatch.setattr(Scanned, "start", 1)
        monkeypatch.setattr(Scanned, "alarms", True)
        assert main(["evaluate", "run"]) == 0
        found = json.loads(Path("run/evaluation-greedy.json").read_text())
        assert found["mean_return"] == 1.0
        monkeypatch.setattr(Scanned, "start", 2)
        player = ut.load("run", trust=True)
        for _ in range(4):
            observation, _ = Scanned().reset()
            assert player.act(observation) == Scanned.start % 2
    finally:
        del gymnasium.registry["Testing/Scanned-v0"]


class Far(Scanned):
    """Shows a small number at first, and codes after 300 episodes."""

    observation_space: Any = spaces.Box(0, 2**62, (1,), np.int64)

    def seen(self) -> Any:
        return np.array([self.start % 2 + (4006381333932 if self.start > 300 else 0)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_codes_that_come_later_and_become_one_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scanned, "start", 0)
    with pytest.warns(UserWarning, match="^Different observations of Far became the same in 32 bits"):
        ut.train(ut.FromGymnasium(Far), settings=ut.Settings(seeds=1, steps=64))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"origins": ((2, 5.0),)}, "origins names number 2, but Line shows 2 numbers: count from 0, or leave it out."),
        ({"constant_texts": ("mission",)}, "constant_texts names 'mission', but the texts of Line are: none."),
    ],
)
def test_what_is_not_there_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ut.InputError, match=f"^{words}"):
        _ = ut.FromGymnasium(lambda: Line(1e6, 1, np.float64), id="Line", **settings).inspected


def test_given_origins_are_subtracted_and_none_is_given_by_an_empty_list() -> None:
    shown = np.array([1e6 + 2, 3.0])
    for origins, read in ((((0, 1e6), (1, 1.0)), [2.0, 2.0]), ((), [1e6 + 2, 3.0])):
        builder = ut.FromGymnasium(lambda: Line(1e6, 1, np.float64), origins=origins)
        assert builder.interface.reading.array(shown).tolist() == read


def test_what_was_read_is_not_read_again_where_a_setting_only_pins_it() -> None:
    """To inspect an environment makes it once more, which may take seconds."""
    made = 0

    def make() -> Line:
        nonlocal made
        made += 1
        return Line(1e6, 1.0, np.float64)

    builder = ut.FromGymnasium(make)
    seen = builder.inspected
    same = builder.with_settings(
        **builder.as_read, features="hashed", ends_at_limit=True, action_repeat=2, left_out=(0,)
    )
    assert same.inspected is seen and made == 1
    other = builder.with_settings(origins=())
    assert other.interface.reading.origins == () and made == 2
