"""`uppertail export`: a policy in a file decides as the run does."""

import ast
import dataclasses
import importlib.util
import inspect
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from exported import policies_of
from uppertail import loader
from uppertail.agent import Agent
from uppertail.cli import main
from uppertail.encodings import Encoding, Hashed, HashedNumbers, OneHot, RandomFeatures, Vector
from uppertail.encodings.categories import Categories
from uppertail.encodings.standardized import Standardized
from uppertail.environments import Actions, Interface, Reading
from uppertail.environments.spaces import Part, read_space
from uppertail.errors import InputError
from uppertail.evidence import MixedNetwork
from uppertail.export.operations import numpy_file, onnx_file
from uppertail.export.program import program_of
from uppertail.training.player import Player
from uppertail.types import Transition

NUMBERS = Vector((0.0, -np.inf, -2.0), (1.0, np.inf, 5.0))
"""A number that stays as it is, one with bounds by observation, and one with declared ones."""
SEEN = np.array([[0, -3, 0], [1, 4, 1], [0, 2, 3]], np.float32)
FAMILIES = (ut.Gaussian(scale=3.0), ut.Categorical(low=-1.0, high=2.0), ut.GaussianMixture(), ut.PointMass(start=0.5))
LEARNED = (*FAMILIES, ut.Quantile(quantiles=5, scale=2.0), ut.Categorical(low=-50.0, high=-20.0))
OF_NETWORKS = [
    *((family, ut.PerAction(width=4), RandomFeatures(NUMBERS, 6, norm=3.0)) for family in FAMILIES),
    (FAMILIES[0], ut.PerAction(width=4, activation="silu", normalization="layer", bias=True), NUMBERS),
    (FAMILIES[0], ut.PerAction(width=4, hidden_layers=2, activation="tanh", normalization="rms"), NUMBERS),
    (FAMILIES[0], ut.PerAction(width=4, activation="relu"), OneHot(7)),
    (FAMILIES[2], ut.Ensemble(width=4), OneHot(7)),
    (FAMILIES[1], ut.Ensemble(width=4, members=2, bias=True), RandomFeatures(NUMBERS, 6, norm=3.0)),
    (FAMILIES[0], ut.Ensemble(width=4, members=2, prior_scale=0.0), NUMBERS),
    (FAMILIES[1], ut.Dropout(width=8, members=3, rate=0.5, hidden_layers=2, bias=True, normalization="rms"), NUMBERS),
    (FAMILIES[1], ut.Variational(width=4, members=3, bias=True), RandomFeatures(NUMBERS, 6, norm=3.0)),
]


class OddNetwork(ut.Network):
    """A network of a user's."""

    values: jax.Array

    def outputs(self, observation: jax.Array) -> jax.Array:
        return self.values


class Odd(ut.PerAction):
    """Builds it."""

    def init(self, key: Any, encoding: Encoding, num_actions: int, num_outputs: int) -> Any:
        return OddNetwork(jnp.zeros((num_actions, num_outputs)))


def player_of(family: Any, builder: Any, encoding: Encoding) -> Player:
    """A player with a new network that has seen observations."""
    states = type(encoding) in (OneHot, Hashed)
    agent = Agent(family, ut.UCB(), encoding, 0.9, members=builder.members)
    network = builder.init(jax.random.key(0), encoding, 3, family.num_outputs)
    network = network.observe(jnp.arange(3) if states else jnp.asarray(SEEN))
    shape, kind = ((), np.int32) if states else ((3,), np.float32)
    reading = Reading(lambda each: np.asarray(each, kind), ut.States(7), shape)
    return Player(agent, network, Interface(reading, Actions(3, first=2)))


def asked(player: Player) -> np.ndarray:
    rng = np.random.default_rng(2)
    states = player.interface.reading.shape == ()
    return rng.integers(0, 7, 50) if states else rng.uniform(-3, 6, (50, 3)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("made", OF_NETWORKS)
def test_both_files_decide_as_the_run_does(made):
    player = player_of(*made)
    observations = asked(player)
    expected = player.returns(observations).mean
    assert len(set(expected.argmax(axis=1))) > 1  # or it would be no test
    mask = np.array([[1, 0, 1], [0, 1, 1]])[np.arange(len(observations)) % 2]
    for policy in policies_of(program_of(player)):
        actions, means, *_ = policy(observations)
        np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(actions, expected.argmax(axis=1) + 2)
        allowed = np.where(mask, expected, -np.inf).argmax(axis=1) + 2
        np.testing.assert_array_equal(policy(observations, mask)[0], allowed)


@pytest.mark.parametrize(
    ("builder", "encoding"),
    [
        (ut.Twin(width=4), RandomFeatures(NUMBERS, 6, norm=3.0)),
        (ut.PerAction(width=4, torso="mlp"), Categories(Vector((0.0, 0.0, 0.0), (1.0, 9.0, 9.0)), 4)),
        (ut.PerAction(width=4, torso_widths=(5, 3)), RandomFeatures(NUMBERS, 6, norm=3.0)),
    ],
    ids=["critics", "names", "layers"],
)
def test_layers_that_actions_share_are_exported(builder, encoding):
    player = player_of(FAMILIES[3], builder, encoding)
    leaves, form = jax.tree.flatten(player.network)
    drawn = [leaf + jax.random.normal(jax.random.key(at), leaf.shape) for at, leaf in enumerate(leaves)]
    player = dataclasses.replace(player, network=jax.tree.unflatten(form, drawn))
    observations = asked(player)
    expected = player.returns(observations).mean
    assert len(set(expected.argmax(axis=1))) > 1
    for policy in policies_of(program_of(player)):
        actions, means, *_ = policy(observations)
        np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(actions, expected.argmax(axis=1) + 2)


class Higher(ut.PointMass):
    """A family of a user's, of whose returns the higher counts."""

    def lower(self, first, second):
        return jax.tree.map(jnp.maximum, first, second)


def test_a_family_with_another_lower_return_is_refused():
    with pytest.raises(InputError, match=r"The lower of two Higher returns cannot be exported: call run\.act"):
        program_of(player_of(Higher(), ut.Twin(width=4), NUMBERS))


@pytest.mark.slow
@pytest.mark.parametrize("stochastic", [False, True], ids=["lower", "doubted"])
@pytest.mark.parametrize("family", LEARNED, ids=lambda family: type(family).__name__)
def test_a_network_beside_kernel_counts_is_exported_with_the_places_that_it_knows(family, stochastic):
    encoding = Standardized(dataclasses.replace(NUMBERS, left_out=(1,)))
    agent = Agent(family, ut.UCB(), encoding, 0.9)
    twin: Any = ut.Twin(width=4).init(jax.random.key(0), encoding, 3, family.num_outputs)
    heads, offsets = (jax.random.normal(jax.random.key(5), each.shape) for each in (twin.heads, twin.offsets))
    twin = dataclasses.replace(twin, heads=heads, offsets=offsets)
    network: Any = MixedNetwork(twin, ut.KernelCounts().init(jax.random.key(0), encoding, 3, 8), stochastic)
    none = jnp.zeros(3)
    network = network.experience(Transition(jnp.asarray(SEEN), jnp.arange(3), none, none > 0, jnp.asarray(SEEN), none))
    reading = Reading(lambda each: np.asarray(each, np.float32), ut.States(7), (3,))
    player = Player(agent, network, Interface(reading, Actions(3)))
    observations = np.concatenate([SEEN, asked(player)])
    expected, program = player.returns(observations).mean, program_of(player)
    assert len(set(expected.argmax(axis=1))) > 1
    for policy in policies_of(program):
        actions, means, *_ = policy(observations)
        np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(actions, expected.argmax(axis=1))


@pytest.mark.parametrize(
    "own", [np.array([[-2.0], [0.5], [2.0]], np.float32), np.array([[[0, 1]], [[1, 0]], [[1, 1]]])]
)
def test_actions_that_are_arrays_leave_as_the_environment_takes_them(own):
    player = player_of(FAMILIES[0], ut.PerAction(width=4), OneHot(7))
    player = dataclasses.replace(player, interface=player.interface._replace(actions=Actions(3, own=own)))
    observations = np.arange(7)
    expected = own[player.returns(observations).mean.argmax(axis=1)]
    np.testing.assert_array_equal(player.act(observations), expected)
    program = program_of(player)
    policies = [numpy_file(program, {})[1]]
    if importlib.util.find_spec("onnx"):
        policies.append(onnx_file(program, {})[1])
    for policy in policies:
        np.testing.assert_array_equal(policy(observations)[0], expected)


def test_the_readme_of_a_numpy_file_reads_it_without_this_package(tmp_path):
    player = player_of(FAMILIES[1], ut.PerAction(width=4), RandomFeatures(NUMBERS, 6))
    content, _ = numpy_file(program_of(player), {"environment": "Numbers"})
    (tmp_path / "policy.npz").write_bytes(content)
    file = np.load(io.BytesIO(content))
    assert "Numbers" in str(file["about"])
    (tmp_path / "readme.py").write_text(str(file["readme"]))
    use = "import sys; from readme import load; print(load('policy.npz')([[0, 1, 2]])[0], 'uppertail' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", use], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"[{player.act(np.array([0.0, 1.0, 2.0]))}]", "False"]


def test_the_loader_imports_only_numpy_and_the_standard_library():
    nodes = [*ast.walk(ast.parse(inspect.getsource(loader)))]
    assert {each.module for each in nodes if isinstance(each, ast.ImportFrom)} == {"collections.abc"}
    imported = [each for each in nodes if isinstance(each, ast.Import)]
    assert {alias.name for each in imported for alias in each.names} == {"functools", "hashlib", "json", "numpy"}


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            (FAMILIES[0], Odd(), NUMBERS),
            r"network of class OddNetwork cannot be exported: call run\.act of uppertail\.",
        ),
    ],
)
def test_what_cannot_be_exported_gets_a_sentence(made, sentence):
    with pytest.raises(InputError, match=sentence):
        program_of(player_of(*made))


HASHED = HashedNumbers(8, NUMBERS)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.uint32])
@pytest.mark.parametrize(
    "encoding",
    [HashedNumbers(64, NUMBERS), HashedNumbers(64, NUMBERS, (0.5, 0.0, 1.0)), NUMBERS],
    ids=["table", "rounded", "network"],
)
@pytest.mark.parametrize("in_a_dict", [False, True], ids=["array", "dict"])
def test_numbers_are_read_as_the_run_reads_them_where_something_is_subtracted(kind, encoding, in_a_dict):
    """32 bits lose the digits of the one in the middle; the two others stay as they are."""
    space: Any = gymnasium.spaces.Box(*((-np.inf, np.inf) if kind == np.float64 else (0, 2**32 - 1)), (3,), kind)
    rng = np.random.default_rng(0)
    shown = rng.uniform(0, 3, (40, 3)) if kind == np.float64 else rng.integers(0, 3, (40, 3))
    observations: Any = [*(shown + np.array([0, 2**31 + 1, 0])).astype(kind)]
    if in_a_dict:
        space = gymnasium.spaces.Dict({"at": space})
        observations = [{"at": each} for each in observations]
    reading = read_space(np, space, origins=((1, 2.0**31 + 1),))
    player = player_of(FAMILIES[0], ut.PerAction(width=4), encoding)
    player = dataclasses.replace(player, interface=player.interface._replace(reading=reading))
    seen = player.read(observations)[0]
    np.testing.assert_allclose(seen, shown, rtol=1e-4, atol=1e-4)
    player = dataclasses.replace(player, network=player.network.observe(jnp.asarray(seen)))
    expected = player.returns(observations).mean
    assert len(np.unique(expected[:, 0])) > 8, "the observations are alike"
    program, onnx_takes_it = program_of(player), encoding is NUMBERS and not in_a_dict
    for policy in policies_of(program) if onnx_takes_it else [numpy_file(program, {})[1]]:
        _, mean, *_ = policy(observations if in_a_dict else np.stack(observations))
        np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("torso", ["auto", "mlp"])
def test_a_network_of_hashed_observations_decides_as_the_run_does_beside_counts(torso):
    encoding = HashedNumbers(64, NUMBERS)
    player = player_of(FAMILIES[0], ut.PerAction(width=4, torso=torso), encoding)
    shown, none = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(np.float32), jnp.zeros(60)
    seen = jnp.asarray(shown)
    network: Any = MixedNetwork(player.network, ut.Counts(0.5).init(jax.random.key(0), encoding, 3, 8))
    of_most = [each[:40] for each in (seen, jnp.arange(60) % 3, none, none > 0, seen, none)]
    player = dataclasses.replace(player, network=network.experience(Transition(*of_most)).observe(seen))
    expected = player.returns(shown).mean
    assert len(np.unique(expected[:, 0].round(4))) > 8, "the observations are alike"
    _, mean, _ = numpy_file(program_of(player), {})[1](shown)
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-5)


def test_arrays_of_several_axes_are_taken_as_they_are_or_flat():
    player = player_of(FAMILIES[0], ut.PerAction(width=4), NUMBERS)
    reading = read_space(np, gymnasium.spaces.Box(-1, 5, (3, 1), np.float64), images=False)
    player = dataclasses.replace(player, interface=player.interface._replace(reading=reading))
    shown = np.random.default_rng(0).uniform(0, 3, (8, 3, 1))
    _, policy = numpy_file(program_of(player), {})
    for asked_with in (shown, shown[..., 0]):
        np.testing.assert_allclose(policy(asked_with)[1], player.returns(shown).mean, rtol=1e-5, atol=1e-6)


def test_what_onnx_cannot_take_is_said_in_plain_words():
    pytest.importorskip("onnx")
    player = player_of(FAMILIES[0], ut.PerAction(width=4), HASHED)
    with pytest.raises(InputError, match=r"are hashed, which ONNX cannot do: export to NAME\.npz"):
        onnx_file(program_of(player), {})
    place = Part(("at",), np.asarray, np.zeros(3), np.ones(3))
    reading = player.interface.reading._replace(shape=None, parts=(place,), space=ut.Numbers(NUMBERS.low, NUMBERS.high))
    of_dicts = dataclasses.replace(player, interface=player.interface._replace(reading=reading))
    with pytest.raises(InputError, match=r"texts or hashed as a whole, and ONNX .*: export to NAME\.npz"):
        onnx_file(program_of(of_dicts), {})


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.float64])
def test_an_action_is_of_the_type_that_the_environment_takes(kind):
    """Others are not in its space: a Box of int8 holds no int64."""
    player = player_of(FAMILIES[0], ut.PerAction(width=4), OneHot(7))
    own = np.array([[1, 0], [0, 1], [2, 2]], kind)
    player = Player(player.agent, player.network, player.interface._replace(actions=Actions(3, own=own)))
    files = [numpy_file] + [onnx_file] * (importlib.util.find_spec("onnx") is not None)
    for file in files:
        actions = file(program_of(player), {})[1](np.arange(7))[0]
        assert actions.dtype == kind and actions.shape == (7, 2)


class Far(gymnasium.Env):
    """A place at a number whose digits 32 bits lose."""

    observation_space, action_space = (
        gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64),
        gymnasium.spaces.Discrete(2),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0.0
        return np.array([1e9]), {}

    def step(self, action):
        self.at += 2 * int(action) - 1 + 0.01 * self.np_random.normal()
        return np.array([1e9 + self.at]), float(self.at > 4), abs(self.at) > 4, False, {}


@pytest.mark.slow
def test_a_network_is_exported_for_what_is_left_of_large_numbers(own_folder, capsys):
    gymnasium.register("UpperTailFar-v0", Far, max_episode_steps=40)  # pyright: ignore[reportArgumentType]
    assert main(["train", "--env", "UpperTailFar-v0", "--seeds=1", "--steps=600", "--out=run", "--quiet"]) == 0
    assert main(["export", "run", "--to", "far.npz"]) == 0
    said = capsys.readouterr().out
    assert "1,000 of 1,000 observations get the run's action" in said
    seen = 1e9 + np.linspace(-3, 3, 7)[:, None]
    actions, *_ = loader.load("far.npz")(seen)
    np.testing.assert_array_equal(actions, ut.load("run").act(seen))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    assert (
        main(["train", "--env=Chain", "--env.length=8", "--seeds=2", "--episodes=64", f"--out={folder}", "--quiet"])
        == 0
    )
    return folder


@pytest.mark.slow
def test_a_run_is_exported_and_checked(folder, tmp_path, capsys):
    file = tmp_path / "policy.npz"
    assert main(["export", str(folder), "--to", str(file), "--seed", "1"]) == 0
    assert "policy of seed 1" in (said := capsys.readouterr().out)
    assert "1,000 of 1,000 observations get the run's action" in said
    actions, means, stds = loader.load(file)(np.arange(8))
    run = ut.load(folder)
    np.testing.assert_array_equal(actions, run.act(np.arange(8), seed=1))
    np.testing.assert_allclose(means, run.distribution(np.arange(8), seed=1).mean, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(stds), run.distribution(np.arange(8), seed=1).std, rtol=1e-6)


@pytest.mark.slow
def test_a_file_that_differs_from_the_run_is_not_written(folder, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(Player, "moments", lambda self, observations: (jnp.zeros((len(observations), 2)),) * 2)
    assert "nothing was written" in refused(["export", str(folder), "--to", str(tmp_path / "policy.npz")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "Which file"),
        (["--to", "policy.pt"], "ends in .npz or .onnx"),
        (["--to", "nowhere/policy.npz"], "no folder nowhere"),
        (["--to", "policy.npz"], "run"),
        (["--to", "episodes.npz"], "episodes.npz' exists already, and this command did not make it"),
        (["--to", "other.onnx"], "other.onnx' exists already"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(options, sentence, own_folder, refused):
    np.savez("episodes.npz", returns=np.zeros(3))
    Path("other.onnx").write_bytes(b"years of work")
    assert sentence in refused(["export", "no-run", *options])


@pytest.mark.slow
def test_seeds_and_packages_that_are_missing_get_a_sentence(folder, tmp_path, monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "onnx", None)
    for options, sentence in (
        (["--to", f"{tmp_path}/policy.npz", "--seed", "7"], "seed is 7"),
        (["--to", f"{tmp_path}/policy.onnx"], "pip install onnx"),
    ):
        assert sentence in refused(["export", str(folder), *options])
    assert not list(tmp_path.iterdir())
