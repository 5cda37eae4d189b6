"""One seed of a run at one moment: its distributions in a state, its greedy path."""

import dataclasses
import math
from typing import Any, NamedTuple, Self

import jax.numpy as jnp
import numpy as np

from uppertail.errors import InputError
from uppertail.records import RunFolder
from uppertail.records.distributions import Distributions
from uppertail.reports.details import SPREAD, mixture_density
from uppertail.reports.groups import environment_label
from uppertail.reports.seeds import Seed


class Drawn(NamedTuple):
    """Heights of each action's density over one range of returns."""

    low: float
    high: float
    of: list[list[float]]


@dataclasses.dataclass(frozen=True, eq=False)
class Inspected:
    """What `uppertail inspect` shows: one of a run's seeds at one of its moments."""

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

    def place(self, state: int | None) -> int:
        """The position of a state; by default that of the path's first."""
        places, state = self.seed.at(self.moment), self.seed.start(self.moment) if state is None else state
        if state in places:
            return places[state]
        if not self.seed.recorded.of_states:
            known = "0, the first observation"
        elif len(places) == max(places, default=-1) + 1:
            known = f"one from 0 to {max(places)}"
        else:
            known = f"one of those recorded, such as {', '.join(map(str, [*places][:10]))}"
        raise InputError(f"There is no state {state} to look at: give {known}.")

    def action_name(self, action: int) -> str | None:
        """What the environment calls an action; None if it has no names for them."""
        names = self.seed.recorded.names.get("actions")
        return names[action] if names else None

    def document(self, state: int | None) -> dict[str, Any]:
        """Everything about a state, and the greedy path; numbers that are not finite are None."""
        recorded, row, at = self.seed.recorded, self.seed.row, (self.moment, self.place(state))
        mean, std, upper = (each[at] for each in (self.seed.mean, self.seed.std, self.seed.upper))
        parameters = {name: array[:, row][at] for name, array in recorded.parameters.items()}
        number = int(recorded.states[self.moment, row, at[1]]) if recorded.of_states else None
        unknown = [None] * len(mean)
        visits, ages = (unknown, unknown) if self.seed.data is None else (each[at].tolist() for each in self.seed.data)
        actions = [
            {
                "action": action,
                "name": self.action_name(action),
                "greedy": bool(mean[action] == mean.max()),
                "mean": _number(mean[action]),
                "std": _number(std[action]),
                "upper": _number(upper[action]),
                "visits": visits[action],
                "age": None if ages[action] == -1 else ages[action],
                "parameters": {name: _plain(array[:, action]) for name, array in parameters.items()},
            }
            for action in range(len(mean))
        ]
        episode, step = recorded.episode[self.moment, row], recorded.step[self.moment, row]
        return {
            "environment": environment_label(self.run.summary["env"]),
            "method": self.run.method,
            "seed": self.run.seeds[row],
            "when": f"after {episode:,} episodes, {step:,} steps",
            "state": number,
            "state_name": None if number is None else self.seed.state_name(number),
            "actions": actions,
            "path": [self._on_path(each) for each in self.seed.path(self.moment)] if recorded.of_states else [],
        }

    def densities(self, state: int | None, points: int) -> Drawn | None:
        """Densities of each action in a state; None for a family that has none, or of numbers that are not finite."""
        family, at = self.seed.family, (self.moment, self.place(state))
        mean, reach = self.seed.mean[at], SPREAD * self.seed.std[at]
        if family is None or not family.has_density or not np.isfinite(mean + reach).all():
            return None
        low, high = float((mean - reach).min()), float((mean + reach).max())
        edges = np.linspace(low, high, 8 * points, dtype=np.float32)  # finer than what is shown: peaks are narrow
        z = self.seed.parameters(tuple(np.array([[each]]) for each in at))
        density = mixture_density(family)(z, jnp.broadcast_to(edges, (1, 1, len(mean), len(edges))))
        peaks = np.nan_to_num(np.asarray(density)[0, 0]).reshape(len(mean), points, 8).max(axis=2)
        return Drawn(low, high, peaks.tolist())

    def _on_path(self, state: int) -> dict[str, Any]:
        mean, upper = (each[self.moment, self.place(state)] for each in (self.seed.mean, self.seed.upper))
        action = int(mean.argmax())
        other = float(np.delete(upper, action).max()) if upper.size > 1 else math.nan
        return {
            "state": state,
            "state_name": self.seed.state_name(state),
            "action": action,
            "name": self.action_name(action),
            "mean": _number(mean[action]),
            "upper": _number(upper[action]),
            "other_upper": _number(other),
            "gap": _number(upper[action] - other),
        }


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(array: np.ndarray) -> Any:
    """Numbers for JSON, without the axis of a single member."""
    values = array[0] if len(array) == 1 else array
    return [_plain(each[None]) for each in values] if values.ndim else _number(values)
