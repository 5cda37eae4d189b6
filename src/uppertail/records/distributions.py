"""The contents of distributions.npz: return distributions at moments of a run. No other file knows its layout."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from uppertail.records.files import arrays_below, require_arrays
from uppertail.schema import MismatchError

PARAMETERS, TABLE, PLANE, NAMES = "z/", "table/", "plane/", "names/"
FIELDS = {PARAMETERS: "parameters", TABLE: "table", PLANE: "plane", NAMES: "names"}
"""Fields of `Distributions` with several arrays, by the beginning of the arrays' names."""

OUTCOMES = {"next_state": "i", "reward": "f", "terminated": "b", "probability": "f", "reward_std": "f"}
STARTS = {"start_state": "i", "start_probability": "f"}
"""The arrays of a table, [seeds, states, actions, outcomes] and [seeds, starts], with the letters of their types."""

OF_ACTIONS = "moments seeds states actions"
ALWAYS = {
    **dict.fromkeys(("mean", "std"), ("f", OF_ACTIONS)),
    **dict.fromkeys(("step", "episode"), ("i", "moments seeds")),
    "states": ("i", "moments seeds states"),
    "rows": ("i", ""),
}
GROUPS = (
    dict.fromkeys(("visits", "last"), ("i", OF_ACTIONS)),
    {TABLE + name: (kind, "seeds table actions outcomes") for name, kind in OUTCOMES.items()}
    | {TABLE + name: (kind, "seeds starts") for name, kind in STARTS.items()},
    {f"{PLANE}numbers": ("i", "pair"), f"{PLANE}area": ("f", "moments seeds pair pair")}
    | {PLANE + name: ("f", "moments seeds side side") for name in ("std", "evidence")},
)
"""Groups of arrays of which a file has all or none, but for `OPTIONAL` ones."""
OPTIONAL = {"rows", f"{TABLE}reward_std", f"{PLANE}evidence"}


@dataclasses.dataclass(frozen=True, eq=False)
class Distributions:
    """Return distributions at moments of a run, of each seed, in some of its states.

    Steps and episodes of a seed are at most its limits. If observations are not states, state 0 stands for the run's
    first one, and there are no visits. Mean and standard deviation are those of the mixture of an ensemble's members.
    `plane`, of observations that are vectors, has `numbers`, two of theirs; `area`, their lowest and highest values at
    each moment, [moments, seeds, 2, 2]; `std` and `evidence`, the standard deviation of the best action's return and
    its share of the wide start that is left, [moments, seeds, side, side] with rows by the second number.
    """

    step: Int[np.ndarray, "moments seeds"]
    episode: Int[np.ndarray, "moments seeds"]
    states: Int[np.ndarray, "moments seeds states"]  # -1: none
    mean: Float[np.ndarray, "moments seeds states actions"]
    std: Float[np.ndarray, "moments seeds states actions"]
    parameters: dict[str, np.ndarray]  # the family's, [moments, seeds, states, members, actions, ...]
    visits: Int[np.ndarray, "moments seeds states actions"] | None = None  # how often each action was taken there
    last: Int[np.ndarray, "moments seeds states actions"] | None = None  # at which environment step; 0: never
    table: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # arrays of `OUTCOMES` and `STARTS`
    rows: int = 1  # of equal length, in which a picture of the states has them
    plane: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)  # of actions, states and numbers

    @property
    def of_states(self) -> bool:
        """Whether observations are states."""
        return self.visits is not None or bool(self.table)

    def arrays(self) -> dict[str, np.ndarray]:
        """The contents of distributions.npz."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for prefix, field in FIELDS.items():
            plain |= {prefix + name: np.array(array) for name, array in plain.pop(field).items()}
        plain["rows"] = np.array(self.rows)
        return {name: array for name, array in plain.items() if array is not None}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The inverse of `arrays`. A MismatchError says what is wrong with arrays that no run wrote."""
        sizes = require_arrays(arrays, _layout(arrays))
        _require_possible(arrays, sizes)
        fields: dict[str, Any] = {name: array for name, array in arrays.items() if "/" not in name}
        fields |= {field: arrays_below(prefix, arrays) for prefix, field in FIELDS.items()}
        fields["names"] = {name: tuple(array.tolist()) for name, array in fields["names"].items()}
        return cls(**{**fields, "rows": int(arrays.get("rows", 1))})


def _layout(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[str, str]]:
    """The types and axes that the arrays of a file must have."""
    layout = dict(ALWAYS)
    for group in GROUPS:
        layout |= group if group.keys() & arrays.keys() else {}
    for name in arrays:
        if name.startswith(PARAMETERS):
            layout[name] = ("f", "moments seeds states members actions ...")
        if name.startswith(NAMES):
            what = name.removeprefix(NAMES)
            layout[name] = ("U", "table" if what == "states" else what)
    return {name: form for name, form in layout.items() if name in arrays or name not in OPTIONAL}


def _require_possible(arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> None:
    """Refuses numbers that no run could have written."""
    if empty := sorted(name for name, array in arrays.items() if array.size == 0):
        raise MismatchError(f"its array {empty[0]} is empty")
    least = {"states": -1, "step": 0, "episode": 0, "visits": 0, "last": 0}
    if any((arrays[name] < low).any() for name, low in least.items() if name in arrays):
        raise MismatchError("its steps, episodes, states or visits are below 0")
    if (np.diff(arrays["step"], axis=0) < 0).any():
        raise MismatchError("its steps are not in order")
    if sizes.get("pair", 2) != 2:
        raise MismatchError("its plane is not of two numbers")
    count = sizes.get("table")
    if not 1 <= arrays.get("rows", 1) <= (count or np.inf):
        raise MismatchError("its number of rows is impossible")
    if f"{TABLE}next_state" in arrays:
        _require_table({name: array for name, array in arrays.items() if name.startswith(TABLE)}, arrays["states"])


def _require_table(table: Mapping[str, np.ndarray], states: np.ndarray) -> None:
    """Refuses impossible numbers of a table."""
    for name, array in table.items():
        if not np.isfinite(array).all():
            raise MismatchError(f"its array {name} has numbers that are not finite")
        if name.endswith("probability") and ((array < 0).any() or (np.abs(array.sum(axis=-1) - 1) > 1e-3).any()):
            raise MismatchError("its probabilities do not sum to 1")
    count = table[f"{TABLE}next_state"].shape[1]
    indices = (table[f"{TABLE}next_state"], table[f"{TABLE}start_state"], np.maximum(states, 0))
    if any((each < 0).any() or (each >= count).any() for each in indices):
        raise MismatchError(f"its states are not among {count}")
