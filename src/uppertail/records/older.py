"""Completes what older versions wrote, so that this version can read it; the only place that knows of them.

A setting that a file lacks came with a later version. It takes its value in `BEFORE` if it has one there, because its
default is not what runs did before; otherwise its default. A fact that is not a setting, such as a checksum, is not
compared with a file that lacks it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from uppertail.records.described import plain

BEFORE: dict[str, dict[str, Any]] = {
    "settings": {"adam_betas": [0.9, 0.999], "adam_epsilon": 1e-8},
    "network": {
        "name": "PerAction",
        "activation": "elu",
        "normalization": "none",
        "input_init": "glorot",
        "output_init": "glorot",
        "input_gain": 1.0,
    },
    "replay": {"name": "Uniform"},
    "target": {"name": "Online"},
}
"""For settings and parts, by the names of summary.json: what runs did before there was a choice."""

BEFORE_OF: dict[str, dict[str, Any]] = {"GaussianMixture": {"distance": "l2"}, "Ensemble": {"prior": "network"}}
"""The same for a part of one kind, by its class."""

MOVED = {"network": ("width", "hidden_layers", "bias")}
"""Settings of a part that were settings of the run."""

RENAMED = {"learned/": "at_limit/"}
"""Arrays of checkpoints, by what their names began with, and now begin with."""

FIRST_OPTIONS = {
    *("env", "distribution", "policy", "seeds", "seed", "episodes", "steps", "num_envs", "discount"),
    *("learning_rate", "learning_rate_end", "gradient_clip", "width", "hidden_layers", "bias", "batch_size"),
    *("replay_size", "rollout_steps", "updates_per_rollout", "on_policy", "replay_start", "loss_samples"),
    *("checkpoint_every", "logger"),
}
"""The options that every config.yaml of a run has had from the first version. A user's own file rarely has them all."""


def complete(asked: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, with those that came later.

    Args:
        asked: as its checkpoint says.
        parts: the parts of today's run and its settings, by the same names.
    """
    whole = {name: dict(value) if isinstance(value, Mapping) else value for name, value in asked.items()}
    for name, part in parts.items():
        was = whole.setdefault(name, _before(name, asked))
        if not isinstance(was, dict) or was.get("name", type(part).__name__) != type(part).__name__:
            continue
        for field in dataclasses.fields(part):
            if field.repr and field.name not in was:
                known = {**BEFORE.get(name, {}), **BEFORE_OF.get(type(part).__name__, {})}
                was[field.name] = known.get(field.name, _default(field) if field.init else getattr(part, field.name))
    return whole


def complete_options(content: Mapping[str, Any]) -> dict[str, Any]:
    """The options in a run's config.yaml, with those that came later; any other file's options as they are."""
    if not content.keys() >= FIRST_OPTIONS:
        return dict(content)
    later: dict[str, Any] = {}
    for name, before in BEFORE.items():
        if name == "settings":
            later |= before
        else:
            arguments = {setting: value for setting, value in before.items() if setting != "name"}
            later[name] = {"class_path": before["name"], "init_args": arguments}
    return {**later, **{name: _complete_part(value) for name, value in content.items()}}


def current_name(name: str) -> str:
    """Today's name of an array of a checkpoint."""
    for before, now in RENAMED.items():
        if name.startswith(before):
            return now + name.removeprefix(before)
    return name


def _complete_part(value: Any) -> Any:
    """An option of config.yaml; with the settings that came later, if it is a part of a kind that got some."""
    if not isinstance(value, Mapping) or "class_path" not in value:
        return value
    package, _, kind = str(value["class_path"]).rpartition(".")
    if package.partition(".")[0] not in ("", "uppertail"):  # somebody's own part may have the same name
        return value
    return {**value, "init_args": {**BEFORE_OF.get(kind, {}), **(value.get("init_args") or {})}}


def _before(name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A part that a file does not name, because there was no choice."""
    settings = asked.get("settings", {})
    return {**BEFORE.get(name, {}), **{moved: settings[moved] for moved in MOVED.get(name, ()) if moved in settings}}


def _default(field: Any) -> Any:
    """A setting's default as files hold it; None if it has none."""
    if field.default_factory is not dataclasses.MISSING:
        return plain(field.default_factory())
    return None if field.default is dataclasses.MISSING else plain(field.default)
