"""The paper's figures, by `python -m experiments run paper`."""

import statistics
from typing import Any

from experiments.tables.cells import summary
from uppertail.records import episode_text


def figure(name: str) -> dict[str, Any]:
    """The numbers of a figure."""
    return summary(f"reproduction/{name}")


def interval(numbers: list[float], digits: int = 2) -> str:
    """A mean and its interval."""
    mean, low, high = (f"{value:.{digits}f}" for value in numbers)
    return f"{mean} [{low}, {high}]"


def chain() -> list[list[str]]:
    """Fig. 2: by length and method."""
    rows = [["Chain", "method", "solved (share, interval)", "solved at, median", "times floor",
             "mean return over the run", "success rate at the end", "kept", "s"]]  # fmt: skip
    for row in figure("chain")["rows"]:
        _, low, high = row["solved_share"]
        rows.append([
            str(row["length"]), row["method"], f"{row['solved']} of {row['seeds']} [{low:.2f}, {high:.2f}]",
            episode_text(row["solved_at"]), "-" if row["times_floor"] is None else f"{row['times_floor']:.1f}",
            interval(row["mean_return"]), interval(row["final_success_rate"]), f"{row['kept']} of {row['seeds']}",
            str(row["seconds"]),
        ])  # fmt: skip
    return rows


def lake() -> list[list[str]]:
    """Fig. 3: by method."""
    rows = [["method", "solved", "mean return over the run", "success rate at the end",
             "greedy policy at the end", "steps to the goal at the end"]]  # fmt: skip
    for row in figure("frozen-lake")["rows"]:
        digits = 2 if row["mean_return"][0] > 0.1 else 4
        rows.append([
            row["method"], f"{row['solved']} of {row['seeds']}", interval(row["mean_return"], digits),
            interval(row["final_success_rate"]), f"{row['greedy_return'][0]:.2f}",
            f"{statistics.mean(s for s in row['steps_to_the_goal'] if s is not None):.0f}",
        ])  # fmt: skip
    return rows


def evaluation() -> list[list[str]]:
    """Learned against exact distributions: mean over states and actions, and the largest."""
    distances = ("wasserstein", "cramer", "error_of_mean", "error_of_std")
    rows = [["environment", "family", "Wasserstein-1", "Cramér", "error of the mean", "error of the sd"]]
    for row in figure("policy-evaluation")["rows"]:
        told = [f"{row[f'{name}_mean'][0]:.3f} ({row[f'{name}_largest'][0]:.3f})" for name in distances]
        rows.append([row["env"], row["family"], *told])
    return rows


def uncertainties() -> list[list[str]]:
    """Spread between and within members beside the exact one, and calibration, at the end."""
    rows = [["environment", "family", "between, at first", "between", "within", "exact", "of it chance",
             "inside 50%", "80%", "95%", "CRPS", "of the exact"]]  # fmt: skip
    for row in figure("uncertainties")["rows"]:
        spreads = ("between_before", "between", "within", "exact", "exact_chance")
        rows.append([
            row["env"], row["family"], *(f"{row[name][0]:.4f}" for name in spreads),
            *(f"{row[f'inside_{share}'][0]:.2f}" for share in (0.5, 0.8, 0.95)),
            f"{row['crps'][0]:.3f}", f"{row['crps_of_exact'][0]:.3f}",
        ])  # fmt: skip
    return rows
