"""`--evaluate_every`: the network of the best greedy evaluation is kept, in compiled loops and in Python's."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import uppertail as ut
from uppertail.cli import main
from uppertail.training import run as runs
from worlds import Cell

pytestmark = pytest.mark.usefixtures("own_folder")


ENVIRONMENTS = {"compiled": ut.Toy(), "host": ut.FromGymnasium(Cell, features="hashed", returns=(0, 8))}
CHUNK = {"compiled": 1024, "host": 512}


@pytest.fixture
def returns_of(monkeypatch):
    """Lets evaluations have returns by a function of the step; gives the networks that were evaluated."""

    def use(function):
        taken = []

        def greedy_returns(run, networks):
            taken.append(jax.tree.map(np.array, networks))
            return np.array(function(run.ledger.step), np.float32)

        monkeypatch.setattr(runs.Run, "greedy_returns", greedy_returns)
        return taken

    return use


def settings(kind, chunks):
    return ut.Settings(seeds=2, steps=chunks * CHUNK[kind], evaluate_every=CHUNK[kind], rollout_steps=16)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_the_best_network_is_kept_of_each_seed_the_later_of_equals(kind, returns_of):
    script, seen, chunk = {1: [1.0, 5.0], 2: [3.0, 5.0], 3: [2.0, 4.0]}, list[ut.Progress](), CHUNK[kind]
    evaluated = returns_of(lambda step: script[step // chunk])
    result = ut.train(ENVIRONMENTS[kind], settings=settings(kind, 3), on_chunk=seen.append)
    assert len(evaluated) == 4  # three while it learned, one at the end
    for kept, second in zip(jax.tree.leaves(result.networks), jax.tree.leaves(evaluated[1]), strict=True):
        np.testing.assert_array_equal(kept, second)
    assert (result.record.greedy_returns, result.record.kept_step) == ([3.0, 5.0], [2 * chunk] * 2)
    assert [each.greedy_return for each in seen] == [3.0, 4.0, 3.0]
    assert f"greedy return: 3 (best, of step {2 * chunk:,}), 5 (best" in repr(result)


def test_without_evaluations_the_last_is_kept_and_nothing_more_is_played(returns_of):
    evaluated = returns_of(lambda step: [1.0, 2.0])
    result = ut.train(ut.Toy(), settings=ut.Settings(seeds=2, steps=2048, rollout_steps=16))
    assert (len(evaluated), result.record.kept_step) == (1, None)
    assert "kept_step" not in result.record.summary()


@pytest.mark.parametrize(("every", "best"), [(1024, 1024), (1200, 2048)])  # the first limit cuts a chunk short, at 1504
def test_a_resumed_run_keeps_what_one_that_was_not_stopped_keeps(every, best, returns_of, tmp_path):
    """What was best when it stopped, but was no evaluation of the longer run, is forgotten."""
    returns_of(lambda step: [{1024: 7.0, 1504: 9.0, 2048: 6.0}.get(step, 1.0)] * 2)
    kept = []
    for folder, stops in (("stopped", (1500, 3072)), ("whole", (3072,))):
        for steps in stops:
            asked = ut.Settings(seeds=2, steps=steps, evaluate_every=every, rollout_steps=16)
            result = ut.train(ut.Toy(), settings=asked, checkpoints=ut.Checkpoints(tmp_path / folder))
            kept.append(result.record.kept_step)
    assert kept == [[1500, 1500], [best, best], [best, best]]


def test_an_evaluation_that_fails_ends_the_run_and_keeps_what_was_learned(returns_of):
    def heat(step):
        if step > 1024:
            raise ut.InputError("The motor is hot.")
        return [1.0, 1.0]

    returns_of(heat)
    with pytest.raises(ut.TrainingFailedError, match="motor is hot") as caught:
        ut.train(ut.Toy(), settings=settings("compiled", 3))
    assert caught.value.result.record.kept_step == [1024, 1024]


@pytest.mark.slow
def test_the_commands_say_which_network_they_use(capsys):
    train = ["train", "--env", "Toy", "--seeds", "1", "--rollout_steps", "16"]
    assert main([*train, "--steps", "1500", "--evaluate_every", "1024", "--out", "best", "--quiet"]) == 0
    assert main([*train, "--steps", "64", "--out", "last", "--quiet"]) == 0
    lines = Path("best", "log.jsonl").read_text().splitlines()
    assert ["return/greedy" in json.loads(line) for line in lines] == [True, False]
    capsys.readouterr()
    for folder, words in (("best", ("best, of step 1,500", "best networks.")), ("last", ("last", "last networks."))):
        assert main(["evaluate", folder, "--episodes", "1"]) == 0
        assert words[1] in capsys.readouterr().out
        assert json.loads(Path(folder, "evaluation-greedy.json").read_text())["seeds"][0]["network"] == words[0]
        assert main(["export", folder, "--to", f"{folder}.npz"]) == 0
        assert f"The greedy policy of seed 0 ({words[0]}) in" in capsys.readouterr().out
    assert "3 (best, of step 1,500)" in repr(ut.load("best"))


class Late(Cell):
    """Its reward is 0 at first, and 10 for each action 1 later."""

    made = 0

    def step(self, action: Any) -> Any:
        after, reward, *ends = super().step(action)
        Late.made += 1
        return after, 10 * reward * (Late.made > 700), *ends


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_the_best_network_follows_when_the_first_reward_sets_the_scale(returns_of):
    """In units of before, what is wide would be narrow."""
    networks = []
    for evaluate_every in (512, None):
        Late.made = 0
        returns_of(lambda step: [10.0 if step == 512 else 5.0])
        asked = ut.Settings(seeds=1, steps=1024, evaluate_every=evaluate_every, rollout_steps=16)
        result = ut.train(ut.FromGymnasium(Late, features="hashed"), settings=asked)
        networks.append(result.networks)
        assert result.record.kept_step == (evaluate_every and [512])
    best, last = (np.asarray(network.values)[0, -1, 0] for network in networks)  # of a state that was never seen
    np.testing.assert_array_equal(best, last)
    assert best.max() > 10
