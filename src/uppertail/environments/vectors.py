"""What the builders of environments that show numbers share: settings of how these enter the network."""

import dataclasses

from uppertail.encodings import Features, Preferences, Scaling
from uppertail.environments.base import EnvironmentBuilder


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorBuilder(EnvironmentBuilder):
    """Builds environments whose observations are vectors of numbers.

    Args:
        scaling: by which bounds other observations are brought to [-1, 1]: auto (those seen so far for a Box, else
            those declared), declared or running (those seen so far).
        features: how numbers enter the network: random (features that only near observations share), scaled (as they
            are; add --bias true) or auto (random where there is a Box).
        num_features: how many random features.
        length_scale: distance, as root mean square over the numbers in [-1, 1], at which observations begin to differ.
        feature_norm: sum of the absolute values of the random features; with more than 1 the network learns features of
            its own from them.
    """

    scaling: Scaling = "auto"
    features: Features = "auto"
    num_features: int = 300
    length_scale: float = 1.0
    feature_norm: float = 1.0

    @property
    def preferences(self) -> Preferences:
        return Preferences(
            scaling=self.scaling,
            features=self.features,
            num_features=self.num_features,
            length_scale=self.length_scale,
            feature_norm=self.feature_norm,
        )
