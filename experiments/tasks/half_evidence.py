"""Evidence in one of its two places alone: where the policy acts, or where targets are backed up from."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.evidence import KernelCounts
from uppertail.evidence.kernel_counts import KernelEvidence, KnownCounts


class HeardInActing(KernelEvidence):
    """Kernel counts that the policy acts on, while targets follow from the network as if nothing were unknown."""

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return super().there(self.counted(observation[None])[0]).share(observation)

    def there(self, kept: Float[Array, " parts"]) -> KnownCounts:
        return super().there(jnp.full_like(kept, jnp.inf))


class HeardInTargets(KernelEvidence):
    """Kernel counts that targets are mixed by, while the policy acts on the network alone."""

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return jnp.zeros_like(super().share(observation))


@dataclasses.dataclass(frozen=True)
class ActingAlone(KernelCounts):
    """Kernel counts for acting alone."""

    kind: ClassVar[type[KernelEvidence]] = HeardInActing

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> KernelEvidence:
        counts = super().init(key, encoding, num_actions, capacity)
        return self.kind(**{field.name: getattr(counts, field.name) for field in dataclasses.fields(counts)})


@dataclasses.dataclass(frozen=True)
class TargetsAlone(ActingAlone):
    """Kernel counts for targets alone."""

    kind: ClassVar[type[KernelEvidence]] = HeardInTargets
