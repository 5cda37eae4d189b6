"""Named sets of options for `uppertail train --preset NAME`.

A setting of a class, such as UCB.low, counts where the run has this class.
"""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "learner": "GradientDescent",
        "width": 256,
        "hidden_layers": 2,
        "bias": True,
        "on_policy": "fresh",
        "learning_rate": 5e-4,
        "adam_betas": [0.9, 0.999],
        "adam_epsilon": 1e-8,
        "batch_size": 32,
        "updates_per_rollout": 2,
        "Gaussian.distance": "cross_entropy",
        "Gaussian.beta": 0.0,
        "GaussianMixture.distance": "l2",
        "UCB.low": 1.7,
        "UCB.high": 2.3,
    },
    "minigrid": {
        "env": "Gym",
        "discount": 0.95,
        "steps": 60_000,
        "episodes": 1_000_000,
        "Gym.wrappers": [
            "minigrid.wrappers.FullyObsWrapper",
            {"class_path": "ClipReward", "init_args": {"max_reward": 0.1}},
        ],
        "Gym.encoding": "hashed",
        "Gym.reset_seed": "run",
        "Gym.returns": [0, 0.1],
        "Gym.success": 0.1,
        "UCB.low": 0.45,
        "UCB.high": 0.45,
    },
}
"""`paper`: deeper networks with biases, c drawn for each decision, the paper's losses, plain Adam and replay.
`minigrid`: the whole grid in view, each of its states told apart, one layout for each seed, the goal paid the same at
any time, and c for ways of about 11 steps (docs/minigrid.md).
"""
