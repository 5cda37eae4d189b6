"""README's one table: what UpperTail reaches by its defaults, beside the best other that is known."""

import math
import statistics

from experiments.tables.cells import RESULTS, number, read
from experiments.tables.evidence import best_of
from experiments.tables.grids import peers_of, runs_of
from experiments.tables.solved import BEFORE
from experiments.tables.users import peers
from uppertail.records import median_episode

GRID = "DoorKey-6x6"


def rows() -> list[list[str]]:
    """A problem and what is counted, ours, and the best other; new rows go where they belong by subject."""
    return [
        ["problem: what is counted", "UpperTail", "best other we know"],
        ["ten environments as users write them, by defaults, at equal steps: learned", *_users()],
        ["randomized Chain 100: episodes until solved", *_chain()],
        ["DeepSea 50: episodes until the first success", *_sea()],
        ["DeepSea 20 with chance: episodes until the policy stays good", *_good("deep_sea_20", "count_bonus")],
        ["slippery FrozenLake: until the policy stays good", *_good("lake_4x4", "count_bonus")],
        [f"MiniGrid {GRID}: steps until solved", *_grid()],
        ["dm_control's pendulum-swingup: episodes until ten return 800", *_reached("dm_control/pendulum-swingup-v0")],
        ["cartpole-swingup_sparse: until ten return 500", *_reached("dm_control/cartpole-swingup_sparse-v0")],
    ]


def _users() -> tuple[str, str]:
    *_, learned = peers()
    return learned[2], f"{learned[4]} (PPO)"


def _published(task: str) -> list[int]:
    return read("least_squares/published.json")["first_success_episode"][task]


def _chain() -> tuple[str, str]:
    ours = number(median_episode(read("least_squares/chain_100-gaussian.json")["solved_episode"]))
    return ours, f"{min(_published('chain_100')):,} (the paper's code)"


def _sea() -> tuple[str, str]:
    ours = number(median_episode(read("least_squares/deep_sea_50-gaussian.json")["first_success_episode"]))
    return ours, f"{min(_published('deep_sea_50')):,} (DP-DQN)"


def _good(task: str, other: str) -> list[str]:
    """The median episode from which on the greedy policy stays good."""

    def median(method: str) -> str:
        return number(median_episode(read(f"least_squares/chance/{task}-{method}.json")["good_from_episode"]))

    return [median("least_squares"), f"{median(other)} ({BEFORE[other].partition(' (')[0]})"]


def _reached(task: str) -> list[str]:
    """The median episode until the mean of ten is the goal, and the best published one."""
    found = read(f"evidence/{task.replace('/', '_')}-gaussian.json")["reached"]
    return [number(median_episode(found)), best_of(read("evidence/published.json")["episodes"][task])]


def _grid() -> tuple[str, str]:
    def median(steps: list[int | None]) -> float:
        return statistics.median(math.inf if step is None else step for step in steps)

    folder, by_agent = RESULTS / "minigrid", dict[str, list[int | None]]()
    for each in peers_of(folder):
        if each["env"] == GRID:
            by_agent.setdefault(each["algorithm"], []).append(each["solved_step"])
    ours = next(run for run in runs_of(folder) if run["env"] == GRID)
    best, agent = min((median(steps), agent) for agent, steps in by_agent.items())
    return f"{median(ours['solved_step']):,.0f}", f"{best:,.0f} ({agent})"
