"""Ends: a time limit that says `terminated` is named, and one that is paid or shown is part of the task."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from choosing import chosen
from uppertail.cli import main
from uppertail.defaults.limits import clocks, only_at_the_limit, paid_at_the_limit, timers
from uppertail.defaults.repeats import Chance, chance
from uppertail.environments.gymnasium.wrapping import time_limit
from uppertail.environments.random_policy import RandomPlay, Steps, random_steps
from uppertail.learners.outcomes import Outcomes
from uppertail.training.driver import Played
from uppertail.training.loop import StepRecord
from uppertail.training.method import Method
from uppertail.training.remarks import (
    HIDDEN,
    apart,
    doubtful,
    endless,
    given_up,
    less_than_random,
    less_than_trained,
    nearer_to_1,
    no_limit_seen,
    no_more_than_random,
    not_ended,
    nothing_earned,
    stands_still,
)
from uppertail.training.rollouts import Ends, play_episodes
from uppertail.training.run import Run
from uppertail.types import ReturnRange, Transition

RANDOM = np.random.default_rng(0)


def episodes(observations: list[np.ndarray], terminated: bool = True) -> Ends:
    """Episodes of these observations, each of which ends with the last of them."""
    ends = Ends()
    for seen in observations:
        count = len(seen) - 1
        last, none = np.arange(count) == count - 1, np.zeros(count, np.int32)
        zeros: Any = np.zeros(count, np.float32)
        columns: tuple[Any, ...] = seen[:-1], none, zeros, last & terminated, seen[1:], none
        records: tuple[Any, ...] = last, zeros, np.arange(1, count + 1), zeros, last, last & (not terminated)
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
        (episodes([each + 0.01 * each[:, :1] for each in CLOCKS]), False),
        (episodes([each[:6] for each in WALKS]), False),
    ],
    ids=[
        "states",
        "truncated",
        "one is longer",
        "states tell",
        "numbers",
        "a clock tells",
        "a noisy clock tells",
        "short",
    ],
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


@pytest.mark.slow
def test_an_environment_that_ends_its_episodes_needs_no_time_limit(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What declares none was told to set one, also where all its episodes end by themselves."""
    monkeypatch.setattr("uppertail.training.rollouts.EVALUATION_STEPS", 100)
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


def test_a_run_that_found_nothing_says_so() -> None:
    nothing, more = np.zeros(60), np.r_[np.zeros(59), 1.0]
    said = nothing_earned({0: nothing, 1: nothing}, {0: 0.0, 1: 0.0}, solved=False)
    assert str(said).startswith("All 120 episodes returned 0, as the greedy policy does: nothing that pays more was")
    for returns, greedy, solved in ((more, 0.0, False), (nothing, 1.0, False), (nothing, 0.0, True)):
        assert nothing_earned({0: returns}, {0: greedy}, solved) is None
    assert nothing_earned({0: 1 + nothing}, {0: 1.0}, solved=False) is None
    assert nothing_earned({0: nothing[:49]}, {0: 0.0}, solved=False) is None


def test_a_run_of_no_steps_is_not_told_to_train_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(ut.FromGymnasium(lambda: Hall(None), returns=(0, 1), id="Hall"), Method(), ut.Settings(seeds=1, steps=64))
    assert endless(run) is None
    monkeypatch.setattr(type(run.ledger), "env_steps", [64])
    assert str(endless(run)).startswith("Hall: no episode ended in 64 steps: train longer, or set a time limit")
    run.driver.close()


class Payday(gymnasium.Env[Any, Any]):
    """A row of 5 places from its middle; after 12 steps its right end pays 3 and its left end 1, or a goal pays 1."""

    action_space: Any = spaces.Discrete(2)

    def __init__(self, paid: bool = True, shown: bool = False) -> None:
        self.paid, self.shown = paid, shown
        self.observation_space = spaces.Box(0, 12, (1 + shown,), np.float32)

    def seen(self) -> np.ndarray:
        return np.array([self.at, self.taken][: 1 + self.shown], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.at, self.taken = 2, 0
        return self.seen(), {}

    def step(self, action: int) -> Any:
        self.at, self.taken = min(4, max(0, self.at + 2 * int(action) - 1)), self.taken + 1
        late, worth = self.taken == 12, {0: 1.0, 4: 3.0}.get(self.at, 0.0)
        goal = not self.paid and self.at == 4 and self.taken == 4
        return self.seen(), worth * late if self.paid else float(goal), goal, late, {}


def cut_short(reward: list[float], truncated: list[bool], observation: Any = 0) -> Steps:
    late, shown = np.array(truncated), np.asarray(observation, float)
    seen = np.broadcast_to(shown.reshape(-1, 1), (len(late), 1))
    return Steps(seen, np.zeros(len(late), int), np.array(reward), late & False, late, seen + 1)


def test_a_limit_is_part_of_the_task_if_it_is_paid_there_alone() -> None:
    """One in five steps is the last: five payments there, and nowhere else, come by chance once in 3,125 times."""
    each, late = [0.0] * 4, [False] * 4 + [True]
    for count, paid, expected in ((4, 1.0, False), (5, 1.0, True), (9, 0.0, False)):
        assert paid_at_the_limit(cut_short([*each, paid] * count, late * count)) == expected
    assert not paid_at_the_limit(cut_short([1.0, 0.0, 0.0, 0.0, 1.0] * 9, late * 9)), "paid elsewhere, too"
    assert not paid_at_the_limit(cut_short([1.0, 0.0] * 9, [True] * 18)), "there is no other step"
    assert not paid_at_the_limit(cut_short([-3.0, -3.0, -3.0, -3.0, -2.0] * 9, late * 9)), "an action was cut short"
    assert paid_at_the_limit(cut_short([-1.0, -1.0, -1.0, -1.0, 4.0] * 9, late * 9)), "a score beside a cost"
    assert paid_at_the_limit(cut_short([0.0, 0.5, 0.0, -0.5, 2.0] * 9, late * 9)), "more than rewards differ"
    assert paid_at_the_limit(cut_short([0.0, 0.5, 0.0, -0.5, -2.0] * 9, late * 9)), "or less"
    assert not paid_at_the_limit(cut_short([0.0, 0.5, 0.0, -0.5, 1.5] * 9, late * 9)), "which may grow with the way"


def test_what_is_paid_at_a_limit_is_an_outcome_and_the_limit_is_none() -> None:
    assert chance(cut_short([0.0, 0.0, 0.0], [False, False, True])) == Chance(1, 0)
    assert chance(cut_short([0.0, 0.0, 1.0], [False, False, True])) == Chance(1, 1)


def test_a_limit_is_part_of_the_task_if_a_number_shows_it() -> None:
    clock, late = [0, 1, 2] * 5, [False, False, True] * 5
    steps = cut_short([0.0] * 15, late, clock)
    assert clocks(steps).tolist() == [0]
    assert not clocks(cut_short([0.0] * 12, late[:12], clock[:12])).size, "too few episodes were cut short"
    assert not clocks(cut_short([0.0] * 15, late, [0, 2, 2] * 5)).size, "it has this value in too many other steps"
    assert not clocks(cut_short([0.0] * 15, late, [0, 1, 2] * 4 + [0, 1, 3])).size, "it has no one value there"
    assert not clocks(cut_short([0.0] * 15, late, [2, 1, 2] + [0, 1, 2] * 4)).size, "it had this value and went on"
    both = steps._replace(
        observation=np.hstack([steps.observation] * 2), next_observation=np.hstack([steps.next_observation] * 2)
    )
    assert clocks(both, (0,)).tolist() == [1] and not clocks(both, (0, 1)).size, "what is left out shows nothing"
    assert not clocks(steps._replace(observation=np.zeros(15), next_observation=np.ones(15))).size


def test_a_number_that_counts_steps_shows_a_limit_that_was_not_met() -> None:
    """Unless time ran out at different counts: then something else cuts episodes short."""
    early = [False] * 6
    assert timers(cut_short([0.0] * 6, early, range(6))).tolist() == [0]
    assert not timers(cut_short([0.0] * 6, early, range(6)), (0,)).size, "what is left out shows nothing"
    steps = cut_short([0.0] * 6, early, range(6))
    assert not timers(steps._replace(next_observation=2 * steps.next_observation)).size, "steps count differently"
    late, again = [False, False, True], [0, 1, 2]
    assert timers(cut_short([0.0] * 6, late * 2, again * 2)).tolist() == [0], "time ran out at the same count"
    assert not timers(cut_short([0.0] * 5, [*late, False, True], [*again, 0, 1])).size
    assert not timers(cut_short([0.0] * 6, late * 2, [*again, 1, 2, 3])).size, "episodes begin at different counts"


class Moment(gymnasium.Env[Any, Any]):
    """A number that drifts, and the time of 40 steps; to stop ends an episode, and pays 1 half way."""

    observation_space: Any = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.taken, self.drift = 0, self.np_random.normal()
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        return np.array([self.taken / 40, self.drift], np.float32)

    def step(self, action: int) -> Any:
        self.taken, self.drift = self.taken + 1, 0.9 * self.drift + 0.3 * self.np_random.normal()
        return self.seen(), float(action == 1 and 19 <= self.taken <= 24), action == 1, self.taken == 40, {}


def test_a_limit_that_a_random_policy_never_meets_ends_where_steps_are_counted() -> None:
    plan = chosen(ut.FromGymnasium(Moment))
    assert plan.builder.ends_at_limit is True
    assert any(each.startswith("Observations count the steps of an episode") for each in plan.notes)
    assert chosen(ut.FromGymnasium(Moment, left_out=(0,))).builder.ends_at_limit is None


@pytest.mark.slow
def test_no_hope_is_kept_beyond_a_limit_that_is_counted() -> None:
    """Before, some seeds waited for what comes after the last step in all their episodes."""
    with pytest.warns(UserWarning, match="Observations count the steps"):
        result = ut.train(ut.FromGymnasium(Moment), settings=ut.Settings(seed=100, seeds=2, steps=3_000))
    assert min(result.record.greedy_returns) > 0.8


def test_a_rounded_clock_stands_still_at_the_end() -> None:
    late = ([False] * 19 + [True]) * 5
    assert clocks(cut_short([0.0] * 100, late, [*range(18), 18, 18] * 5)).tolist() == [0]
    assert not clocks(cut_short([0.0] * 100, late, [*range(16), 16, 16, 16, 16] * 5)).size, "too long before"


def test_a_limit_is_part_of_the_task_if_what_is_seen_there_is_seen_nowhere_else() -> None:
    """A state of place and time in one number: at the end it is 8 or 9."""
    late = np.array([False, False, True] * 6)
    here = np.array([0, 2, 4, 0, 3, 5] * 3)
    after = np.array([2, 4, 8, 3, 5, 9] * 3)
    steps = Steps(here, np.zeros(18, int), np.zeros(18), late & False, late, after)
    assert only_at_the_limit(steps)
    assert not only_at_the_limit(Steps(*(np.asarray(each)[:12] for each in steps))), "too few episodes were cut short"
    assert not only_at_the_limit(steps._replace(next_observation=np.arange(18) + 6)), "nothing comes again there"
    assert not only_at_the_limit(steps._replace(observation=np.where(here == 5, 8, here))), "it came on the way, too"
    rows = steps._replace(observation=np.stack([here, late], 1), next_observation=np.stack([after, late], 1))
    assert only_at_the_limit(rows) and only_at_the_limit(rows, (1,)) and not only_at_the_limit(rows, (0,))


class Slips(gymnasium.Env[Any, Any]):
    """A row of 7 places and a time of 12 steps, as one of four spaces; its right end pays 1, a tenth of moves slip."""

    action_space: Any = spaces.Discrete(2)

    def __init__(self, space: Any) -> None:
        self.observation_space = space

    def seen(self) -> Any:
        if isinstance(self.observation_space, spaces.Discrete):
            return 7 * self.taken + self.at
        if isinstance(self.observation_space, spaces.Dict):
            return {"place": self.at, "time": self.taken}
        return np.array([self.at, self.taken], self.observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.taken = 0, 0
        return self.seen(), {}

    def step(self, action: int) -> Any:
        right = bool(action) == (self.np_random.random() < 0.9)
        self.at, self.taken = max(0, self.at + 2 * right - 1), self.taken + 1
        return self.seen(), float(self.at == 6), self.at == 6, self.taken == 12, {}


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiDiscrete([7, 13]),
        spaces.Dict({"place": spaces.Discrete(7), "time": spaces.Discrete(13)}),
        spaces.Discrete(91),
        spaces.Box(0, 12, (2,), np.int64),
    ],
    ids=["MultiDiscrete", "Dict", "Discrete", "Box"],
)
def test_a_clock_is_found_in_every_kind_of_state(space: Any) -> None:
    plan = chosen(ut.FromGymnasium(lambda: Slips(space)))
    assert plan.builder.ends_at_limit is True


@pytest.mark.slow
def test_the_rule_asks_for_an_end_where_the_limit_is_paid_or_shown() -> None:
    def found(paid: bool = True, shown: bool = False, **more: Any) -> Any:
        plan = chosen(ut.FromGymnasium(lambda: Payday(paid, shown), **more))
        return plan.builder.ends_at_limit, [note for note in plan.notes if "--env.ends_at_limit false" in note]

    ends, notes = found()
    assert ends and notes[0].startswith(
        "A random policy was paid more in steps in which time ran out than in all others, so"
    )
    assert "Nothing shows the time that is left" in notes[0]
    ends, notes = found(shown=True)
    assert ends and "Nothing shows" not in notes[0]
    ends, notes = found(paid=False, shown=True)
    assert ends and notes[0].startswith("Observations show when time runs out, so a time limit is part of the task")
    assert found(paid=False) == (None, [])
    assert found(ends_at_limit=False) == (False, [])


@pytest.mark.parametrize("mode", gymnasium.vector.AutoresetMode)
@pytest.mark.parametrize("ends", [False, True])
def test_a_limit_that_is_an_end_terminates_in_every_environment(
    ends: bool, mode: gymnasium.vector.AutoresetMode
) -> None:
    """Of Python's, of a user's vector, and in processes of their own it is the same flag."""
    make = lambda: gymnasium.vector.SyncVectorEnv([Payday] * 2, autoreset_mode=mode)  # noqa: E731
    for builder in (ut.FromGymnasium(Payday, ends_at_limit=ends), ut.FromGymnasium(make, ends_at_limit=ends)):
        host = builder.open(0, 2)
        host.reset()
        steps = [host.step(np.array([1, 0])) for _ in range(12)]
        host.close()
        assert not any(np.any(step.terminated | step.truncated) for step in steps[:11])
        assert steps[11].terminated.tolist() == [ends] * 2 and steps[11].truncated.tolist() == [not ends] * 2


@pytest.mark.slow
@pytest.mark.parametrize("shown", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_is_paid_as_time_runs_out_is_learned(shown: bool) -> None:
    """Before, a payment at the limit looked like one that comes for ever, and the left end as good as the right."""
    with pytest.warns(UserWarning, match="a time limit is part of the task"):
        result = ut.train(lambda: Payday(shown=shown), settings=ut.Settings(seeds=10, steps=1_500, discount=0.9))
    found = result.record.greedy_returns
    assert sum(each == 3.0 for each in found) >= 9, found  # one seed stays at the left end where time is hidden
    assert result.record.asked["environment"]["ends_at_limit"] is True


def test_a_greedy_policy_that_earns_less_than_a_random_one_is_named() -> None:
    """Of 4 random returns with mean 2 and a standard error of 0.58, less than 0.1 is 3 standard errors away."""
    random = np.array([1.0, 2.0, 3.0, 2.0])

    def said(greedy: float, random: Any = random) -> str | None:
        return less_than_random({7: greedy}, random)

    words = str(said(0.5))
    assert "of seed 7 returns 0.5, less than a random policy did before the run (2)" in words
    assert all(each in words for each in ("train longer", "--env.stack 2", "TimeAwareObservation"))
    assert "discount" not in words, "it looks far already"
    assert "nearer to 1, such as 0.9975. If that" in str(less_than_random({7: 0.5}, random, "0.9975"))
    assert said(0.7) is None, "by luck"
    assert said(-9.0, None) is None and said(-9.0, random[:1]) is None and said(float("nan")) is None
    assert said(1.99, np.full(9, 2.0)) is None and said(1.9, np.full(9, 2.0)), "one in fifty less is no difference"


@pytest.mark.parametrize(
    ("earned", "steps", "going_on", "words"),
    [
        (-5.0, 1, -0.1, "come to -20: the greedy policy of seed 7 ends at step 1 and returns -5, but going on until"),
        (-2.9, 1, -0.1, None),
        (-21.0, 1, -0.1, None),
        (-5.0, 20, -0.1, None),
        (3.0, 30, 0.1, "come to 20: the greedy policy of seed 7 goes on until then and returns 3, but a random one"),
        (5.3, 30, 0.1, None),
        (0.5, 30, 0.1, None),
    ],
    ids=["soon", "better", "unable", "half", "late", "more", "nowhere"],
)
def test_a_limit_that_learning_looks_beyond_is_named(
    earned: float, steps: int, going_on: float, words: str | None
) -> None:
    """A random policy earns 5.2 in the mean. Going on costs 20 without a limit of 30 steps, and 3 with it."""
    played = Played(np.full((1, 4), earned), np.full((1, 4), steps))
    random = RandomPlay(np.array([5.0, 5.4] * 200), 3.0, going_on)
    said = no_limit_seen(played, [7], random, limit=30, discount=0.995)
    assert said is None if words is None else words in str(said)
    assert said is None or ("TimeAwareObservation" in said and "--discount 0.967" in said)


def test_no_limit_is_named_that_the_discount_does_not_look_beyond() -> None:
    """By 0.9, ten steps of CartPole count, and what its greedy policy returns is more: that says nothing of a limit."""
    played = Played(np.full((1, 4), 47.6), np.full((1, 4), 48))
    random = RandomPlay(np.full(9, 20.0), 20.0, 1.0)
    for discount in (0.9, 0.998, 1.0):
        assert no_limit_seen(played, [7], random, limit=500, discount=discount) is None


def test_a_random_policy_that_goes_on_as_long_says_nothing_of_a_limit() -> None:
    """A run that is too short earns less than a random one does in as many steps; far limits keep their digits."""
    played, random = Played(np.full((1, 4), 60.0), np.full((1, 4), 100)), RandomPlay(np.array([90.0, 92.0]), 100, 0.91)
    assert no_limit_seen(played, [0], random, limit=100, discount=0.995) is None
    assert no_limit_seen(played, [0], random._replace(mean_length=10.0), limit=100, discount=0.995)
    late, random = Played(np.full((1, 4), 3.0), np.full((1, 4), 3000)), RandomPlay(np.full(9, 5.0), 10.0, 0.0)
    assert "--discount 0.9997)" in str(no_limit_seen(late, [0], random, limit=3000, discount=0.9999))


class Waiting(gymnasium.Env[Any, Any]):
    """Each step costs 0.1, leaving costs 5, and nothing shows that 30 steps are all. A number drifts."""

    observation_space: Any = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
    action_space: Any = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=1).astype(np.float32)
        return self.place, {}

    def step(self, action: int) -> Any:
        drift = 0.3 * self.np_random.normal(size=1) + 0.2 * (action == 1)
        self.place = (0.9 * self.place + drift).astype(np.float32)
        return self.place, -5.0 if action == 2 else -0.1 - 0.05 * float(self.place[0] > 1), action == 2, False, {}


def limited_waiting() -> Any:
    return gymnasium.wrappers.TimeLimit(Waiting(), 30)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "action_repeat"), [({}, None), ({"normalize_time": True}, None), ({"flatten": False}, None), ({}, 4)]
)
def test_the_time_that_a_wrapper_shows_is_kept_and_ends_episodes(form: dict[str, Any], action_repeat: Any) -> None:
    """A random policy does not come to the limit, so no step tells that the time matters."""
    settings, wrapper = ut.Settings(seeds=1, steps=10), {"class_path": "TimeAwareObservation", "init_args": form}
    shown = ut.FromGymnasium(limited_waiting, wrappers=[wrapper], action_repeat=action_repeat)
    plan = Run(shown, Method.of(), settings).plan
    assert plan.entries["env.ends_at_limit"].value is True
    assert not plan.entries["env.left_out"].value
    without = Run(ut.FromGymnasium(limited_waiting), Method.of(), settings).plan
    assert without.entries["env.ends_at_limit"].value is None


def test_the_time_is_seen_in_a_vector_of_environments_as_in_one() -> None:
    make = lambda: gymnasium.wrappers.TimeAwareObservation(limited_waiting())  # noqa: E731
    vector = ut.FromGymnasium(lambda: gymnasium.vector.SyncVectorEnv([make] * 2))
    assert vector.inspected.shows_time and vector.inspected.time_limit == 30
    plan = Run(vector, Method.of(), ut.Settings(seeds=1, steps=10, num_envs=2)).plan
    assert plan.entries["env.ends_at_limit"].value is True
    held = gymnasium.vector.SyncVectorEnv([Waiting] * 2)
    bare = ut.FromGymnasium(lambda: held).inspected
    assert not bare.shows_time and bare.time_limit is None
    for envs in ([object()], (), 2, None, {}):
        vars(held)["envs"] = envs
        assert time_limit(held) is None


@pytest.mark.slow
def test_the_remedy_for_a_limit_that_nothing_shows() -> None:
    settings = ut.Settings(seeds=1, steps=4_000)
    with pytest.warns(UserWarning, match="Learning looks beyond the time limit of 30 steps"):
        assert ut.train(limited_waiting, settings=settings).record.greedy_returns == [-5.0]
    with pytest.warns(UserWarning, match="Observations show when time runs out"):
        shown = ut.train(ut.FromGymnasium(limited_waiting, wrappers=["TimeAwareObservation"]), settings=settings)
    assert shown.record.greedy_returns[0] > -3.6


def test_a_greedy_policy_that_earns_no_more_than_a_random_one_is_named() -> None:
    """What was chosen is named, as far as it was. Where all random returns are equal, there is nothing to compare."""
    random = np.array([1.0, 2.0, 3.0, 2.0])

    def said(returns: float, random: Any = random, doubts: Any = ()) -> str | None:
        greedy = Played(np.array([[9.0] * 4, [returns] * 4]), np.full((2, 4), 9))
        return no_more_than_random(greedy, [3, 7], random, doubts)

    words = (
        "The greedy policy of seed 7 returns {}, no more than a random policy did before the run (2){}: train longer."
    )
    assert said(0.0) == f"{words.format(0, '')} {HIDDEN}"
    words = words.format(2, ", though 4 episodes may be bad luck")
    assert said(2.0) == f"{words} {HIDDEN}"
    assert said(2.1) is None and said(2.0, np.full(4, 2.0)) is None and said(2.0, None) is None
    greedy, same = Played(np.full((1, 4), 2.0), np.full((1, 4), 9)), np.full(4, 2.0)
    assert no_more_than_random(greedy, [7], same, (), {7: np.array([2.0, 2.0])}) is None
    assert no_more_than_random(greedy, [7], same, (), {7: np.array([2.0, 3.0])}), "training earned more once"
    assert no_more_than_random(greedy, [7], same, (), {7: np.zeros(0)}) is None, "no episode ended"
    doubts = "Doubt first what was chosen: this, and that."
    assert said(2.0, doubts=["this", "that"]) == f"{words} {doubts} {HIDDEN}"


@pytest.mark.slow
def test_only_what_was_not_given_is_doubted() -> None:
    """Of CartPole beside a number of noise: what is left out, and that an action lasts three steps."""

    class Noisy(gymnasium.Wrapper[Any, Any, Any, Any]):
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (5,), np.float32)

        def shown(self, seen: Any) -> Any:
            return np.append(seen, self.np_random.normal()).astype(np.float32)

        def reset(self, **kwargs: Any) -> Any:
            seen, info = self.env.reset(**kwargs)
            return self.shown(seen), info

        def step(self, action: Any) -> Any:
            seen, *rest = self.env.step(action)
            return self.shown(seen), *rest

    def doubts(**given: Any) -> list[str]:
        builder = ut.FromGymnasium(lambda: Noisy(gymnasium.make("CartPole-v1")), **given)
        run = Run(builder, Method.of(), ut.Settings(seeds=1, steps=10))
        run.close()
        return doubtful(run)

    left_out, lasting = doubts()
    assert "--env.left_out '[]' keeps it" in left_out and "lasts 3 steps (--env.action_repeat 1)" in lasting
    assert doubts(left_out=(4,)) == [lasting] and doubts(action_repeat=3) == [left_out]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, 0),
        ({"learner": ut.LeastSquares()}, 0),
        ({"learner": ut.GradientDescent()}, 1),
        ({"distribution": ut.GaussianMixture()}, 0),  # which no table averages
    ],
)
def test_a_network_that_was_asked_to_learn_single_states_is_doubted(parts: Any, expected: int) -> None:
    run = Run(ut.Toy(), Method.of(**parts), ut.Settings(seeds=1, steps=10))
    run.close()
    found = doubtful(run)
    assert len(found) == expected and all("leave --learner out" in each for each in found)


class Press(gymnasium.Env[Any, Any]):
    """One of four buttons does something, another one in each place, and pays 1 there; the others do nothing."""

    observation_space: Any = gymnasium.spaces.Box(0, 9, (2,), np.float32)
    action_space: Any = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0
        return self.seen(), {}

    def seen(self) -> Any:
        return np.array([self.place, 1.0], np.float32)

    def step(self, action: int) -> Any:
        moves = action == self.place % 4
        self.place += moves
        return self.seen(), float(moves), self.place == 9, False, {}


def test_actions_that_change_nothing_are_counted_and_named() -> None:
    """The first action moves once and is taken 29 times more; a random policy comes farther."""
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Press(), 30), action_repeat=1)
    played = play_episodes(
        builder, [7], 1, lambda _, seen, *__: (np.zeros(seen.shape[:2], int), ()), lambda _: (), 2, lambda *_: None
    )
    assert played.idle is not None and played.idle.tolist() == [[29 / 30] * 2] and played.lengths.tolist() == [[30, 30]]
    random = RandomPlay(np.array([5.0, 7.0]), 20.0, 0.3, idle=0.7)
    said = str(stands_still(played, [7], random))
    assert said.startswith("The greedy policy of seed 7 takes actions that change nothing") and "action_mask" in said
    assert "(97% of them, and 70% of random ones)" in said
    assert stands_still(played, [7], random._replace(returns=np.array([0.5, 0.7]))) is None, "it may wait for something"
    assert stands_still(played, [7], random._replace(idle=0.95)) is None, "that is how it is here"
    assert stands_still(played._replace(idle=None), [7], random) is None
    found = random_steps(builder, observed=True).played(1)
    assert 0.6 < found.idle < 0.8, "three of four buttons do nothing"
    assert random_steps(builder).played(1).idle == 1.0, "observations were not looked at"


def test_greedy_episodes_that_were_cut_are_named() -> None:
    """Actions of 3 steps: 3,334 of them are 10,000 steps or more."""
    greedy = Played(np.zeros((2, 4)), np.array([[9, 10_000, 9, 9], [10_000, 10_000, 10_000, 9]]))
    endless = ut.FromGymnasium(lambda: Hall(None))
    assert str(not_ended(endless, [3, 7], greedy)).startswith(
        "3 of 4 greedy episodes of seed 7 had not ended after 10,000 steps and were cut there"
    )
    assert not_ended(endless, [3, 7], greedy._replace(lengths=np.full((2, 4), 9_999))) is None
    assert not_ended(endless, [3, 7], None) is None
    for limit, said in ((10_000, False), (10_001, True)):
        limited = ut.FromGymnasium(lambda limit=limit: gymnasium.wrappers.TimeLimit(Hall(None), limit))
        assert (not_ended(limited, [3, 7], greedy) is not None) == said


def test_a_greedy_policy_that_earns_less_than_its_training_did_is_named() -> None:
    """Where 20 episodes of training succeed, 7 of 20 greedy ones have to fail: 0.35 is more than 3 standard errors."""
    span = ReturnRange(0.0, 2.0, known=True)

    def said(failed: int, trained: list[float], *keeps_best: bool) -> str | None:
        greedy = np.stack([np.full(20, 5.0), np.where(np.arange(20) < failed, 0.0, 1.0)])
        return less_than_trained(greedy, {3: np.ones(40), 7: np.array(trained)}, span, *keeps_best)

    words = str(said(20, [-9.0] * 5 + [1.0] * 20))
    assert "of seed 7 returns 0, less than its last 20 episodes of training (1)." in words
    assert apart(-6e6, -6e6 + 12.5) == ["-6e+06", "-5.99999e+06"] and apart(0.5, 0.5) == ["0.5", "0.5"]
    assert "--evaluate_every N keeps" in words and "a smaller --discount" in words
    assert said(6, [1.0] * 20) is None and said(7, [1.0] * 20), "by luck"
    assert said(20, [0.0, 1.0] * 10) and said(20, [0.0] * 16 + [1.0] * 4) is None
    assert said(20, [0.03] * 20) is None and said(20, [0.05] * 20), "2% of the range of returns is no difference"
    assert said(20, [-0.05] * 9 + [0.03] * 20), "unless all that differed was as little"
    assert said(20, [1.0] * 19) is None and "--evaluate_every" not in str(said(20, [1.0] * 20, True))
    both = str(less_than_trained(np.array([[0.5] * 20, [0.0] * 20]), {3: np.ones(20), 7: np.ones(20)}, span))
    assert "of seed 7 returns 0, less" in both and ", as 2 seeds do." in both
    assert less_than_trained(None, {7: np.ones(20)}, span) is None


@pytest.mark.parametrize(("has_chance", "later", "said"), [(True, 3.0, False), (False, 3.0, True), (True, 0.0, True)])
def test_a_lucky_draw_is_not_given_up_where_later_episodes_return_more(
    has_chance: bool, later: float, said: bool
) -> None:
    returns = np.array([10.0] + [0.0] * 59 + [later] * 60)
    words = given_up({0: returns}, {0: later}, has_chance)
    assert (words is not None) == said
    assert not said or ("it may depend on what observations do not show" in str(words)) == has_chance


class Lock(gymnasium.Env[Any, Any]):
    """Seven right actions in a row lead to a place whose reward is drawn, which a random policy does not find."""

    observation_space, action_space = gymnasium.spaces.Discrete(8), gymnasium.spaces.Discrete(4)

    def __init__(self, chance: bool) -> None:
        self.chance, self.place = chance, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.place == 7:
            return 7, float(self.np_random.integers(1, 3)) if self.chance else 1.0, True, False, {}
        self.place = self.place + 1 if action == (2, 0, 3, 1, 1, 3, 0)[self.place] else 0
        return self.place, 0.0, False, False, {}


@pytest.mark.slow
@pytest.mark.parametrize("chance", [True, False])
def test_chance_that_a_random_policy_did_not_meet_is_named(chance: bool) -> None:
    lock = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Lock(chance), 40))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ut.train(lock, settings=ut.Settings(seeds=1, steps=1_500))
    said = [str(each.message) for each in caught if "led to different outcomes, which" in str(each.message)]
    assert len(said) == chance


@pytest.mark.parametrize(
    ("second", "differ"),
    [((1, 0.5, False), False), ((1, 0.6, False), True), ((0, 0.5, False), True), ((1, 0.5, True), True)],
)
def test_outcomes_of_a_pair_differ_in_place_reward_or_end(second: tuple[int, float, bool], differ: bool) -> None:
    outcomes = Outcomes.none(pairs=2, most=5)
    for pair, (place, reward, over) in ((0, (1, 0.5, False)), (1, (0, 0.0, True)), (0, second)):
        outcomes = outcomes.add(jnp.array(pair), jnp.array(place), jnp.array(reward), jnp.array(over))
    assert jax.tree.map(lambda leaf: leaf[None], outcomes).differ(0.01) == differ


@pytest.mark.parametrize(("count", "said"), [(98, False), (99, True)])
def test_a_goal_is_given_up_after_50_later_episodes(count: int, said: bool) -> None:
    returns = np.array([10.0] + [0.0] * (count - 1))
    words = given_up({0: returns}, {0: 0.0}, False)
    assert (words is not None) == said
    assert not said or "a smaller --discount" in str(words)
    late = given_up({0: returns}, {0: 0.0}, False, {0: "0.999"})
    assert not said or ("a --discount nearer to 1, such as 0.999" in str(late) and "smaller" not in str(late))


def test_a_discount_nearer_to_1_looks_as_far_as_an_episode_is_long() -> None:
    assert nearer_to_1(0.995) == "0.9975", "twice as far"
    assert nearer_to_1(0.995, 1_000.0) == "0.999", "as far as 1,000 steps"
    assert nearer_to_1(0.9999, 1_000.0) == "0.99995"


def test_an_action_that_the_limit_cuts_short_is_no_chance() -> None:
    """It leads elsewhere than the same one that is taken in full."""
    hall = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Hall(None), 7), action_repeat=3)
    assert chosen(hall).learner == ut.LeastSquares(stochastic=False)
