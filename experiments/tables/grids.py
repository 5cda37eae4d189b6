"""MiniGrid, by experiments/tasks/minigrid_runs.py."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

from experiments.tables.cells import RESULTS, of_seeds

AGENTS = {
    "DQN": "SB3's DQN",
    "DQN, shorter": "SB3's DQN, shorter schedule",
    "DQN, own reward": "SB3's DQN, MiniGrid's own reward",
    "QRDQN": "sb3-contrib's QR-DQN",
    "PPO": "SB3's PPO",
}
"""The peers, as they are told."""


def runs_of(folder: Path) -> list[dict[str, Any]]:
    """Our runs in a folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*-seeds-*.json"))]


def peers_of(folder: Path, name: str = "peers.json") -> list[dict[str, Any]]:
    """The peers' runs in a folder, one for each seed."""
    path = folder / name
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []


def grids() -> list[list[str]]:
    """MiniGrid: when each seed was solved."""
    rows = [["environment", "agent", "solved", "after these steps, each seed", "median steps", "median episodes"]]
    folder = RESULTS / "minigrid"
    peers = peers_of(folder)
    for run in runs_of(folder):
        rows.append([run["env"], "Gaussian, UCB", *_solved(run["solved_step"], run["solved_episode"])])
        for algorithm, told in AGENTS.items():
            theirs = [each for each in peers if (each["algorithm"], each["env"]) == (algorithm, run["env"])]
            if theirs:
                times = ([each[f"solved_{unit}"] for each in theirs] for unit in ("step", "episode"))
                rows.append([run["env"], told, *_solved(*times)])
    return rows


def greedy() -> list[list[str]]:
    """MiniGrid: when a peer's greedy policy was near the best return, beside its training episodes and ours."""
    folder = RESULTS / "minigrid"
    told = {(each["algorithm"], each["env"], each["seed"]): each["solved_step"] for each in peers_of(folder)}
    ours = {run["env"]: run["solved_step"] for run in runs_of(folder)}
    rows = [["environment", "layout", "agent", "its greedy policy", "its training episodes", "Gaussian, UCB"]]
    for each in sorted(peers_of(folder, "peers_greedy.json"), key=lambda each: (each["env"], each["seed"])):
        algorithm, env, seed = each["algorithm"], each["env"], each["seed"]
        steps = each["solved_step"], told[algorithm, env, seed], ours[env][seed]
        rows.append([env, str(seed), AGENTS[algorithm], *("not" if step is None else f"{step:,}" for step in steps)])
    return rows


def _solved(steps: list[int | None], episodes: list[int | None]) -> list[str]:
    """How many seeds were solved, and when."""
    each = ["not" if step is None else f"{step:,}" for step in steps]
    return [of_seeds(steps), "; ".join(each), _median(steps), _median(episodes)]


def _median(times: list[int | None]) -> str:
    """The median over seeds; one that was not solved counts as later than all others."""
    median = statistics.median(math.inf if time is None else time for time in times)
    return f"{median:,.0f}" if math.isfinite(median) else "not"


def layouts() -> list[list[str]]:
    """A new layout in each episode, what of the view is an object as the state."""
    rows = [["environment", "steps", "reached, each seed", "last, each seed", "steps/s"]]
    return rows + [
        [run["env"], f"{run['steps_each']:,}", _reached(run), _each(run["last_tenth"]), _rate(run)]
        for run in _runs("minigrid_layouts/*-objects-*-seeds-*.json")
    ]


def whole_views() -> list[list[str]]:
    """The same with each view as a state, by two policies: the last tenth."""
    rows = [["environment", "steps", "policy", "each seed", "steps/s"]]
    return rows + [
        [run["env"], f"{run['steps_each']:,}", f"`UCB`{', power 1' * (run['power'] > 0)}", _each(run["last_tenth"]),
         _rate(run)]
        for run in _runs("minigrid_layouts/*-whole-*-seeds-*.json")
    ]  # fmt: skip


def imitated() -> list[list[str]]:
    """A new layout in each episode, by imitation."""
    rows = [["environment", "goal", "steps", "reached, each seed", "last, each seed", "greedy, each seed", "steps/s"]]
    return rows + [
        [run["env"], f"{run['goal']:g}", f"{run['steps_each']:,}", _reached(run), _each(run["last_tenth"]),
         _each(run["greedy"]), _rate(run)]
        for run in _runs("minigrid_imitation/*-seeds-*.json")
    ]  # fmt: skip


def by_ids() -> list[list[str]]:
    """Smaller environments by the presets for new layouts, and by their ids alone."""
    presets = {"default": "none", "imitation": "`minigrid_imitation`", "layouts": "`minigrid_layouts`"}
    rows = [["environment", "random actions", "preset", "steps", "reached, each seed", "last, each seed",
             "greedy, each seed", "steps/s"]]  # fmt: skip
    return rows + [
        [run["env"], f"{run['random']:.2f}", presets[run["preset"]], f"{run['steps_each']:,}", _reached(run),
         _each(run["last_tenth"]), _each(run["greedy"]), _rate(run)]
        for run in _runs("minigrid_ids/*-seeds-*.json") if run["preset"] in presets
    ]  # fmt: skip


def by_parts() -> list[list[str]]:
    """Smaller environments by their ids alone, and with a part of the defaults changed."""
    names = {
        "default": "the defaults", "categorical": "Categorical", "quantile": "Quantile",
        "no_visits": "visits of the episode do not count", "optimistic_value": "one optimistic value",
        "no_evidence": "no evidence, epsilon-greedy", "count_bonus": "a count bonus", "distillation": "distillation",
    }  # fmt: skip
    runs = {(run["env"], run["preset"]): run for run in _runs("minigrid_ids/*-seeds-0-to-4.json")}
    compared = sorted({env for env, preset in runs if preset == "categorical"})
    rows = [["environment", "what is changed", "reached, each seed", "last, each seed", "greedy, each seed"]]
    return rows + [
        [env, names[preset], _reached(run), _each(run["last_tenth"]), _each(run["greedy"])]
        for env in compared for preset in names if (run := runs.get((env, preset)))
    ]  # fmt: skip


def _runs(pattern: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob(pattern))]


def _reached(run: dict[str, Any]) -> str:
    return "; ".join("not" if step is None else f"{step:,}" for step in run["reached_step"])


def _each(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _rate(run: dict[str, Any]) -> str:
    return f"{run['steps_per_second']:,.0f}"
