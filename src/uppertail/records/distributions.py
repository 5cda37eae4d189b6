"""The file of `--record distributions`: return distributions at moments of a run. No other file knows its schema."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from uppertail.errors import InputError
from uppertail.records.files import read_arrays, require_array, write_arrays
from uppertail.records.folder import DISTRIBUTIONS
from uppertail.schema import MismatchError

PARAMETERS, TABLE, PLANE, NAMES = "z/", "table/", "plane/", "names/"
"""The names of the arrays in these fields of `Distributions` begin with these."""

OUTCOMES = {"next_state": "i", "reward": "f", "terminated": "b", "probability": "f", "reward_std": "f"}
STARTS = {"start_state": "i", "start_probability": "f"}
"""The arrays of a table, [seeds, states, actions, outcomes] and [seeds, starts], with the kinds of their types."""


@dataclasses.dataclass(frozen=True, eq=False)
class Distributions:
    """Return distributions at moments of a run, of each seed, in some of its states.

    Args:
        step: environment steps of each seed until each moment, at most its limit.
        episode: finished episodes of each seed until then, at most its limit.
        states: the states; -1 where there is none. If observations are not states, 0 stands for the run's first one.
        mean: mean of the return of each action, over all members of an ensemble.
        std: its standard deviation, that of the mixture of all members.
        parameters: the family's parameters by their names, with axes [moments, seeds, states, members, actions, ...].
        visits: how often each action was taken there; None if observations are not states.
        last: environment step at which each action was last taken, 0 for never; None if observations are not states.
        table: the arrays of each seed's environment, if it is a table: those of `OUTCOMES` and `STARTS`.
        rows: rows of equal length in which a picture of the states has them; 1: they lie in a line.
        plane: of observations that are vectors, over two of their numbers: `numbers`, which two; `area`, their lowest
            and highest values at each moment, [moments, seeds, 2, 2]; `std` and `evidence`, the standard deviation of
            the best action's return and its share of the wide start that is left, [moments, seeds, side, side] with
            rows from the second number's lowest value to its highest.
        names: what pictures call its actions, states and numbers.
    """

    step: Int[np.ndarray, "moments seeds"]
    episode: Int[np.ndarray, "moments seeds"]
    states: Int[np.ndarray, "moments seeds states"]
    mean: Float[np.ndarray, "moments seeds states actions"]
    std: Float[np.ndarray, "moments seeds states actions"]
    parameters: dict[str, np.ndarray]
    visits: Int[np.ndarray, "moments seeds states actions"] | None = None
    last: Int[np.ndarray, "moments seeds states actions"] | None = None
    table: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    rows: int = 1
    plane: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def of_states(self) -> bool:
        """Whether observations are states."""
        return self.visits is not None or bool(self.table)

    def arrays(self) -> dict[str, np.ndarray]:
        """The contents of distributions.npz."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for prefix, field in ((PARAMETERS, "parameters"), (TABLE, "table"), (PLANE, "plane"), (NAMES, "names")):
            plain |= {prefix + name: np.array(array) for name, array in plain.pop(field).items()}
        plain["rows"] = np.array(self.rows)
        return {name: array for name, array in plain.items() if array is not None}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The inverse of `arrays`. A MismatchError says what is wrong with arrays that no run wrote."""
        mean = require_array("mean", arrays.get("mean"), "f", (None,) * 4)
        shapes = {"step": mean.shape[:2], "episode": mean.shape[:2], "states": mean.shape[:3], "std": mean.shape}
        kinds = {"std": "f"}
        if "visits" in arrays or "last" in arrays:
            shapes |= {"visits": mean.shape, "last": mean.shape}
        found: dict[str, Any] = {"mean": mean}
        for name, shape in shapes.items():
            found[name] = require_array(name, arrays.get(name), kinds.get(name, "i"), shape)
        if any((found[name] < (-1 if name == "states" else 0)).any() for name in shapes if name not in kinds):
            raise MismatchError("its steps, episodes, states or visits are below 0")
        if (np.diff(found["step"], axis=0) < 0).any():
            raise MismatchError("its steps are not in order")
        parameters = _below(PARAMETERS, arrays)
        for name, array in parameters.items():
            axes = (*mean.shape[:3], None, mean.shape[3], *(None,) * (array.ndim - 5))
            require_array(PARAMETERS + name, array, "f", axes)
        rows = require_array("rows", arrays.get("rows", np.array(1)), "i", ())
        table = _below(TABLE, arrays)
        if table:
            _require_table(table, found["states"], mean.shape)
        plane = _below(PLANE, arrays)
        if plane:
            _require_plane(plane, mean.shape)
        if rows < 1 or (table and rows > table["next_state"].shape[1]):
            raise MismatchError("its number of rows is impossible")
        names = _names(_below(NAMES, arrays), mean.shape[3], table)
        return cls(**found, parameters=parameters, table=table, rows=int(rows), plane=plane, names=names)

    def place_of(self, moment: int, row: int, state: int) -> int | None:
        """The position of a state among those of a seed at a moment; None: it was not recorded."""
        found = np.flatnonzero(self.states[moment, row] == state)
        return int(found[0]) if found.size else None


def write(folder: Path, recorded: Distributions) -> None:
    """Writes distributions.npz, whole or not at all."""
    write_arrays(folder / DISTRIBUTIONS, recorded.arrays())


def read(folder: Path) -> Distributions | None:
    """The distributions that a run recorded; None if it recorded none. A damaged file is an InputError."""
    path, remedy = folder / DISTRIBUTIONS, "delete it, or train again to record another"
    if not path.exists():
        return None
    arrays = read_arrays(path, remedy)
    try:
        return Distributions.of_arrays(arrays)
    except MismatchError as error:
        raise InputError(f"{path} is damaged ({error}): {remedy}.") from error


def _below(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _require_plane(plane: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> None:
    """Refuses arrays that are not a plane of these moments and seeds.

    Raises:
        MismatchError: they are not.
    """
    side = require_array("plane/std", plane.get("std"), "f", (*shape[:2], None, None)).shape[2]
    shapes = {"numbers": (2,), "area": (*shape[:2], 2, 2), "std": (*shape[:2], side, side)}
    for name in plane:
        kind = "i" if name == "numbers" else "f"
        require_array(PLANE + name, plane[name], kind, shapes.get(name, shapes["std"]))
    if missing := shapes.keys() - plane.keys():
        raise MismatchError(f"its array plane/{min(missing)} is missing")
    if odd := sorted(plane.keys() - {*shapes, "evidence"}):
        raise MismatchError(f"its array plane/{odd[0]} is not expected")


def _names(arrays: Mapping[str, np.ndarray], actions: int, table: Mapping[str, np.ndarray]) -> dict[str, tuple]:
    """The names of actions, states and numbers.

    Raises:
        MismatchError: they are not those of so many actions and of this table.
    """
    counts = {"actions": actions, "states": table["next_state"].shape[1] if table else None, "numbers": None}
    for name, array in arrays.items():
        require_array(NAMES + name, array, "U", (counts.get(name),))
    return {name: tuple(array.tolist()) for name, array in arrays.items() if name in counts}


def _require_table(table: Mapping[str, np.ndarray], states: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuses arrays that are not the tables of these seeds' environments."""
    seeds, actions = shape[1], shape[3]
    probability = require_array("table/probability", table.get("probability"), "f", (seeds, None, actions, None))
    starts = require_array("table/start_probability", table.get("start_probability"), "f", (seeds, None))
    if odd := sorted(table.keys() - {*OUTCOMES, *STARTS}):
        raise MismatchError(f"its array table/{odd[0]} is not expected")
    for kinds, like in ((OUTCOMES, probability), (STARTS, starts)):
        for name, kind in kinds.items():
            if name in table or name != "reward_std":
                array = require_array(TABLE + name, table.get(name), kind, like.shape)
                if not np.isfinite(array).all():
                    raise MismatchError(f"its array table/{name} has numbers that are not finite")
        if (like < 0).any() or (np.abs(like.sum(axis=-1) - 1) > 1e-3).any():
            raise MismatchError("its probabilities do not sum to 1")
    count = probability.shape[1]
    if any(
        (each < low).any() or (each >= count).any()
        for each, low in ((states, -1), (table["next_state"], 0), (table["start_state"], 0))
    ):
        raise MismatchError(f"its states are not among {count}")
