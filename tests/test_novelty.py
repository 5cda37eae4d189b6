"""learners/novelty.py: counts by hand, and a corridor that a pair which slipped once must not close."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.learners.novelty import LEAVING, UNKNOWN, Novelty, class_of
from uppertail.learners.outcomes import Outcomes


def after(rows: list[tuple[int, int, int, bool, bool, bool]]) -> Novelty:
    """The novelty of transitions: visits of their pair before, state, next state, terminated, new to it, stayed."""
    novelty = Novelty.none(4)
    for visits, *row in rows:
        novelty = novelty.add(jnp.asarray(float(visits)), *map(jnp.asarray, row))
    return novelty.estimated()


def test_classes_of_visits_double() -> None:
    visits = [0, 1, 2, 3, 4, 7, 8, 2**20 - 1, 2**20, 2.0**40]
    np.testing.assert_array_equal(class_of(jnp.asarray(visits)), [0, 0, 1, 1, 2, 2, 3, 19, 20, 31])


def test_a_chance_is_half_that_of_the_class_before_until_something_is_seen() -> None:
    np.testing.assert_allclose(Novelty.none(2).chances[:, :4], [[0.5, 0.25, 0.125, 0.0625]] * 2)


def test_only_states_never_reached_and_ends_never_shown_are_new() -> None:
    found = after(
        [
            (0, 0, 1, False, True, False),  # the first visit of a pair says nothing of what was not seen
            (1, 0, 2, False, True, False),  # a state that was never reached
            (1, 2, 1, False, True, True),  # new to the pair, but known
            (1, 2, 2, True, True, False),  # an end that the pair had not shown
            (1, 2, 2, True, False, False),
            (2, 0, 0, False, True, False),  # known: the transition began there
            (3, 3, 3, False, True, False),
        ]
    )
    np.testing.assert_allclose(found.transitions[UNKNOWN, :3], [4, 2, 0])
    np.testing.assert_allclose(found.new[UNKNOWN, :3], [2, 0, 0])
    first = (2 + 0.3 / 2) / 4.3
    second = 0.3 * first / 2 / 2.3
    of_visits = found.of(UNKNOWN, jnp.array([1.0, 3.0, 4.0]))
    np.testing.assert_allclose(of_visits, [first, second, second / 2], rtol=1e-5)
    np.testing.assert_array_equal(found.reached, True)


def test_pairs_that_only_led_back_tell_how_often_such_pairs_leave() -> None:
    """Of three that stayed once, one leaves; a transition of another pair tells nothing of them."""
    rows = [(1, 0, 1, False, True, True), (1, 1, 1, False, False, True), (1, 2, 2, False, False, True)]
    found = after([*rows, (1, 3, 2, False, True, False)])
    np.testing.assert_allclose(found.of(LEAVING, jnp.array([1.0])), (1 + 0.3 / 2) / 3.3, rtol=1e-5)


def test_a_pair_only_led_back_until_it_leaves_or_ends() -> None:
    outcomes = Outcomes.none(pairs=6, most=9)  # three states, two actions
    for pair, place, over in ((0, 0, False), (0, 0, False), (2, 1, True), (3, 1, False), (3, 2, False), (4, 1, False)):
        outcomes = outcomes.add(jnp.array(pair), jnp.array(place), jnp.array(0.0), jnp.array(over))
    back = outcomes.only_back(jnp.arange(6), jnp.arange(6) // 2)
    assert back.tolist() == [True, False, False, False, False, False]


class Corridor(gymnasium.Env[Any, Any]):
    """Twelve cells, a step costs 1 and slips back with chance 0.2; giving up costs 5, and the far end pays 60."""

    observation_space: Any = gymnasium.spaces.Discrete(12)
    action_space: Any = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action: Any) -> Any:
        if action == 2:
            return self.cell, -5.0, True, False, {}
        if action == 0 or self.np_random.random() < 0.2:
            self.cell = max(self.cell - 1, 0)
        elif self.cell == 11:
            return self.cell, 59.0, True, False, {}
        else:
            self.cell += 1
        return self.cell, -1.0, False, False, {}


class Conveyor(Corridor):
    """Moves fail with chance 0.1; each step at the near end pays 1, at the far end 3, and no episode ends by itself."""

    action_space: Any = gymnasium.spaces.Discrete(2)

    def step(self, action: Any) -> Any:
        move = (2 * int(action) - 1) * (-1 if self.np_random.random() < 0.1 else 1)
        self.cell = min(max(self.cell + move, 0), 11)
        return self.cell, {0: 1.0, 11: 3.0}.get(self.cell, 0.0), False, False, {}


class Inventory(gymnasium.Env[Any, Any]):
    """Orders of up to 18 cost 4 and 1 each, stock 0.1 each in a step; with chance 0.1 a customer buys 12, at 3 each."""

    observation_space: Any = gymnasium.spaces.Discrete(25)
    action_space: Any = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.stock = 0
        return self.stock, {}

    def step(self, action: Any) -> Any:
        ordered = min(6 * int(action), 24 - self.stock)
        sold = min(self.stock + ordered, 12) if self.np_random.random() < 0.1 else 0
        self.stock += ordered - sold
        return self.stock, 3.0 * sold - (4 + ordered) * (ordered > 0) - 0.1 * self.stock, False, False, {}


def learned(kind: type[Corridor], steps: int, **builder: Any) -> np.ndarray:
    """The mean return of the last 20 episodes of each of ten seeds, of 100 steps at most."""
    environment = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(kind(), 100), id=kind.__name__, **builder)
    result = ut.train(environment, settings=ut.Settings(seeds=10, steps=steps, episodes=10**6))
    return np.array([np.mean(each.returns[-20:]) for each in result.record.episodes])


@pytest.mark.slow
@pytest.mark.parametrize(("returns", "least"), [((-80.0, 60.0), 7), (None, 2)])
def test_a_reward_beyond_costs_is_found(returns: Any, least: int) -> None:
    """With a constant in place of novelty, half of the seeds give up by this range, and nearly all without it."""
    assert np.sum(learned(Corridor, 6_000, returns=returns) > 30) >= least


@pytest.mark.slow
def test_a_wait_for_rare_customers_is_not_given_up() -> None:
    """The best policy returns 83, and a random one loses 62. Three of these six seeds ended at 0 or 17."""
    waits = ut.FromGymnasium(lambda: gymnasium.wrappers.TimeLimit(Inventory(), 100))
    result = ut.train(waits, seeds=6, steps=20_000)
    assert min(result.record.greedy_returns) > 30


@pytest.mark.slow
def test_a_measured_range_grows_with_what_is_learned() -> None:
    """A random policy sees returns of less than half of those at the near end, and hardly any at the far one."""
    assert np.sum(learned(Conveyor, 10_000) > 200) >= 8
