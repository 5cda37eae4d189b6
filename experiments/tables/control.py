"""Classic control by other libraries."""

from experiments.tables.cells import read, seeds_above

TARGETS = {"CartPole-v1": 475.0, "MountainCar-v0": -110.0, "Acrobot-v1": -100.0}
ALGORITHMS = {"DQN": "DQN", "QRDQN": "QR-DQN"}


def peers() -> list[list[str]]:
    """The mean return of 100 greedy episodes of each seed, and how many reach the target."""
    runs = read("classic_control/peers.json")["runs"]
    rows = [["", "steps", *ALGORITHMS.values()]]
    for env, target in TARGETS.items():
        steps = next(run["settings"]["steps"] for run in runs if run["env"] == env)
        cells = []
        for algorithm in ALGORITHMS:
            returns = [run["mean_greedy_return"] for run in runs if (run["env"], run["algorithm"]) == (env, algorithm)]
            cells.append(f"{', '.join(f'{value:.1f}' for value in returns)}: {seeds_above(returns, target)}")
        rows.append([env, f"{steps:,}", *cells])
    return rows
