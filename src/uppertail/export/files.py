"""The files of an exported policy: NumPy arrays or ONNX."""

import inspect
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.export import loader
from uppertail.export.operations import Program

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
