"""Learned return distributions at moments of training: what the illustrations draw, and how it is stored as JSON."""

import dataclasses
from typing import Any, Self

import numpy as np
from jaxtyping import Float


@dataclasses.dataclass(frozen=True, eq=False)
class LearnedReturn:
    """The learned return distribution of one state and action, as it is drawn.

    Args:
        state: index of the state.
        action: index of the action.
        returns: atoms, or a grid of returns, increasing.
        density: probability of each atom, or density per unit of return.
        discrete: whether these are atoms (bars) or a density (filled curve).
        mean: expected return, the Q-value.
        std: standard deviation of the return.
        chosen: name of a policy to the probability that it takes this action in this state.
    """

    state: int
    action: int
    returns: Float[np.ndarray, " points"]
    density: Float[np.ndarray, " points"]
    discrete: bool
    mean: float
    std: float
    chosen: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Only lists, numbers and text, for JSON."""
        return dataclasses.asdict(self) | {"returns": self.returns.tolist(), "density": self.density.tolist()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        arrays: dict[str, Any] = {name: np.array(data[name]) for name in ("returns", "density")}
        return cls(**(data | arrays))


@dataclasses.dataclass(frozen=True)
class Moment:
    """All return distributions at one moment of training.

    Args:
        label: when it is, for example "after 64 episodes".
        returns: one for each state and action that is shown.
    """

    label: str
    returns: list[LearnedReturn]

    def of(self, state: int, action: int) -> LearnedReturn:
        """The return of one state and action.

        Raises:
            KeyError: it is not among them.
        """
        for learned in self.returns:
            if (learned.state, learned.action) == (state, action):
                return learned
        raise KeyError(f"The moment {self.label!r} has no return of state {state}, action {action}.")

    def to_json(self) -> dict[str, Any]:
        """Only lists, numbers and text, for JSON."""
        return {"label": self.label, "returns": [learned.to_json() for learned in self.returns]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(data["label"], [LearnedReturn.from_json(entry) for entry in data["returns"]])
