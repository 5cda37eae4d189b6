"""The contents of distributions.npz: return distributions at moments of a run. No other file knows its layout."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from uppertail.records.folder import arrays_below

PARAMETERS, TABLE, PLANE, NAMES = "z/", "table/", "plane/", "names/"
FIELDS = {PARAMETERS: "parameters", TABLE: "table", PLANE: "plane", NAMES: "names"}
"""Fields of `Distributions` with several arrays, by the beginning of the arrays' names."""

OF_TABLE = (
    *("next_state", "reward", "terminated", "probability", "reward_std"),  # [seeds, states, actions, outcomes]
    *("start_state", "start_probability"),  # [seeds, starts]
)
"""The arrays of a table."""


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
    table: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # arrays of `OF_TABLE`
    rows: int = 1  # of equal length, in which a picture of the states has them
    plane: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)  # of actions, states and numbers

    @property
    def of_states(self) -> bool:
        return self.visits is not None or bool(self.table)

    def arrays(self) -> dict[str, np.ndarray]:
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for prefix, field in FIELDS.items():
            plain |= {prefix + name: np.array(array) for name, array in plain.pop(field).items()}
        plain["rows"] = np.array(self.rows)
        return {name: array for name, array in plain.items() if array is not None}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        fields: dict[str, Any] = {name: array for name, array in arrays.items() if "/" not in name}
        fields |= {field: arrays_below(prefix, arrays) for prefix, field in FIELDS.items()}
        fields["names"] = {name: tuple(array.tolist()) for name, array in fields["names"].items()}
        return cls(**{**fields, "rows": int(arrays.get("rows", 1))})
