"""Ten small environments as users bring them: plain classes of Gymnasium, with the spaces that came to mind.

Each has a rule written by hand, which is the best there is or near it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

Step = tuple[Any, float, bool, bool, dict[str, Any]]
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right


class Warehouse(gymnasium.Env[Any, Any]):
    """Fetch a key from one corner, pass the gate in the wall, reach the shelf in the far corner: 1."""

    observation_space: Any = spaces.Dict({"place": spaces.MultiDiscrete([8, 8]), "key": spaces.Discrete(2)})
    action_space: Any = spaces.Discrete(5)  # MOVES, take

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.key = (0, 0), False
        return self.seen(), {}

    def seen(self) -> dict[str, Any]:
        return {"place": np.array(self.at), "key": int(self.key)}

    def step(self, action: Any) -> Step:
        if action == 4:
            self.key = self.key or self.at == (0, 7)
        else:
            row, column = self.at[0] + MOVES[action][0], self.at[1] + MOVES[action][1]
            wall = row == 4 and not (column == 4 and self.key)
            if 0 <= row < 8 and 0 <= column < 8 and not wall:
                self.at = row, column
        done = self.at == (7, 7)
        return self.seen(), float(done), done, False, {}


def warehouse(seen: dict[str, Any]) -> int:
    """To the key, to the gate, through it, to the shelf."""
    row, column = seen["place"]
    if not seen["key"]:
        return 4 if (row, column) == (0, 7) else 3 if row == 0 else 0
    if row < 5:
        return 1 if column == 4 else 3 if column < 4 else 2
    return 3 if column < 7 else 1


class Tank(gymnasium.Env[Any, Any]):
    """Hold the water of a tank at a level that changes from episode to episode, by a valve; the outflow is random."""

    observation_space: Any = spaces.Box(np.array([0.0, 0.0], np.float32), np.array([10.0, 10.0], np.float32))
    action_space: Any = spaces.Box(0.0, 1.0, (1,), np.float32)  # how far the valve is open

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.level, self.wanted, self.time = self.np_random.uniform(0, 10), self.np_random.uniform(3, 7), 0
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        return np.array([self.level, self.wanted], dtype=np.float32)

    def step(self, action: Any) -> Step:
        self.level += 1.2 * float(action[0]) - self.np_random.uniform(0.4, 0.8)
        self.level = float(np.clip(self.level, 0, 10))
        self.time += 1
        return self.seen(), -abs(self.level - self.wanted), False, self.time >= 50, {}


def tank(seen: np.ndarray) -> np.ndarray:
    """As much as is missing, and the mean outflow."""
    return np.clip([(seen[1] - seen[0] + 0.6) / 1.2], 0, 1).astype(np.float32)


WEIGHTS = np.array([[1.0, -0.5, 0.0], [-0.5, 1.0, 0.2], [0.0, -0.3, 0.9]])


class Advertisement(gymnasium.Env[Any, Any]):
    """A bandit with context: which of three advertisements to show to a visitor; an episode is one visitor."""

    observation_space: Any = spaces.Box(0.0, 1.0, (3,))
    action_space: Any = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.visitor = self.np_random.random(3).astype(np.float32)
        return self.visitor.copy(), {}

    def step(self, action: Any) -> Step:
        reward = WEIGHTS[action] @ self.visitor + 0.1 * self.np_random.normal()
        return self.visitor.copy(), float(reward), True, False, {}


def advertisement(seen: np.ndarray) -> int:
    """The best one: the weights are known."""
    return int(np.argmax(WEIGHTS @ seen))


class Queue(gymnasium.Env[Any, Any]):
    """One server, two queues: whom to serve; each waiting customer costs, in the first queue three times as much."""

    observation_space: Any = spaces.MultiDiscrete([11, 11])
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.waiting, self.time = np.array([2, 2]), 0
        return self.waiting.copy(), {}

    def step(self, action: Any) -> Step:
        served = self.np_random.random() < (0.5, 0.9)[action]
        self.waiting[action] -= served and self.waiting[action] > 0
        self.waiting += self.np_random.random(2) < (0.2, 0.35)
        self.waiting = np.minimum(self.waiting, 10)
        self.time += 1
        cost = 3.0 * self.waiting[0] + self.waiting[1]
        return self.waiting.copy(), -float(cost), False, self.time >= 60, {}


def queue(seen: np.ndarray) -> int:
    """The rule of cost and rate: the first queue saves 3 x 0.5 a step, the second 1 x 0.9."""
    return int(seen[0] == 0)


class Car(gymnasium.Env[Any, Any]):
    """A weak car in a valley: 1 at the top of the hill, nothing before."""

    observation_space: Any = spaces.Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]), dtype=np.float64)
    action_space: Any = spaces.Discrete(3)  # left, coast, right

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.v = self.np_random.uniform(-0.6, -0.4), 0.0
        return np.array([self.x, self.v]), {}

    def step(self, action: Any) -> Step:
        self.v = np.clip(self.v + 0.0012 * (action - 1) - 0.0025 * np.cos(3 * self.x), -0.07, 0.07)
        self.x = max(self.x + self.v, -1.2)
        self.v = 0.0 if self.x == -1.2 else self.v
        done = bool(self.x >= 0.5)
        return np.array([self.x, self.v]), float(done), done, False, {}


def car(seen: np.ndarray) -> int:
    """Push the way it goes."""
    return 2 if seen[1] >= 0 else 0


class Puzzle(gymnasium.Env[Any, Any]):
    """A sliding puzzle of 2 x 3: each move costs 1; the blank moves."""

    observation_space: Any = spaces.Box(0, 5, (2, 3), np.int8)
    action_space: Any = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.board = np.arange(6, dtype=np.int8).reshape(2, 3)
        while self.solved():
            for move in self.np_random.integers(4, size=100):
                self.slide(int(move))
        return self.board.copy(), {}

    def solved(self) -> bool:
        return bool((self.board.ravel() == np.arange(6)).all())

    def slide(self, move: int) -> None:
        row, column = np.argwhere(self.board == 0)[0]
        there = row + MOVES[move][0], column + MOVES[move][1]
        if 0 <= there[0] < 2 and 0 <= there[1] < 3:
            self.board[row, column], self.board[there] = self.board[there], 0

    def step(self, action: Any) -> Step:
        self.slide(action)
        return self.board.copy(), -1.0, self.solved(), False, {}


def _puzzle_moves() -> dict[bytes, int]:
    """The first move of a shortest way, from each board that can be solved, by breadth first from the end."""
    env, found = Puzzle(), dict[bytes, int]()
    boards = [np.arange(6, dtype=np.int8).reshape(2, 3)]
    found[boards[0].tobytes()] = 0
    for board in boards:
        for move in range(4):
            env.board = board.copy()
            env.slide(move)
            if env.board.tobytes() not in found:
                found[env.board.tobytes()] = move ^ 1  # back: up is beside down, left beside right
                boards.append(env.board)
    return found


PUZZLE_MOVES = _puzzle_moves()


def puzzle(seen: np.ndarray) -> int:
    """A shortest way."""
    return PUZZLE_MOVES[seen.tobytes()]


class Lights(gymnasium.Env[Any, Any]):
    """Lights out of 3 x 3: a button switches its lamp and the lamps beside it; 1 when all are out."""

    observation_space: Any = spaces.MultiBinary(9)
    action_space: Any = spaces.Discrete(9)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.lamps = np.zeros(9, np.int8)
        for button in self.np_random.choice(9, 3, replace=False):
            self.press(int(button))
        return self.lamps.copy(), {}

    def press(self, button: int) -> None:
        row, column = divmod(button, 3)
        near = [(row, column), *((row + down, column + right) for down, right in MOVES)]
        for y, x in near:
            if 0 <= y < 3 and 0 <= x < 3:
                self.lamps[3 * y + x] ^= 1

    def step(self, action: Any) -> Step:
        self.press(action)
        done = not self.lamps.any()
        return self.lamps.copy(), float(done), done, False, {}


def _presses() -> dict[bytes, int]:
    """A button that has to be pressed, for each pattern of lamps: presses commute, and each is needed at most once."""
    env, found = Lights(), dict[bytes, int]()
    for chosen in range(1, 512):
        buttons = [button for button in range(9) if chosen >> button & 1]
        env.lamps = np.zeros(9, np.int8)
        for button in buttons:
            env.press(button)
        found[env.lamps.tobytes()] = buttons[0]
    return found


PRESSES = _presses()


def lights(seen: np.ndarray) -> int:
    """A button of the only solution."""
    return PRESSES[np.asarray(seen, np.int8).tobytes()]


WALLS = ("..#..", "..A..", "###B#", ".....", "....G")  # A opens by the first switch, B by the second
SWITCHES = ((1, 0), (0, 4))


class Maze(gymnasium.Env[Any, Any]):
    """Two doors, two switches: the second switch is behind the first door, the goal behind the second; 1 there."""

    observation_space: Any = spaces.Tuple((spaces.Discrete(25), spaces.MultiBinary(2)))
    action_space: Any = spaces.MultiDiscrete([2, 5])  # press or not, and where to: MOVES, stay

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.open, self.time = (0, 0), np.zeros(2, np.int8), 0
        return self.seen(), {}

    def seen(self) -> tuple[int, np.ndarray]:
        return 5 * self.at[0] + self.at[1], self.open.copy()

    def step(self, action: Any) -> Step:
        press, move = action
        if press and self.at in SWITCHES:
            self.open[SWITCHES.index(self.at)] = 1
        row, column = (a + d for a, d in zip(self.at, (*MOVES, (0, 0))[move], strict=True))
        if 0 <= row < 5 and 0 <= column < 5:
            free = {"#": 0, "A": self.open[0], "B": self.open[1]}.get(WALLS[row][column], 1)
            self.at = (row, column) if free else self.at
        self.time += 1
        done = WALLS[self.at[0]][self.at[1]] == "G"
        return self.seen(), float(done), done, not done and self.time >= 100, {}


MAZE_WAY = {(0, 0, 0): 1, (1, 0, 0): 3, (0, 1, 0): 1, (1, 1, 0): 3, (1, 2, 0): 3, (1, 3, 0): 0, (0, 3, 0): 3} | {
    (0, 4, 1): 2, (0, 4, 0): 2, (0, 3, 1): 1, (1, 3, 1): 1, (2, 3, 1): 1, (3, 3, 1): 1, (4, 3, 1): 3
}  # fmt: skip


def maze(seen: tuple[int, np.ndarray]) -> np.ndarray:
    """The shortest way, pressing wherever it goes."""
    row, column = divmod(int(seen[0]), 5)
    return np.array([1, MAZE_WAY[row, column, int(seen[1][1])]])


class Shop(gymnasium.Env[Any, Any]):
    """An inventory: how much to order each day; sales earn, stock costs, orders arrive on the day after the next."""

    observation_space: Any = spaces.Box(0, 20, (2,), np.int64)  # stock, on its way
    action_space: Any = spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.stock, self.coming, self.day = 5, 0, 0
        return np.array([self.stock, self.coming]), {}

    def step(self, action: Any) -> Step:
        demand = self.np_random.poisson(2.0)
        sold = min(self.stock, demand)
        left = self.stock - sold
        reward = 5.0 * sold - 2.0 * action - 0.5 * left - 1.0 * (action > 0)
        self.stock, self.coming = min(left + self.coming, 20), int(action)
        self.day += 1
        return np.array([self.stock, self.coming]), float(reward), False, self.day >= 40, {}


def shop(seen: np.ndarray) -> int:
    """Order up to 7, at least two."""
    missing = int(7 - seen.sum())
    return min(5, missing) if missing >= 2 else 0


class Thermostat(gymnasium.Env[Any, Any]):
    """Heat a room for a day of quarters of an hour: 21 degrees from 7 to 22 o'clock; energy costs."""

    observation_space: Any = spaces.Dict(
        {"inside": spaces.Box(-20, 50, ()), "outside": spaces.Box(-20, 50, ()), "hour": spaces.Discrete(24)}
    )
    action_space: Any = spaces.Discrete(3)  # off, half, full

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.inside, self.mean, self.time = self.np_random.uniform(14, 18), self.np_random.uniform(-5, 10), 0
        return self.seen(), {}

    def outside(self) -> float:
        return self.mean + 4 * np.sin(2 * np.pi * (self.time / 96 - 0.375))

    def seen(self) -> dict[str, Any]:
        inside, outside = np.array(self.inside, np.float32), np.array(self.outside(), np.float32)
        return {"inside": inside, "outside": outside, "hour": self.time // 4 % 24}

    def step(self, action: Any) -> Step:
        self.inside += 0.04 * (self.outside() - self.inside) + 0.9 * action
        hour = self.time // 4 % 24
        cold = abs(self.inside - 21) if 7 <= hour < 22 else 0.0
        self.time += 1
        return self.seen(), -float(cold) - 0.1 * int(action), False, self.time >= 96, {}


def thermostat(seen: dict[str, Any]) -> int:
    """What brings it nearest to 21 degrees from 6 to 22 o'clock."""
    drift = 0.04 * (seen["outside"] - seen["inside"])
    return int(np.clip(np.rint((21 - seen["inside"] - drift) / 0.9), 0, 2)) if 6 <= seen["hour"] < 22 else 0


class Users(NamedTuple):
    """An environment of a user.

    Args:
        make: its class.
        rule: the action of an observation, by hand.
        best: whether no policy is better.
        limit: of steps, by Gymnasium's wrapper; None: it ends episodes itself.
        steps: of training, of each seed.
    """

    make: Callable[..., gymnasium.Env[Any, Any]]
    rule: Callable[[Any], Any]
    best: bool
    limit: int | None
    steps: int


USERS = {
    "Warehouse": Users(Warehouse, warehouse, True, 200, 4_000),
    "Maze": Users(Maze, maze, True, None, 4_000),
    "Lights": Users(Lights, lights, True, 50, 6_000),
    "Puzzle": Users(Puzzle, puzzle, True, 100, 6_000),
    "Queue": Users(Queue, queue, False, None, 20_000),
    "Shop": Users(Shop, shop, False, None, 4_000),
    "Advertisement": Users(Advertisement, advertisement, True, None, 1_000),
    "Tank": Users(Tank, tank, False, None, 6_000),
    "Car": Users(Car, car, True, 200, 4_000),
    "Thermostat": Users(Thermostat, thermostat, False, None, 6_000),
}

EPISODES = range(1_000, 1_100)
"""The seeds of the episodes that are compared; no training sees them."""

for _name, _each in USERS.items():
    gymnasium.register(f"{_name}-v0", entry_point=_each.make, max_episode_steps=_each.limit)
