"""Numbers that only predict themselves are left out, and goals, levers and what could not be judged are kept."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from choosing import chosen
from uppertail.defaults.left_out import IDLE_EPISODES, idle_numbers, tells_what_is_paid
from uppertail.environments import Steps

EPISODES, LENGTH = 100, 20


def walked(
    paid: Callable[..., float] = lambda place, goal, action, step: -abs(place),
    ended: Callable[..., bool] = lambda place, goal, step: False,
    wind: float = 0.0,
    seed: int = 0,
    episodes: int = EPISODES,
) -> Steps:
    """Episodes of a place that two actions push, a constant that may be a goal or a wind, another one, a slow noise."""
    random, rows = np.random.default_rng(seed), []
    for _ in range(episodes):
        place, slow, goal, constant = random.normal(), random.normal(), random.uniform(-1, 1), random.uniform(-1, 1)
        for step in range(LENGTH):
            action = int(random.integers(2))
            after, later = 0.95 * place + 0.3 * (2 * action - 1) + wind * goal, 0.98 * slow + 0.1 * random.normal()
            reward, ends = paid(after, goal, action, step), ended(after, goal, step)
            last = ends or step == LENGTH - 1
            here, there = [place, goal, constant, slow], [after, goal, constant, later]
            rows.append((here, action, reward, ends, last and not ends, there))
            place, slow = after, later
            if last:
                break
    return Steps(*map(np.array, zip(*rows, strict=True)))


@pytest.mark.parametrize("seed", range(3))
def test_constants_of_an_episode_and_slow_noise_are_left_out(seed: int) -> None:
    assert idle_numbers(walked(seed=seed)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "settings",
    [
        {"paid": lambda place, goal, action, step: -abs(place - goal)},
        {"paid": lambda place, goal, action, step: -((place - goal) ** 2)},
        {"paid": lambda place, goal, action, step: (goal > 0) == action},
        {"paid": lambda place, goal, action, step: -abs(place) - goal},
        {"paid": lambda place, goal, action, step: step == LENGTH - 1 and (place > 0) == (goal > 0)},
        {"paid": lambda place, goal, action, step: 0.0, "ended": lambda place, goal, step: place > goal + 0.5},
        {"wind": 0.1},
    ],
    ids=["distance", "square", "cue of an action", "paid", "at the end", "end", "wind"],
)
def test_what_moves_the_reward_the_end_or_another_number_is_kept(settings: Any) -> None:
    """The goal is a constant of the episode, too: only what is paid tells it from the other one, which is left out."""
    steps = walked(**settings)
    assert idle_numbers(steps).tolist() == [2, 3]
    noisy = steps._replace(reward=steps.reward + 0.1 * np.random.default_rng(1).normal(size=len(steps.reward)))
    assert 1 not in idle_numbers(noisy)


@pytest.mark.parametrize(
    "settings",
    [
        {"paid": lambda place, goal, action, step: 0.0},
        {"paid": lambda place, goal, action, step: -0.1 * action},
        {"paid": lambda place, goal, action, step: place > 3.0},
        {"episodes": IDLE_EPISODES - 1},
    ],
    ids=["no reward", "cost of actions", "rare reward", "few episodes"],
)
def test_all_is_kept_where_nothing_could_be_seen(settings: Any) -> None:
    """A goal whose reward a random policy does not see looks like a constant that means nothing."""
    assert idle_numbers(walked(**settings)).size == 0


def test_what_moves_a_number_that_is_paid_is_kept_and_so_is_what_moves_that() -> None:
    """The action moves 0; 1 drifts, moves 2, and that is paid; 3 drifts, too, and moves nothing."""
    random = np.random.default_rng(1)
    here = np.zeros((EPISODES, LENGTH + 1, 4))
    here[:, 0] = random.normal(size=(EPISODES, 4))
    action = random.integers(2, size=(EPISODES, LENGTH))
    for step in range(LENGTH):
        noise = 0.3 * random.normal(size=(3, EPISODES))
        place, first, second, alone = here[:, step].T
        new = 0.5 * place + action[:, step], 0.9 * first + noise[0], 0.5 * second + first + noise[1]
        here[:, step + 1] = np.stack([*new, 0.9 * alone + noise[2]], axis=1)
    last = np.tile(np.arange(LENGTH) == LENGTH - 1, EPISODES)
    shown, after = (each.reshape(-1, 4) for each in (here[:, :-1], here[:, 1:]))
    steps = Steps(shown, action.ravel(), after[:, 2], ~last & False, last, after)
    assert idle_numbers(steps).tolist() == [3]
    assert idle_numbers(steps, left_out=(0,)).tolist() == [3], "places are those of the whole observation"
    assert idle_numbers(steps, left_out=(0, 1, 2)).size == 0, "a run needs a number"


class Among(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with constants of the episode and fresh noise beside its own numbers."""

    def __init__(self, env: Any, constants: int, noises: int) -> None:
        super().__init__(env)
        self.counts, self.random = (constants, noises), np.random.default_rng(0)
        count = env.observation_space.shape[0] + constants + noises
        self.observation_space = spaces.Box(-np.inf, np.inf, (count,), np.float32)

    def shown(self, seen: Any) -> Any:
        return np.concatenate([seen, self.own, self.random.normal(size=self.counts[1])]).astype(np.float32)

    def reset(self, **options: Any) -> Any:
        self.own = self.random.uniform(-1, 1, self.counts[0])
        seen, info = self.env.reset(**options)
        return self.shown(seen), info

    def step(self, action: Any) -> Any:
        seen, *rest = self.env.step(action)
        return self.shown(seen), *rest


class Keyed(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole as a Dict, beside two readings that tell nothing."""

    observation_space: Any = spaces.Dict(
        {"air": spaces.Box(-9, 9, (2,), np.float32), "pole": gymnasium.make("CartPole-v1").observation_space}
    )

    def observation(self, observation: Any) -> Any:
        return {"air": self.np_random.normal(size=2).astype(np.float32), "pole": observation}


def test_a_note_calls_numbers_by_their_keys() -> None:
    (note,) = chosen(ut.FromGymnasium(lambda: Keyed(gymnasium.make("CartPole-v1")))).notes
    assert note.startswith(
        "The numbers 0 (air 0), 1 (air 1) of observations, counted from 0, are left out: they told nothing"
    )


def test_a_note_names_what_is_left_out_and_how_to_keep_it() -> None:
    """CartPole with six constants earned 155 in place of 466 while they counted."""
    found = chosen(ut.FromGymnasium(lambda: Among(gymnasium.make("CartPole-v1"), 6, 1)))
    assert found.builder.left_out == (4, 5, 6, 7, 8, 9, 10) and found.builder.repeats == 3
    noise, idle = found.notes[0].split("). ")
    assert noise.startswith("Number 10 of observations, counted from 0, is left out: it told nothing of what came next")
    assert idle.startswith(
        "The numbers 4, 5, 6, 7, 8, 9 of observations, counted from 0, are left out: they changed nothing else"
    )
    assert idle.endswith(
        "keep what is a goal whose reward the random policy did not see (--env.left_out '[10]' keeps them)."
    )


class Catch(gymnasium.Env[Any, Any]):
    """A ball falls through 5 rows of 7 cells beside a battery that drains; the lowest row shows the paddle, too."""

    observation_space: Any = spaces.Box(0, 1, (36,), np.float32)
    action_space: Any = spaces.Discrete(3)

    def __init__(self, decides: bool) -> None:
        self.decides = decides

    def shown(self) -> np.ndarray:
        cells = np.zeros((5, 7), np.float32)
        cells[self.row, self.column], cells[4, self.paddle] = 1.0, 0.5
        return np.append(cells, self.battery).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.row, self.column, self.paddle = 0, int(self.np_random.integers(7)), 3
        self.battery = self.np_random.uniform(0.3, 1)
        return self.shown(), {}

    def step(self, action: int) -> Any:
        self.paddle, self.row = int(np.clip(self.paddle + action - 1, 0, 6)), self.row + 1
        self.battery *= 0.97
        caught = self.paddle == self.column and not (self.decides and self.battery < 0.5)
        return self.shown(), float(caught and self.row == 4), self.row == 4, False, {}


@pytest.mark.parametrize("decides", [False, True])
def test_of_many_numbers_those_without_which_observations_repeat_are_judged(decides: bool) -> None:
    """A battery beside a small image: without it each image is a state, and a table learns what a network did not."""
    found = chosen(ut.FromGymnasium(lambda: Catch(decides)))
    assert found.builder.left_out == (None if decides else (35,))
    assert found.builder.features == ("auto" if decides else "hashed")


@pytest.mark.parametrize(
    "settings",
    [
        {"paid": lambda place, goal, action, step: -abs(place - goal)},
        {"paid": lambda place, goal, action, step: step == LENGTH - 1 and (place > 0) == (goal > 0)},
        {"paid": lambda place, goal, action, step: 0.0, "ended": lambda place, goal, step: goal > 0.5},
    ],
    ids=["on the way", "at an end", "an end"],
)
def test_what_is_kept_has_to_tell_what_is_paid(settings: Any) -> None:
    steps = walked(**settings)
    assert tells_what_is_paid(steps, (2, 3)) and not tells_what_is_paid(steps, (1, 2, 3))
    rare = steps._replace(action=np.random.default_rng(2).integers(64, size=len(steps.action)))
    assert tells_what_is_paid(rare, (2, 3)) and not tells_what_is_paid(rare, (1, 2, 3))


def test_what_never_varies_is_told() -> None:
    steps = walked()
    assert not tells_what_is_paid(steps, (0, 1, 2)), "its own place tells what is paid"
    same = steps._replace(reward=1.0 + 1e-9 * steps.reward, terminated=steps.truncated & False)
    assert tells_what_is_paid(same, (0, 1, 2))


class Caught(gymnasium.Env[Any, Any]):
    """The same game in four numbers: the ball, which falls sidewards, and the paddle. It is rarely caught."""

    observation_space: Any = spaces.Box(-2, 2, (4,), np.float32)
    action_space: Any = spaces.Discrete(3)

    def shown(self) -> np.ndarray:
        return np.array([self.place, self.height, self.drift, self.paddle], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.height, self.paddle = 1.0, 0.5
        self.place, self.drift = self.np_random.uniform(0, 1), self.np_random.uniform(-0.06, 0.06)
        return self.shown(), {}

    def step(self, action: int) -> Any:
        self.paddle = float(np.clip(self.paddle + 0.05 * (action - 1), 0, 1))
        self.place, self.height = self.place + self.drift, self.height - 0.04
        if not 0 < self.place < 1:
            self.place, self.drift = float(np.clip(self.place, 0, 1)), -self.drift
        caught = 1 if abs(self.place - self.paddle) < 0.08 else -1
        return self.shown(), float(caught if self.height <= 0 else 0), self.height <= 0, False, {}


def test_a_ball_that_a_random_policy_rarely_catches_is_kept() -> None:
    """Its place tells of the reward only together with the paddle's, in the last step: nothing else shows it."""
    assert chosen(ut.FromGymnasium(Caught)).builder.left_out is None


class Field(gymnasium.Env[Any, Any]):
    """A place in 7 x 7 cells, and beside it two numbers of a goal that is drawn anew in each episode."""

    observation_space: Any = spaces.Box(0, 7, (51,), np.float32)
    action_space: Any = spaces.Discrete(4)

    def shown(self) -> np.ndarray:
        return np.append(np.eye(49)[self.place[0] * 7 + self.place[1]], self.goal).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.goal = self.np_random.integers(0, 7, 2), self.np_random.uniform(0, 6, 2)
        return self.shown(), {}

    def step(self, action: int) -> Any:
        self.place = np.clip(self.place + ((-1, 0), (1, 0), (0, -1), (0, 1))[action], 0, 6)
        reached = bool(np.abs(self.place - self.goal).max() < 0.7)
        return self.shown(), float(reached), reached, False, {}


def test_a_goal_beside_many_numbers_is_kept() -> None:
    """Among so many contexts a goal that a random policy seldom reaches looks idle, so constants are not judged."""
    found = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Field(), 40)))
    assert found.builder.left_out is None and found.builder.features == "auto"


def test_more_numbers_than_steps_are_not_judged() -> None:
    """A regression on as many numbers leaves nothing of what is paid, and each would look idle."""
    steps = Steps(*(each[:1_200] for each in walked()))
    assert idle_numbers(steps, judged=np.array([1])).tolist() == [1]
    assert idle_numbers(steps, judged=np.zeros(0, np.int64)).size == 0
    many = np.hstack([steps.observation, np.random.default_rng(0).normal(size=(1_200, 1_180))])
    wide = steps._replace(observation=many, next_observation=np.roll(many, -1, axis=0))
    assert idle_numbers(wide, judged=np.array([1])).size == 0
