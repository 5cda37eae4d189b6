"""Exported policies, by every program that is here."""

import importlib.util
from typing import Any

import numpy as np

from uppertail.export.operations import Program, numpy_file, onnx_file


def policies_of(program: Program) -> list[Any]:
    """The policy of each file, by every program that is here."""
    policies = [numpy_file(program, {})[1]]
    if importlib.util.find_spec("onnx"):
        content, reference = onnx_file(program, {"seed": "3"})
        policies += [reference, *onnxruntime_of(content)]
    return policies


def onnxruntime_of(content: bytes) -> list[Any]:
    """The policy of a model as ONNX Runtime computes it, where that is installed."""
    if not importlib.util.find_spec("onnxruntime"):
        return []
    import onnxruntime  # pyright: ignore[reportMissingImports]

    session = onnxruntime.InferenceSession(content)
    assert session.get_modelmeta().custom_metadata_map == {"seed": "3"}
    kind = {"float": np.float32, "int64": np.int64, "double": np.float64, "uint8": np.uint8}[
        session.get_inputs()[0].type[7:-1]
    ]

    def policy(observations: np.ndarray, mask: Any = None) -> Any:
        asked = {"observation": observations.astype(kind)}
        return session.run(None, asked if mask is None else {**asked, "mask": mask.astype(bool)})

    return [policy]
