"""MiniGrid as `--preset minigrid` runs it; `pip install 'uppertail[minigrid]'` first."""

from typing import Any

import numpy as np
import pytest

from uppertail.cli.train import parse_request
from uppertail.encodings import Hashed
from uppertail.training.train import drive

pytest.importorskip("minigrid", reason="MiniGrid is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*Overriding environment.*:UserWarning"),  # it registers itself twice
]
EMPTY = ["--preset", "minigrid", "--env.id", "minigrid:MiniGrid-Empty-5x5-v0"]


def test_the_preset_solves_an_empty_grid_and_tells_its_states_apart() -> None:
    result = drive(parse_request([*EMPTY, "--seeds", "1", "--steps", "1500"]).run(), lambda _: None)
    assert result.record.greedy_returns == pytest.approx([0.1])
    table: Any = result.networks
    seen = (np.asarray(table.encoder) != 0).any(axis=-1).sum(axis=-1)
    assert 8 <= seen.item() <= 8 * 4  # eight fields beside the goal, four directions


def test_a_grid_says_nothing_of_time_limits() -> None:
    built = parse_request(EMPTY).built
    assert not built.env.may_go_on
    assert isinstance(built.env.observations.encoding(built.env.preferences), Hashed)
