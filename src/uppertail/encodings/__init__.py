"""How observations enter the network: integer states, vectors, images."""

from uppertail.encodings.base import Encoding
from uppertail.encodings.image import Image
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.spaces import (
    Features,
    Numbers,
    ObservationSpace,
    Pixels,
    Preferences,
    Scaling,
    States,
)
from uppertail.encodings.states import OneHot, Scalar, StateEncoding, Thermometer, state_encoding
from uppertail.encodings.vector import Vector

__all__ = [
    "Encoding",
    "Features",
    "Image",
    "Numbers",
    "ObservationSpace",
    "OneHot",
    "Pixels",
    "Preferences",
    "RandomFeatures",
    "Scalar",
    "Scaling",
    "StateEncoding",
    "States",
    "Thermometer",
    "Vector",
    "state_encoding",
]
