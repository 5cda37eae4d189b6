"""`uppertail export` of networks on images: pixels, convolutions and counts of pixels decide as in the run."""

import dataclasses
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box

import uppertail as ut
from exported import policies_of
from uppertail import loader
from uppertail.agent import Agent
from uppertail.cli import main
from uppertail.encodings import Preferences
from uppertail.environments import Actions, Interface
from uppertail.environments.spaces import read_space
from uppertail.evidence import MixedNetwork
from uppertail.evidence.pixel_counts import blocks, num_shades
from uppertail.export.evidence import blocks_of
from uppertail.export.observations import read
from uppertail.export.program import program_of
from uppertail.training.player import Player
from worlds import Pictured, transitions

BYTES, LARGE = Box(0, 255, (12, 11, 2), np.uint8), Box(0, 255, (2, 33, 20), np.uint8)
BOOL: Any = bool
SIGNED, BINARY = Box(-1, 1, (10, 13), np.float32), Box(0, 1, (10, 10, 3), dtype=BOOL)
ODD = ut.PerAction(width=4, kernels=(4, 5), stride=3, normalization="layer", activation="elu", bias=False)
CHANNELS_FIRST = ut.PerAction(width=4, kernels=(3,), stride=4, torso_widths=(6, 5))


def images_of(space: Box, count: int, seed: int = 0) -> np.ndarray:
    space.seed(seed)
    return np.array([space.sample() for _ in range(count)])


def decides_as(player: Player, images: np.ndarray) -> None:
    """Compares the exported files with a player."""
    expected, program = player.returns(images).mean, program_of(player)
    assert len(set(expected.argmax(axis=1))) > 1  # or it would be no test
    for policy in policies_of(program):
        actions, means, *_ = policy(images)
        np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(actions, player.act(images))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "sizes"),
    [(BYTES, None), (LARGE, (2, 3)), (SIGNED, None), (BINARY, None)],
    ids=lambda each: str(each)[:20],
)
def test_critics_beside_counts_of_pixels_leave_with_what_was_seen(space: Box, sizes: Any) -> None:
    reading, parts, actions = read_space(np, space), 5 if sizes else 3, 6 if sizes else 3
    encoding, family = reading.space.encoding(Preferences()), ut.Gaussian(center=0.5)
    twin: Any = ut.Twin(width=8).init(jax.random.key(0), encoding, parts, family.num_outputs)
    heads, offsets = (jax.random.normal(jax.random.key(5), each.shape) for each in (twin.heads, twin.offsets))
    evidence = ut.PixelCounts(chance=0.02, subsets=9).init(jax.random.key(1), encoding, parts, 8)
    network: Any = MixedNetwork(dataclasses.replace(twin, heads=heads, offsets=offsets), evidence)
    network = network if sizes is None else MixedNetwork(network.learned.combining(sizes), evidence.combining(sizes))
    seen = np.stack([reading.array(image) for image in images_of(space, 7)])
    network = network.experience(transitions(seen, [at % actions for at in range(7)], seen))
    player = Player(Agent(family, ut.UCB(), encoding, 0.9), network, Interface(reading, Actions(actions)))
    images = np.concatenate([images_of(space, 7), images_of(space, 20, seed=1)])
    shares = np.array([network.evidence(jnp.asarray(reading.array(image))) for image in images])
    assert shares[:7].min() < 0.2 and shares[7:].max() > 0.8
    decides_as(player, images)


@pytest.mark.parametrize("space", [BYTES, LARGE], ids=["pixels", "blocks"])
def test_what_is_counted_of_an_image_leaves_as_it_is(space: Box) -> None:
    reading, images = read_space(np, space), images_of(space, 5)
    encoding = reading.space.encoding(Preferences())
    program = read(reading, num_shades(encoding))
    shown = program.add("rows", blocks_of(encoding, program), np.arange(len(images)), result="mean")
    program.add("best", shown, result="action")
    expected = [blocks(encoding, jnp.asarray(reading.array(image))) for image in images]
    for policy in policies_of(program):
        np.testing.assert_allclose(policy(images)[1], expected, rtol=1e-6)


@pytest.mark.parametrize(("builder", "space"), [(ODD, BYTES), (CHANNELS_FIRST, LARGE)], ids=["odd", "channels first"])
def test_convolutions_of_any_stride_leave_with_layers_on_them(builder: Any, space: Box) -> None:
    reading, family = read_space(np, space), ut.PointMass()
    encoding = reading.space.encoding(Preferences())
    network = builder.for_images().init(jax.random.key(0), encoding, 3, family.num_outputs)
    player = Player(Agent(family, ut.UCB(), encoding, 0.9), network, Interface(reading, Actions(3)))
    decides_as(player, images_of(space, 30))


@pytest.mark.slow
def test_images_by_all_defaults_go_from_a_command_to_a_file(tmp_path, capsys):
    gymnasium.register("Flickering-v0", lambda **_: Pictured(size=3, flicker=True), max_episode_steps=60)
    folder, file = tmp_path / "run", tmp_path / "policy.npz"
    assert main(["train", "--env=Flickering-v0", "--seeds=1", "--steps=300", f"--out={folder}", "--quiet"]) == 0
    assert main(["export", str(folder), f"--to={file}"]) == 0
    assert "1,000 of 1,000 observations get the run's action" in capsys.readouterr().out
    images = images_of(Box(0, 255, (12, 12, 3), np.uint8), 5)
    np.testing.assert_array_equal(loader.load(file)(images)[0], ut.load(folder).act(images))
