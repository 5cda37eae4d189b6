"""Named sets of options for `uppertail train --preset NAME`."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from uppertail.errors import InputError


class Preset(NamedTuple):
    """A set of options.

    Args:
        options: options of a run.
        families: settings of a distribution, for those of this name.
    """

    options: dict[str, Any]
    families: dict[str, dict[str, Any]]


PRESETS = {
    "paper": Preset(
        {
            "bias": "true",
            "replay": "Uniform",
            "target": "Online",
            "learning_rate": 5e-4,
            "adam_betas": "[0.9, 0.999]",
            "adam_epsilon": 1e-8,
            "batch_size": 32,
            "updates_per_rollout": 2,
        },
        {"Gaussian": {"distance": "cross_entropy", "beta": 0.0}},
    )
}
"""`paper`: networks with biases, cross-entropy, Adam with its usual settings, the last 50,000 transitions."""


def with_preset(arguments: Sequence[str]) -> list[str]:
    """Arguments with what a `--preset` among them stands for; options that are given beside it count.

    Raises:
        InputError: there is no preset of this name.
    """
    name = value_of("--preset", arguments)
    if name is None or name == "null":
        return list(arguments)
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(f"There is no preset {name!r}: use {' or '.join(PRESETS)}, or leave it out.{hint}")
    options, families = PRESETS[name]
    before = [f"--{option}={value}" for option, value in options.items()]
    family = (value_of("--distribution", arguments) or "Gaussian").rpartition(".")[2]
    named = {argument.partition("=")[0] for argument in arguments}
    settings = {f"--distribution.{setting}": value for setting, value in families.get(family, {}).items()}
    after = [f"{option}={value}" for option, value in settings.items() if option not in named]
    return [*before, *arguments, *after]


def value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The last value of an option; None if it is not given."""
    value = None
    for number, argument in enumerate(arguments):
        if argument == option and number + 1 < len(arguments):
            value = arguments[number + 1]
        elif argument.startswith(f"{option}="):
            value = argument.partition("=")[2]
    return value
