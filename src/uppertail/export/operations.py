"""The list of array operations that an exported policy is, and the functions that are made of several of them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from uppertail.distributions.categorical import TINY as LEAST_MASS
from uppertail.networks.units import TINY, Activation, Normalization


@dataclasses.dataclass
class Program:
    """Operations on arrays; each result and each constant has a name."""

    low: np.ndarray  # the lowest observation that the run saw, [] for states or [entries]
    high: np.ndarray  # the highest, likewise
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # the constants
    steps: list[tuple[str, ...]] = dataclasses.field(default_factory=list)  # result, operation, inputs

    @property
    def type(self) -> Any:
        """The type of observations: integers for states, else floats."""
        return np.float32 if self.low.ndim else np.int64

    def add(self, operation: str, *inputs: Any, result: str | None = None) -> str:
        """Adds an operation, and returns the name of its result; an input is such a name or an array."""
        result = result or f"v{len(self.steps)}"
        self.steps.append((result, operation, *(self._name(each) for each in inputs)))
        return result

    def _name(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        array, name = np.asarray(value), f"c{len(self.arrays)}"
        self.arrays[name] = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        return name


def total(program: Program, x: str, count: int) -> str:
    """Adds the sum over the last axis, of `count` entries, which stays as one of length 1."""
    return program.add("matmul", x, np.ones((count, 1)))


def softmax(program: Program, x: str) -> str:
    """Adds weights in proportion to exp(x)."""
    return program.add("exp", program.add("subtract", x, program.add("highest", x)))


def positive(program: Program, x: str) -> str:
    """Adds the weights of bins from coordinates of least squares, as `Categorical.from_coordinates`."""
    return program.add("add", program.add("maximum", x, 0.0), LEAST_MASS)


def elu(program: Program, x: str) -> str:
    """Adds x above 0, exp(x) - 1 below."""
    below = program.add("subtract", program.add("exp", program.add("minimum", x, 0.0)), 1.0)
    return program.add("add", program.add("maximum", x, 0.0), below)


def silu(program: Program, x: str) -> str:
    """Adds x / (1 + exp(-x)), by a form that does not overflow."""
    half = program.add("multiply", x, 0.5)
    return program.add("multiply", half, program.add("add", program.add("tanh", half), 1.0))


def layer_normalized(program: Program, x: str, count: int) -> str:
    """Adds `count` units with mean 0 and variance 1."""
    mean = program.add("multiply", total(program, x, count), 1 / count)
    return rms_normalized(program, program.add("subtract", x, mean), count)


def rms_normalized(program: Program, x: str, count: int) -> str:
    """Adds `count` units with root mean square 1."""
    square = program.add("multiply", total(program, program.add("multiply", x, x), count), 1 / count)
    return program.add("divide", x, program.add("sqrt", program.add("add", square, TINY)))


ACTIVATIONS: dict[Activation, Callable[[Program, str], str]] = {
    "elu": elu,
    "relu": lambda program, x: program.add("maximum", x, 0.0),
    "tanh": lambda program, x: program.add("tanh", x),
    "silu": silu,
}
NORMALIZATIONS: dict[Normalization, Callable[[Program, str, int], str]] = {
    "none": lambda program, x, count: x,
    "layer": layer_normalized,
    "rms": rms_normalized,
}
