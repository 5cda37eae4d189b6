"""The form in which the paper's figures are made: its loss, its optimizer, its replay, not this project's defaults."""

from typing import Any

from uppertail.distributions import Gaussian
from uppertail.replay import Uniform
from uppertail.training.settings import Settings

REPLAY = Uniform()
"""The last 50,000 transitions, all equally likely (Implementation Details)."""

PRINTED: dict[str, Any] = {
    "learning_rate": 5e-4,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
    "batch_size": 32,
    "updates_per_rollout": 2,
}
"""Adam with its usual settings, minibatches of 32 (Implementation Details)."""


def paper_settings(**settings: Any) -> Settings:
    """Settings of a run in the paper's form; what is given counts."""
    return Settings(**{**PRINTED, **settings})


def paper_gaussian(**settings: Any) -> Gaussian:
    """A Gaussian learned by cross-entropy (appendix, Loss); what is given counts."""
    return Gaussian(**{"distance": "cross_entropy", **settings})
