"""Counts of subsets of pixels: against counts of their contents by hand, under noise, and in a room that flickers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import uppertail as ut
from choosing import chosen
from uppertail.encodings import OneHot
from uppertail.encodings.vector import Image
from uppertail.errors import InputError
from uppertail.evidence.pixel_counts import blocks
from worlds import Pictured, transitions

KEY = jax.random.key(0)
SHAPE = 10, 10, 2
IMAGE = Image(*SHAPE)


def evidence_of(encoding: Any = IMAGE, actions: int = 2, capacity: int = 20, **settings: Any) -> Any:
    return ut.PixelCounts(**settings).init(KEY, encoding, actions, capacity)


def by_hand(subsets: np.ndarray, seen: list[tuple[np.ndarray, int]], image: np.ndarray, prior: float) -> list[float]:
    """u(s, .) from the contents of each subset, without hashes."""
    shares = []
    for subset in subsets:
        same = [action for before, action in seen if (before.ravel()[subset] == image.ravel()[subset]).all()]
        shares.append([prior / (prior + same.count(action)) for action in range(2)])
    return np.mean(shares, axis=0).tolist()


def test_a_share_is_the_mean_over_subsets_of_how_often_their_contents_were_seen() -> None:
    """The oldest rows of the replay buffer are overwritten, and nothing is forgotten."""
    draws, prior = np.random.default_rng(0), 0.5
    evidence = evidence_of(prior_count=prior, subsets=12, chance=0.05)
    subsets = np.asarray(evidence.weights) > 0
    assert 0.02 < subsets.mean() < 0.08
    observe, seen, capacity = jax.jit(lambda evidence, fresh: evidence.observe(fresh)), [], 20
    walks = draws.integers(2, size=(10, 2, 3, *SHAPE), dtype=np.uint8) * 255
    for images, nexts in walks:
        actions = draws.integers(2, size=3).tolist()
        evidence = observe(evidence, transitions(images, actions, nexts))
        seen += zip(images, actions, strict=True)
    last = walks[-1, 1, -1]
    for image in (seen[0][0], seen[-1][0], last, draws.integers(2, size=SHAPE, dtype=np.uint8) * 255):
        expected = by_hand(subsets, seen, image, prior)
        assert evidence.share(jnp.asarray(image)).tolist() == pytest.approx(expected, rel=1e-5)
    kept = evidence.kept(jnp.array([(len(seen) - 1) % capacity]))[0]
    there = evidence.there(kept).share(jnp.zeros(SHAPE, jnp.uint8))  # what is asked about does not matter
    assert there.tolist() == pytest.approx(by_hand(subsets, seen, last, prior), rel=1e-5)


@pytest.mark.slow
def test_units_and_the_order_of_axes_do_not_matter() -> None:
    image = np.random.default_rng(0).integers(256, size=SHAPE, dtype=np.uint8)
    evidence = evidence_of().observe(transitions(image[None], [1], image[None]))
    assert evidence.share(jnp.asarray(image)).tolist() == pytest.approx([1, 0.1 / 1.1])
    for encoding, changed in (
        (Image(*SHAPE, peak=1.0), (image / 255).astype(np.float32)),
        (Image(*SHAPE, channels_first=True), np.moveaxis(image, -1, 0)),
    ):
        other = evidence_of(encoding)
        assert (other.cells(jnp.asarray(changed)) == evidence.cells(jnp.asarray(image))).all()


@pytest.mark.slow
def test_larger_images_enter_as_the_darkest_and_brightest_shades_of_blocks() -> None:
    image = np.random.default_rng(0).integers(256, size=(33, 20, 2), dtype=np.uint8)
    parts = [image[3 * row : 3 * row + 3, 3 * column : 3 * column + 3] for row in range(11) for column in range(7)]
    expected = np.ravel([[getattr(part, ends)(axis=(0, 1)) for part in parts] for ends in ("min", "max")]) / 255
    assert blocks(Image(33, 20, 2), jnp.asarray(image)).tolist() == pytest.approx(expected.tolist())
    evidence = evidence_of(Image(33, 20, 2)).observe(transitions(image[None], [1], image[None]))
    assert evidence.weights.shape == (32, len(expected))
    assert evidence.share(jnp.asarray(image)).tolist() == pytest.approx([1, 0.1 / 1.1])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 4])
def test_what_flickers_hides_a_state_from_whole_images_but_not_from_subsets(scale: int) -> None:
    draws, large = np.random.default_rng(0), Image(10 * scale, 10 * scale, 2)

    def picture(cell: int) -> np.ndarray:
        image = np.zeros(SHAPE, np.uint8)
        image[cell // 10, cell % 10, 0] = 255
        image[0, :, 1] = draws.integers(2, size=10) * 255
        return image.repeat(scale, axis=0).repeat(scale, axis=1)

    walked = np.array([picture(cell) for cell in range(50) for _ in range(10)])
    fresh = transitions(walked, [0] * len(walked), walked)
    whole, parts = (evidence_of(large, chance=chance).observe(fresh) for chance in (1.0, 0.05))
    known, new = (np.array([picture(cell) for cell in range(first, first + 50)]) for first in (0, 50))
    of_whole, of_known, of_new = (
        float(np.mean([evidence.share(jnp.asarray(image))[0] for image in images]))
        for evidence, images in ((whole, known), (parts, known), (parts, new))
    )
    assert of_whole > 0.9  # 500 of 51,200 different images: nearly each is new
    assert of_known < 0.05 and of_new > 2 * of_known  # in a few subsets, the walker is seen


def test_an_action_of_several_numbers_is_as_new_as_the_newest_of_them() -> None:
    image = np.zeros((1, *SHAPE), np.uint8)
    evidence = evidence_of(actions=4, chance=1.0).combining((2, 2)).observe(transitions(image, [1], image))
    assert evidence.share(jnp.asarray(image[0])).tolist() == pytest.approx([1, 0.1 / 1.1, 1, 1])


def of(make: Any) -> Any:
    return ut.FromGymnasium(lambda: TimeLimit(make(), 60), id="Room")


@pytest.mark.parametrize("size", [3, 16])
def test_pixels_are_counted_however_often_a_random_policy_is_paid(size: int) -> None:
    found = chosen(of(lambda: Pictured(size=size, flicker=True)))
    assert found.entries["evidence"].value == "PixelCounts"
    assert any("--evidence NoEvidence" in note for note in found.notes)


def test_bad_settings_are_sentences() -> None:
    bad: list[Any] = [{"prior_count": 0.0}, {"subsets": 0}, {"chance": 0.0}, {"chance": 1.5}]
    for settings in bad:
        with pytest.raises(InputError, match="use a"):
            ut.PixelCounts(**settings)
    with pytest.raises(InputError, match="needs images"):
        evidence_of(OneHot(5))


@pytest.mark.slow
def test_a_room_that_flickers_is_learned() -> None:
    settings = ut.Settings(seeds=1, seed=7919, steps=6_000)
    with pytest.warns(UserWarning, match="counts of pixels"):
        result = ut.train(lambda: TimeLimit(Pictured(size=12, flicker=True), 100), settings=settings)
    assert result.record.episodes[0].returns[-20:].mean() == 1.0
