"""What older versions wrote down, completed: cases worked out by hand."""

import dataclasses
from typing import Any

import pytest

from uppertail.distributions import Gaussian
from uppertail.environments import Chain
from uppertail.networks import PerAction
from uppertail.policies import UCB, EpisodeUCB
from uppertail.records.older import FIRST_OPTIONS, completed, completed_options, renamed
from uppertail.replay import Distinct, Uniform
from uppertail.targets import Online
from uppertail.training.settings import Settings

SETTINGS = {
    "seeds": 5, "seed": 0, "episodes": 9, "steps": None, "num_envs": 1, "discount": 0.9, "learning_rate": 0.001,
    "learning_rate_end": None, "gradient_clip": 1.0, "width": 16, "hidden_layers": 1, "bias": True, "batch_size": 32,
    "replay_size": 500, "rollout_steps": 16, "updates_per_rollout": 2, "on_policy": "fresh", "replay_start": 0,
    "loss_samples": 0,
}  # fmt: skip
"""Of a run before there were parts beside the environment, the distribution and the policy."""

BEFORE: dict[str, Any] = {
    "environment": {"name": "Chain", "length": 4, "ordered": False, "encoding": "one_hot", "time_limit": None},
    "distribution": {"name": "Gaussian", "std_bias": 1.0, "terminal_std": 1e-4, "beta": 0.5, "scale": 1.0},
    "policy": {"name": "UCB", "low": 1.7, "high": 2.3},
    "settings": SETTINGS,
    "measured_returns": None,
}

PARTS: dict[str, Any] = {
    "environment": Chain(4),
    "distribution": Gaussian(),
    "policy": UCB(),
    "network": PerAction(16, 1, True),
    "replay": Uniform(),
    "target": Online(),
    "settings": Settings(),
}


def test_a_run_from_before_the_parts_had_the_usual_ones() -> None:
    """Its network's width, depth and biases were settings of the run."""
    whole = completed(BEFORE, PARTS)
    assert whole["network"] == {
        "name": "PerAction", "width": 16, "hidden_layers": 1, "bias": True,
        "activation": "elu", "normalization": "none", "output_init": "glorot",
    }  # fmt: skip
    assert whole["replay"] == {"name": "Uniform"}
    assert whole["target"] == {"name": "Online"}
    assert whole["settings"] == {**SETTINGS, "adam_betas": [0.9, 0.999], "adam_epsilon": 1e-8}
    assert whole["distribution"] == {**BEFORE["distribution"], "distance": "cross_entropy"}
    for name in ("environment", "policy", "measured_returns"):
        assert whole[name] == BEFORE[name]


def test_what_is_given_is_left_alone() -> None:
    given = {**BEFORE, "settings": dict(SETTINGS)}
    completed(given, PARTS)
    assert given == BEFORE
    assert given["settings"] == SETTINGS


def test_what_stands_there_stays() -> None:
    there = {"name": "PerAction", "width": 3, "activation": "tanh"}
    whole = completed({**BEFORE, "network": there, "target": {"name": "Periodic", "every": 3}}, PARTS)
    assert whole["network"]["width"] == 3
    assert whole["network"]["activation"] == "tanh"
    assert whole["network"]["normalization"] == "none"
    assert whole["target"] == {"name": "Periodic", "every": 3}


def test_a_part_of_another_kind_is_not_completed() -> None:
    """Its settings are not those of today's part: that they differ is for others to say."""
    asked = {**BEFORE, "policy": {"name": "Thompson"}, "replay": {"name": "Uniform"}}
    whole = completed(asked, {**PARTS, "policy": EpisodeUCB(), "replay": Distinct(3)})
    assert whole["policy"] == {"name": "Thompson"}
    assert whole["replay"] == {"name": "Uniform"}


def test_a_setting_with_no_word_on_before_takes_its_default() -> None:
    @dataclasses.dataclass(frozen=True)
    class Policy:
        low: float = 0.0
        pair: tuple[float, float] = (1.0, 2.0)
        hidden: int = dataclasses.field(default=7, repr=False)

    whole = completed({"policy": {"name": "Policy", "low": 3.0}}, {"policy": Policy()})
    assert whole["policy"] == {"name": "Policy", "low": 3.0, "pair": [1.0, 2.0]}


def test_what_runs_did_before_holds_where_the_default_is_another() -> None:
    @dataclasses.dataclass(frozen=True)
    class Later:
        adam_betas: tuple[float, float] = (0.0, 0.5)
        adam_epsilon: float = 1e-3
        new: int = 4

    whole = completed({"settings": {"seeds": 2}}, {"settings": Later()})
    assert whole["settings"] == {"seeds": 2, "adam_betas": [0.9, 0.999], "adam_epsilon": 1e-8, "new": 4}


def test_old_options_are_completed_to_what_runs_did_before() -> None:
    old = dict.fromkeys(FIRST_OPTIONS, 0)
    options = completed_options(old)
    assert {name: options[name] for name in old} == old
    assert options["adam_betas"] == [0.9, 0.999]
    assert options["adam_epsilon"] == 1e-8
    assert options["replay"] == {"class_path": "Uniform", "init_args": {}}
    assert options["target"] == {"class_path": "Online", "init_args": {}}
    assert options["network"] == {
        "class_path": "PerAction",
        "init_args": {"activation": "elu", "normalization": "none", "output_init": "glorot"},
    }


def test_options_that_stand_in_an_old_file_win() -> None:
    replay = {"class_path": "Distinct"}
    options = completed_options({**dict.fromkeys(FIRST_OPTIONS, 0), "adam_epsilon": 0.1, "replay": replay})
    assert (options["adam_epsilon"], options["replay"]) == (0.1, replay)


@pytest.mark.parametrize("missing", ["env", "width", "loss_samples"])
def test_a_file_of_ones_own_is_left_as_it_is(missing: str) -> None:
    own = {name: 0 for name in FIRST_OPTIONS if name != missing}
    assert completed_options(own) == own


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("learned/weights/0", "at_limit/weights/0"),
        ("at_limit/weights/0", "at_limit/weights/0"),
        ("agent/network/learned/0", "agent/network/learned/0"),
        ("learned", "learned"),
    ],
)
def test_arrays_of_checkpoints_have_todays_names(before: str, now: str) -> None:
    assert renamed(before) == now
