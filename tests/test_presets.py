"""Presets stand for options; options beside them count."""

import pytest

from uppertail.cli.train import parse_request
from uppertail.errors import InputError
from uppertail.presets import with_preset


def test_the_paper_preset_is_the_papers_form() -> None:
    built = parse_request(["--preset", "paper", "--env.length", "5"]).built
    assert (built.distribution.distance, built.distribution.beta) == ("cross_entropy", 0.0)
    assert type(built.replay).__name__ == "Uniform"
    assert (built.learning_rate, built.adam_betas, built.adam_epsilon) == (5e-4, (0.9, 0.999), 1e-8)
    network = built.network
    assert (network.input_init, network.input_gain, type(built.target).__name__) == ("glorot", 1.0, "Online")
    assert (built.policy.low, built.policy.high, built.on_policy) == (1.7, 2.3, "fresh")
    assert (built.width, built.hidden_layers) == (256, 2)
    assert (built.bias, built.batch_size, built.updates_per_rollout) == (True, 32, 2)


def test_the_stochastic_preset_averages_over_all_outcomes() -> None:
    built = parse_request(["--preset", "stochastic", "--steps", "4096"]).built
    assert (type(built.replay).__name__, type(built.target).__name__) == ("Uniform", "Online")
    assert (built.learning_rate, built.learning_rate_end, built.steps) == (3e-3, 0.0, 4096)
    assert built.episodes > built.steps  # the steps end the run, by which the rate has fallen


def test_the_stochastic_preset_needs_to_know_how_long_the_run_is() -> None:
    with pytest.raises(InputError, match="say after how many steps it is reached, with --steps"):
        parse_request(["--preset", "stochastic"]).run()


def test_what_is_given_beside_a_preset_counts() -> None:
    arguments = ["--preset=paper", "--batch_size", "8", "--distribution.beta=0.5", "--replay", "Distinct"]
    built = parse_request(arguments).built
    assert (built.batch_size, built.distribution.beta, built.distribution.distance) == (8, 0.5, "cross_entropy")
    assert type(built.replay).__name__ == "Distinct"


def test_a_preset_leaves_other_families_as_they_are() -> None:
    built = parse_request(["--preset", "paper", "--distribution", "Categorical"]).built
    assert type(built.distribution).__name__ == "Categorical"


def test_the_configuration_of_a_run_names_no_preset() -> None:
    config = parse_request(["--preset", "paper"]).config
    assert "preset" not in config
    assert "learning_rate: 0.0005" in config


def test_without_a_preset_nothing_changes() -> None:
    assert with_preset(["--env", "Toy"]) == ["--env", "Toy"]


def test_an_unknown_preset_is_one_sentence() -> None:
    with pytest.raises(
        InputError, match=r"There is no preset 'papre': use paper or stochastic, or leave it out\. Did you mean paper"
    ):
        parse_request(["--preset", "papre"])
