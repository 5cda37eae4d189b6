"""Facts: what steps of a random policy show, against data whose structure is known."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from choosing import chosen
from uppertail.defaults import Facts
from uppertail.defaults.left_out import irrelevant_numbers
from uppertail.defaults.pace import Pace, decides_anew, has_step_back, has_switch, pace, turns
from uppertail.defaults.past import told_by_past, told_by_step_before
from uppertail.defaults.repeats import (
    Chance,
    Outcomes,
    chance,
    names_tell_more,
    numbers_tell_more,
    outcomes,
    repeating,
    rounded,
    roundings,
)
from uppertail.environments import Steps, random_steps, table_steps
from uppertail.training.method import Method
from uppertail.training.run import Run

COUNT, KEY = 2_000, jax.random.key(0)


def steps_of(observation: Any, next_observation: Any, reward: Any, random: np.random.Generator) -> Steps:
    never = np.zeros(COUNT, bool)
    return Steps(observation, random.integers(2, size=COUNT), reward, never, never, next_observation)


@pytest.mark.parametrize("seed", range(5))
def test_a_number_is_irrelevant_if_it_tells_nothing(seed: int) -> None:
    """Fresh noise tells nothing; what stays, what moves another number, and what is paid for tell something."""
    random = np.random.default_rng(seed)
    place, lever, paid, noise, bit = random.normal(size=(5, COUNT))
    bit = (bit > 0).astype(float)
    here = np.column_stack([place, lever, paid, noise, bit, np.ones(COUNT)])
    fresh = random.normal(size=(COUNT, 6))
    fresh[:, 0] = 0.9 * place + 0.5 * lever  # 0 keeps its value, 1 moves it; 2 is paid for; 5 never changes
    fresh[:, 4], fresh[:, 5] = fresh[:, 4] > 0, 1.0
    assert irrelevant_numbers(steps_of(here, fresh, 0.3 * paid, random)).tolist() == [3, 4]


def test_an_effect_that_two_actions_have_in_opposite_directions_counts() -> None:
    random = np.random.default_rng(0)
    cue, noise = random.normal(size=(2, COUNT))
    steps = steps_of(np.column_stack([cue, noise]), random.normal(size=(COUNT, 2)), np.zeros(COUNT), random)
    steps = steps._replace(reward=np.where(steps.action == 1, cue, -cue))
    assert irrelevant_numbers(steps).tolist() == [1]


def test_one_hot_numbers_are_relevant_although_each_follows_from_the_others() -> None:
    random = np.random.default_rng(0)
    state = np.cumsum(random.integers(1, 3, size=COUNT + 1)) % 5
    shown = np.column_stack([np.eye(5)[state], random.integers(2, size=COUNT + 1)])
    assert irrelevant_numbers(steps_of(shown[:-1], shown[1:], np.zeros(COUNT), random)).tolist() == [5]


def test_too_few_steps_leave_nothing_out() -> None:
    """A number that varied once, and numbers that are as many as the steps of an action."""
    random = np.random.default_rng(0)
    rare = np.zeros((COUNT, 1))
    rare[7] = 1.0
    assert irrelevant_numbers(steps_of(rare, random.normal(size=(COUNT, 1)), np.zeros(COUNT), random)).size == 0
    here, after = random.normal(size=(2, COUNT, COUNT // 2))
    assert irrelevant_numbers(steps_of(here, after, np.zeros(COUNT), random)).size == 0


def test_all_numbers_stay_if_none_tells_anything() -> None:
    """Noise alone is kept, since a run needs a number; so is all if nothing that follows ever varies."""
    random = np.random.default_rng(0)
    here, after = random.normal(size=(2, COUNT, 3))
    for following, reward in ((after, after[:, 0]), (np.zeros((COUNT, 3)), np.zeros(COUNT))):
        assert irrelevant_numbers(steps_of(here, following, reward, random)).size == 0


def test_observations_repeat_if_many_distinct_ones_come_again() -> None:
    grid = np.array([*itertools.product(range(5), repeat=2)], float)
    assert repeating(np.tile(grid, (4, 1))) == 1
    assert repeating(np.random.default_rng(0).normal(size=(100, 2))) == 0
    assert repeating(np.concatenate([np.tile(grid, (2, 1)), np.tile(grid[:10] + 5.0, (5, 1))])) == 0
    assert repeating(np.concatenate([grid, grid[:10], grid[:10] + 5.0, grid[:5]])) == 10 / 25


def test_a_first_observation_that_never_changes_is_one_of_many() -> None:
    """Episodes of two steps: half of all observations came before, but no other one ever comes again."""
    contexts = np.random.default_rng(0).uniform(size=(500, 1))
    shown = np.stack([np.zeros((500, 2)), np.hstack([contexts, np.ones((500, 1))])], axis=1).reshape(1_000, 2)
    assert repeating(shown) == 1 / 251


def follows(episode: list[tuple[int, int, float, bool]]) -> Steps:
    """Steps from (state, action, reward, whether it terminates); the next state is that of the next row."""
    state, action, reward, terminated = map(np.array, zip(*episode, strict=True))
    return Steps(state, action, reward, terminated, np.zeros(len(state), bool), np.append(state[1:], 9))


def test_chance_counts_pairs_that_led_to_different_outcomes() -> None:
    """By hand: (0, 0) leads to 1, then to 2; (1, 1) pays 0, then 1; (2, 0) is the same twice; (3, 0) came once."""
    seen = [(0, 0, 0.0, False), (1, 1, 0.0, False), (2, 0, 0.0, False), (3, 0, 0.0, False)]
    again = [(0, 0, 0.0, False), (2, 0, 0.0, False), (3, 1, 0.0, False), (1, 1, 1.0, False), (2, 1, 0.0, False)]
    assert chance(follows(seen + again)) == Chance(3, 2)
    assert chance(follows(seen)) == Chance(0, 0)


def test_an_end_is_an_outcome_and_where_it_leads_is_none() -> None:
    ends = follows([(0, 0, 0.0, True), (1, 0, 0.0, False), (0, 0, 0.0, True), (2, 0, 0.0, False)])
    assert chance(ends) == Chance(1, 0), "after an end, the next row is of another episode"
    once = ends._replace(terminated=np.array([True, False, False, False]))
    assert chance(once) == Chance(1, 1)


def test_numbers_that_are_left_out_are_no_part_of_an_observation() -> None:
    noise = np.random.default_rng(0).normal(size=6)
    shown = np.column_stack([np.arange(6) % 2, noise])
    nothing = np.zeros(6)
    steps = Steps(shown, nothing.astype(int), nothing, nothing > 0, nothing > 0, np.roll(shown, -1, axis=0))
    assert chance(steps) == Chance(0, 0)
    assert chance(steps, (1,)) == Chance(2, 0)


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (ut.Chain(5), False),
        (ut.Chain(5, slip=0.2), True),
        (ut.Chain(5, reward_std=0.1), True),
        (ut.FrozenLake(), False),
        (ut.FrozenLake(is_slippery=True), True),
    ],
)
def test_a_table_is_tried_in_numpy(builder: Any, expected: bool) -> None:
    table = builder.build(KEY)
    steps = table_steps(table)
    assert (chance(steps).different > 0) == expected
    assert chance(steps).repeated > 5
    longest = max(map(len, steps.episodes))
    assert longest <= table.time_limit and len(steps.reward) == 2_000
    state, goes_on = np.asarray(steps.observation), ~(steps.terminated | steps.truncated)[:-1]
    np.testing.assert_array_equal(state[1:][goes_on], np.asarray(steps.next_observation)[:-1][goes_on])


class Shown(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that shows other numbers beside its own, and all of them turned and in other units."""

    def __init__(self, env: Any, constants: int, noises: int, scale: float, turned: bool) -> None:
        super().__init__(env)
        self.random, self.counts, count = np.random.default_rng(0), (constants, noises), constants + noises + 5
        turn = np.linalg.qr(self.random.normal(size=(count, count)))[0]
        self.turn = scale * (turn if turned else np.eye(count))
        self.observation_space = spaces.Box(-np.inf, np.inf, (count,), np.float32)

    def shown(self, seen: Any) -> Any:
        """Its own, those of the episode, fresh ones, and the time."""
        self.time += 1
        fresh = self.random.normal(size=self.counts[1])
        return (self.turn @ np.concatenate([seen, self.own, fresh, [self.time / 100]])).astype(np.float32)

    def reset(self, **options: Any) -> Any:
        self.own, self.time = self.random.uniform(-1, 1, self.counts[0]), 0
        seen, info = self.env.reset(**options)
        return self.shown(seen), info

    def step(self, action: Any) -> Any:
        seen, *rest = self.env.step(action)
        return self.shown(seen), *rest


@pytest.mark.parametrize(
    "settings",
    [(0, 0, 1.0, False), (6, 0, 1.0, False), (0, 3, 1.0, False), (0, 0, 1_000.0, True), (6, 3, 1e-3, True)],
    ids=["clock", "constants", "noise", "turned", "all"],
)
def test_how_long_an_action_lasts_is_not_moved_by_numbers_that_no_action_changes(settings: Any) -> None:
    """CartPole's is 3; with six constants of an episode it was longer, and with noise 1."""
    steps = random_steps(ut.FromGymnasium(lambda: Shown(gymnasium.make("CartPole-v1"), *settings)), observed=True)
    assert pace(steps).steps == 3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), [("CartPole-v1", 3), ("MountainCar-v0", 4), ("Acrobot-v1", 2)])
def test_an_action_lasts_as_long_as_it_needs_to_make_a_difference(name: str, expected: int) -> None:
    assert pace(random_steps(ut.Gym(name), observed=True)).steps == expected


class Lamp(gymnasium.Env[Any, Any]):
    """A place in a plane that three actions push by small steps, and a lamp that the fourth one switches."""

    observation_space: Any = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space: Any = gymnasium.spaces.Discrete(4)

    def seen(self) -> Any:
        return np.array([*self.place, self.lit], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.lit = self.np_random.uniform(-1, 0, 2), 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        if action == 3:
            self.lit = 1 - self.lit
        else:
            push = np.array([(-0.02, 0.02), (0.03, 0.0), (0.0, -0.03)][action])
            self.place = np.clip(self.place + push + self.np_random.normal(0, 0.003, 2), -1, 1)
        return self.seen(), float(self.lit and self.place[0] > 0.5), bool(self.place[0] > 0.5), False, {}


@pytest.mark.slow
def test_what_switches_is_not_repeated() -> None:
    """Before, each action was taken twice, so that the lamp could never be lit."""
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Lamp(), 150))
    assert pace(random_steps(builder, observed=True)).steps > 1
    plan = Run(builder, Method.of(), ut.Settings(seeds=1, steps=10)).plan
    assert plan.entries["env.action_repeat"].value == 1
    assert plan.entries["discount"].value == 0.995, "and each step costs the usual delay"
    assert not any(has_switch(random_steps(ut.Gym(name), observed=True)) for name in ("CartPole-v1", "Acrobot-v1"))


class Plane(gymnasium.Env[Any, Any]):
    """A point whose actions move it by a step: it stops at once, or keeps a share of its speed."""

    observation_space = gymnasium.spaces.Box(0, 1, (6,), np.float64)
    action_space = gymnasium.spaces.Discrete(5)  # the last one waits

    def __init__(self, kept: float = 0.0, noise: float = 0.0, size: float = 0.05, back: bool = True) -> None:
        self.kept, self.noise, self.size, self.back, self.time = kept, noise, size, back, 0

    def seen(self) -> np.ndarray:
        return np.concatenate([self.place, self.speed if self.kept else self.goal, [self.time / 150, 0.0]])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        self.place, self.goal, self.speed = *self.np_random.uniform(0, 1, (2, 2)), np.zeros(2)
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        push = self.size * np.array([(1, 0), (-1 if self.back else 0, 0), (0, 1), (0, -1), (0, 0)][action])
        self.speed = self.kept * self.speed + push + self.noise * self.np_random.normal(size=2)
        self.place = np.clip(self.place + self.speed, 0, 1)
        there = bool(np.abs(self.place - self.goal).max() < 0.06)
        return self.seen(), float(there), there, False, {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "noise", "back"), [(0, 0, True), (0, 0.002, True), (0, 0.05, False), (0.5, 0, False), (0.9, 0, False)]
)
def test_a_step_back_is_seen_where_nothing_is_carried_on(kept: float, noise: float, back: bool) -> None:
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Plane(kept, noise), 150))
    assert has_step_back(random_steps(builder, observed=True)) == back


def test_a_move_that_no_other_undoes_is_no_step_back() -> None:
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Plane(back=False), 150))
    assert not has_step_back(random_steps(builder, observed=True))


@pytest.mark.slow
def test_where_nothing_is_carried_on_a_decision_moves_little() -> None:
    """Before, a point could reach every fourth place of each direction only, and half of all goals never."""
    builder, fine = (
        ut.FromGymnasium(lambda size=size: gymnasium.wrappers.TimeLimit(Plane(size=size), 150)) for size in (0.05, 0.02)
    )
    assert pace(random_steps(fine, observed=True)).steps > 1
    run = Run(builder, Method.of(), ut.Settings(seeds=1, steps=10))
    assert run.plan.entries["env.action_repeat"].value == 1
    assert run.plan["discount"] == pytest.approx(0.98, abs=1e-3)
    assert any("If goals are wide, --env.action_repeat 4 learns sooner." in note for note in run.notes)
    long = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Plane(size=0.7), 150))  # one step is enough anyway
    assert not any("Each move can be undone" in note for note in Run(long, Method.of(), ut.Settings(steps=10)).notes)
    assert not any(has_step_back(random_steps(ut.Gym(name), observed=True)) for name in ("CartPole-v1", "Acrobot-v1"))


@pytest.mark.slow
def test_two_steps_are_no_single_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The medians over the numbers of an action: some are single, others are not."""
    monkeypatch.setattr("uppertail.defaults.facts.pace", lambda *_: Pace(4, 2))
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Plane(), 150))
    run = Run(builder, Method.of(), ut.Settings(seeds=1, steps=10))
    assert run.plan.entries["env.action_repeat"].value == 2
    assert not any("Each move can be undone" in note for note in run.notes)


def pushed(drift: float, strength: float, kept: float = 1.0) -> Steps:
    """Episodes of 20 steps of a number that actions push to and fro, and that drifts and decays by itself."""
    random, rows = np.random.default_rng(0), []
    for _ in range(100):
        here = random.normal()
        for step in range(20):
            action = int(random.integers(2))
            after = kept * here + drift + strength * (2 * action - 1)
            rows.append(([here], action, 0.0, False, step == 19, [after]))
            here = after
    return Steps(*map(np.array, zip(*rows, strict=True)))


def test_the_change_per_step_is_counted_in_standard_deviations() -> None:
    """By a push of 0.1, a number of variance 1 + 9.5 * 0.1^2 moves by 0.095 of its deviation, and by 1 by 0.3 of it.

    Where a push back undoes a push, one step is enough, unless four move it by less than 0.3.
    """
    assert pace(pushed(0.0, 0.1, kept=0.98)).steps == 4
    assert pace(pushed(0.0, 1.0, kept=0.9)).steps == 2
    assert [pace(pushed(0.0, push)).steps for push in (0.05, 0.1, 1.0)] == [4, 1, 1]
    assert pace(pushed(0.0, 1.0, kept=0.0)).steps == 1


def test_what_no_action_moves_does_not_hide_a_step_back() -> None:
    """Cars that pass by change in each step, and are no part of what an action did; a place moves with its speed."""
    steps, places = pushed(0.0, 0.1), np.random.default_rng(1).integers(9, size=(2_000, 1))
    cars = [
        np.hstack([own, (places + late) % 9]) for late, own in enumerate((steps.observation, steps.next_observation))
    ]
    assert has_step_back(steps._replace(observation=cars[0], next_observation=cars[1]))
    carried = [
        np.hstack([own, np.cumsum(steps.observation, axis=0) + late * steps.observation])
        for late, own in enumerate((steps.observation, steps.next_observation))
    ]
    assert not has_step_back(steps._replace(observation=carried[0], next_observation=carried[1]))


def test_the_crash_that_ends_an_episode_is_no_difference_that_an_action_makes() -> None:
    """LunarLander's numbers jump as it hits the ground, so each action lasted one step in place of two."""
    steps = pushed(0.0, 0.1, kept=0.98)
    crashed = steps.next_observation.copy()
    crashed[steps.ends] += 3.0
    assert pace(steps._replace(next_observation=crashed)).steps == 4
    alone = steps._replace(truncated=np.ones(len(steps.action), bool))
    assert pace(alone).steps == 1  # no step is left


def test_an_action_that_changes_nothing_is_a_decision_at_each_step() -> None:
    """Contexts that come and go by themselves, one action, constants, and too few steps of each action to tell."""
    assert pace(pushed(0.1, 0.0)).steps == 1
    steps = pushed(0.0, 0.1)
    assert pace(steps._replace(action=np.zeros_like(steps.action))).steps == 1
    assert pace(steps._replace(observation=np.ones((2_000, 1)), next_observation=np.ones((2_000, 1)))).steps == 1
    assert pace(Steps(*(each[:80] for each in steps))).steps == 1
    assert pace(steps, (0,)).steps == 1


class Without(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment some of whose numbers are not shown."""

    def __init__(self, name: str, kept: tuple[int, ...]) -> None:
        super().__init__(gymnasium.make(name))
        self.kept = [*kept]
        self.observation_space = spaces.Box(-np.inf, np.inf, (len(kept),), np.float32)

    def observation(self, observation: Any) -> Any:
        return observation[self.kept]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shown"), [("CartPole-v1", (0, 2)), ("MountainCar-v0", (0,)), ("Acrobot-v1", (0, 1, 2, 3))]
)
def test_where_speeds_are_hidden_two_observations_are_shown(name: str, shown: tuple[int, ...]) -> None:
    """The place before tells the speed; where speeds are shown it tells nothing more."""
    hidden = ut.FromGymnasium(lambda: Without(name, shown))
    assert told_by_step_before(random_steps(hidden, observed=True)) > 0.5
    assert told_by_step_before(random_steps(ut.Gym(name), observed=True)) == 0
    run = Run(hidden, Method.of(), ut.Settings(seeds=1, steps=10))
    assert run.plan.entries["env.stack"].value == 2
    assert any("as where a speed is not shown, so two are shown" in note for note in run.notes)
    assert Run(ut.Gym(name), Method.of(), ut.Settings(seeds=1, steps=10)).plan.entries["env.stack"].value is None


def test_walls_hide_nothing() -> None:
    """Where a wall stops a mover, squares and products do not tell it, but what is shown does."""
    random, place, angle, seen = np.random.default_rng(0), np.zeros(2), 0.0, list[Any]()
    actions = random.integers(3, size=3_001)
    for action in actions:
        seen.append([*place, np.cos(angle), np.sin(angle)])
        angle += 0.25 * (action - 1)
        place = np.clip(place + 0.08 * np.array([np.cos(angle), np.sin(angle)]), -1, 1)
    shown, never = np.array(seen), np.zeros(3_000, bool)
    steps = Steps(shown[:-1], actions[:-1], np.zeros(3_000), never, never, shown[1:])
    assert told_by_step_before(steps) == 0
    assert told_by_step_before(steps._replace(observation=shown[:-1, :2], next_observation=shown[1:, :2])) > 0.5


def test_speeds_of_an_arm_with_many_actions_are_seen_by_products() -> None:
    """Two joints, shown by cosine and sine, and two torques of three levels: cosines change by sine times speed."""
    random = np.random.default_rng(0)
    actions = random.integers(9, size=2_001)
    torques = np.stack([actions // 3 - 1, actions % 3 - 1], axis=1)
    speeds = np.zeros((2_001, 2))
    for step in range(2_000):
        speeds[step + 1] = 0.9 * speeds[step] + 0.05 * torques[step]
    angles = np.cumsum(np.vstack([random.uniform(-3, 3, (1, 2)), speeds[1:]]), axis=0)
    places = np.hstack([np.cos(angles), np.sin(angles), np.cos(angles[:, ::-1]) + 1, np.sin(angles[:, ::-1]) + 1])
    for seen, is_hidden in ((places, True), (np.hstack([places, speeds]), False)):
        never = np.zeros(2_000, bool)
        steps = Steps(seen[:-1], actions[:-1], np.zeros(2_000), never, never, seen[1:])
        assert (told_by_step_before(steps) > 0) == is_hidden


def test_noise_and_what_is_shown_ask_for_no_second_observation() -> None:
    """A number that is drawn anew, one that follows from the last, and one action or too few steps to tell."""
    steps = pushed(0.0, 0.1)
    assert told_by_step_before(steps) == 0
    noise = np.random.default_rng(0).normal(size=(len(steps.action) + 1, 1))
    assert told_by_step_before(steps._replace(observation=noise[:-1], next_observation=noise[1:])) == 0
    moving = np.cumsum(np.cumsum(noise))[:, None]
    hidden = steps._replace(observation=moving[:-1], next_observation=moving[1:])
    assert told_by_step_before(hidden) > 0.1
    assert told_by_step_before(Steps(*(each[:50] for each in hidden))) == 0
    assert told_by_step_before(steps._replace(truncated=steps.truncated | True)) == 0, "no step has one before"
    clock = np.arange(len(noise), dtype=float)[:, None]
    assert told_by_step_before(steps._replace(observation=clock[:-1], next_observation=clock[1:])) == 0
    wide = np.tile(hidden.observation, 100)
    assert told_by_step_before(hidden._replace(observation=wide, next_observation=wide)) == 0, "too many to judge"
    assert told_by_step_before(steps._replace(observation=0 * noise[1:], next_observation=0 * noise[1:])) == 0


def offered(paid: Callable[..., Any], kept: float = 0.0) -> Steps:
    """Steps of a place that drifts by itself, and of two numbers of which a step keeps so much."""
    random, steps = np.random.default_rng(0), pushed(0.0, 0.1)
    drawn = random.normal(size=(COUNT + 1, 2))
    for step in range(COUNT):
        drawn[step + 1] = kept * drawn[step] + (1 - kept**2) ** 0.5 * drawn[step + 1]
    here, after = (
        np.hstack([place, each])
        for place, each in zip((steps.observation, steps.next_observation), (drawn[:-1], drawn[1:]), strict=True)
    )
    reward = paid(steps.action, *here.T) + random.normal(size=COUNT)
    return steps._replace(observation=here, next_observation=after, reward=reward)


@pytest.mark.parametrize(
    ("paid", "kept", "decides"),
    [
        (lambda action, place, offer, other: action * offer, 0.0, True),
        (lambda action, place, offer, other: action * (abs(offer - other) < 1), 0.0, True),
        (lambda action, place, offer, other: action * place * other, 0.0, True),
        (lambda action, place, offer, other: (1 - 2 * action) * (offer > 0.5), 0.2, True),
        (lambda action, place, offer, other: action * offer, 0.8, False),
        (lambda action, place, offer, other: action + offer + place * other, 0.0, False),
        (lambda action, place, offer, other: action * place, 0.0, False),
        (lambda action, place, offer, other: 0 * action, 0.0, False),
    ],
    ids=["accept", "match", "gain", "sign", "stays", "noise", "place", "none"],
)
def test_each_step_is_a_decision_if_numbers_drawn_anew_decide(paid: Any, kept: float, decides: bool) -> None:
    """An offer that an action takes is gone in the next step, so an action of four steps takes three unseen ones."""
    assert decides_anew(offered(paid, kept)) == decides


def test_numbers_that_are_left_out_decide_nothing() -> None:
    steps = offered(lambda action, place, offer, other: action * offer)
    assert decides_anew(steps, (0, 2)) and not decides_anew(steps, (1,))
    assert not decides_anew(steps._replace(action=np.zeros_like(steps.action))), "there is one action"
    assert not decides_anew(Steps(*(each[:40] for each in steps))), "too few steps"


def turned(speed: float, paid: Callable[..., Any]) -> Steps:
    """Steps beside a wheel that turns by itself, so much of a round in a step; episodes last 50 steps."""
    random, steps = np.random.default_rng(0), pushed(0.0, 0.1)
    wheel = np.arange(COUNT + 1) * speed % 1
    here, after = (
        np.column_stack([place, each])
        for place, each in zip((steps.observation, steps.next_observation), (wheel[:-1], wheel[1:]), strict=True)
    )
    truncated = np.arange(COUNT) % 50 == 49
    reward = paid(steps.action, wheel[:-1]) + random.normal(size=COUNT)
    return steps._replace(observation=here, next_observation=after, reward=reward, truncated=truncated)


def tooth(action: Any, wheel: Any) -> Any:
    return action * np.where(wheel < 0.5, 1.0, -1.0)


@pytest.mark.parametrize(
    ("speed", "paid", "found"),
    [
        (0.22, tooth, True),
        (0.5, tooth, True),
        (0.02, tooth, False),
        (0.22, lambda action, wheel: tooth(action, wheel) + 2 * action, False),
        (0.22, lambda action, wheel: tooth(1, wheel) + action, False),
        (0.22, lambda action, wheel: 0 * wheel, False),
    ],
    ids=["fast", "each", "slow", "always", "same", "none"],
)
def test_each_step_is_a_decision_if_what_actions_pay_turns_around(speed: float, paid: Any, found: bool) -> None:
    """What an action pays in each place counts, so one that always pays, now more, now less, does not turn around."""
    steps = turned(speed, paid)
    assert turns(steps) == found
    shifted = steps._replace(
        observation=1e3 * steps.observation + 7,
        next_observation=1e3 * steps.next_observation + 7,
        reward=100 * steps.reward - 5,
    )
    assert turns(shifted) == found


def test_an_end_that_turns_around_is_one_and_episodes_are_not_joined() -> None:
    steps = turned(0.22, lambda action, wheel: 0 * wheel)
    ends = (steps.action == 1) & (steps.observation[:, 1] < 0.5)
    assert not turns(steps._replace(terminated=ends)), "after an end there is no step of the same episode"
    late = turned(0.22, tooth)
    assert not turns(late._replace(truncated=np.ones_like(late.truncated)))


@pytest.mark.parametrize("seed", range(4))
def test_an_end_that_pays_is_no_turn(seed: int) -> None:
    """Before an end all other actions were taken, so what the end pays comes with less of it in the steps before."""
    random = np.random.default_rng(seed)
    place, action = np.cumsum(random.normal(size=COUNT + 1))[:, None], random.integers(3, size=COUNT)
    ends = (action == 2) & (random.random(COUNT) < 0.3)
    reward = np.where(action == 0, 3.0, np.where(ends, 33.0, 0.0))
    assert not turns(Steps(place[:-1], action, reward, ends, np.zeros(COUNT, bool), place[1:]))


class Offers(gymnasium.Env[Any, Any]):
    """Each of 30 steps shows a new offer and a stock; taking one pays it less 0.5, and fills the stock slowly."""

    observation_space: Any = spaces.Box(0, 100, (2,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def seen(self) -> np.ndarray:
        self.offer = self.np_random.random()
        return np.array([self.offer, self.stock], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.stock = self.np_random.uniform(0, 10)
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        reward = self.offer - 0.5 if action else 0.0
        self.stock += action * self.np_random.uniform(0.5, 1.5)
        return self.seen(), reward, False, False, {}


def test_the_rule_takes_offers_one_by_one() -> None:
    """Before, the stock, which an action moves slowly, said four steps: 0.39 and 0.74 of 3.75 were learned."""
    run = Run(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Offers(), 30)), Method.of(), ut.Settings(steps=10))
    entry = run.plan.entries["env.action_repeat"]
    assert entry.value == 1 and "drawn anew in each step" in entry.reason


@pytest.mark.parametrize("builder", [ut.RichSea(3), ut.FromGymnasium(lambda: gymnasium.make("CartPole-v1"))])
def test_steps_hold_observations_only_if_they_are_asked_for(builder: Any) -> None:
    """Those of images may not fit into memory; all else is the same."""
    bare, full = (random_steps(builder, observed) for observed in (False, True))
    assert bare.observation.shape == bare.next_observation.shape == (len(bare.reward), 0)
    assert full.observation.shape == full.next_observation.shape == (len(full.reward), len(full.observation[0]))
    for one, other in zip(bare[1:5], full[1:5], strict=True):
        np.testing.assert_array_equal(one, other[: len(one)])


class Far(gymnasium.Env[Any, Any]):
    """A height near 3,000, degrees Kelvin, a place around 0, one beside it, a constant, and an integer of many."""

    observation_space: Any = spaces.Dict({
        "a": spaces.Box(-np.inf, np.inf, (5,), np.float32),
        "b": spaces.Discrete(2),
    })  # fmt: skip
    action_space: Any = spaces.Discrete(2)

    def seen(self) -> Any:
        noise = self.np_random.uniform(-1, 1, 4)
        shown = np.append(noise * [20, 0.5, 1, 1] + [3000, -273.15, 0, 1.5], 7)
        return {"a": shown.astype(np.float32), "b": 1}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.step_number = 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.step_number += 1
        return self.seen(), 0.0, self.step_number == 10, False, {}


def test_a_middle_is_subtracted_from_numbers_far_from_0() -> None:
    """One near 0 by its width, constants and one-hots stay; what is subtracted has few digits."""
    builder = ut.FromGymnasium(Far)
    facts = Facts(builder)
    height, kelvin = facts.far_from_0
    assert height == (0, 3000.0)
    assert kelvin[0] == 1 and kelvin[1] == pytest.approx(-273.15, abs=0.2) and round(kelvin[1], 1) == kelvin[1]
    run = Run(builder, Method.of(), ut.Settings(seeds=1, steps=10))
    assert run.plan["env.origins"] == [*map(list, facts.far_from_0)]
    seen = np.asarray(facts.of(run.builder).steps.observation)
    assert np.abs(seen[:, :2]).max() < 25 and seen[:, 2:4].max() > 2
    assert any("these are subtracted from observations first: 3000 from number 0" in note for note in run.notes)
    kept = Run(ut.FromGymnasium(Far, origins=()), Method.of(), ut.Settings(seeds=1, steps=10))
    assert not kept.plan["env.origins"]


@pytest.mark.slow
def test_cart_pole_is_learned_far_from_0() -> None:
    """Without a middle that is subtracted the three seeds returned 30 to 44."""

    class Shifted(gymnasium.ObservationWrapper[Any, Any, Any]):
        observation_space: Any = spaces.Box(-np.inf, np.inf, (4,), np.float32)

        def observation(self, observation: Any) -> Any:
            return (observation + np.array([50, -300, 42, 400])).astype(np.float32)

    builder = ut.FromGymnasium(lambda: Shifted(gymnasium.make("CartPole-v1")))
    with pytest.warns(UserWarning, match="these are subtracted"):
        result = ut.train(builder, settings=ut.Settings(seeds=3, seed=100, steps=5_000))
    assert min(result.record.greedy_returns) >= 250


def in_a_room(kind: Any, start: float, steps: int = 2_000) -> Steps:
    """Steps of 0.1 to and fro, added up in this type, and a number that is drawn anew."""
    random, place, seen = np.random.default_rng(0), kind(start), list[Any]()
    actions = random.integers(2, size=steps + 1)
    for action in actions:
        seen.append([place, random.normal()])
        after = kind(place + kind((-0.1, 0.1)[action]))
        place = after if abs(after) < 0.55 else place
    shown, never = np.array(seen, np.float32), np.zeros(steps, bool)
    return Steps(shown[:-1], actions[:-1], np.zeros(steps), never, never, shown[1:])


@pytest.mark.parametrize(("kind", "start"), [(np.float64, -0.5), (np.float32, 0.25)])
def test_sums_in_another_order_are_one_value(kind: Any, start: float) -> None:
    """Eleven places, or ten, are as many values, once they are rounded; what is drawn anew stays as it is."""
    steps = in_a_room(kind, start)
    places = np.unique(np.round(np.asarray(steps.observation)[:, 0].astype(float), 3) + 0.0)
    assert len(np.unique(steps.observation[:, 0])) > len(places), "nothing is left of the sums"
    step, noise = roundings(np.asarray(steps.observation))
    assert 0 < step < 1e-4
    assert noise == 0
    here, after = (rounded(np.asarray(each), (step, noise)) for each in (steps.observation, steps.next_observation))
    np.testing.assert_allclose(np.unique(here[:, 0]), places, atol=1e-4)
    np.testing.assert_array_equal(here[:, 1], steps.observation[:, 1])
    of_places = steps._replace(observation=here[:, :1], next_observation=after[:, :1])
    assert chance(of_places).different == 0


def test_numbers_that_differ_by_little_stay_apart() -> None:
    """Whole ones, steps of a ten thousandth, and a number that takes any value."""
    random = np.random.default_rng(0)
    columns = random.integers(1_000, size=2_000), 1 + random.integers(9, size=2_000) * 1e-4, random.normal(size=2_000)
    assert not any(roundings(np.column_stack(columns).astype(np.float32)))
    assert roundings(np.arange(4)[:, None]) == ()
    facts = Facts(ut.Gym("CartPole-v1"))
    facts.steps = in_a_room(np.float64, -0.5)
    assert facts.rounding == (), "of steps that are known otherwise, such as those of integers"


def test_outcomes_that_differ_by_rounding_are_no_chance() -> None:
    """What is paid, or comes next, differs in the last digit of 32 bits; one that differs more is another outcome."""
    never, seen = np.zeros(4, bool), np.array([[0.3], [0.5], [0.3], [0.5]], np.float32)
    after = np.roll(seen, -1, axis=0)
    steps = Steps(seen, np.zeros(4, int), np.array([0.3, 0, 0.1 + 0.2, 0]), never, never, after)
    assert chance(steps) == Chance(2, 0)
    after[0] += np.spacing(after[0])
    assert chance(steps) == Chance(2, 0)
    after[0] += 1e-4
    assert chance(steps) == Chance(2, 1)
    assert chance(steps._replace(reward=np.array([1e6, 0, 1e6 + 10, 0]), next_observation=seen)) == Chance(2, 1)


def test_the_past_tells_what_it_pays_for_and_nothing_of_chance() -> None:
    """Episodes of 4 steps with a cue in the first: the last reward follows it, or what came before, or chance."""
    random = np.random.default_rng(0)
    cue, coin = random.integers(2, size=(2, COUNT // 4))
    here = np.column_stack([np.tile(np.arange(4), COUNT // 4), np.zeros(COUNT)])
    here[::4, 1] = cue
    steps = steps_of(here, np.roll(here, -1, axis=0), np.zeros(COUNT), random)
    ends = np.arange(COUNT) % 4 == 3

    def paid(reward: Any) -> tuple[Any, float] | None:
        told = told_by_past(steps._replace(reward=np.where(ends, np.repeat(reward, 4), 0.0), terminated=ends))
        return told and (told.stack, round(told.share, 6))

    assert paid(cue) == ("first", 1.0)
    assert paid(np.asarray(steps.action)[2::4]) == (2, 1.0)
    assert paid(np.asarray(steps.action)[1::4]) == (3, 1.0)
    assert paid(cue + 0.5 * coin) == ("first", pytest.approx(0.8, abs=0.05)), "1/4 of the cue's variance is added"
    assert paid(coin) is None and paid(np.ones(COUNT // 4)) is None
    assert paid(0.5 * cue + coin) is None, "it tells a fifth"
    here[::4, 1] = np.arange(COUNT // 4)  # a first observation that never comes again tells nothing that is known
    assert paid(coin) is None and paid(cue) is None


def test_luck_of_a_whole_episode_is_not_taken_for_what_its_first_observation_tells() -> None:
    """Ten episodes of 200 steps, each of which pays the same in all of its steps, whatever it began with."""
    random, chosen = np.random.default_rng(0), list[Any]()
    ends = np.arange(COUNT) % 200 == 199
    for _ in range(30):
        here = random.integers(5, size=COUNT)
        here[::200] = random.integers(6, size=10)
        steps = steps_of(here, np.roll(here, -1), np.repeat(random.normal(size=10), 200), random)
        chosen.append(told_by_past(steps._replace(truncated=ends)))
    assert chosen == [None] * 30


class Goals(gymnasium.Env[Any, Any]):
    """A grid of 4 x 4 with a goal that is drawn anew."""

    observation_space: Any = spaces.Dict({"at": spaces.MultiDiscrete([4, 4]), "goal": spaces.Discrete(16)})
    action_space: Any = spaces.Discrete(4)
    drawn = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.at, self.goal = np.zeros(2, int), int(self.np_random.integers(16)) if self.drawn else 15
        return {"at": self.at.copy(), "goal": self.goal}, {}

    def step(self, action: Any) -> Any:
        self.at = np.clip(self.at + ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)], 0, 3)
        done = 4 * self.at[0] + self.at[1] == self.goal
        return {"at": self.at.copy(), "goal": self.goal}, float(done), bool(done), False, {}


class Fixed(Goals):
    drawn = False


@pytest.mark.parametrize(
    ("kind", "steps", "learner", "is_said"),
    [
        (Goals, 1_000, None, True),
        (Goals, 2_000, None, False),
        (Goals, None, None, False),
        (Goals, 1_000, ut.GradientDescent(), False),
        (Fixed, 1_000, None, False),
    ],
)
def test_a_table_that_has_to_learn_each_goal_alone_is_said(kind: Any, steps: Any, learner: Any, is_said: bool) -> None:
    """1,024 pairs; of the observation, only the goal stays the same in each episode and differs between them."""
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(kind(), 30), id="Goals")
    run = Run(builder, Method(learner=learner), ut.Settings(seeds=1, steps=steps))
    run.close()
    said = [note for note in run.notes if "stays the same in each episode" in note]
    assert bool(said) == is_said
    assert all("1,024 pairs of state and action in 1,000 steps. --env.features random" in note for note in said)


def test_nothing_is_measured_twice_unless_actions_last_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def counted(builder: Any, observed: bool, say: Any) -> Steps:
        asked.append(observed)
        return random_steps(builder, observed, say)

    monkeypatch.setattr("uppertail.defaults.facts.random_steps", counted)
    facts = Facts(builder := ut.Gym("CartPole-v1"))
    assert facts.range(0.99) == facts.of(builder).range(0.99) and facts.chance() == Chance(0, 0)
    assert asked == [True]
    assert facts.of(builder.with_settings(action_repeat=2)).range(0.99).high > facts.range(0.99).high
    assert asked == [True, False]


def test_a_slow_environment_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(10**6))
    monkeypatch.setattr("uppertail.environments.random_policy.time.monotonic", lambda: float(next(times)))
    lines, looked = list[str](), list[str]()
    random_steps(ut.Gym("CartPole-v1"), say=lines.append)
    said = (
        "Before the run a random policy tries the environment: 6 steps in 6 s; it ends after 20 episodes, or about "
        "5,000 steps"
    )
    assert lines[0] == f"{said}."
    random_steps(ut.Gym("CartPole-v1"), observed=True, say=looked.append)
    assert looked[0] == f"{said}, but not before 2,000."
    assert [int(line.split()[9]) for line in lines[:4]] == [6, 11, 21, 41]


def waiting(labels: np.ndarray, paid: float = 1.0, arrivals: float = 0.5) -> Steps:
    """Episodes of a queue of up to 11 customers that an action serves; each costs; numbers are labels of it."""
    random, rows = np.random.default_rng(0), []
    for _ in range(40):
        count = 2
        for step in range(50):
            action = int(random.integers(2))
            after = min(max(count - action, 0) + int(random.random() < arrivals), 11)
            rows.append(([labels[count]], action, -paid * after, False, step == 49, [labels[after]]))
            count = after
    return Steps(*map(np.array, zip(*rows, strict=True)))


def test_near_numbers_tell_more_than_equal_ones_where_they_are_in_order() -> None:
    """Of labels out of order, equal ones tell more; where nothing is paid, nothing tells."""
    order = np.arange(12.0)
    assert numbers_tell_more(waiting(order))
    assert not numbers_tell_more(waiting(order), (0,)), "no number is left"
    assert not numbers_tell_more(waiting(np.random.default_rng(0).permutation(order)))
    assert not numbers_tell_more(waiting(order, paid=0.0))
    assert not numbers_tell_more(waiting(order % 2)), "of two values none is nearer"
    one = waiting(order)._replace(truncated=np.zeros(2_000, bool))
    assert not numbers_tell_more(one), "an episode alone has no other half"


@pytest.mark.parametrize(("count", "more"), [(2, False), (5, True)])
def test_names_tell_more_than_equal_observations_where_these_are_rare(count: int, more: bool) -> None:
    """With noise, a sum of two names of five tells a little more than 25 equal observations: that is no share."""
    random, time = np.random.default_rng(0), np.arange(COUNT)
    seen = random.integers(5, size=(COUNT, count))
    steps = steps_of(seen, seen, seen.sum(axis=1) + 2.0 * random.normal(size=COUNT), random)
    assert names_tell_more(steps._replace(truncated=time % 10 == 9)) is more


class Shop(gymnasium.Env[Any, Any]):
    """Stocks of two goods that sell by chance; an action orders some of one of them."""

    observation_space: Any = gymnasium.spaces.Box(0, 15, (2,), np.int64)
    action_space: Any = gymnasium.spaces.Discrete(4)

    def __init__(self, by_chance: bool) -> None:
        self.by_chance = by_chance

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.stock = np.array([5, 5])
        return self.stock.copy(), {}

    def step(self, action: int) -> Any:
        sold = np.minimum(self.stock, self.np_random.poisson(1.5, 2) if self.by_chance else 1)
        self.stock = np.minimum(self.stock - sold + [(2, 0), (5, 0), (0, 2), (0, 5)][action], 15)
        return self.stock.copy(), float(5 * sold.sum() - 0.5 * self.stock.sum()), False, False, {}


@pytest.mark.parametrize("by_chance", [True, False])
def test_a_network_learns_from_numbers_that_come_again_if_near_ones_tell_more(by_chance: bool) -> None:
    """Without chance a table is exact."""
    found = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Shop(by_chance), 40)))
    assert found.builder.features == ("auto" if by_chance else "hashed")
    assert found.learner.stochastic == by_chance, "the table has seen none, and critics of the network differ by noise"
    assert any("near observations tell more" in note for note in found.notes) == by_chance


@pytest.mark.parametrize("asked", [{"learner": ut.LeastSquares()}, {"policy": ut.PosteriorSampling()}])
def test_where_a_table_is_asked_for_numbers_that_come_again_are_states(asked: Any) -> None:
    found = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Shop(by_chance=True), 40)), **asked)
    assert found.builder.features == "hashed"


class Stocks(Shop):
    """The same stocks as integers, under other labels if they are given; up to `size - 1` of each."""

    def __init__(self, by_chance: bool, size: int = 16, labels: np.ndarray | None = None) -> None:
        super().__init__(by_chance)
        self.labels = np.arange(size) if labels is None else labels
        self.observation_space = gymnasium.spaces.MultiDiscrete([size, size], start=[0, 3])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.labels[super().reset(seed=seed)[0]] + [0, 3], {}

    def step(self, action: int) -> Any:
        stock, *rest = super().step(action)
        return self.labels[stock] + [0, 3], *rest


@pytest.mark.parametrize(
    ("by_chance", "size", "labels", "settings", "encoding"),
    [
        (True, 16, None, {}, "numbers"),
        (True, 100, None, {}, "numbers"),
        (False, 16, None, {}, "one_hot"),
        (True, 16, np.random.default_rng(0).permutation(16), {}, "one_hot"),
        (True, 16, None, {"features": "hashed"}, "one_hot"),
    ],
    ids=["in order", "many values", "without chance", "out of order", "states are asked for"],
)
def test_integers_in_order_are_numbers_where_outcomes_are_left_to_chance(
    by_chance: bool, size: int, labels: Any, settings: Any, encoding: str
) -> None:
    made = functools.partial(Stocks, by_chance, size, labels)
    found = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(made(), 40), **settings))
    assert found.builder.encoding == encoding
    assert sum("near integers tell more" in note for note in found.notes) == (encoding == "numbers")
    if encoding == "numbers":
        assert found.builder.observations == ut.Numbers((0.0, 0.0), (size - 1.0, size - 1.0))


@pytest.mark.parametrize(("digits", "steps"), [(6, 3), (1, 1)])
def test_each_step_is_a_decision_where_numbers_have_few_values(digits: int, steps: int) -> None:
    """CartPole with its place, speed and angles rounded to a digit: -4.8 to 4.8, and so on."""

    def made() -> Any:
        env = gymnasium.make("CartPole-v1")
        return gymnasium.wrappers.TransformObservation(env, lambda seen: np.round(seen, digits), env.observation_space)

    found = chosen(ut.FromGymnasium(made))
    assert (found.builder.features, found.builder.repeats) == ("auto", steps)
    assert found.learner.stochastic == (digits == 1), "what rounding hides is chance to who sees the rest"


@pytest.mark.parametrize("asked", [False, True])
def test_that_outcomes_are_left_to_chance_may_be_said_of_a_network(asked: bool) -> None:
    found = chosen(
        ut.FromGymnasium(lambda: gymnasium.make("CartPole-v1")), learner=ut.GradientDescent(stochastic=asked)
    )
    assert found.learner.stochastic == asked and "learner.stochastic" not in found.entries


class Queue(gymnasium.Env[Any, Any]):
    """Customers who come by chance, each of whom costs, and an integer of noise."""

    observation_space: Any = spaces.MultiDiscrete([12, 30])
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.waiting = 3
        return np.array([3, self.np_random.integers(30)]), {}

    def step(self, action: int) -> Any:
        self.waiting = min(max(self.waiting - action, 0) + int(self.np_random.random() < 0.5), 11)
        return np.array([self.waiting, self.np_random.integers(30)]), -float(self.waiting), False, False, {}


def test_what_is_left_out_of_integers_is_named_by_places_of_numbers() -> None:
    found = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Queue(), 50)))
    assert (found.builder.encoding, found.builder.left_out) == ("numbers", (1,))
    assert any("(--env.encoding numbers --env.left_out '[]' keeps it)." in note for note in found.notes)
    kept = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Queue(), 50), left_out=()))
    assert (kept.builder.encoding, kept.builder.left_out) == ("numbers", ())


@pytest.mark.parametrize(
    ("size", "settings", "asked", "encoding"),
    [
        (16, {}, {"learner": ut.GradientDescent()}, "numbers"),
        (16, {"left_out": ()}, {}, "numbers"),
        (16, {"stack": 2}, {}, "one_hot"),
        (100, {}, {}, "numbers"),
    ],
)
def test_a_run_reads_integers_in_order_as_numbers(
    monkeypatch: pytest.MonkeyPatch, size: int, settings: Any, asked: Any, encoding: str
) -> None:
    """What a random policy saw is read anew; it does not step again."""
    walks = list[Any]()
    monkeypatch.setattr(
        "uppertail.defaults.facts.random_steps", lambda *given: walks.append(random_steps(*given)) or walks[-1]
    )
    made = functools.partial(Stocks, True, size)
    builder = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(made(), 40), **settings)
    run = Run(builder, Method.of(**asked), ut.Settings(seeds=1, steps=10))
    read: Any = run.builder
    assert (read.encoding, len(walks)) == (encoding, 1)
    if encoding == "numbers":
        assert isinstance(run.method.learner, ut.GradientDescent) and run.builder.repeats == 1
        assert sum("near integers tell more" in note for note in run.notes) == 1


@pytest.mark.parametrize("asked", [{"learner": ut.LeastSquares()}, {"policy": ut.PosteriorSampling()}])
def test_where_a_table_is_asked_for_integers_in_order_are_states(asked: Any) -> None:
    found = chosen(ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Stocks(by_chance=True), 40)), **asked)
    assert isinstance(found.builder.observations, ut.States)


def doors(leads: str, episodes: int = 40) -> Steps:
    """Ten steps to and fro in each episode; the way back leads to place 8 or 9: by the episode, by chance, or to 8."""
    random, rows = np.random.default_rng(0), []
    for _ in range(episodes):
        layout, here = int(random.integers(2)), 0
        for step in range(10):
            by = {"episode": layout, "chance": int(random.integers(2)), "nothing": 0}[leads]
            after = 5 if here != 5 else 8 + by
            rows.append(([here], 0, float(random.normal()), False, step == 9, [after]))
            here = after
    return Steps(*map(np.array, zip(*rows, strict=True)))


@pytest.mark.parametrize(
    ("steps", "by_episode", "by_chance"),
    [
        (doors("episode"), True, False),
        (doors("chance"), False, True),
        (doors("nothing"), False, False),
        (doors("episode", episodes=3), False, False),
    ],
    ids=["by the episode", "by chance", "paid otherwise alone", "too few to tell"],
)
def test_actions_lead_elsewhere_by_the_episode_or_by_chance(steps: Steps, by_episode: bool, by_chance: bool) -> None:
    found = outcomes(steps)
    assert (found.are_by_episode, found.are_by_chance) == (by_episode, by_chance)


def test_outcomes_are_counted_within_episodes_and_between() -> None:
    """By hand: of ten steps 0, 5, 8, 5, 8, ..., seven are a pair of the same episode again, and three of another."""
    found = outcomes(doors("nothing", episodes=2))
    assert found.again.tolist() == [14, 3] and found.elsewhere.tolist() == [0, 0]


def test_a_layout_that_a_number_shows_differs_only_without_it() -> None:
    steps, layout = doors("episode"), []
    for each in np.split(np.asarray(steps.next_observation), steps.ends[:-1] + 1):
        layout += [each.max()] * len(each)
    shown = [np.column_stack([each, layout]) for each in (steps.observation, steps.next_observation)]
    steps = steps._replace(observation=shown[0], next_observation=shown[1])
    assert not outcomes(steps).are_by_episode and outcomes(steps, left_out=(1,)).are_by_episode


@pytest.mark.parametrize(("elsewhere", "differ"), [((0, 3), False), ((0, 5), True), ((9, 18), False), ((9, 20), True)])
def test_a_few_more_that_lead_elsewhere_may_be_an_accident(elsewhere: tuple[int, int], differ: bool) -> None:
    """By hand: of 100 between episodes, 1 or 10 are expected, and three standard deviations are 3.0 or 9.0."""
    assert Outcomes(np.array([99, 100]), np.array(elsewhere)).are_by_episode is differ
