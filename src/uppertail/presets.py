"""Named sets of options for `uppertail train --preset NAME`."""

from typing import Any, NamedTuple


class Preset(NamedTuple):
    """A set of options.

    Args:
        options: options of a run.
        settings: settings of a part, by the option that names the part and the part's name: they count where the run
            has this part.
    """

    options: dict[str, Any]
    settings: dict[tuple[str, str], dict[str, Any]]


PRESETS = {
    "paper": Preset(
        {
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
        },
        {
            ("distribution", "Gaussian"): {"distance": "cross_entropy", "beta": 0.0},
            ("distribution", "GaussianMixture"): {"distance": "l2"},
            ("policy", "UCB"): {"low": 1.7, "high": 2.3},
        },
    ),
    "minigrid": Preset(
        {"env": "Gym", "discount": 0.95, "steps": 60_000, "episodes": 1_000_000},
        {
            ("env", "Gym"): {
                "wrappers": [
                    "minigrid.wrappers.FullyObsWrapper",
                    {"class_path": "ClipReward", "init_args": {"max_reward": 0.1}},
                ],
                "encoding": "hashed",
                "reset_seed": "run",
                "returns": [0, 0.1],
                "success": 0.1,
            },
            ("policy", "UCB"): {"low": 0.45, "high": 0.45},
        },
    ),
}
"""`paper`: deeper networks with biases, c drawn for each decision, the paper's losses, plain Adam and replay.
`minigrid`: the whole grid in view, each of its states told apart, one layout for each seed, the goal paid the same at
any time, and c for ways of about 11 steps (docs/minigrid.md).
"""
