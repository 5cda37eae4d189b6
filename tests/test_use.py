"""What a run gives a program: actions, distributions, tables, pictures; from `ut.train` and from `ut.load`."""

import dataclasses
import importlib.util
import re
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from gymnasium import spaces

import uppertail as ut
from uppertail.cli import main
from uppertail.environments.spaces import read_space
from uppertail.errors import InputError
from uppertail.records import RunFolder
from uppertail.training.method import Method
from uppertail.training.player import Player
from uppertail.training.results import one_key
from uppertail.training.run import Run

SMALL = ut.Settings(seeds=2, episodes=64, seed=3)


@pytest.fixture(scope="module")
def chain() -> ut.TrainingResult:
    return ut.train(ut.Chain(length=8), ut.Gaussian(), ut.UCB(low=1.0, high=3.0), SMALL)


def means(run: ut.TrainingResult, row: int, observation: Any) -> np.ndarray:
    z = run.agent.returns(run.network(row), observation)
    return np.asarray(jax.vmap(run.agent.family.mean)(z))


def test_the_greedy_action_has_the_highest_mean_alone_and_in_a_batch(chain):
    expected = [int(means(chain, 1, state).argmax()) for state in range(8)]
    assert len(set(expected)) == 2  # or it would be no test
    assert [chain.act(state, seed=4) for state in range(8)] == expected
    np.testing.assert_array_equal(chain.act(np.arange(8), seed=4), expected)
    np.testing.assert_array_equal(chain.act(list(range(8)), seed=4), expected)


def test_without_a_seed_the_one_of_the_highest_greedy_return_acts(chain):
    assert chain.seeds == [3, 4]
    record = dataclasses.replace(chain.record, greedy_returns=[0.5, 0.7])
    best = dataclasses.replace(chain, record=record)
    assert best.best_seed == 4
    assert [best.act(state) for state in range(8)] == [chain.act(state, seed=4) for state in range(8)]
    failed = dataclasses.replace(chain.record, greedy_returns=[float("nan")] * 2)
    assert dataclasses.replace(chain, record=failed).best_seed == 3


def test_exploring_is_the_runs_policy_with_this_key(chain):
    for number in range(20):
        key = jax.random.key(number)
        z = chain.agent.returns_by_member(chain.network(0), jnp.array(2))
        expected = int(chain.agent.policy.select(key, ut.Decision(chain.agent.family, z)))
        assert chain.act(2, explore=True, key=number, seed=3) == expected
        assert chain.act(2, explore=True, key=key, seed=3) == expected
    with pytest.raises(InputError, match="give a key"):
        chain.act(2, explore=True)
    with pytest.raises(InputError, match="empty batch"):
        chain.act([])


def test_a_key_is_one_of_jax_or_a_number():
    key = jax.random.key(3)
    assert one_key(key) == key == one_key(3) == one_key(np.int64(3))
    for wrong in (jax.random.split(key), 0.5, "a", 2**70):
        with pytest.raises(InputError, match="key is not one key"):
            one_key(wrong)


@pytest.mark.slow
def test_observations_of_a_batch_explore_by_themselves():
    run = ut.train(ut.Chain(length=4), policy=ut.EpsilonGreedy(epsilon=1.0), settings=SMALL)
    actions = run.act([0] * 500, explore=True, key=1)
    assert isinstance(actions, np.ndarray)
    assert 0.4 < actions.mean() < 0.6


@pytest.mark.parametrize("observation", [8, -1, [3, 9], [[1]], "three", "1", None, (1, {})])
def test_what_is_no_observation_gets_a_sentence(chain, observation):
    with pytest.raises(InputError, match=r"observation is .*give (one|the first alone)"):
        chain.act(observation)


class Pairs(gymnasium.Env):
    """Observations are pairs whose second part is a dictionary, as the pair that `reset` returns."""

    observation_space = spaces.Tuple((spaces.Box(0, 1, (2,), np.float32), spaces.Dict({"p": spaces.Discrete(3)})))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.seen(), {}

    def seen(self) -> Any:
        return self.np_random.random(2, np.float32), {"p": 1}

    def step(self, action: Any) -> Any:
        return self.seen(), float(action), True, False, {}


def test_a_pair_is_an_observation_where_observations_are_pairs():
    run = Run(ut.FromGymnasium(Pairs, returns=(0.0, 1.0), stack=1), Method(), ut.Settings(seeds=1))
    run.close()
    builder: Any = run.builder
    player = Player(run.loop.agent, run.networks(run.driver.start()), builder.interface)
    assert player.read((np.zeros(2, np.float32), {"p": 1}))[1] is False


def test_hashed_arrays_are_read_alone_or_as_a_batch_and_others_are_refused():
    """A hash has a place for everything, so shapes have to be compared."""
    builder = ut.FromGymnasium(lambda: gymnasium.make("CartPole-v1"), encoding="hashed", returns=(0.0, 1.0))
    run = Run(builder, Method(), ut.Settings(seeds=1))
    run.close()
    player = Player(run.loop.agent, run.networks(run.driver.start()), builder.interface)
    shown = np.random.default_rng(0).random((3, 4), np.float32)
    alone = [player.read(each)[0].tolist() for each in shown]
    assert len(set(alone)) == 3
    for batch in (shown, [*shown]):
        assert (player.read(batch)[0].tolist(), player.read(batch)[1]) == (alone, True)
    for other in (np.zeros(7), 3, {"a": 1}, "three"):
        with pytest.raises(InputError, match=r"observation is .*not of this environment.*: give one of shape \(4,\)"):
            player.read(other)


def test_an_unknown_seed_gets_a_sentence(chain):
    with pytest.raises(InputError, match="seed is 0: the run has the seeds 3 to 4"):
        chain.act(0, seed=0)


class Counted(gymnasium.Env):
    """States from 5 on, actions from 3 on: the higher of two actions pays."""

    observation_space = spaces.Discrete(2, start=5)
    action_space = spaces.Discrete(2, start=3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return 5, {}

    def step(self, action: Any) -> Any:
        assert action in (3, 4)
        return 6, float(action == 4), True, False, {}


@pytest.mark.slow
def test_observations_and_actions_have_the_environments_own_numbers():
    run = ut.train(Counted, settings=ut.Settings(seeds=1, episodes=64))
    assert repr(run).splitlines()[2].startswith("  seed 0, ")
    assert run.act(5) == 4
    np.testing.assert_array_equal(run.act([5, 5]), [4, 4])
    assert run.distribution(5).greedy == 1
    with pytest.raises(InputError, match="not of this environment"):
        run.act(0)
    with pytest.raises(InputError, match="a state is a whole number"):
        run.act(5.0)


class Signs(gymnasium.Env):
    """The action that the dictionary names pays."""

    observation_space = spaces.Dict({"sign": spaces.Discrete(2), "place": spaces.Box(0, 1, (2,), np.float32)})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.sign = int(self.np_random.integers(2))
        return {"sign": self.sign, "place": np.zeros(2, np.float32)}, {}

    def step(self, action: Any) -> Any:
        after = {"sign": 0, "place": np.ones(2, np.float32)}
        return after, float(action == self.sign), True, False, {}


@pytest.mark.slow
def test_a_batch_of_dictionaries_is_a_list():
    run = ut.train(Signs, settings=ut.Settings(seeds=1, episodes=200))
    both = [{"sign": sign, "place": np.zeros(2, np.float32)} for sign in (0, 1)]
    assert [run.act(each) for each in both] == [0, 1]
    np.testing.assert_array_equal(run.act(both), [0, 1])
    with pytest.raises(InputError, match="or a list of such"):
        run.act({"sign": 1})
    with pytest.raises(InputError, match="as a tuple if it is a list, or a list of such"):
        run.act([1, np.zeros(2)])
    for number in (np.nan, np.inf):
        with pytest.raises(InputError, match="all its numbers must be finite"):
            run.act({"sign": 1, "place": np.full(2, number)})


def test_a_state_of_a_number_and_an_array_is_read(chain):
    reading = read_space(np, spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2))), states=True)
    interface = chain.interface._replace(reading=reading)
    player = dataclasses.replace(chain.player(), interface=interface)
    switches = 1, np.array([0, 1], np.int8)
    assert player.act(switches) == chain.act(5)
    np.testing.assert_array_equal(player.act([switches] * 2), chain.act([5, 5]))


def test_a_gaussians_distribution_is_scipys(chain):
    z = chain.distribution(3, seed=3)
    np.testing.assert_allclose(z.mean, means(chain, 0, 3), rtol=1e-6)
    np.testing.assert_array_equal(z.parameters["std"], z.std)
    levels = [0.05, 0.5, 0.9]
    expected = [scipy.stats.norm.ppf(levels, mean, std) for mean, std in zip(z.mean, z.std, strict=True)]
    np.testing.assert_allclose(z.quantiles(levels), expected, rtol=1e-3, atol=1e-5)
    assert (z.probabilities, z.bins) == (None, None)
    assert repr(z).splitlines()[1].split()[:2] == ["0", f"{z.mean[0]:.4g}"]
    longest = dataclasses.replace(z, mean=np.full(2, -3.412e-11), std=np.full(2, -3.412e-11))
    assert repr(longest).splitlines()[1].split()[:3] == ["0", "-3.412e-11", "-3.412e-11"]
    for wrong in ([0.0], [0.5, 1.0], [float("nan")]):
        with pytest.raises(InputError, match="levels is"):
            z.quantiles(wrong)


def test_the_distributions_of_a_batch_are_those_of_its_observations(chain):
    batch = chain.distribution([1, 2, 3])
    for row, state in enumerate((1, 2, 3)):
        alone = chain.distribution(state)
        np.testing.assert_allclose(batch.mean[row], alone.mean, rtol=1e-6)
        np.testing.assert_allclose(batch.quantiles()[row], alone.quantiles(), rtol=1e-5, atol=1e-6)
        assert batch.greedy[row] == alone.greedy


@pytest.mark.slow
def test_a_categorical_has_probabilities_of_its_bins():
    run = ut.train(ut.Toy(), ut.Categorical(bins=11), settings=SMALL)
    z = run.distribution(0)
    assert z.probabilities is not None and z.bins is not None
    np.testing.assert_allclose(z.probabilities.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(z.probabilities @ z.bins, z.mean, rtol=1e-4)
    cumulative = z.probabilities.cumsum(axis=1)
    for action, quantile in enumerate(z.quantiles([0.4])[:, 0]):
        assert quantile == pytest.approx(z.bins[np.searchsorted(cumulative[action], 0.4)], abs=1e-3)


@pytest.mark.slow
def test_an_ensembles_distribution_is_the_mixture_of_its_members():
    run = ut.train(ut.Toy(), network=ut.Ensemble(members=3), settings=ut.Settings(seeds=1, episodes=32))
    z = run.distribution(0)
    mean, std = z.parameters["mean"], z.parameters["std"]
    assert mean.shape == (3, 2)
    np.testing.assert_allclose(z.mean, mean.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(z.std**2, (std**2).mean(axis=0) + mean.var(axis=0), rtol=1e-3)
    median = z.quantiles([0.5])[:, 0]
    np.testing.assert_allclose(scipy.stats.norm.cdf(median, mean, std).mean(axis=0), 0.5, atol=1e-4)


@pytest.mark.slow
def test_a_loaded_run_is_the_one_that_was_trained(tmp_path):
    folder = tmp_path / "run"
    assert main(["train", "--env=Toy", "--seeds=2", "--seed=5", "--episodes=64", f"--out={folder}", "--quiet"]) == 0
    loaded = ut.load(folder)
    trained = ut.train(ut.Toy(), settings=ut.Settings(seeds=2, seed=5, episodes=64))
    assert loaded.record.summary() == RunFolder(folder).summary
    assert loaded.record.env_steps == trained.record.env_steps
    assert loaded.seeds == trained.seeds == [5, 6]
    for name in ("seed", "episode", "return", "length", "step"):
        np.testing.assert_array_equal(loaded.episodes[name], trained.episodes[name])
    for state in range(3):
        assert loaded.act(state) == trained.act(state)
        np.testing.assert_array_equal(loaded.distribution(state).mean, trained.distribution(state).mean)
    one, other = (re.sub(r"[\d.]+ s$", "so many s", repr(each), flags=re.MULTILINE) for each in (loaded, trained))
    assert one == other and len(one.splitlines()) <= 5
    assert "2 of 2 seeds" in one
    assert f"seeds 5 to 6, 64 episodes each, {sum(loaded.record.env_steps)} steps in all, " in one


def test_episodes_are_a_table(chain):
    table = chain.episodes
    assert len(table) == 128
    np.testing.assert_array_equal(np.unique(table["seed"]), [3, 4])
    second = table[table["seed"] == 4]
    np.testing.assert_array_equal(second["return"], chain.record.episodes[1].returns)
    np.testing.assert_array_equal(second["episode"], np.arange(1, 65))
    np.testing.assert_array_equal(second["step"], np.cumsum(second["length"]))


def test_a_folder_with_a_nul_is_refused():
    with pytest.raises(InputError, match="NUL"):
        ut.Checkpoints("runs\0mine")


def test_episodes_are_a_dataframe_where_pandas_is_installed(chain):
    table, names = chain.episodes, ["seed", "episode", "return", "length", "step"]
    if importlib.util.find_spec("pandas") is None:
        assert list(table.dtype.names) == names
    else:
        assert list(table.columns) == names


def test_a_plot_is_a_figure_that_a_notebook_shows(chain, tmp_path):
    figure = chain.plot()
    (axes,) = figure.axes
    assert axes.get_title() == "Chain, length 8"
    assert len(axes.lines) == 1
    assert figure._repr_png_().startswith(b"\x89PNG")
    figure.savefig(Path(tmp_path, "plot.png"))
