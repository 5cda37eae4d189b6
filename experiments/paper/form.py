"""The form in which the paper's figures are made: its loss, its optimizer, its replay, not this project's defaults."""

from typing import Any

from uppertail.distributions import Gaussian, GaussianMixture
from uppertail.evidence import NoEvidence
from uppertail.networks import PerAction
from uppertail.policies import UCB
from uppertail.replay import Uniform
from uppertail.targets import Online
from uppertail.training.settings import Settings

PARTS: dict[str, Any] = {
    "network": PerAction(256, 2),
    "replay": Uniform(),
    "target": Online(),
    "evidence": NoEvidence(),
}
"""Two hidden layers of 256; replay is of the last 50,000 transitions; the network bootstraps from itself."""

ONE_LAYER: dict[str, Any] = {**PARTS, "network": PerAction(256)}
"""The same with one hidden layer."""

PRINTED: dict[str, Any] = {
    "discount": 0.995,
    "on_policy": "fresh",
    "learning_rate": 5e-4,
    "learning_rate_decay": 0,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
    "batch_size": 32,
    "rollout_steps": 16,
    "updates_per_rollout": 2,
}
"""Minibatches of 32, Adam with its usual settings (Implementation Details)."""


def paper_settings(**settings: Any) -> Settings:
    """Settings of a run in the paper's form; those given here replace its own."""
    return Settings(**{**PRINTED, **settings})


def paper_ucb() -> UCB:
    """UCB with c drawn from [1.7, 2.3] (Fig. 2)."""
    return UCB(low=1.7, high=2.3)


def paper_gaussian(**settings: Any) -> Gaussian:
    """A Gaussian learned by cross-entropy (appendix, Loss), with these settings."""
    return Gaussian(**{"distance": "cross_entropy", **settings})


def paper_mixture(**settings: Any) -> GaussianMixture:
    """A Gaussian mixture learned by the L2 distance between densities (appendix, Loss); what is given counts."""
    return GaussianMixture(**{"distance": "l2", **settings})
