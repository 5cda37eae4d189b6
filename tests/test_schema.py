"""Settings and headers by their declared types: what is of another type is a sentence."""

import dataclasses
import fractions
import importlib
import json
import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

import uppertail as ut
from uppertail.errors import InputError, message_of, short_text
from uppertail.parts import PARTS
from uppertail.records import describe, digest
from uppertail.schema import MismatchError, convert
from uppertail.training import checkpoint as file
from uppertail.training.checkpoint import UnusableCheckpointError
from uppertail.training.method import Adam

WITHOUT_DEFAULTS = {name: {"id": "CartPole-v1"} for name in ("Gym", "Gymnax", "XMiniGrid", "Bsuite")}
"""Settings that a kind needs."""


def made(kind: Any) -> Any:
    return kind(**WITHOUT_DEFAULTS.get(kind.__name__, {}))


KINDS = [
    ut.Settings,
    *(getattr(importlib.import_module(module), name) for part in PARTS.values() for name, module in part.kinds.items()),
]
FIELDS = [(kind, field.name) for kind in KINDS for field in dataclasses.fields(kind) if field.init]

HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31 - 1, 2**31, -(2**31), 2**63, 10**400, 0, 1, -1]),
    st.floats(),
    st.text(),
    st.binary(),
    st.complex_numbers(),
    st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text()), max_size=3),
    st.dictionaries(st.one_of(st.text(), st.integers()), st.integers(), max_size=2),
    st.sampled_from(
        [
            np.int64(3), np.int8(-1), np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("elu"),
            np.array(2), np.array([0.0, 0.5]), np.array([[1]]), np.array(["a"], object), jnp.float32(0.25),
            jnp.int32(2), fractions.Fraction(1, 3), Decimal("0.5"), object(), int, print, b"one_hot", "one_hot",
            math.inf, -math.inf,
        ]
    ),
)  # fmt: skip


def with_setting(kind: Any, name: str, value: Any) -> Any:
    """A part with a setting, as where nothing checks types at run time."""
    part = made(kind)
    object.__setattr__(part, name, value)
    part.__post_init__()
    return part


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name in FIELDS])
@given(value=HOSTILE)
def test_a_setting_is_taken_or_refused_in_a_sentence(kind: Any, name: str, value: Any) -> None:
    try:
        part = with_setting(kind, name, value)
    except InputError as error:
        text = str(error)
        assert text.endswith(".") and text.isprintable() and len(text) < 1000
        return
    written = json.loads(json.dumps(describe(part), allow_nan=False))
    again = kind(**_arguments(part))
    assert json.loads(json.dumps(describe(again))) == written
    assert pickle.loads(pickle.dumps(part)) == part


def _arguments(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.init}


@pytest.mark.parametrize(
    ("kind", "name", "value", "words"),
    [
        (ut.Settings, "discount", "0.9", "discount is '0.9': use a number"),
        (ut.Settings, "steps", 2.5, "steps is 2.5: use a whole number, or leave it out"),
        (ut.Settings, "replay_start", None, r"replay_start is None: use a whole number\.$"),
        (ut.Settings, "on_policy", "replay", "on_policy is 'replay': use one of fresh, all or none"),
        (ut.Settings, "adam_betas", [0.5], r"adam_betas is \[0.5\]: use a list of 2"),
        (ut.Settings, "gradient_clip", math.inf, "gradient_clip is inf: use a finite number"),
        (ut.Settings, "seeds", 10**400, r"seeds is 10+\.\.\.: use a whole number below 2"),
        (ut.Gaussian, "beta", None, "beta is None: use a number"),
        (ut.Gaussian, "distance", "euclid", "distance is 'euclid': use one of cross_entropy, .* or wasserstein"),
        (ut.Chain, "length", "5", "length is '5': use a whole number"),
        (ut.Chain, "length", True, "length is True: use a whole number"),
        (ut.Categorical, "bins", 2.5, "bins is 2.5: use a whole number"),
        (ut.Categorical, "bins", 10**6, "bins is 1000000: use a number from 2 to 4096"),
        (ut.GaussianMixture, "components", 1000, "components is 1000: use a number from 1 to 256"),
        (ut.Gym, "kwargs", 3, "kwargs is 3: use a mapping from names"),
        (
            ut.Gym,
            "kwargs",
            {False: 3},
            "kwargs is .*: use names as keys, where False is none: put it into quotes .YAML reads on, off",
        ),
        (ut.Gym, "id", 5, "id is 5: use text"),
    ],
)
def test_the_sentence_names_the_setting_the_value_and_the_remedy(kind: Any, name: str, value: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"^{words}"):
        with_setting(kind, name, value)


def test_numbers_of_numpy_and_jax_become_pythons() -> None:
    for kind, name, value, own in (
        (ut.Settings, "steps", np.int64(16), 16),
        (ut.Settings, "discount", np.float32(0.5), 0.5),
        (ut.Settings, "steps", jnp.int32(100), 100),
        (ut.Settings, "adam_betas", np.array([0.0, 0.5]), (0.0, 0.5)),
        (ut.Settings, "learning_rate", 1, 1.0),
        (ut.Chain, "ordered", np.True_, True),
        (ut.Chain, "encoding", np.str_("scalar"), "scalar"),
        (ut.PerAction, "torso_widths", [8, 4], (8, 4)),
    ):
        found = getattr(with_setting(kind, name, value), name)
        assert found == own and type(found) is type(own)


def test_a_value_is_shown_on_one_short_line() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    assert short_text("a\x1b[31m\n") == r"'a\x1b[31m\n'"
    assert short_text(Rude()) == "of type Rude"
    assert len(short_text("x" * 10_000)) < 300
    assert message_of(ValueError("half \ud83d a pair, \x1b[31m red.\n")) == r"half \ud83d a pair, \x1b[31m red"


HEADER: dict[str, Any] = {
    "step": 32,
    "asked": {
        **{name: {"name": name} for name in ("environment", "distribution", "policy")},
        "settings": {"seeds": 1, "seed": 0, "episodes": None, "steps": 9},
        "measured_returns": None,
    },
    "environments": "0",
    "stopped": None,
    "seconds": {"wall": 2.0, "compile": 1.0, "training": 0.5},
    "hardware": {"uppertail": "0.1.0"},
}
ARRAYS = {"a": np.arange(3, dtype=np.float32)}


def written(path: Path, text: str) -> Path:
    """A checkpoint with this header, whose checksum is right."""
    path.write_bytes(safetensors.numpy.save(ARRAYS, {file.HEADER: text, file.DIGEST: digest(ARRAYS, text)}))
    return path


def test_a_sound_header_is_read(tmp_path: Path) -> None:
    header, arrays = file.read(written(tmp_path / "c", json.dumps({"format": 1, **HEADER})))
    assert dataclasses.asdict(header) == HEADER
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "is damaged"),
        (json.dumps({**HEADER, "format": 2}), "has format 2 .uppertail 0.1.0., and this version reads 1"),
        (json.dumps({"format": 1}), "is damaged"),
        (json.dumps({"format": 1, **HEADER, "more": 1}), "is damaged"),
    ],
)
def test_what_is_no_header_is_damaged(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableCheckpointError, match=words):
        file.read(written(tmp_path / "c", text))


def test_types_that_are_composed() -> None:
    assert convert([1, 2.5], list[float]) == [1.0, 2.5]
    assert convert({"a": 1}, dict[str, float]) == {"a": 1.0}
    assert convert(None, tuple[float, float] | None) is None
    for value, kind in (
        ([1, "x"], list[float]),
        ({1: 2}, dict[str, float]),
        ((1,), tuple[float, float]),
        (3, type(None)),
    ):
        with pytest.raises(MismatchError):
            convert(value, kind)


def test_the_optimizer_is_optaxs_and_can_be_pickled() -> None:
    """Two steps of Adam without a mean, by hand: -rate * g / (sqrt(v / (1 - b^t)) + eps)."""
    adam = pickle.loads(pickle.dumps(Adam(0.1, gradient_clip=1.0, epsilon=1e-4)))
    weights = jnp.zeros(1)
    state = adam.init(weights)
    second = 0.0
    for step, gradient in enumerate((3.0, 0.5), start=1):
        moved, state = adam.update(jnp.full(1, gradient), state, weights)
        clipped = min(gradient, 1.0)
        second = 0.9 * second + 0.1 * clipped**2
        expected = -0.1 * clipped / (math.sqrt(second / (1 - 0.9**step)) + 1e-4)
        assert float(moved[0]) == pytest.approx(expected, rel=1e-5)
