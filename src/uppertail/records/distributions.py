"""The file of `--record distributions`: return distributions at moments of a run. Its schema stands only here."""

import dataclasses
import io
import zipfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from uppertail.errors import InputError
from uppertail.records.folder import DISTRIBUTIONS
from uppertail.records.writing import write_bytes

PARAMETERS = "z/"
"""The names of the distributions' parameters begin with this."""

OPTIONAL = ("visits", "last")


@dataclasses.dataclass(frozen=True, eq=False)
class Distributions:
    """Return distributions at moments of a run, of each seed, in some of its states.

    Args:
        step: environment steps of each seed until each moment, at most its limit.
        episode: finished episodes of each seed until then, at most its limit.
        states: the states; -1 where there is none. If observations are not states, 0 stands for the run's first one.
        mean: mean of the return of each action, over all members of an ensemble.
        std: its standard deviation, likewise: that of the mixture of the members.
        parameters: the family's parameters by their names, with axes [moments, seeds, states, members, actions, ...].
        visits: how often each action was taken there; None if observations are not states.
        last: environment step at which each action was last taken, 0 for never; None likewise.
    """

    step: Int[np.ndarray, "moments seeds"]
    episode: Int[np.ndarray, "moments seeds"]
    states: Int[np.ndarray, "moments seeds states"]
    mean: Float[np.ndarray, "moments seeds states actions"]
    std: Float[np.ndarray, "moments seeds states actions"]
    parameters: dict[str, np.ndarray]
    visits: Int[np.ndarray, "moments seeds states actions"] | None = None
    last: Int[np.ndarray, "moments seeds states actions"] | None = None

    @property
    def of_states(self) -> bool:
        """Whether observations are states."""
        return self.visits is not None

    def arrays(self) -> dict[str, np.ndarray]:
        """The contents of distributions.npz."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain |= {PARAMETERS + name: array for name, array in plain.pop("parameters").items()}
        return {name: array for name, array in plain.items() if array is not None}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Reads what `arrays` returned.

        Raises:
            KeyError: one is missing.
        """
        names = [field.name for field in dataclasses.fields(cls) if field.name not in ("parameters", *OPTIONAL)]
        found: dict[str, Any] = {name: arrays[name] for name in names}
        found |= {name: arrays.get(name) for name in OPTIONAL}
        parameters = {
            name.removeprefix(PARAMETERS): array for name, array in arrays.items() if name.startswith(PARAMETERS)
        }
        return cls(**found, parameters=parameters)

    def place_of(self, moment: int, row: int, state: int) -> int | None:
        """The position of a state among those of a seed at a moment; None: it was not recorded."""
        found = np.flatnonzero(self.states[moment, row] == state)
        return int(found[0]) if found.size else None


def write(folder: Path, recorded: Distributions) -> None:
    """Writes distributions.npz, whole or not at all.

    Args:
        folder: an existing folder.
        recorded: what was recorded.

    Raises:
        OSError: it cannot be written.
    """
    content = io.BytesIO()
    np.savez_compressed(content, **recorded.arrays())  # pyright: ignore[reportArgumentType]
    write_bytes(folder / DISTRIBUTIONS, content.getvalue())


def read(folder: Path) -> Distributions | None:
    """The distributions that a run recorded; None if it recorded none.

    Raises:
        InputError: the file is damaged, or cannot be read.
    """
    path = folder / DISTRIBUTIONS
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            return Distributions.of_arrays(dict(file))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} is damaged or cannot be read: delete it, or train again to record another."
        ) from error
