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
        arrays = {"returns": self.returns.tolist(), "density": self.density.tolist()}
        return dataclasses.asdict(self) | arrays | {"mean": float(self.mean), "std": float(self.std)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` gave.

        Raises:
            KeyError: a field is missing.
            ValueError: a field is not what it should be.
        """
        where = f"state {data['state']}, action {data['action']}"
        try:
            learned = cls(
                state=int(data["state"]),
                action=int(data["action"]),
                returns=np.asarray(data["returns"], np.float64),
                density=np.asarray(data["density"], np.float64),
                discrete=bool(data["discrete"]),
                mean=float(data["mean"]),
                std=float(data["std"]),
                chosen={str(policy): float(share) for policy, share in data["chosen"].items()},
            )
        except (TypeError, AttributeError) as error:  # null, or a list where there should be a number
            raise ValueError(f"A field of the return of {where} has the wrong type: {error}.") from error
        if learned.returns.ndim != 1 or learned.returns.shape != learned.density.shape or not learned.returns.size:
            shapes = f"{learned.returns.shape} and {learned.density.shape}"
            raise ValueError(f"returns and density of {where} have the shapes {shapes}, but must be two equal lists.")
        numbers = [*learned.returns, *learned.density, learned.mean, learned.std, *learned.chosen.values()]
        if not np.all(np.isfinite(numbers)) or min(*learned.density, learned.std) < 0:
            raise ValueError(f"The return of {where} has a number that is not finite, or a density or sd below 0.")
        if not isinstance(data["discrete"], bool) or not all(0 <= share <= 1 for share in learned.chosen.values()):
            raise ValueError(f"The return of {where} needs discrete as true or false, and chosen as probabilities.")
        if not np.all(np.diff(learned.returns) > 0):
            raise ValueError(f"The returns of {where} do not increase.")
        return learned


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
        """What `to_json` gave.

        Raises:
            KeyError: a field is missing.
            ValueError: a field is not what it should be.
        """
        if not isinstance(data["returns"], list) or not all(isinstance(entry, dict) for entry in data["returns"]):
            raise ValueError(f"The returns of the moment {data['label']!r} are not a list of returns.")
        return cls(str(data["label"]), [LearnedReturn.from_json(entry) for entry in data["returns"]])
