"""How observations enter the network: integer states, vectors, images."""

from uppertail.encodings.base import (
    Encoding,
    ObservationSpace,
    OneHot,
    Preferences,
    Scalar,
    States,
    Thermometer,
    VectorSettings,
    require_state,
)
from uppertail.encodings.categories import Categories
from uppertail.encodings.hashed import TEXT_PLACES, Hashed, HashedNumbers, hash_of, hashes_of, one_hot_text
from uppertail.encodings.nearest import Nearest
from uppertail.encodings.random_features import RandomFeatures
from uppertail.encodings.spaces import HashedStates, Numbers, Pixels
from uppertail.encodings.vector import Image, Vector
