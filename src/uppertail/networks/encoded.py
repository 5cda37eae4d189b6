"""A network that sees observations through an encoding."""

import dataclasses
from typing import Any

from jaxtyping import Array

from uppertail.networks.base import Network


class EncodedNetwork(Network):
    """A network with an `encoding`, and with the encoding's own arrays in its field `encoder`.

    Examples:
        >>> from typing import Any
        >>> import equinox as eqx
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import uppertail as ut
        >>> from uppertail.encodings import Hashed
        >>> class Table(ut.EncodedNetwork):
        ...     values: jnp.ndarray  # places, actions * outputs
        ...     encoder: Any
        ...     encoding: Any = eqx.field(static=True)
        ...
        ...     def outputs(self, observation):
        ...         return self.encoding.project(self.encoder, self.values, observation).reshape(3, 2)
        >>> encoding = Hashed(8)
        >>> begun = Table(jnp.zeros((8, 6)), encoding.init(jax.random.key(0)), encoding)
        >>> seen = begun.observe(jnp.array([70_000, 123_456, 70_000]))
        >>> int((seen.encoder != 0).any(axis=1).sum())  # the places of two different observations
        2
    """

    def observe(self: Any, observations: Array) -> Any:
        return dataclasses.replace(self, encoder=self.encoding.observe(self.encoder, observations))

    def with_observed(self: Any, other: Any) -> Any:
        return dataclasses.replace(self, encoder=other.encoder)

    def remark(self: Any) -> str | None:
        return self.encoding.remark(self.encoder)
