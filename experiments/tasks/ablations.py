"""The defaults with a part of evidence taken out, and bootstrapped DQN on a network of the same layers."""

import dataclasses
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import uppertail as ut
from uppertail.encodings import Encoding
from uppertail.evidence import Evidence, KernelCounts, NoEvidence
from uppertail.evidence.kernel_counts import KernelEvidence, KnownCounts
from uppertail.networks.ensemble import EnsembleNetwork
from uppertail.networks.perceptrons import PerActionNetwork
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.types import PyTree, Rescaling, Transition


class Known(Evidence):
    """Nothing is left of the start, so that the network is the whole prediction."""

    num_actions: int

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return jnp.zeros(self.num_actions)

    def observe(self, fresh: Transition) -> Self:
        return self


class ActingEvidence(Evidence):
    """Kernel counts where one acts; where a stored transition leads, nothing is left of the start."""

    counts: KernelEvidence

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return self.counts.share(observation)

    def start(self, family: Any) -> PyTree:
        return self.counts.start(family)

    def observe(self, fresh: Transition) -> Self:
        return dataclasses.replace(self, counts=self.counts.observe(fresh))

    def there(self, kept: PyTree) -> Known:
        return Known(self.counts.num_parts)


class BootstrapEvidence(Evidence):
    """Kernel counts where a stored transition leads; where one acts, nothing is left of the start."""

    counts: KernelEvidence

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return jnp.zeros(self.counts.num_parts)

    def start(self, family: Any) -> PyTree:
        return self.counts.start(family)

    def observe(self, fresh: Transition) -> Self:
        return dataclasses.replace(self, counts=self.counts.observe(fresh))

    def kept(self, rows: Int[Array, " count"]) -> Float[Array, "count parts"]:
        return self.counts.kept(rows)

    def there(self, kept: Float[Array, " parts"]) -> KnownCounts:
        return self.counts.there(kept)


@dataclasses.dataclass(frozen=True)
class InActing(KernelCounts):
    """The policy acts on the mixture, and targets are backed up from the network alone."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return ActingEvidence(super().init(key, encoding, num_actions, capacity))


@dataclasses.dataclass(frozen=True)
class InBootstrap(KernelCounts):
    """Targets are backed up from the mixture, and the policy acts on the network alone."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return BootstrapEvidence(super().init(key, encoding, num_actions, capacity))


@dataclasses.dataclass(frozen=True)
class EpsilonUCB(ExplorationPolicy):
    """The highest mean + c * std, or with probability epsilon an action at random."""

    epsilon: float = 0.05
    c: float = 2.0

    @property
    def optimism(self) -> float:
        return self.c

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        explore_key, noise_key = jax.random.split(key)
        noise = jax.random.uniform(noise_key, (decision.num_actions,))
        explores = jax.random.bernoulli(explore_key, self.epsilon)
        return jnp.where(explores, noise, jnp.mean(decision.mean + self.c * decision.std, axis=0))


@dataclasses.dataclass(frozen=True)
class NoCounts(NoEvidence):
    """No evidence, with all else as beside kernel counts: updates, encoding, replay alone, a range that grows."""

    by_row: ClassVar[bool] = True
    greedy_mean: ClassVar[bool] = True
    usual: ClassVar[dict[str, Any]] = KernelCounts.usual

    def encoding(self, encoding: Encoding) -> Encoding:
        return KernelCounts().encoding(encoding)

    def family(self, family: Any) -> Any:
        return KernelCounts().family(family)


class BootstrappedNetwork(EnsembleNetwork):
    """Members whose learned outputs keep their values as the range grows, while priors stay as wide as the range."""

    def rescaled(self, rescaling: Rescaling) -> Self:
        (*weights, weight), (*biases, bias) = self.learned
        factor, shift = rescaling.factor[None, None], rescaling.shift[None, None]  # of actions and members
        learned = (*weights, weight * factor[None]), (*biases, bias * factor + shift)
        return dataclasses.replace(self, learned=learned)


@dataclasses.dataclass(frozen=True)
class Bootstrapped(ut.Ensemble):
    """Bootstrapped DQN: heads on one network (Osband et al. 2016), each with a prior function of its own (2018).

    The network has the layers of a critic of the defaults; the priors are heads on a random one that never learns.
    """

    can_rescale: ClassVar[bool] = True
    bias: bool | None = True
    activation: Any = "relu"
    normalization: Any = "layer"
    torso_widths: tuple[int, ...] | None = (128, 128)

    def per_action(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, outputs: int) -> PerActionNetwork:
        encoding = self.torso_on(encoding)
        sizes = encoding.num_features, outputs  # no layer between the torso and the heads
        return PerActionNetwork.init(key, encoding, sizes, num_actions, bias=True, units=self.units)

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> BootstrappedNetwork:
        network = super().init(key, encoding, num_actions, num_outputs)
        return BootstrappedNetwork(**{each.name: getattr(network, each.name) for each in dataclasses.fields(network)})
