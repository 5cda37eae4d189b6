"""`uppertail inspect`: what a run learned, in the terminal: distributions of a state, the greedy path."""

import json
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from uppertail.cli import print_table
from uppertail.cli.options import Values
from uppertail.cli.trained import open_run
from uppertail.errors import InputError
from uppertail.records import Distributions, RunFolder, config_of
from uppertail.reports.details import SPREAD, mixture_density
from uppertail.reports.groups import environment_label
from uppertail.reports.seeds import Seed
from uppertail.training.along import SHOWN as ALONG

WIDTH, FINER = 20, 8  # characters of a drawn distribution, and points in each: peaks are narrow
BLOCKS = "·▁▂▃▄▅▆▇█"


def main(config: Values) -> int:
    """Runs the command."""
    if config.step is not None and config.step < 0:
        raise InputError(f"step is {config.step}: use 0, the beginning, or more.")
    config_of(config.folder)  # refuses what is no run's folder
    run = RunFolder(config.folder)
    number = run.seeds[0] if config.seed is None else config.seed
    if number not in run.seeds:
        raise InputError(f"There is no seed {number} in this run: give one from {run.seeds[0]} to {run.seeds[-1]}.")
    seed = Seed.of(run, run.distributions or _at_the_end(run, config.step), number - run.seeds[0])
    steps = seed.recorded.step[:, seed.row]
    moment = len(steps) if config.step is None else int(np.searchsorted(steps, config.step, side="right"))
    found = document(run, seed, max(0, moment - 1), config.state)
    if config.json:
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        _show(found, _pictures(seed, max(0, moment - 1), config.state))
    return 0


def _at_the_end(run: RunFolder, step: int | None) -> Distributions:
    """What the networks give of a run that recorded nothing; code that its folder names never runs."""
    if step is not None:
        raise InputError("This run recorded no distributions: leave --step out, or train with --record distributions.")
    with open_run(run.path, trust=None) as opened:
        return opened.run.at_the_end(opened.networks, run.summary["episodes"], opened.file.header.step)


def _place(seed: Seed, moment: int, state: int | None) -> int:
    """The position of a state among those of a moment; by default that of the path's first."""
    places, state = seed.at(moment), seed.start(moment) if state is None else state
    if state in places:
        return places[state]
    if not seed.recorded.are_numbered:
        known = "0, the first observation"
    elif len(places) == max(places, default=-1) + 1:
        known = f"one from 0 to {max(places)}"
    else:
        known = f"one of those recorded, such as {', '.join(map(str, [*places][:10]))}"
    raise InputError(f"There is no state {state} to look at: give {known}.")


def document(run: RunFolder, seed: Seed, moment: int, state: int | None) -> dict[str, Any]:
    """Everything about a state of a run's seed at a moment, and the greedy path; numbers that are not finite are None.

    By default the state is that in which the path begins.
    """
    recorded, row, place = seed.recorded, seed.row, _place(seed, moment, state)
    columns = seed.mean[moment, place], seed.std[moment, place], seed.upper[moment, place]
    unknown = [None] * len(columns[0])
    visits, ages = (unknown, unknown) if seed.data is None else (each[moment, place].tolist() for each in seed.data)
    actions = [
        {
            **_named(seed, action),
            "greedy": bool(columns[0][action] == columns[0].max()),
            **{name: _plain(column[action]) for name, column in zip(("mean", "std", "upper"), columns, strict=True)},
            "visits": visits[action],
            "age": None if ages[action] == -1 else ages[action],
            "parameters": {
                name: _plain(members[0] if len(members) == 1 else members)
                for name, array in recorded.parameters.items()
                for members in [array[moment, row, place, :, action]]
            },
        }
        for action in range(len(unknown))
    ]
    number = int(recorded.states[moment, row, place]) if recorded.are_numbered else None
    path = [_on_path(seed, moment, each) for each in seed.path(moment)] if recorded.are_numbered else []
    return {
        "environment": environment_label(run.summary["env"]),
        "method": run.method,
        "seed": run.seeds[row],
        "when": f"after {recorded.episode[moment, row]:,} episodes, {recorded.step[moment, row]:,} steps",
        "state": number,
        "state_name": None if number is None else seed.state_name(number),
        "actions": actions,
        "path_is_whole": recorded.path is None or len(path) < ALONG,
        "path": path,
    }


def _on_path(seed: Seed, moment: int, state: int) -> dict[str, Any]:
    place = _place(seed, moment, state)
    mean, upper = seed.mean[moment, place], seed.upper[moment, place]
    action = int(mean.argmax())
    other = float(np.delete(upper, action).max()) if upper.size > 1 else math.nan
    numbers = {"mean": mean[action], "upper": upper[action], "other_upper": other, "gap": upper[action] - other}
    named = {"state": state, "state_name": seed.state_name(state), **_named(seed, action)}
    return named | {name: _plain(number) for name, number in numbers.items()}


def _named(seed: Seed, action: int) -> dict[str, Any]:
    """An action, and what the environment calls it; None if it has no names for them."""
    names = seed.recorded.names.get("actions")
    return {"action": action, "name": names[action] if names else None}


def _plain(value: Any) -> Any:
    """Numbers for JSON."""
    if np.ndim(value):
        return [_plain(each) for each in value]
    return float(value) if math.isfinite(value) else None


def _pictures(seed: Seed, moment: int, state: int | None) -> tuple[str, list[str]] | None:
    """A heading, and a row of blocks for each action's density; None without density or finite numbers."""
    family, at = seed.family, (moment, _place(seed, moment, state))
    allowed = np.ones(seed.mean.shape[2], bool) if seed.allowed is None else seed.allowed[at]
    mean, reach = seed.mean[at][allowed], SPREAD * seed.std[at][allowed]
    if family is None or not family.has_density or not mean.size or not np.isfinite(mean + reach).all():
        return None
    low, high = float((mean - reach).min()), float((mean + reach).max())
    edges = np.linspace(low, high, FINER * WIDTH, dtype=np.float32)
    z = seed.parameters(tuple(np.array([[each]]) for each in at))
    density = mixture_density(family)(z, jnp.broadcast_to(edges, (1, 1, len(allowed), len(edges))))
    heights = np.nan_to_num(np.asarray(density)[0, 0]).reshape(len(allowed), WIDTH, FINER).max(axis=2)
    heights *= allowed[:, None]
    relative = heights / np.maximum(heights.max(axis=1, keepdims=True), 1e-30)
    blocks = np.rint(relative * (len(BLOCKS) - 1)).astype(int)
    return f"from {low:.3g} to {high:.3g}", ["".join(BLOCKS[block] for block in row) for row in blocks]


def _show(found: dict[str, Any], drawn: tuple[str, list[str]] | None) -> None:
    print(f"{found['environment']}, {found['method']}: seed {found['seed']}, {found['when']}")
    rows = [_numbers(row) for row in found["actions"]]
    if drawn:
        rows = [{**row, drawn[0]: picture} for row, picture in zip(rows, drawn[1], strict=True)]
    print_table(rows, "First observation" if found["state"] is None else f"State {_state(found)}")
    headings = {"mean": "mean", "upper": "upper", "other_upper": "best other"}
    path = [
        {"state": _state(row), "action": _action(row)}
        | {heading: _text(row[name]) for name, heading in headings.items()}
        | {"gap": _text(row["gap"], "+.3g")}
        for row in found["path"]
    ]
    if path:
        some = f"{len(path)} states, evenly along the greedy path"
        print_table(path, "Greedy path" if found["path_is_whole"] else some)
    gap = " Gap: the upper bound minus that of the best other action." if path else ""
    print(f"Upper: the mean plus two standard deviations. *: greedy.{gap}")


def _numbers(row: dict[str, Any]) -> dict[str, str]:
    """An action's row of the table."""
    shown = {"action": f"{_action(row)}{' *' if row['greedy'] else ''}", "mean": _text(row["mean"])}
    shown |= {"sd": _text(row["std"], ".3g"), "upper": _text(row["upper"])}
    if row["visits"] is not None:
        age = "never taken" if row["age"] is None else f"{row['age']:,}"
        shown |= {"data": f"{row['visits']:,}", "age (steps)": age}
    return shown


def _action(row: dict[str, Any]) -> str:
    return f"{row['action']} {row['name']}" if row["name"] else str(row["action"])


def _state(row: dict[str, Any]) -> str:
    named = row["state_name"] != f"state {row['state']}"
    return f"{row['state']} ({row['state_name']})" if named else str(row["state"])


def _text(value: float | None, form: str = ".4g") -> str:
    """A number; None is one that is not finite, or does not exist."""
    return "-" if value is None else format(value, form)
