"""README's one table: what UpperTail reaches by its defaults, beside the best other that is known."""

import math
import statistics

from experiments.provenance import entries, tree_of
from experiments.tables.cells import RESULTS, number, read
from experiments.tables.evidence import best_of
from experiments.tables.grids import peers_of, runs_of
from experiments.tables.solved import BEFORE
from experiments.tables.users import peers
from uppertail.records import median_episode

GRID = "DoorKey-6x6"


def rows() -> list[list[str]]:
    """A problem and what is counted, ours, the best other, and the code that makes ours; new rows go by subject."""
    problems = [
        ("ten environments as users write them, at equal steps: learned", _users(), "users/[A-Z]*.json"),
        ("randomized Chain 100: episodes until solved", _chain(), "least_squares/chain_100-gaussian.json"),
        ("DeepSea 50: episodes until the first success", _sea(), "least_squares/deep_sea_50-gaussian.json"),
        ("DeepSea 20 with chance: episodes until the policy stays good", *_good("deep_sea_20", "count_bonus")),
        ("slippery FrozenLake: until the policy stays good", *_good("lake_4x4", "count_bonus")),
        (f"MiniGrid {GRID}: steps until solved", _grid(), f"minigrid/{GRID}-*.json"),
        ("dm_control's pendulum-swingup: episodes until ten return 800", *_reached("dm_control/pendulum-swingup-v0")),
        ("cartpole-swingup_sparse: until ten return 500", *_reached("dm_control/cartpole-swingup_sparse-v0")),
    ]
    head = ["problem: what is counted", "UpperTail", "best other we know", "certified"]
    return [head, *([name, *found, trees_of(files)] for name, found, files in problems)]


def trees_of(files: str) -> str:
    """The trees of src/uppertail at which our results were made again, or else made; a dash if one is not known."""
    trees = {tree_of(entries(path.parent)[path.name]) or "" for path in RESULTS.glob(files)}
    return "-" if "" in trees or not trees else ", ".join(f"`{tree[:7]}`" for tree in sorted(trees))


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


def _good(task: str, other: str) -> tuple[tuple[str, str], str]:
    """The median episode from which on the greedy policy stays good, and our file."""

    def median(method: str) -> str:
        return number(median_episode(read(f"least_squares/chance/{task}-{method}.json")["good_from_episode"]))

    best = f"{median(other)} ({BEFORE[other].partition(' (')[0]})"
    return (median("least_squares"), best), f"least_squares/chance/{task}-least_squares.json"


def _reached(task: str) -> tuple[tuple[str, str], str]:
    """The median episode until the mean of ten is the goal, the best published one, and our file."""
    file = f"evidence/{task.replace('/', '_')}-gaussian.json"
    best = best_of(read("evidence/published.json")["episodes"][task])
    return (number(median_episode(read(file)["reached"])), best), file


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
