"""What builders of the same kind of observations share: how these enter the network."""

import dataclasses
from typing import Literal

from uppertail.encodings import Preferences
from uppertail.encodings.spaces import Features, Scaling, StateEncoding
from uppertail.environments.base import EnvironmentBuilder
from uppertail.errors import InputError
from uppertail.schema import settle
from uppertail.types import ReturnRange

LARGEST = 1e18
"""The largest return whose square a float32 can hold, rounded."""

EVALUATION = 2**31
"""Added to the seed of a run, it gives the seed of the environments in which that run is evaluated."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateBuilder(EnvironmentBuilder):
    """Builds environments whose observations are integer states.

    Args:
        encoding: how a state enters the network.
    """

    encoding: StateEncoding = "one_hot"

    def __post_init__(self) -> None:
        settle(self)

    @property
    def preferences(self) -> Preferences:
        return Preferences(states=self.encoding)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorBuilder(EnvironmentBuilder):
    """Builds environments whose observations are vectors of numbers.

    Args:
        scaling: by which bounds other observations are brought to [-1, 1]: auto (those seen so far for a Box, else
            those declared), declared or running (those seen so far).
        features: how numbers enter the network: random (features that only nearby observations share), scaled (as they
            are; add --bias true) or auto (random where there is a Box; integers that have at most 4,096 values together
            are one state).
        num_features: how many random features, or states where there is a radius.
        length_scale: distance between observations, as root mean square over the numbers in [-1, 1], beyond which they
            share little.
        feature_norm: sum of the absolute values of the random features; with more than 1 the network learns features of
            its own from them.
        radius: two observations within this distance, as root mean square over their numbers as they are, show one
            state, and others are told apart, so that noise is averaged away; null: they stay numbers.

    Examples:
        >>> import uppertail as ut
        >>> ut.RichChain(features="scaled").preferences.features
        'scaled'
    """

    scaling: Scaling = "auto"
    features: Features = "auto"
    num_features: int = 300
    length_scale: float = 1.0
    feature_norm: float = 1.0
    radius: float | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def preferences(self) -> Preferences:
        settings = {name: getattr(self, name) for name in VectorBuilder.__dataclass_fields__}
        return Preferences(**settings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackageBuilder(VectorBuilder):
    """Builds environments of another package.

    Args:
        returns: lowest and highest discounted return that the run has to tell apart; null: as known, or measured by
            episodes of a random policy.
        success: undiscounted return from which an episode counts as a success; null: as the environment declares, if
            it does.
        reset_seed: the seed of every reset, which keeps a random layout the same; run: each run's own seed; null: a
            new one for each episode.
    """

    returns: tuple[float, float] | None = None
    success: float | None = None
    reset_seed: int | Literal["run"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.returns is not None and not -LARGEST <= self.returns[0] < self.returns[1] <= LARGEST:
            raise InputError(f"returns is {list(self.returns)}: give the lowest, then the highest, within {LARGEST:g}.")
        if isinstance(self.reset_seed, int) and self.reset_seed < 0:
            raise InputError(f"reset_seed is {self.reset_seed}: use 0 or more, or run, or leave it out.")

    @property
    def success_return(self) -> float:
        return super().success_return if self.success is None else self.success

    @property
    def known_returns(self) -> ReturnRange | None:
        return None if self.returns is None else ReturnRange(min(self.returns[0], 0.0), max(self.returns[1], 0.0))
