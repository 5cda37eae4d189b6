"""Imitation of the best episodes: the policy itself is learned, from what went well (Zha et al. 2021)."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.errors import InputError
from uppertail.learners.base import Gradients, LearnerBuilder
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import Network, NetworkBuilder
from uppertail.policies import Decision, Softmax
from uppertail.replay import BestEpisodes
from uppertail.types import Transition

STEPS = {
    "updates_per_rollout": 10,
    "batch_size": 256,
    "replay_size": 10_000,
    "learning_rate": 5e-4,
    "learning_rate_decay": 0,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
}
"""The settings of imitation that are open until a run begins, with their defaults (docs/decisions/0026)."""


@dataclasses.dataclass(frozen=True)
class Imitation(LearnerBuilder):
    """A network that learns to take the actions of the best episodes; nothing is backed up.

    The best episodes are a sample of the upper tail of the returns of whole episodes, and the softmax policy becomes
    more and more like the one that made them. So a view may look the same in different places, which misleads backups.
    What is learned are preferences, not returns: the distribution is a PointMass, whose means are logits. The discount
    does not matter.

    Examples:
        >>> settings = ut.Settings(seeds=2, episodes=128)
        >>> parts = {"distribution": ut.PointMass(), "policy": ut.Softmax(), "learner": ut.Imitation()}
        >>> ut.train(ut.Toy(), settings=settings, **parts).record.summary()["learner"]["name"]
        'Imitation'
    """

    uses_gradients: ClassVar[bool] = True
    unused: ClassVar[tuple[str, ...]] = ("target", "evidence", "on_policy", "loss_samples", "replay_start")

    def rollout_steps(self, encoding: Encoding) -> int:
        return 128

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        return {"replay": BestEpisodes(), **STEPS}

    def network(self, network: NetworkBuilder, encoding: Encoding) -> NetworkBuilder:
        """The network with biases, and with a layer that all actions share, where these are open."""
        return super().network(network, encoding) if encoding.image_shape else network.with_torso()

    def build(self, agent: Agent, gradients: Gradients | None) -> "ImitationLearner":
        if gradients is None:
            raise InputError("Imitation needs a network, a replay buffer and step sizes: give its `gradients`.")
        if not gradients.replay.whole_episodes:
            name = type(gradients.replay).__name__
            raise InputError(f"Imitation learns from whole episodes, not from {name}: use --replay BestEpisodes.")
        if not isinstance(agent.policy, Softmax):
            name = type(agent.policy).__name__
            raise InputError(f"Imitation learns the preferences of a softmax, not of {name}: use --policy Softmax.")
        if agent.family.has_spread:
            name = type(agent.family).__name__
            raise InputError(f"Imitation learns one number for each action, no {name}: use --distribution PointMass.")
        return ImitationLearner(agent, gradients)


@dataclasses.dataclass(frozen=True)
class ImitationLearner(GradientLearner):
    """Gradient steps that make the actions of replayed transitions more probable."""

    @property
    def fresh_count(self) -> int:
        return 0

    def loss(
        self, network: Network, bootstrapping: Network, keys: Key[Array, "2"], transition: Transition
    ) -> tuple[Float[Array, " members"], Bool[Array, " members"]]:
        """- log p(a | s) by each member."""
        agent: Any = self.agent

        def of_member(z: Any) -> Float[Array, ""]:
            alone = Decision(agent.family, jax.tree.map(lambda leaf: leaf[None], z))
            return -agent.policy.log_probabilities(alone)[transition.action]

        losses = jax.vmap(of_member)(agent.returns_by_member(network, transition.observation))
        return losses, jnp.zeros(losses.shape, bool)
