"""An exported policy as a list of array operations, and its files: NumPy arrays with a loader, or ONNX."""

import dataclasses
import inspect
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from uppertail import loader
from uppertail.errors import InputError, import_package


@dataclasses.dataclass
class Program:
    """Operations on arrays; each result and each constant has a name."""

    actions: int  # how many there are
    type: str  # of observations: that of an array; empty: they are taken as the environment gives them
    shape: tuple[int, ...] = ()  # of the array of one observation
    seen: Any = None  # the observation as the network takes it: states [n], or numbers [n, entries]
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # the constants
    steps: list[tuple[str, ...]] = dataclasses.field(default_factory=list)  # result, operation, inputs
    action: np.ndarray = dataclasses.field(default_factory=lambda: np.array(0))  # one, as the environment takes it

    @property
    def observation(self) -> Any:
        """What the policy is asked."""
        return Value(self, "observation")

    @property
    def mask(self) -> Any:
        """Which actions are allowed."""
        return Value(self, "mask")

    @property
    def results(self) -> list[str]:
        """What the policy gives: `action`, `mean` and, where it is known, `std`."""
        given = {result for result, *_ in self.steps}
        return [name for name in ("action", "mean", "std") if name in given]

    def add(self, operation: str, *inputs: Any, result: str | None = None) -> Any:
        """Adds an operation on values and constants; returns its result."""
        result = result or f"v{len(self.steps)}"
        self.steps.append((result, operation, *map(self._name, inputs)))
        return Value(self, result)

    def constant(self, array: np.ndarray) -> Any:
        """A constant that keeps its type; all others get the types of networks."""
        name = f"c{len(self.arrays)}"
        self.arrays[name] = array
        return Value(self, name)

    def _name(self, value: Any) -> str:
        if isinstance(value, Value):
            return value.name
        array = np.asarray(value)
        return self.constant(array.astype(_type(array))).name


def _type(array: np.ndarray) -> Any:
    """The type of an array in a file."""
    return array.dtype if array.dtype.kind in "uU" else np.float32 if array.dtype.kind == "f" else np.int64


class Value(NDArrayOperatorsMixin):
    """A result in a program: NumPy's functions and operators on it add operations to the program."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name

    def __array_ufunc__(self, ufunc: np.ufunc, _method: str, *inputs: Any) -> Any:
        return self.program.add(ufunc.__name__, *inputs)

    def highest(self) -> Any:
        """The highest entry along the last axis, which stays as one of length 1."""
        return self.program.add("highest", self, [-1])

    def ascending(self, count: int) -> Any:
        """The `count` entries along the last axis, in ascending order."""
        return self.program.add("ascending", self, [count])

    def total(self, count: int) -> Any:
        """The sum of the `count` entries along the last axis, which stays as one of length 1."""
        return self @ np.ones((count, 1))


OPSET, IR_VERSION = 18, 8  # the versions of ONNX's operators and of its files: old ones, which every program reads

OPERATORS: dict[str, tuple[Any, ...]] = {
    "add": ("Add", {}),
    "ascending": ("TopK", {"axis": -1, "largest": 0}),
    "beside": ("Concat", {"axis": -1}),
    "best": ("ArgMax", {"axis": -1, "keepdims": 0}),
    "bitwise_xor": ("BitwiseXor", {}),
    "columns": ("Gather", {"axis": -1}),
    "convolve": ("Conv", {}, "strides", "pads"),
    "cos": ("Cos", {}),
    "divide": ("Div", {}),
    "equal": ("Equal", {}),
    "exp": ("Exp", {}),
    "float32": ("Cast", {"to": 1}),
    "floor": ("Floor", {}),
    "highest": ("ReduceMax", {"keepdims": 1}),
    "int32": ("Cast", {"to": 6}),
    "int64": ("Cast", {"to": 7}),
    "matmul": ("MatMul", {}),
    "maximum": ("Max", {}),
    "minimum": ("Min", {}),
    "multiply": ("Mul", {}),
    "power": ("Pow", {}),
    "remainder": ("Mod", {}),
    "reshape": ("Reshape", {}),
    "rint": ("Round", {}),
    "right_shift": ("BitShift", {"direction": "RIGHT"}),
    "rows": ("Gather", {}),
    "sqrt": ("Sqrt", {}),
    "subtract": ("Sub", {}),
    "tanh": ("Tanh", {}),
    "transpose": ("Transpose", {}, "perm"),
    "uint32": ("Cast", {"to": 12}),
    "where": ("Where", {}),
}
"""ONNX's operators, their attributes, and which attributes the last inputs become, by the names of the operations.

These are NumPy's or the loader's.
"""

Policy = Callable[..., tuple[Any, ...]]  # of observations and a mask: actions [n, ...], mean and std [n, actions]


def numpy_file(program: Program, about: Mapping[str, str]) -> tuple[bytes, Policy]:
    """An .npz file with the source of its loader in `readme`, and the policy as that loader reads it."""
    content = io.BytesIO()
    texts = {"readme": inspect.getsource(loader), "about": json.dumps(about), "steps": json.dumps(program.steps)}
    arrays: dict[str, Any] = {**program.arrays, **texts, "type": program.type}
    np.savez_compressed(content, **arrays)
    return content.getvalue(), loader.load(io.BytesIO(content.getvalue()))


def onnx_file(program: Program, about: Mapping[str, str]) -> tuple[bytes, Policy]:
    """An ONNX model, and the policy as ONNX's reference computes it."""
    import_package("onnx", "An ONNX file", ", or export to a file that ends in .npz")
    from onnx import TensorProto, checker, defs, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    if not program.type:
        raise InputError(
            "The observations of this run are dicts, tuples (also stacked ones), texts or hashed as a whole, and ONNX "
            "takes arrays alone: export to NAME.npz."
        )
    if any(operation not in OPERATORS for _, operation, *_ in program.steps):
        raise InputError("The observations of this run are hashed, which ONNX cannot do: export to NAME.npz.")
    kind, actions = helper.np_dtype_to_tensor_dtype(np.dtype(program.type)), program.actions
    inputs = [
        helper.make_tensor_value_info("observation", kind, ["n", *program.shape]),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, ["masks", actions]),
    ]
    kind_of_action = helper.np_dtype_to_tensor_dtype(program.action.dtype)
    outputs = [
        helper.make_tensor_value_info("action", kind_of_action, ["n", *program.action.shape]),
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", actions]) for name in program.results[1:]),
    ]
    nodes = list[Any]()
    for result, operation, *names in program.steps:
        operator, attributes, *given = OPERATORS[operation]
        schema = defs.get_schema(operator, OPSET)
        tensors, others = names[: schema.max_input], names[schema.max_input :]
        attributes = {**attributes, **{name: program.arrays[own] for name, own in zip(given, others, strict=False)}}
        nodes.append(
            helper.make_node(operator, tensors, [result, f"{result} unused"][: schema.min_output], **attributes)
        )
    arrays = {**program.arrays, "mask": np.ones((1, actions), bool)}  # all are allowed, unless a mask is given
    used = {name for node in nodes for name in node.input}
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items() if name in used]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    helper.set_model_props(model, dict(about))
    checker.check_model(model, full_check=True)
    reference = ReferenceEvaluator(model)

    def policy(observations: Any, mask: Any = None) -> tuple[Any, ...]:
        asked = {"observation": np.asarray(observations, program.type)}
        asked |= {} if mask is None else {"mask": np.asarray(mask, bool)}
        return *map(np.asarray, reference.run(None, asked)), *[None] * (3 - len(outputs))

    return model.SerializeToString(), policy


KINDS = {".npz": numpy_file, ".onnx": onnx_file}  # how a file is made, by the ending of its name
