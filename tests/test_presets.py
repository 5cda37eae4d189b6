"""Presets stand for options; options beside them count."""

import re
import shlex
import sys
import types
from pathlib import Path

import gymnasium
import pytest

from uppertail.cli.train import parse_request
from uppertail.errors import InputError


def test_the_paper_preset_is_the_papers_form() -> None:
    built = parse_request(["--preset", "paper", "--env.length", "5"]).built
    assert (built.distribution.distance, built.distribution.beta) == ("cross_entropy", 0.0)
    assert type(built.learner).__name__ == "GradientDescent"
    assert (built.learning_rate, built.adam_betas, built.adam_epsilon) == (5e-4, (0.9, 0.999), 1e-8)
    assert (built.replay, built.target) == (None, None)  # open: GradientDescent fills in Uniform and Online
    assert (built.policy.low, built.policy.high, built.on_policy) == (1.7, 2.3, "fresh")
    assert (built.network.width, built.network.hidden_layers, built.network.bias) == (256, 2, True)
    assert (built.batch_size, built.updates_per_rollout) == (32, 2)


def test_the_paper_preset_is_for_every_network_with_layers() -> None:
    built = parse_request(["--preset", "paper", "--network", "Ensemble", "--network.hidden_layers", "3"]).built
    assert (type(built.network).__name__, built.network.width, built.network.hidden_layers) == ("Ensemble", 256, 3)


@pytest.fixture
def minigrid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of this name, which tests do without; nothing is made of it."""
    package, wrappers = types.ModuleType("minigrid"), types.ModuleType("minigrid.wrappers")
    wrappers.FullyObsWrapper = gymnasium.Wrapper  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "minigrid", package)
    monkeypatch.setitem(sys.modules, "minigrid.wrappers", wrappers)


@pytest.mark.usefixtures("minigrid")
def test_the_minigrid_preset_needs_only_an_environment() -> None:
    built = parse_request(["--preset", "minigrid", "--env.id", "minigrid:MiniGrid-Empty-8x8-v0"]).built
    env = built.env
    assert (env.label, env.encoding, env.reset_seed, env.returns, env.success) == (
        "minigrid:MiniGrid-Empty-8x8-v0",
        "hashed",
        "run",
        (0, 0.1),
        0.1,
    )
    assert env.wrappers[0] == "minigrid.wrappers.FullyObsWrapper"
    assert dict(env.wrappers[1]) == {"class_path": "ClipReward", "init_args": {"max_reward": 0.1}}
    assert (built.policy.low, built.policy.high, built.discount, built.steps) == (0.45, 0.45, 0.95, 60_000)


@pytest.mark.usefixtures("minigrid")
@pytest.mark.parametrize("which", [0, 1])
def test_the_minigrid_presets_are_what_their_page_says(which: int) -> None:
    page = (Path(__file__).parents[1] / "docs" / "minigrid.md").read_text()
    commands = re.findall(r"```sh\nuppertail train (.*?)```", page, re.DOTALL)
    short, long = commands[2 * which : 2 * which + 2]
    assert "--preset" in short and "--preset" not in long
    assert parse_request(shlex.split(short)).config == parse_request(shlex.split(long.replace("\\\n", ""))).config


def test_an_environment_beside_the_minigrid_preset_counts() -> None:
    assert type(parse_request(["--preset", "minigrid", "--env", "DeepSea"]).built.env).__name__ == "DeepSea"


def test_a_file_beside_a_preset_is_refused(tmp_path: Path) -> None:
    (file := tmp_path / "config.yaml").write_text("policy: Thompson\n")
    with pytest.raises(InputError, match="--preset and --config each describe a whole run: give one of them"):
        parse_request(["--preset", "paper", "--config", str(file)])


@pytest.mark.parametrize("policy", [["--policy", "UCB"], ["--policy=UCB"]])
def test_settings_before_the_name_of_their_part_count_too(policy: list[str]) -> None:
    built = parse_request(["--policy.low", "1", "--preset", "paper", *policy]).built
    assert (built.policy.low, built.policy.high) == (1.0, 2.3)


def test_what_is_given_beside_a_preset_counts() -> None:
    arguments = ["--preset=paper", "--batch_size", "8", "--distribution.beta=0.5", "--replay", "Prioritized"]
    built = parse_request(arguments).built
    assert (built.batch_size, built.distribution.beta, built.distribution.distance) == (8, 0.5, "cross_entropy")
    assert type(built.replay).__name__ == "Prioritized"


def test_a_preset_leaves_other_families_as_they_are() -> None:
    built = parse_request(["--preset", "paper", "--distribution", "Categorical"]).built
    assert type(built.distribution).__name__ == "Categorical"


def test_the_configuration_of_a_run_names_no_preset() -> None:
    config = parse_request(["--preset", "paper"]).config
    assert "preset" not in config
    assert "learning_rate: 0.0005" in config


def test_without_a_preset_nothing_changes() -> None:
    assert parse_request(["--preset", "null", "--env", "Toy"]).config == parse_request(["--env", "Toy"]).config


def test_an_unknown_preset_is_one_sentence() -> None:
    with pytest.raises(
        InputError,
        match=r"There is no preset 'papre': use paper, minigrid, minigrid_layouts, minigrid_imitation, or leave it "
        r"out\. Did you mean paper",
    ):
        parse_request(["--preset", "papre"])
