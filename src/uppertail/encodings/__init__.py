"""How observations enter the network: integer states, vectors, images."""

from uppertail.encodings.base import Encoding
from uppertail.encodings.hashed import TEXT_PLACES, Hashed, hash_of, one_hot_text
from uppertail.encodings.image import Image
from uppertail.encodings.landmarks import Landmarks
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.spaces import (
    Features,
    HashedStates,
    Numbers,
    ObservationSpace,
    Pixels,
    Preferences,
    Scaling,
    States,
)
from uppertail.encodings.states import OneHot, Scalar, StateEncoding, Thermometer, require_state, state_encoding
from uppertail.encodings.vector import Vector

__all__ = [
    "TEXT_PLACES",
    "Encoding",
    "Features",
    "Hashed",
    "HashedStates",
    "Image",
    "Landmarks",
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
    "hash_of",
    "one_hot_text",
    "require_state",
    "state_encoding",
]
