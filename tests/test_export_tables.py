"""`uppertail export` of tables: any observation finds the row that the run finds for it."""

import copy
import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import uppertail as ut
from uppertail import loader
from uppertail.agent import Agent
from uppertail.cli import main
from uppertail.encodings import Vector
from uppertail.environments import Actions, Interface
from uppertail.environments.spaces import read_space
from uppertail.export.operations import numpy_file
from uppertail.export.program import program_of
from uppertail.training.player import Player

FREE = spaces.Dict(
    {
        "at": spaces.Box(-1, 1, (2, 1), np.float32),
        "key": spaces.Discrete(3, start=2),
        "lamps": spaces.MultiBinary(2),
        "more": spaces.Dict({"dials": spaces.MultiDiscrete([2, 3])}),
    }
)
FEW = spaces.Dict({"key": FREE["key"], "pair": spaces.Tuple((spaces.MultiDiscrete([3, 4]), spaces.MultiBinary(2)))})


class Drawn(gymnasium.Env):
    """Each step shows one of ten observations of a space; the action that its number names pays."""

    action_space = spaces.Discrete(3, start=1)

    def __init__(self, space: Any, masked: bool = False) -> None:
        self.observation_space, self.masked = space, masked
        space.seed(0)
        self.shown = [space.sample() for _ in range(10)]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 5
        return self._see()

    def step(self, action: Any) -> Any:
        self.left, paid = self.left - 1, float(action == 1 + self.number % 3)
        return *self._see()[:1], paid, self.left == 0, False, self._info()

    def _see(self) -> Any:
        self.number = int(self.np_random.integers(10))
        return copy.deepcopy(self.shown[self.number]), self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, self.number % 2, 1], np.int8)} if self.masked else {}


def run_of(space: Any, masked: bool = False, **settings: Any) -> ut.TrainingResult:
    """A run by least squares on such an environment."""
    builder = ut.FromGymnasium(lambda: Drawn(space, masked), returns=(0, 5), **settings)
    return ut.train(builder, learner=ut.LeastSquares(), settings=ut.Settings(seeds=1, steps=400, seed=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the run that most tests share."""
    folder = tmp_path_factory.mktemp("tables") / "run"
    gymnasium.register("Drawn-v0", lambda **_: Drawn(FREE))
    given = ["--env.id=Drawn-v0", "--env.features=hashed", "--env.left_out=[4]", "--env.hash_size=16"]
    given += ["--env.returns=[0, 5]", "--learner=LeastSquares", "--seeds=1", "--steps=400"]
    assert main(["train", "--env=Gym", *given, f"--out={folder}", "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def hashed(folder: Path) -> ut.TrainingResult:
    return ut.load(folder)


@pytest.mark.slow
def test_dictionaries_go_from_a_command_to_a_file(folder, hashed, tmp_path, capsys, refused):
    assert main(["export", str(folder), f"--to={tmp_path / 'policy.npz'}"]) == 0
    assert "1,000 of 1,000 observations get the run's action" in capsys.readouterr().out
    observations = Drawn(FREE).shown
    np.testing.assert_array_equal(loader.load(tmp_path / "policy.npz")(observations)[0], hashed.act(observations))
    if importlib.util.find_spec("onnx"):
        sentence = refused(["export", str(folder), f"--to={tmp_path / 'policy.onnx'}"])
        assert "texts or hashed as a whole, and ONNX takes arrays alone: export to NAME.npz" in sentence


def decides_as(run: ut.TrainingResult, observations: Any, asked: Any = None, mask: Any = None) -> None:
    """Compares an exported file with its run."""
    _, policy = numpy_file(program_of(run.player()), {})
    actions, means, stds = policy(observations if asked is None else asked, **({} if mask is None else {"mask": mask}))
    expected = run.distribution(observations)
    np.testing.assert_allclose(means, expected.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(stds, expected.std, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(actions, run.act(observations, action_mask=mask))
    assert len(set(actions.tolist())) > 1


def seen_and_other(space: Any, others: int = 40) -> list[Any]:
    """The ten observations of a run, and others that it never saw."""
    return Drawn(space).shown + [space.sample() for _ in range(others)]


@pytest.mark.slow
def test_hashed_observations_find_their_places_even_in_a_table_that_is_nearly_full(hashed):
    observations = seen_and_other(FREE)
    decides_as(hashed, observations)
    unseen = hashed.distribution(observations[-40:])
    assert (np.ptp(unseen.mean, axis=1) == 0).any()  # a free place: all actions are as at the start


TEXT, VIEW = spaces.Text(9, charset="abc "), spaces.Box(0, 1, (2, 3, 2), np.uint8)
SAID = spaces.Dict({"at": spaces.Box(-1, 1, (2,), np.float64), "say": TEXT})
MANY = spaces.Dict({**FREE.spaces, **SAID.spaces, "past": spaces.Tuple((VIEW, TEXT))})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Two texts")
@pytest.mark.parametrize(
    ("space", "settings"),
    [
        (MANY, {"encoding": "hashed", "background": [[1, 1]]}),
        (spaces.Box(-9, 9, (12, 11), np.int16), {"encoding": "hashed"}),  # an image, whose pixels become fractions
        (SAID["at"], {"encoding": "hashed"}),
        (SAID, {"features": "hashed"}),
        (TEXT, {"features": "hashed"}),
    ],
    ids=["dict", "image", "numbers", "text in a dict", "text"],
)
def test_what_is_hashed_as_a_whole_and_texts_find_their_places(space, settings):
    run = run_of(space, **settings)
    decides_as(run, seen_and_other(space, 20))
    if "background" in settings:  # another background is the same state
        shown = Drawn(space).shown
        for seen in shown:
            view = seen["past"][0]
            view[view.all(axis=-1)] = 0
        assert np.ptp(run.distribution(shown).mean, axis=1).all(), "what was never seen has equal means"
        decides_as(run, shown)


@pytest.mark.slow
@pytest.mark.parametrize("prior_scale", [0.0, 1.0])
def test_members_on_hashed_observations_leave_as_their_mixture(hashed, prior_scale):
    network = ut.Ensemble(members=3, width=4, prior_scale=prior_scale).init(
        jax.random.key(0), hashed.agent.encoding, 3, hashed.agent.family.num_outputs
    )
    observations = seen_and_other(FREE)
    network = network.observe(jnp.asarray(hashed.player().read(observations)[0]))
    agent = dataclasses.replace(hashed.agent, members=3)
    networks = jax.tree.map(lambda leaf: leaf[None], network)
    decides_as(dataclasses.replace(hashed, agent=agent, networks=networks), observations)


@pytest.mark.slow
def test_the_highest_of_the_allowed_actions_is_taken_where_several_integers_are_a_state():
    run = run_of(FEW, masked=True)
    assert isinstance(run.interface.reading.space, ut.States)
    decides_as(run, seen_and_other(FEW), mask=masks(50))
    several = spaces.MultiDiscrete([3, 3, 4, 2, 2], start=[1, 0, 0, 2, 0])  # as many states as the parts of FEW have
    reading = read_space(np, several, states=True)
    of_arrays = dataclasses.replace(run, interface=run.interface._replace(reading=reading))
    decides_as(of_arrays, np.array(seen_and_other(several)), mask=masks(50))


def masks(count: int) -> np.ndarray:
    """Some of three actions."""
    mask = np.random.default_rng(0).random((count, 3)) < 0.5
    mask[np.arange(count), np.arange(count) % 3] = True
    return mask


@pytest.mark.slow
def test_observations_within_a_radius_are_one_state():
    box = spaces.Box(-1, 1, (2, 2), np.float32)
    run = run_of(box, radius=0.6, num_features=7)
    observations = np.array(seen_and_other(box))
    networks: Any = run.networks
    visits = networks.encoder.visits
    assert set((visits > 0).ravel().tolist()) == {True, False}
    decides_as(run, observations, observations.reshape(-1, 4))
    full = eqx.tree_at(lambda networks: networks.encoder.visits, networks, jnp.maximum(visits, 1.0))
    decides_as(dataclasses.replace(run, networks=full), observations, observations.reshape(-1, 4))


@pytest.mark.parametrize("ordered", [False, True])
def test_networks_read_dictionaries_too(ordered: bool) -> None:
    reading = read_space(np, FREE, ordered=ordered)
    assert isinstance(reading.space, ut.Numbers)
    encoding, family = Vector(reading.space.low, reading.space.high), ut.PointMass()
    network: Any = ut.PerAction(width=4).init(jax.random.key(0), encoding, 3, family.num_outputs)
    observations = seen_and_other(FREE)
    network = network.observe(jnp.stack([reading.array(each) for each in observations]))
    player = Player(Agent(family, ut.UCB(), encoding, 0.9), network, Interface(reading, Actions(3)))
    actions, means, stds = numpy_file(program_of(player), {})[1](observations)
    np.testing.assert_allclose(means, player.returns(observations).mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(actions, player.act(observations))
    assert stds is None
