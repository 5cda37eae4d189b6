"""A count bonus as reward (MBIE-EB, Strehl and Littman 2008), on the network and kernel counts of the defaults."""

import dataclasses
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.evidence import Evidence, KernelCounts
from uppertail.evidence.kernel_counts import KernelEvidence
from uppertail.learners import GradientDescent, Gradients, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.types import PyTree, Transition


class Unheard(Evidence):
    """Counts that leave the network's predictions as they are."""

    counts: KernelEvidence

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return jnp.zeros(self.counts.num_parts)

    def start(self, family: Any) -> PyTree:
        return self.counts.start(family)

    def observe(self, fresh: Transition) -> Self:
        return dataclasses.replace(self, counts=self.counts.observe(fresh))


@dataclasses.dataclass(frozen=True)
class CountsAlone(KernelCounts):
    """Kernel counts that nobody acts on or bootstraps from."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        return Unheard(super().init(key, encoding, num_actions, capacity))


@dataclasses.dataclass(frozen=True)
class CountBonus(GradientDescent):
    """Gradient descent on the reward and bonus / sqrt(N(s, a) + 1), N the kernel count before the step.

    Args:
        bonus: what going on forever where all is new is worth, in ranges of returns; chosen of 0.1, 0.3 and 1 on
            pendulum-swingup, seeds 100 and 101.
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
        counts = state.network.unknown.counts
        share = jax.vmap(counts.share)(fresh.observation)[jnp.arange(fresh.action.shape[0]), fresh.action]
        seen = counts.prior_count * (1.0 / share - 1.0)
        unit = self.bonus * self.agent.family.unit * (1.0 - self.agent.discount)
        return super().learn(key, state, fresh._replace(reward=fresh.reward + unit / jnp.sqrt(seen + 1.0)), iteration)
