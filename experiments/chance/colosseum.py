"""Colosseum's continuing tables (Conserva and Rauber 2022, github.com/MichelangeloConserva/Colosseum, MIT license).

Sizes, probabilities and rewards are those of its folders `benchmark_continuous_ergodic` and
`benchmark_continuous_communicating`, 20 tables each; the code is new. Three things differ. What a seed draws (lakes,
goals, starts, taxi ranks) is one of four layouts. A beta reward is one of two values with its mean, variance
and skewness (Gauss quadrature), within [0, 1]. All states are there from the start, also those that are never reached.

With probability `lazy` nothing moves, else with probability `rand` a random action takes the place of the chosen one,
which is still the one that is paid.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uppertail as ut
from uppertail.environments.base import StateBuilder

Beta = tuple[float, float] | float
"""The two parameters of a beta distribution, or a reward that is always the same."""

Moves = Callable[[Any, int], list[tuple[Any, float]]]
Pays = Callable[[Any, int, Any], Beta]
MOST_SWEEPS = 100_000  # of value iteration
NORTH_EAST_SOUTH_WEST = ((0, 1), (1, 0), (0, -1), (-1, 0))


@dataclasses.dataclass(frozen=True)
class Colosseum(StateBuilder):
    """One of these tables, which never ends; it is truncated after `time_limit` steps.

    Args:
        kind: a name in `KINDS`.
        size: of the grid, of a room, or number of states, as the kind has it.
        lazy: chance that nothing moves.
        rand: chance that a random action is taken.
        betas: whether rewards are drawn from beta distributions.
        rewards: parameters of these, from the best to the worst; by default, those of the kind.
        rooms: rooms of MiniGridRooms; frozen: share of a FrozenLake that is no hole.
        starts: number of states in which a run may start.
        layouts: how many tables there are, one of which each seed draws.
        time_limit: steps of an episode.
    """

    kind: str = "RiverSwim"
    size: int = 25
    lazy: float = 0.0
    rand: float = 0.0
    betas: bool = True
    rewards: tuple[tuple[float, float], ...] = ()
    rooms: int = 9
    frozen: float = 0.9
    starts: int = 1
    layouts: int = 4
    time_limit: int = 500_000

    def build(self, key: Any) -> ut.FiniteMDP:
        which = jax.random.randint(key, (), 0, self.layouts)
        arrays = {name: jnp.asarray(array)[which] for name, array in _layouts(self).items()}
        return ut.FiniteMDP(**arrays, time_limit=self.time_limit)

    def reward(self, place: int, plain: float, usual: tuple[float, float]) -> Beta:
        """The reward at this place from the best: the given or the usual beta distribution, or the plain number."""
        return (self.rewards[place] if self.rewards else usual) if self.betas else plain

    def outcomes(
        self, state: Any, action: int, actions: int, moves: Moves, pays: Pays
    ) -> dict[tuple[Any, float], float]:
        """The chance of each next state and reward."""
        found: dict[tuple[Any, float], float] = {}
        shares = [self.rand / actions + (1 - self.rand) * (other == action) for other in range(actions)]
        ways = [(state, self.lazy)] + [
            (after, (1 - self.lazy) * share * chance)
            for other, share in enumerate(shares)
            for after, chance in moves(state, other)
        ]
        for after, chance in ways:
            for reward, part in two_points(pays(state, action, after)):
                if chance * part:
                    found[after, reward] = found.get((after, reward), 0.0) + chance * part
        return found


@functools.lru_cache
def _layouts(of: Colosseum) -> dict[str, np.ndarray]:
    """The arrays of the tables of all layouts, with a leading axis."""
    drawn = [KINDS[of.kind](of, np.random.default_rng(layout)) for layout in range(of.layouts)]
    found = [
        [[of.outcomes(state, action, actions, moves, pays) for action in range(actions)] for state in states]
        for states, _, actions, moves, pays in drawn
    ]
    most, starts = max(len(each) for rows in found for row in rows for each in row), []
    tables = np.zeros((3, of.layouts, len(found[0]), len(found[0][0]), most))
    for layout, (states, begins, *_) in enumerate(drawn):
        index = {state: number for number, state in enumerate(states)}
        starts.append([index[state] for state in begins])
        for number, row in enumerate(found[layout]):
            for action, each in enumerate(row):
                after, rewards = zip(*each, strict=True)
                columns = [[index[state] for state in after], rewards, [*each.values()]]
                tables[:, layout, number, action, : len(each)] = columns
    return {
        "next_state": tables[0].astype(np.int32),
        "reward": tables[1].astype(np.float32),
        "terminated": np.zeros(tables.shape[1:], bool),
        "probability": tables[2].astype(np.float32),
        "start_state": np.array(starts, np.int32),
        "start_probability": np.full(np.shape(starts), 1 / len(starts[0]), np.float32),
    }


def two_points(beta: Beta) -> list[tuple[float, float]]:
    """Values and chances of the two points that share the first three moments of a beta distribution."""
    if not isinstance(beta, tuple):
        return [(beta, 1.0)]
    a, b = beta
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    std = math.sqrt(variance)
    half = (b - a) * math.sqrt(a + b + 1) / ((a + b + 2) * math.sqrt(a * b))  # of the skewness
    low, high = (half + sign * math.sqrt(half**2 + 1) for sign in (-1, 1))
    return [(mean + std * low, high / (high - low)), (mean + std * high, -low / (high - low))]


def _river_swim(of: Colosseum, drawn: np.random.Generator) -> Any:
    """A line; the first state pays for staying on the left, the last for going right. No current."""
    last = of.size - 1
    best, sure, other = (
        of.reward(0, 1.0, (1, 1 / 0.9 - 1)),
        of.reward(1, 0.005, (1, 1 / 0.2 - 1)),
        of.reward(2, 0.0, (1, 10 / 0.2 - 1)),
    )

    def pays(state: int, action: int, after: int) -> Beta:
        return best if (state, action) == (last, 1) else sure if (state, action) == (0, 0) else other

    return range(of.size), [0], 2, lambda state, action: [(min(max(state + 2 * action - 1, 0), last), 1.0)], pays


def _deep_sea(of: Colosseum, drawn: np.random.Generator) -> Any:
    """A triangle of cells (column, rows left); at the bottom everything starts again. Moving left pays a little."""
    n = of.size
    best = of.reward(0, 1.0, (n / 1.0 - 1, 1))
    left = of.reward(1, 1 / n**2, (1, n / 0.5 - 1))
    other = of.reward(2, 0.0, (1, 10 * (n / 0.5 - 1)))

    def moves(state: tuple[int, int], action: int) -> list[tuple[Any, float]]:
        column, rows = state
        return [((0, n - 1), 1.0)] if rows == 0 else [((max(column + 2 * action - 1, 0), rows - 1), 1.0)]

    def pays(state: tuple[int, int], action: int, after: Any) -> Beta:
        return left if action == 0 else best if state == (n - 1, 0) else other

    return [(column, n - 1 - row) for row in range(n) for column in range(row + 1)], [(0, n - 1)], 2, moves, pays


def _simple_grid(of: Colosseum, drawn: np.random.Generator) -> Any:
    """A grid, from its center; staying in two opposite corners pays the best, in the other two the worst (XOR)."""
    n = of.size
    best = of.reward(0, 1.0, (1, 1 / 0.9 - 1))
    worst = of.reward(1, 0.0, (1, 10 / 0.2 - 1))
    other = of.reward(2, 0.5, (1, 1 / 0.2 - 1))
    states = [*itertools.product(range(n), repeat=2)]
    apart = [(x - (n - 1) / 2) ** 2 + (y - (n - 1) / 2) ** 2 for x, y in states]
    center = [state for state, distance in zip(states, apart, strict=True) if distance == min(apart)]

    def moves(state: tuple[int, int], action: int) -> list[tuple[Any, float]]:
        dx, dy = (*NORTH_EAST_SOUTH_WEST, (0, 0))[action]
        return [((min(max(state[0] + dx, 0), n - 1), min(max(state[1] + dy, 0), n - 1)), 1.0)]

    def pays(state: tuple[int, int], action: int, after: tuple[int, int]) -> Beta:
        if state != after or not {*state} <= {0, n - 1}:
            return other
        return best if state[0] != state[1] else worst

    return states, [center[drawn.integers(len(center))]], 5, moves, pays


def _frozen_lake(of: Colosseum, drawn: np.random.Generator) -> Any:
    """Gymnasium's random lake; holes and the goal lead back to the start. The chosen way is taken half of the time."""
    n = of.size
    best = of.reward(0, 1.0, (n**2 / 1.0 - 1, 1))
    other = of.reward(1, 0.0, (1, n**2 / 0.1 - 1))
    cells, start, goal = [*itertools.product(range(n), repeat=2)], (0, 0), (n - 1, n - 1)
    sides = ((-1, 0), (0, -1), (1, 0), (0, 1))  # its "up, right, down, left"
    while True:
        holes = {cell for cell in cells if drawn.random() >= of.frozen} - {start, goal}
        reached, new = {start}, [start]
        while new:
            x, y = new.pop()
            fresh = {(x + dx, y + dy) for dx, dy in sides} & {*cells} - holes - reached
            reached, new = reached | fresh, [*new, *fresh]
        if goal in reached:
            break

    def moved(state: tuple[int, int], action: int) -> tuple[int, int]:
        dx, dy = sides[action % 4]
        after = (min(max(state[0] + dx, 0), n - 1), min(max(state[1] + dy, 0), n - 1))
        return start if state == goal or after in holes else after

    def moves(state: tuple[int, int], action: int) -> list[tuple[Any, float]]:
        return [(moved(state, action + turn), chance) for turn, chance in ((0, 0.5), (-1, 0.25), (1, 0.25))]

    def pays(state: Any, action: int, after: tuple[int, int]) -> Beta:
        return best if after == goal else other

    return cells, [start], 4, moves, pays


def _turns(of: Colosseum, cells: Sequence[tuple[int, int]], goal: tuple[int, int], starts: Any, side: float) -> Any:
    """A walker (x, y, direction) that goes forward or turns; being at the goal pays."""
    best, other = of.reward(0, 1.0, (side**2 - 1, 1)), of.reward(1, 0.0, (1, side**2 - 1))
    free = {*cells}

    def moves(state: tuple[int, int, int], action: int) -> list[tuple[Any, float]]:
        x, y, d = state
        if action:
            return [((x, y, (d + (1, -1)[action - 1]) % 4), 1.0)]
        dx, dy = NORTH_EAST_SOUTH_WEST[d]
        return [((x + dx, y + dy, d) if (x + dx, y + dy) in free else state, 1.0)]

    def pays(state: Any, action: int, after: tuple[int, int, int]) -> Beta:
        return best if after[:2] == goal else other

    return [(x, y, d) for x, y in cells for d in range(4)], starts, 3, moves, pays


def _minigrid_empty(of: Colosseum, drawn: np.random.Generator) -> Any:
    """An empty grid; the goal is on the side opposite the starts."""
    n, side = of.size, drawn.integers(4)

    def on(side: int, place: int) -> tuple[int, int]:
        return ((0, place), (place, 0), (n - 1, n - 1 - place), (n - 1 - place, n - 1))[side % 4]

    goal = on(side + 2, drawn.integers(n))
    starts = [(*on(side, place), int(drawn.integers(4))) for place in drawn.permutation(n)[: of.starts]]
    return _turns(of, [*itertools.product(range(n), repeat=2)], goal, starts, n)


def _minigrid_rooms(of: Colosseum, drawn: np.random.Generator) -> Any:
    """A square of rooms, a door in the middle of each wall; starts and goal are in two rooms at corners."""
    n, row = of.size, math.isqrt(of.rooms)
    rooms = {
        (i, j): [(x + (n + 1) * i, y + (n + 1) * j) for x in range(n) for y in range(n)]
        for i, j in itertools.product(range(row), repeat=2)
    }
    middles, walls = [j * (n + 1) + n // 2 for j in range(row)], [j * (n + 1) - 1 for j in range(1, row)]
    doors = [*itertools.product(walls, middles), *itertools.product(middles, walls)]
    corners = [*itertools.product((0, row - 1), repeat=2)]
    first, last = drawn.permutation(4)[:2]
    goal = rooms[corners[last]][drawn.integers(n * n)]
    begins = [(x, y, d) for x, y in rooms[corners[first]] for d in range(4)]
    starts = [begins[place] for place in drawn.permutation(len(begins))[: of.starts]]
    return _turns(of, [*itertools.chain(*rooms.values()), *doors], goal, starts, n * row)


def _taxi(of: Colosseum, drawn: np.random.Generator) -> Any:
    """A taxi in 12 of 16 cells with three ranks, the only size that is used; -1 is the passenger on board.

    A delivery pays the best and brings a new passenger at another rank; picking up or dropping in vain pays the worst.
    """
    best = of.reward(0, 1.0, (1, 1 / 0.9 - 1))
    other = of.reward(1, 0.1, (1, 1 / 0.2 - 1))
    worst = of.reward(2, 0.0, (1, 10 / 0.2 - 1))
    cells = [*itertools.product(range(4), repeat=2)]
    cells = [cell for cell in cells if cell not in {(0, 1), (0, 3), (2, 0), (2, 2)}]
    quarters = [[cell for cell in cells if (cell[0] // 2, cell[1] // 2) == q] for q in np.ndindex(2, 2)]
    while True:
        four = [quarter[drawn.integers(len(quarter))] for quarter in quarters]
        if min(math.dist(one, two) for one, two in itertools.combinations(four, 2)) > 2:
            break
    ranks = [four[place] for place in drawn.permutation(4)[:3]]
    asked = [*itertools.permutations(range(3), 2)]  # where a passenger is, and wants to go
    states = [(cell, *each) for cell in cells for each in [*asked, *((-1, to) for to in range(3))]]

    def moves(state: Any, action: int) -> list[tuple[Any, float]]:
        (x, y), passenger, to = state
        if action == 4:
            return [(((x, y), -1 if passenger >= 0 and ranks[passenger] == (x, y) else passenger, to), 1.0)]
        if action == 5:
            new = [((x, y), *each) for each in asked if each[0] != to]
            return [(each, 1 / len(new)) for each in new] if passenger < 0 and ranks[to] == (x, y) else [(state, 1.0)]
        dx, dy = ((0, -1), (0, 1), (1, 0), (-1, 0))[action]
        return [(((x + dx, y + dy) if (x + dx, y + dy) in cells else (x, y), passenger, to), 1.0)]

    def pays(state: Any, action: int, after: Any) -> Beta:
        before, now = state[1] < 0, after[1] < 0  # whether the passenger is on board
        if action == 4:
            return other if now and not before else worst
        if action == 5:
            return best if before and not now else worst
        return other

    return states, [state for state in states if state[1] >= 0], 6, moves, pays


KINDS: dict[str, Callable[[Colosseum, np.random.Generator], Any]] = {
    "RiverSwim": _river_swim,
    "DeepSea": _deep_sea,
    "SimpleGrid": _simple_grid,
    "FrozenLake": _frozen_lake,
    "MiniGridEmpty": _minigrid_empty,
    "MiniGridRooms": _minigrid_rooms,
    "Taxi": _taxi,
}

_GRID = ((2.0, 0.11), (0.3, 49.0), (0.3, 4.0))
_EMPTY = ((1.0, 0.11), (1.0, 4.0))


def _empty(size: int, lazy: float, rand: float = 0.0, betas: bool = True, rewards: Any = ()) -> Colosseum:
    return Colosseum("MiniGridEmpty", size, lazy, rand, betas, rewards, starts=3)


def _rooms(size: int, rooms: int, lazy: float, rand: float = 0.0, betas: bool = True) -> Colosseum:
    return Colosseum("MiniGridRooms", size, lazy, rand, betas, rooms=rooms, starts=2)


ERGODIC = [
    Colosseum("DeepSea", 20, rand=0.1, betas=False),
    Colosseum("FrozenLake", 5, 0.01, 0.05, frozen=0.95),
    _empty(12, 0.05, 0.495),
    _empty(12, 0.1, 0.395),
    _empty(10, 0.02, 0.7, betas=False),
    _empty(14, 0.02, 0.6),
    _empty(10, 0.1, 0.21, rewards=_EMPTY),
    _empty(14, 0.02, 0.4, rewards=((0.5, 0.11), (1.5, 4.0))),
    _empty(14, 0.05, 0.31, rewards=_EMPTY),
    _empty(14, 0.1, 0.6, rewards=((0.3, 0.11), (2.0, 4.0))),
    _rooms(3, 16, 0.4, 0.1),
    _rooms(5, 9, 0.4, 0.3, betas=False),
    Colosseum("RiverSwim", 30, 0.1, 0.2, betas=False),
    Colosseum("RiverSwim", 50, 0.1, 0.1),
    Colosseum("RiverSwim", 80, 0.001, 0.2),
    Colosseum("RiverSwim", 80, 0.1, 0.01, betas=False),
    Colosseum("SimpleGrid", 15, 0.4, 0.4),
    Colosseum("SimpleGrid", 10, 0.2, 0.01, betas=False),
    Colosseum("SimpleGrid", 20, 0.1, 0.1, betas=False),
    Colosseum("Taxi", 4, 0.01, 0.1, rewards=((1.0, 0.1), (0.8, 20.0), (0.8, 50.0))),
]
COMMUNICATING = [
    Colosseum("DeepSea", 40),
    Colosseum("DeepSea", 40, betas=False),
    Colosseum("DeepSea", 35),
    Colosseum("FrozenLake", 4, 0.01, frozen=0.95),
    Colosseum("FrozenLake", 5, 0.35, frozen=0.9),
    _empty(12, 0.25, rewards=_EMPTY),
    _empty(12, 0.3, betas=False),
    _empty(8, 0.3, betas=False),
    _empty(8, 0.7, rewards=_EMPTY),
    _empty(12, 0.7, rewards=_EMPTY),
    _rooms(5, 9, 0.3),
    _rooms(3, 9, 0.5),
    _rooms(5, 9, 0.5),
    Colosseum("RiverSwim", 25, 0.1),
    Colosseum("RiverSwim", 90, 0.03),
    Colosseum("SimpleGrid", 15, 0.2, rewards=_GRID),
    Colosseum("SimpleGrid", 16, 0.065, betas=False),
    Colosseum("SimpleGrid", 25, 0.1, rewards=_GRID),
    Colosseum("SimpleGrid", 25, 0.3, betas=False),
    Colosseum("Taxi", 4, 0.01, rewards=((0.4, 0.1), (0.7, 30.0), (0.8, 50.0))),
]


def average_reward(mdp: ut.FiniteMDP, sign: float = 1.0) -> float:
    """The highest mean reward per step in the long run; with sign -1, the lowest.

    Relative value iteration in float64, on a chain that stands still half of the time, so that it settles.
    """
    weight = np.asarray(mdp.probability, np.float64)
    weight = weight / weight.sum(axis=2, keepdims=True)
    reward = sign * np.sum(weight * np.asarray(mdp.reward, np.float64), axis=2)
    value, change = np.zeros(mdp.num_states), np.zeros(mdp.num_states)
    for _ in range(MOST_SWEEPS):
        new = np.max(reward + 0.5 * value[:, None] + 0.5 * np.sum(weight * value[mdp.next_state], axis=2), axis=1)
        change, value = new - value, new - new.min()
        if np.ptp(change) < 1e-8:
            break
    return sign * float(change.mean())
