"""A bonus as reward, on the network of the defaults: by its counts (MBIE-EB, Strehl and Littman 2008), or others."""

import abc
import dataclasses
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.evidence import Evidence, KernelCounts, PixelCounts
from uppertail.evidence.kernel_counts import centered
from uppertail.learners import GradientDescent, Gradients, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.types import PyTree, Transition


class Unheard(Evidence):
    """Evidence that leaves the network's predictions as they are, and says what new transitions are paid."""

    num_actions: int = eqx.field(static=True)

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return jnp.zeros(self.num_actions)

    def start(self, family: Any) -> PyTree:
        return centered(family)

    @abc.abstractmethod
    def paid(self, fresh: Transition, unit: Array | float) -> Float[Array, " new"]:
        """The bonus of each transition, before it is observed; `unit`: of what is new."""


class UnheardCounts(Unheard):
    """Counts, which pay unit / sqrt(N(s, a) + 1)."""

    counts: Any

    def observe(self, fresh: Transition) -> Self:
        return dataclasses.replace(self, counts=self.counts.observe(fresh))

    def paid(self, fresh: Transition, unit: Array | float) -> Float[Array, " new"]:
        counts = self.counts
        share = jax.vmap(counts.share)(fresh.observation)[jnp.arange(fresh.action.shape[0]), fresh.action]
        seen = counts.prior_count * (1.0 / share - 1.0)
        return unit / jnp.sqrt(seen + 1.0)


@dataclasses.dataclass(frozen=True)
class CountsAlone(KernelCounts):
    """Kernel counts that nobody acts on or bootstraps from."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return UnheardCounts(num_actions, super().init(key, encoding, num_actions, capacity))


@dataclasses.dataclass(frozen=True)
class PixelsAlone(PixelCounts):
    """Counts of pixels that nobody acts on or bootstraps from; N(s, a) is that of the mean share."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return UnheardCounts(num_actions, super().init(key, encoding, num_actions, capacity))


@dataclasses.dataclass(frozen=True)
class Bonus(GradientDescent):
    """Gradient descent on the reward and what its evidence, which is `Unheard`, pays.

    Args:
        bonus: what going on forever where all is new is worth, in ranges of returns. Counts: chosen of 0.1, 0.3 and 1
            on pendulum-swingup, seeds 100 and 101. Distillation: all three learn it on seed 100.
    """

    bonus: float = 0.3

    def build(self, agent: Agent, gradients: Gradients | None) -> "BonusLearner":
        agent = dataclasses.replace(agent, bounds=None)  # the bonus may be worth more than any return
        return BonusLearner(agent, super().build(agent, gradients).gradients, self.bonus)


@dataclasses.dataclass(frozen=True)
class BonusLearner(GradientLearner):
    """Its transitions keep the bonus that they had when they were new."""

    bonus: float

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        unit = self.bonus * self.agent.family.unit * (1.0 - self.agent.discount)
        paid = state.network.unknown.paid(fresh, unit)
        return super().learn(key, state, fresh._replace(reward=fresh.reward + paid), iteration)
