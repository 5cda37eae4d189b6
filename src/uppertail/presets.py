"""Named sets of options for `uppertail train --preset NAME`."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from uppertail.errors import InputError
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
    name = value_of("--preset", arguments)
    if name is None or name == "null":
        return list(arguments)
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(f"There is no preset {name!r}: use {', '.join(PRESETS)}, or leave it out.{hint}")
    if value_of("--config", arguments) is not None:
        raise InputError("--preset and --config each describe a whole run: give one of them, with options beside it.")
    options, settings = PRESETS[name]
    whole = [f"--{option}={value}" for option, value in options.items()]
    whole += arguments
    given = {argument.partition("=")[0] for argument in arguments}
    for (part, kind), values in settings.items():
        named, place = _last(f"--{part}", whole)
        if (named or PARTS[part].default).rpartition(".")[2] == kind:
            own = [f"--{part}.{name}={value}" for name, value in values.items() if f"--{part}.{name}" not in given]
            whole[place:place] = own
    return whole


def value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The last value of an option; None if it is not given."""
    return _last(option, arguments)[0]


def _last(option: str, arguments: Sequence[str]) -> tuple[str | None, int]:
    """The last value of an option, and the place after it; None and 0 if it is not given."""
    value, place = None, 0
    for number, argument in enumerate(arguments):
        if argument == option and number + 1 < len(arguments):
            value, place = arguments[number + 1], number + 2
        elif argument.startswith(f"{option}="):
            value, place = argument.partition("=")[2], number + 1
    return value, place
