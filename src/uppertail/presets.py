"""Named sets of options for `uppertail train --preset NAME`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from uppertail.errors import InputError, nearest
from uppertail.parts import PARTS


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
            "bias": "true",
            "on_policy": "fresh",
            "learning_rate": 5e-4,
            "adam_betas": "[0.9, 0.999]",
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
                "wrappers": "[minigrid.wrappers.FullyObsWrapper, "
                "{class_path: ClipReward, init_args: {max_reward: 0.1}}]",
                "encoding": "hashed",
                "reset_seed": "run",
                "returns": "[0, 0.1]",
                "success": "0.1",
            },
            ("policy", "UCB"): {"low": 0.45, "high": 0.45},
        },
    ),
}
"""`paper`: deeper networks with biases, c drawn for each decision, the paper's losses, plain Adam and replay.
`minigrid`: the whole grid in view, each of its states told apart, one layout for each seed, the goal paid the same at
any time, and c for ways of about 11 steps (docs/minigrid.md).
"""


def with_preset(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the options of a `--preset` among them; options that are given beside it win.

    Raises:
        InputError: there is no preset of this name, or a file of options is given beside it.
    """
    name, _ = last_of("--preset", arguments)
    if name in (None, "null"):
        return list(arguments)
    if name not in PRESETS:
        hint = nearest(name, PRESETS, 1)
        raise InputError(f"There is no preset {name!r}: use {', '.join(PRESETS)}, or leave it out.{hint}")
    if values_of("--config", arguments):
        raise InputError("--preset and --config each describe a whole run: give one of them, with options beside it.")
    options, settings = PRESETS[name]
    whole = [*(f"--{option}={value}" for option, value in options.items()), *arguments]
    given = {argument.partition("=")[0] for argument in arguments}
    for (part, kind), values in settings.items():
        named, place = last_of(f"--{part}", whole)
        if (named or PARTS[part].default).rpartition(".")[2] == kind:
            own = [f"--{part}.{name}={value}" for name, value in values.items() if f"--{part}.{name}" not in given]
            whole[place:place] = own
    return whole


def values_of(option: str, arguments: Sequence[str]) -> list[tuple[str, int]]:
    """Each value of an option, and the place after it."""
    found = []
    for place, argument in enumerate(arguments, 1):
        if argument == option and place < len(arguments):
            found.append((arguments[place], place + 1))
        elif argument.startswith(f"{option}="):
            found.append((argument.partition("=")[2], place))
    return found


def last_of(option: str, arguments: Sequence[str]) -> tuple[str | None, int]:
    """The last value of an option, and the place after it; None and 0 if it is not given."""
    return (values_of(option, arguments) or [(None, 0)])[-1]
