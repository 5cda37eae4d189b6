"""`uppertail inspect`: what a run learned, in the terminal: distributions of a state, the greedy path."""

import dataclasses
import json
import math
from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from uppertail.cli import trained
from uppertail.cli.parsing import Values
from uppertail.console import print_table
from uppertail.errors import InputError
from uppertail.records import RunFolder, config_of
from uppertail.records.distributions import Distributions
from uppertail.reports.details import SPREAD, mixture_density
from uppertail.reports.groups import environment_label
from uppertail.reports.seeds import Seed
from uppertail.training.trained import at_the_end

WIDTH, FINER = 20, 8  # characters of a drawn distribution, and points in each: peaks are narrow
BLOCKS = "·▁▂▃▄▅▆▇█"


def main(config: Values) -> int:
    """Runs the command."""
    if config.step is not None and config.step < 0:
        raise InputError(f"step is {config.step}: use 0, the beginning, or more.")
    config_of(config.folder)  # refuses what is no run's folder
    run = RunFolder(config.folder)
    found = Inspected.of(run, run.distributions or _at_the_end(run, config.step), config.seed, config.step)
    document = found.document(config.state)
    if config.json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _show(found, document)
    return 0


def _at_the_end(run: RunFolder, step: int | None) -> Distributions:
    """What the networks give of a run that recorded nothing; code that its folder names never runs."""
    if step is not None:
        raise InputError(
            "This run recorded no distributions, so only its end can be looked at: leave --step out, or train with "
            "--record distributions."
        )
    with trained.open_run(run.path, trust=None) as opened:
        return at_the_end(opened.run, opened.networks, run.summary["episodes"], opened.file.header.step)


@dataclasses.dataclass(frozen=True, eq=False)
class Inspected:
    """One of a run's seeds at one of its moments."""

    run: RunFolder
    seed: Seed
    moment: int

    @classmethod
    def of(cls, run: RunFolder, recorded: Distributions, seed: int | None, step: int | None) -> Self:
        """Looks at a seed, or the first one, at the last moment up to a step, or the end."""
        number = run.seeds[0] if seed is None else seed
        if number not in run.seeds:
            raise InputError(f"There is no seed {number} in this run: give one from {run.seeds[0]} to {run.seeds[-1]}.")
        row = number - run.seeds[0]
        steps = recorded.step[:, row]
        moment = len(steps) - 1 if step is None else max(0, int(np.searchsorted(steps, step, side="right")) - 1)
        return cls(run, Seed.of(run, recorded, row), moment)

    def at(self, state: int | None) -> tuple[int, int]:
        """The moment, and the position of a state; by default that of the path's first."""
        places, state = self.seed.at(self.moment), self.seed.start(self.moment) if state is None else state
        if state in places:
            return self.moment, places[state]
        if not self.seed.recorded.of_states:
            known = "0, the first observation"
        elif len(places) == max(places, default=-1) + 1:
            known = f"one from 0 to {max(places)}"
        else:
            known = f"one of those recorded, such as {', '.join(map(str, [*places][:10]))}"
        raise InputError(f"There is no state {state} to look at: give {known}.")

    def document(self, state: int | None) -> dict[str, Any]:
        """Everything about a state, and the greedy path; numbers that are not finite are None."""
        seed, recorded, (moment, place) = self.seed, self.seed.recorded, self.at(state)
        row, mean, std = seed.row, seed.mean[moment, place], seed.std[moment, place]
        unknown = [None] * len(mean)
        visits, ages = (unknown, unknown) if seed.data is None else (each[moment, place].tolist() for each in seed.data)
        actions = [
            {
                **self._named(action),
                "greedy": bool(mean[action] == mean.max()),
                "mean": _plain(mean[action]),
                "std": _plain(std[action]),
                "upper": _plain(seed.upper[moment, place, action]),
                "visits": visits[action],
                "age": None if ages[action] == -1 else ages[action],
                "parameters": {
                    name: _of_members(array[moment, row, place, :, action])
                    for name, array in recorded.parameters.items()
                },
            }
            for action in range(len(mean))
        ]
        number = int(recorded.states[moment, row, place]) if recorded.of_states else None
        return {
            "environment": environment_label(self.run.summary["env"]),
            "method": self.run.method,
            "seed": self.run.seeds[row],
            "when": f"after {recorded.episode[moment, row]:,} episodes, {recorded.step[moment, row]:,} steps",
            "state": number,
            "state_name": None if number is None else seed.state_name(number),
            "actions": actions,
            "path": [self._on_path(each) for each in seed.path(moment)] if recorded.of_states else [],
        }

    def _named(self, action: int) -> dict[str, Any]:
        """An action, and what the environment calls it; None if it has no names for them."""
        names = self.seed.recorded.names.get("actions")
        return {"action": action, "name": names[action] if names else None}

    def _on_path(self, state: int) -> dict[str, Any]:
        mean, upper = (each[self.at(state)] for each in (self.seed.mean, self.seed.upper))
        action = int(mean.argmax())
        other = float(np.delete(upper, action).max()) if upper.size > 1 else math.nan
        return {
            "state": state,
            "state_name": self.seed.state_name(state),
            **self._named(action),
            "mean": _plain(mean[action]),
            "upper": _plain(upper[action]),
            "other_upper": _plain(other),
            "gap": _plain(upper[action] - other),
        }

    def pictures(self, state: int | None) -> tuple[str, list[str]] | None:
        """A heading, and a row of blocks for each action's density; None without density or finite numbers."""
        family, at = self.seed.family, self.at(state)
        mean, reach = self.seed.mean[at], SPREAD * self.seed.std[at]
        if family is None or not family.has_density or not np.isfinite(mean + reach).all():
            return None
        low, high = float((mean - reach).min()), float((mean + reach).max())
        edges = np.linspace(low, high, FINER * WIDTH, dtype=np.float32)
        z = self.seed.parameters(tuple(np.array([[each]]) for each in at))
        density = mixture_density(family)(z, jnp.broadcast_to(edges, (1, 1, len(mean), len(edges))))
        heights = np.nan_to_num(np.asarray(density)[0, 0]).reshape(len(mean), WIDTH, FINER).max(axis=2)
        blocks = np.rint(heights / np.maximum(heights.max(axis=1, keepdims=True), 1e-30) * (len(BLOCKS) - 1)).astype(
            int
        )
        return f"from {low:.3g} to {high:.3g}", ["".join(BLOCKS[block] for block in row) for row in blocks]


def _plain(value: Any) -> Any:
    """Numbers for JSON."""
    if np.ndim(value):
        return [_plain(each) for each in value]
    return float(value) if math.isfinite(value) else None


def _of_members(array: np.ndarray) -> Any:
    """Numbers for JSON, without the axis of a single member."""
    return _plain(array[0] if len(array) == 1 else array)


def _show(found: Inspected, document: dict[str, Any]) -> None:
    print(f"{document['environment']}, {document['method']}: seed {document['seed']}, {document['when']}")
    rows = [_numbers(row) for row in document["actions"]]
    if drawn := found.pictures(document["state"]):
        rows = [{**row, drawn[0]: picture} for row, picture in zip(rows, drawn[1], strict=True)]
    print_table(rows, "First observation" if document["state"] is None else f"State {_state(document)}")
    path = [
        {
            "state": _state(row),
            "action": _action(row),
            "mean": _text(row["mean"]),
            "upper": _text(row["upper"]),
            "best other": _text(row["other_upper"]),
            "gap": _text(row["gap"], "+.3g"),
        }
        for row in document["path"]
    ]
    if path:
        print_table(path, "Greedy path")
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
    """An action's number, and what the environment calls it."""
    return f"{row['action']} {row['name']}" if row["name"] else str(row["action"])


def _state(row: dict[str, Any]) -> str:
    """A state's number, and what else it is called."""
    named = row["state_name"] != f"state {row['state']}"
    return f"{row['state']} ({row['state_name']})" if named else str(row["state"])


def _text(value: float | None, form: str = ".4g") -> str:
    """A number; None is one that is not finite, or does not exist."""
    return "-" if value is None else format(value, form)
