"""bsuite's environments against its own loop, and its own log; bad requests get a sentence."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from choosing import chosen
from uppertail.environments import EVALUATION
from uppertail.environments.gymnasium.bsuite import RETURNS
from uppertail.environments.gymnasium.dm_env import DmEnvironment
from uppertail.environments.gymnasium.vector import episode_seed
from uppertail.errors import InputError
from uppertail.yaml_files import read_yaml

REPEATING = ("bandit", "catch", "deep_sea", "discounting_chain", "umbrella")  # of few different observations
STUDY = Path(__file__).parents[1] / "experiments" / "tasks" / "bsuite.yaml"


@pytest.fixture
def bsuite() -> Any:
    return pytest.importorskip("bsuite.bsuite", reason="needs uppertail[bsuite]")


def own(bsuite: Any, name: str, seed: list[int]) -> Any:
    """bsuite's environment, made anew with a seed of its own."""
    settings = {**bsuite.sweep.SETTINGS[name]}
    experiment = name.partition("/")[0]
    if experiment == "deep_sea_stochastic":
        return bsuite.deep_sea.deep_sea.DeepSea(**settings, deterministic=False, seed=seed)
    if "seed" in settings or experiment == "cartpole_swingup":
        settings["seed"] = seed
    return bsuite.load(experiment, settings)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("bandit/3", 20), ("bandit_noise/9", 20), ("catch/0", 40), ("catch_scale/17", 40), ("deep_sea/3", 60),
        ("deep_sea_stochastic/1", 60), ("discounting_chain/4", 250), ("cartpole/1", 300), ("cartpole_noise/13", 300),
        ("cartpole_swingup/4", 300), ("mountain_car/0", 1010),
    ],
)  # fmt: skip
def test_episodes_are_those_of_bsuites_own_loop(bsuite: Any, name: str, steps: int) -> None:
    builder, random = ut.Bsuite(name), np.random.default_rng(0)
    host, reading = builder.open(3, 1), builder.interface.reading
    episode, here = 0, host.reset()
    setting = int(name.partition("/")[2])
    theirs = own(bsuite, name, [episode_seed(3, 0, 0), setting])
    assert np.array_equal(here[0], reading.array(theirs.reset().observation))
    for _ in range(steps):
        action = int(random.integers(builder.num_actions))
        ours, now = host.step(np.array([action])), theirs.step(action)
        assert np.array_equal(ours.next_observation[0], reading.array(now.observation))
        assert ours.reward[0] == np.float32(now.reward)
        assert (ours.terminated[0], ours.truncated[0]) == (now.last(), False)
        if now.last():
            episode += 1
            theirs = own(bsuite, name, [episode_seed(3, 0, episode), setting])
            assert np.array_equal(ours.observation[0], reading.array(theirs.reset().observation))
    assert episode > 0


def test_settings_that_differ_only_by_chance_are_not_copies(bsuite: Any) -> None:
    """All settings of catch are the same, but for bsuite's own draws."""
    hosts = [ut.Bsuite(f"catch/{setting}").open(0, 1) for setting in range(8)]
    assert len({host.reset().tobytes() for host in hosts}) > 1


def test_the_umbrella_that_was_needed_pays(bsuite: Any) -> None:
    """Its generator is drawn from as it is made, so a new one is not at the same place."""
    host, random, paid = ut.Bsuite("umbrella_length/4").open(0, 1), np.random.default_rng(0), []
    needed, taken, at = host.reset()[0, 0], None, 0
    for _ in range(200):
        action = int(random.integers(2))
        now, taken = host.step(np.array([action])), action if at == 0 else taken
        at += 1
        if now.terminated[0]:
            assert at == 5
            paid.append((now.reward[0] == 1) == (taken == needed))
            needed, at = now.observation[0, 0], 0
    assert len(paid) == 40 and all(paid)


def test_the_last_discount_tells_what_was_cut_short_from_what_ended() -> None:
    dm_env = pytest.importorskip("dm_env", reason="needs uppertail[bsuite]")

    class Cut(dm_env.Environment):
        discount = 1.0

        def reset(self):
            return dm_env.restart(np.zeros(1, np.float32))

        def step(self, action):
            return dm_env.TimeStep(dm_env.StepType.LAST, 1.0, self.discount, np.zeros(1, np.float32))

        def observation_spec(self):
            return dm_env.specs.Array((1,), np.float32)

        def action_spec(self):
            return dm_env.specs.BoundedArray((2,), np.float32, -1, 1)

    env = DmEnvironment(Cut())
    assert env.step(0)[2:4] == (False, True)
    env.env.discount = 0.0
    assert env.step(0)[2:4] == (True, False)
    assert env.action_space == spaces.Box(-1, 1, (2,))


# The log


def rows(folder: Path, name: str, seed: int = 0) -> list[dict[str, str]]:
    path = folder / f"seed-{seed}" / f"bsuite_id_-_{name.replace('/', '-')}.csv"
    with path.open(encoding="utf-8") as lines:
        return [*csv.DictReader(lines)]


def play(host: Any, actions: np.ndarray) -> None:
    for action in actions:
        host.step(np.array([action]))


@pytest.mark.parametrize("name", ["deep_sea_stochastic/2", "cartpole_noise/0", "catch/0"])
def test_the_log_goes_on_from_a_checkpoint(bsuite: Any, tmp_path: Path, name: str) -> None:
    """As if there had been none, also within an episode; bsuite's own loop writes the same lines."""
    actions = np.random.default_rng(1).integers(2, size=600)
    for folder, breaks in (("whole", ()), ("broken", (3, 411))):
        builder, before = ut.Bsuite(name, results_dir=str(tmp_path / folder)), 0
        host = builder.open(0, 1)
        host.reset()
        for at in breaks:
            play(host, actions[before:at])
            saved, before, host = host.saved(), at, builder.open(0, 1)
            host.restore(saved)
        play(host, actions[before:])
    assert rows(tmp_path / "broken", name) == rows(tmp_path / "whole", name)

    theirs = bsuite.csv_logging.wrap_environment(
        DmEnvironment(bsuite.load_from_id(name)).env, name, str(tmp_path / "seed-0")
    )
    episode, random = 0, DmEnvironment(theirs, int(name.partition("/")[2]))
    random.reset(seed=episode_seed(0, 0, 0))
    for action in actions:
        if theirs.step(action).last():
            episode += 1
            random.reset(seed=episode_seed(0, 0, episode))
    assert rows(tmp_path, name) == rows(tmp_path / "whole", name)
    assert int(rows(tmp_path, name)[-1]["episode"]) > 5


@pytest.mark.slow
def test_only_training_is_logged(bsuite: Any, tmp_path: Path) -> None:
    """Episodes and steps of the log are those of the record, although runs are rehearsed and evaluated."""
    settings = ut.Settings(seeds=2, seed=5, episodes=20)
    result = ut.train(ut.Bsuite("deep_sea/0", results_dir=str(tmp_path)), settings=settings)
    assert result.record.greedy_returns
    for seed, episodes in zip((5, 6), result.record.episodes, strict=True):
        # a chunk goes on after the run's last episode, and so does the log
        last = next(row for row in rows(tmp_path, "deep_sea/0", seed) if row["episode"] == "20")
        assert int(last["steps"]) == 200
        assert float(last["total_return"]) == pytest.approx(episodes.returns[:20].sum(), abs=1e-4)
        bad = episodes.returns[:20] < 0.5  # only an episode without a bad move finds the treasure
        assert int(last["total_bad_episodes"]) == bad.sum()


# What is known of the sweep


def test_the_study_is_bsuites_sweep(bsuite: Any) -> None:
    """All but mnist, whose features have to be learned, and what needs memory."""
    cells = {cell["env.id"]: cell["episodes"] for cell in read_yaml(STUDY, "The study")["cells"]}
    kept = [name for name in bsuite.sweep.SWEEP if not name.startswith(("mnist", "memory"))]
    assert cells == {name: bsuite.sweep.EPISODES[name] for name in kept}
    assert len(kept) == 368


def test_every_experiment_has_a_range_of_returns_in_the_unit_of_its_rewards(bsuite: Any) -> None:
    for name in bsuite.sweep.SWEEP:
        assert name.startswith((*RETURNS, "mnist"))
    ranges = [ut.Bsuite(f"cartpole_{kind}").known_returns for kind in ("noise/19", "scale/0", "scale/19", "swingup/0")]
    assert ranges == [(0, 200, True), (0, 0.2, True), (0, 200_000, True), (-20, 200, True)]
    assert ut.Bsuite("catch_scale/19", returns=(-3, 3)).known_returns == (-3, 3, True)


@pytest.mark.slow
def test_observations_that_repeat_are_states_and_random_bits_are_left_out(bsuite: Any) -> None:
    """Of umbrellas, whether one is needed, whether one is there, and the time that is left count."""
    for name in ("bandit/0", "catch/0", "deep_sea/20", "discounting_chain/0", "cartpole/0", "mountain_car/0",
                 "umbrella_length/9", "umbrella_distract/9", "cartpole_swingup/0"):  # fmt: skip
        builder: Any = ut.Bsuite(name)
        found: Any = chosen(builder).builder
        assert (found.features == "hashed") == name.startswith(REPEATING), name
        numbers = len(builder.observations.low)
        assert found.left_out == (tuple(range(3, numbers)) if name.startswith("umbrella") else None), name


# Bad requests


def test_an_id_that_does_not_exist_gets_suggestions(bsuite: Any) -> None:
    with pytest.raises(
        InputError, match=r"^There is no environment 'deep_see/0' in bsuite here. Did you mean deep_sea/0"
    ):
        ut.Bsuite("deep_see/0").open(0, 1)


def test_the_log_refuses_environments_side_by_side_unless_they_evaluate(bsuite: Any, tmp_path: Path) -> None:
    builder = ut.Bsuite("catch/0", results_dir=str(tmp_path))
    with pytest.raises(InputError, match=r"^bsuite's log counts the episodes of one environment, not of 4"):
        builder.open(0, 4)
    builder.open(EVALUATION, 4)
    assert not [*tmp_path.iterdir()]


def test_without_the_package_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bsuite", None)
    monkeypatch.setitem(sys.modules, "bsuite.sweep", None)
    with pytest.raises(InputError, match=r"run `pip install bsuite`\.$"):
        ut.Bsuite("catch/0").open(0, 1)
