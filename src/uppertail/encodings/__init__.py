"""How observations enter the network: integer states, vectors, images."""

from uppertail.encodings.base import Encoding
from uppertail.encodings.image import Image
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.states import STATE_ENCODINGS, OneHot, Scalar, StateEncoding, Thermometer
from uppertail.encodings.vector import Vector

__all__ = [
    "STATE_ENCODINGS",
    "Encoding",
    "Image",
    "OneHot",
    "RandomFeatures",
    "Scalar",
    "StateEncoding",
    "Thermometer",
    "Vector",
]
