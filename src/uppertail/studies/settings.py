"""The settings in a run's config.yaml: those of the environment, those of the method, and differences between runs."""

from collections.abc import Iterator, Mapping
from typing import Any

ENVIRONMENT = "env"
SEEDS = ("seed", "seeds")
NEUTRAL = ("checkpoint_every", "logger", "record")
"""Options that leave a run's results as they are."""


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"env": {"class_path": "uppertail.Chain", "init_args": {"length": 5}}}` as `env: Chain, env.length: 5`."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and "class_path" in value:
            found[f"{prefix}{name}"] = str(value["class_path"]).removeprefix("uppertail.")
            found |= flat(value.get("init_args") or {}, f"{prefix}{name}.")
        elif isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return {name: value for name, value in found.items() if name not in NEUTRAL}


def environment(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The environment's part of flat settings."""
    return {name: value for name, value in settings.items() if is_environments(name)}


def method(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All flat settings except the environment's and the seeds."""
    return {name: value for name, value in settings.items() if not is_environments(name) and name not in SEEDS}


def differences(was: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Each of the flat settings in which two runs differ, in words."""
    for name in [*was, *(asked.keys() - was.keys())]:
        if name not in was or name not in asked or was[name] != asked[name]:
            yield f"{name} is {was.get(name, 'left out')}, not {asked.get(name, 'left out')}"


def is_environments(option: str) -> bool:
    """Whether an option is the environment or one of its settings."""
    return option == ENVIRONMENT or option.startswith(f"{ENVIRONMENT}.")
