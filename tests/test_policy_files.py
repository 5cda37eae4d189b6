"""Whatever is in a policy's file: an array of numbers, or one sentence."""

import io
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from uppertail import Toy
from uppertail.cli.exact import _policy
from uppertail.errors import InputError

MDP: Any = Toy().build(jax.random.key(0))  # never looked at


def content(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


SOUND = content(np.eye(3)[:, :2])
HUGE = SOUND.replace(b"(3, 2), }" + b" " * 13, b"(20000000000000, 2), }")

FILES = {
    "objects": content(np.array([["a", None]], dtype=object)),
    "words": content(np.array([["a", "b"]])),
    "records": content(np.zeros(3, [("a", float), ("b", int)])),
    "complex": content(np.ones((3, 2), complex)),
    "dates": content(np.zeros(3, "datetime64[s]")),
    "20 trillion states": HUGE,
    "nothing": b"",
    "half": SOUND[: len(SOUND) // 2],
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_array_of_numbers_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "policy.npy").write_bytes(FILES[name])
    with pytest.raises(InputError, match="cannot be read as an array of numbers"):
        _policy(str(tmp_path / "policy.npy"), MDP, 1.0)


def test_so_is_a_file_in_which_some_bytes_have_changed(tmp_path: Path) -> None:
    assert len(HUGE) == len(SOUND)
    random, refused = np.random.default_rng(0), 0
    for _ in range(400):
        damaged = bytearray(SOUND)
        for where in random.integers(90, size=random.integers(1, 4)):
            damaged[where] = random.integers(256)
        (tmp_path / "policy.npy").write_bytes(damaged)
        try:
            assert _policy(str(tmp_path / "policy.npy"), MDP, 1.0).dtype == np.float64
        except InputError as error:
            refused += "cannot be read" in str(error)
    assert refused > 100
