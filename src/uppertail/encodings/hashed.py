"""Observations of any kind as places of a hash table: a one-hot for observations that repeat exactly."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings.base import Encoding

Places = Float[Array, " places"]

LIKELY = 0.02
"""The share of observations that may share a place without a note to the user."""


@dataclasses.dataclass(frozen=True)
class Hashed(Encoding):
    """The place of an observation as a unit vector: two observations share nothing, unless their hashes collide.

    Its encoder holds 1 for each place that was ever observed, 0 for the others.

    Args:
        num_states: how many places there are.
    """

    num_states: int

    @property
    def num_features(self) -> int:
        return self.num_states

    @property
    def is_local(self) -> bool:
        return True

    @property
    def is_one_hot(self) -> bool:
        return True

    def init(self, key: PRNGKeyArray) -> Places:
        del key  # nothing is drawn at random
        return jnp.zeros(self.num_states)

    def observe(self, encoder: Places, observations: Int[Array, " batch"]) -> Places:
        return encoder.at[observations].set(1.0)

    def project(
        self, encoder: Places, weight: Float[Array, "features outputs"], observation: Int[Array, ""]
    ) -> Float[Array, " outputs"]:
        del encoder  # it only counts
        return weight[observation]

    def remark(self, encoder: Float[Array, "seeds places"]) -> str | None:
        """A note if observations are likely to have shared a place.

        Of n observations that fall on m of p places, n is about -p ln(1 - m / p): about n - m of them share.
        """
        taken = float((np.asarray(encoder) > 0).sum(axis=-1).max())
        free = max(1.0 - taken / self.num_states, 0.5 / self.num_states)
        different = -self.num_states * float(np.log(free))
        share = 1.0 - taken / max(different, 1.0)
        if share <= LIKELY or different - taken < 1:
            return None
        return (
            f"About {share:.0%} of {different:,.0f} different observations shared one of {self.num_states:,} places "
            f"with another: with a larger --env.hash_size, such as {_enough(different)}, fewer do."
        )


def _enough(different: float) -> int:
    """A power of two, so large that about one in a hundred of these observations shares a place."""
    return 1 << max(int(np.ceil(np.log2(max(different, 2.0) / LIKELY))), 1)
