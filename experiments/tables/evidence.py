"""Networks beside kernel counts, on tasks and seeds that chose nothing."""

import statistics

from experiments.provenance import RESULTS
from experiments.tables.cells import read
from uppertail.records import median_episode

TASKS = (
    "CartPole-v1", "MountainCar-v0", "Acrobot-v1", "LunarLander-v3", "dm_control/pendulum-swingup-v0",
    "dm_control/cartpole-swingup_sparse-v0", "dm_control/cartpole-swingup-v0", "dm_control/ball_in_cup-catch-v0",
    "dm_control/acrobot-swingup-v0", "MountainCarContinuous-v0", "Pendulum-v1",
    "PointMaze_UMaze-v3", "PointMaze_Medium-v3",
)  # fmt: skip
SHOWN = {
    "gaussian": "the defaults",
    "optimistic_value": "one optimistic value",
    "no_evidence": "no evidence, epsilon-greedy",
    "count_bonus": "a count bonus as reward, epsilon-greedy",
    "distillation": "distillation as reward, epsilon-greedy",
    "bootstrapped": "bootstrapped DQN with priors",
    "acting_alone": "evidence in acting alone",
    "targets_alone": "evidence in targets alone",
}


def reached() -> list[list[str]]:
    """The mean of the judged episodes and when the goal was reached: the median seed, the worst, and of how many."""
    rows = [[
        "task", "", "seeds", "episodes", "mean return (worst)", "greedy policy after it", "goal", "reached at (last)",
        "published",
    ]]  # fmt: skip
    published = read("evidence/published.json")["episodes"]
    for task in TASKS:
        for method, shown in SHOWN.items():
            name = f"evidence/{task.replace('/', '_')}-{method}.json"
            if not (RESULTS / name).exists():
                continue
            cell = read(name)
            means, found = cell["judged"], [each for each in cell["reached"] if each is not None]
            when = "-" if cell["goal"] is None else f"{len(found)} of {len(means)}"
            if found:
                median = median_episode(cell["reached"])  # a seed that never got there counts as later
                when = f"{'-' if median is None else format(median, 'g')} ({max(found)}), {when}"
            goal = "-" if cell["goal"] is None else f"{cell['goal']:g} over {cell['window']}"
            rows.append([
                task, shown, str(len(means)), "{} to {}".format(*cell["judged_episodes"]),
                _with_worst(means), _with_worst(cell["greedy"]), goal, when,
                best_of(published[task]) if task in published else "-",
            ])  # fmt: skip
    return rows


def _with_worst(returns: list[float]) -> str:
    """The median and the lowest; returns of 0 or 1 by their shares."""
    digits = 2 if all(0 <= each <= 1 for each in returns) else 1
    return f"{statistics.median(returns):.{digits}f} ({min(returns):.{digits}f})"


def best_of(published: dict[str, int]) -> str:
    """The fewest episodes until the goal, and whose they are."""
    name, episodes = min(published.items(), key=lambda each: each[1])
    return f"{episodes} ({name})"
