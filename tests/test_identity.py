"""identity.py: what a later run may take for the same."""

import dataclasses
import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.identity import identity_of, kept


@dataclasses.dataclass(frozen=True)
class Part:
    """Of two with other numbers `==` sees nothing."""

    number: Any = 0
    hidden: int = dataclasses.field(default=0, compare=False)
    read: dataclasses.InitVar[int] = 0

    def __post_init__(self, read: int) -> None:
        object.__setattr__(self, "found", read)

    @functools.cached_property
    def slowly(self) -> int:
        return 7


class Own(Part):
    def __init__(self, number: int) -> None:
        super().__init__()
        object.__setattr__(self, "own", number)


class Slots:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def adder(number: Any) -> Any:
    return lambda value: value + number


def other_adder(number: Any) -> Any:
    return lambda value: number + value


def early() -> Any:
    """A function that is asked for before the name that it is bound to has a value."""
    found = lambda: later  # noqa: E731
    identity = identity_of(found)
    later = 1
    return identity, identity_of(found)


def with_default(number: Any) -> Any:
    return lambda value=number: value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Part(hidden=1), Part(hidden=2)),
        (Part(read=1), Part(read=2)),
        (Own(1), Own(2)),
        (Slots(1), Slots(2)),
        (Part(1), Part(True)),
        (Part(1), Part(1.0)),
        (Part(0.0), Part(-0.0)),
        (Part([1]), Part((1,))),
        (Part({"a": 1, "b": 2}), Part({"b": 2, "a": 1})),  # in another order
        (Part(jnp.arange(3)), Part(jnp.arange(1, 4))),
        (Part(np.arange(3)), Part(np.arange(3.0))),
        (adder(1), adder(2)),
        (adder(1), adder(1.0)),
        (adder(1), other_adder(1)),
        (adder(Part(hidden=1)), adder(Part(hidden=2))),
        (with_default(1), with_default(2)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (Slots(1).__init__, Slots(2).__init__),
        (ut.Gaussian(), ut.PointMass()),
        (ut.Gaussian(scale=1.0), ut.Gaussian(scale=2.0)),
    ],
)
def test_what_differs_is_told_apart(one: Any, other: Any) -> None:
    assert identity_of(one) != identity_of(other)


def test_what_holds_the_same_is_the_same() -> None:
    array = np.arange(3)
    for make in (
        Part,
        lambda: Part(math.nan),
        lambda: Own(1),
        lambda: Slots(3),
        lambda: Part(array.copy()),
        ut.UCB,
        lambda: adder(Part()),
    ):
        one, other = make(), make()
        assert one is not other and identity_of(one) == identity_of(other)
        assert hash(identity_of(one)) == hash(identity_of(other))
    one = Part()
    before = identity_of(one)
    assert one.slowly == 7 and identity_of(one) == before, "what follows from the rest does not count"


def test_a_circle_and_a_large_array_are_equal_to_themselves_alone() -> None:
    circle: list[Any] = []
    circle.append(circle)
    large = np.zeros(2**18)
    for value in (circle, large):
        assert identity_of(value) == identity_of(value)
    assert identity_of(large) != identity_of(large.copy())


def test_results_are_kept_for_what_holds_the_same() -> None:
    calls = list[int]()
    call = kept(lambda part: calls.append(part.hidden) or part.hidden)
    assert [call(Part(hidden=each)) for each in (1, 2, 1)] == [1, 2, 1] and calls == [1, 2]


def test_a_name_without_a_value_yet_is_itself() -> None:
    before, after = early()
    assert before != after and before != early()[0] and after == early()[1]
