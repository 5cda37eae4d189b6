"""The list of array operations that an exported policy is, functions made of several of them, and its files."""

import dataclasses
import inspect
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from uppertail.distributions.categorical import TINY as LEAST_MASS
from uppertail.errors import InputError
from uppertail.export import loader
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

OPSET, IR_VERSION = 17, 8  # the versions of ONNX's operators and of its files: old ones, which every program reads

OPERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "add": ("Add", {}),
    "best": ("ArgMax", {"axis": -1, "keepdims": 0}),
    "cos": ("Cos", {}),
    "divide": ("Div", {}),
    "exp": ("Exp", {}),
    "highest": ("ReduceMax", {"axes": [-1], "keepdims": 1}),
    "matmul": ("MatMul", {}),
    "maximum": ("Max", {}),
    "minimum": ("Min", {}),
    "multiply": ("Mul", {}),
    "rows": ("Gather", {}),
    "sqrt": ("Sqrt", {}),
    "subtract": ("Sub", {}),
    "tanh": ("Tanh", {}),
    "transpose": ("Transpose", {}),
}
"""ONNX's operators and their attributes, by the names of the operations."""

Policy = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # actions [n], mean returns [n, actions]


def numpy_file(program: Program, about: Mapping[str, str]) -> tuple[bytes, Policy]:
    """An .npz file with the source of its loader in `readme`, and the policy as that loader reads it."""
    content = io.BytesIO()
    texts = {"readme": inspect.getsource(loader), "about": json.dumps(about), "steps": json.dumps(program.steps)}
    arrays: dict[str, Any] = {**program.arrays, **texts, "type": np.dtype(program.type).name}
    np.savez_compressed(content, **arrays)
    return content.getvalue(), loader.load(io.BytesIO(content.getvalue()))


def onnx_file(program: Program, about: Mapping[str, str]) -> tuple[bytes, Policy]:
    """An ONNX model, and the policy as ONNX's reference computes it."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
        from onnx.reference import ReferenceEvaluator
    except ImportError as error:
        raise InputError(
            "An ONNX file needs the package onnx: run `pip install onnx`, or export to a file that ends in .npz."
        ) from error
    inputs = helper.make_tensor_value_info(
        "observation", helper.np_dtype_to_tensor_dtype(np.dtype(program.type)), ["n", *program.low.shape]
    )
    outputs = [
        helper.make_tensor_value_info("action", TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n", "actions"]),
    ]
    nodes = [
        helper.make_node(OPERATORS[operation][0], names, [result], **OPERATORS[operation][1])
        for result, operation, *names in program.steps
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in program.arrays.items()]
    graph = helper.make_graph(nodes, "policy", [inputs], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    helper.set_model_props(model, dict(about))
    checker.check_model(model, full_check=True)
    reference = ReferenceEvaluator(model)

    def policy(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        action, mean = reference.run(None, {"observation": observations.astype(program.type)})
        return np.asarray(action), np.asarray(mean)

    return model.SerializeToString(), policy


KINDS = {".npz": numpy_file, ".onnx": onnx_file}  # how a file is made, by the ending of its name
