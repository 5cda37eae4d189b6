"""Reads a policy that `uppertail export DIR --to NAME.npz` wrote; it needs only NumPy."""

import functools
import json

import numpy as np


def load(path):
    """The policy in a file of `uppertail export DIR --to NAME.npz`: a function of observations."""
    file = dict(np.load(path))

    def part(observations, *keys):
        return np.array([np.ravel(functools.reduce(lambda x, key: x[key.item()], keys, each)) for each in observations])

    def convolve(images, kernels, biases, strides, pads):  # images and kernels [number, channels, rows, columns]
        top, left, bottom, right = pads
        wide = np.pad(images, ((0, 0), (0, 0), (top, bottom), (left, right)))
        seen = np.lib.stride_tricks.sliding_window_view(wide, kernels.shape[2:], (2, 3))
        sums = np.tensordot(seen[:, :, :: strides[0], :: strides[1]], kernels, ((1, 4, 5), (1, 2, 3)))
        return np.moveaxis(sums + biases, -1, 1)

    own = {
        "part": part,
        "beside": lambda *parts: np.concatenate(parts, axis=-1),
        "convolve": convolve,
        "columns": lambda x, places: x[..., places],
        "bits": lambda x: (x + np.float32(0)).view(np.uint32),  # 0 and -0 are the same
        "rows": lambda table, row: table[row],
        "ascending": lambda x, _: np.sort(x),
        "highest": lambda x, axes: x.max(tuple(axes), keepdims=True),
        "best": lambda x: x.argmax(-1),
    }

    def policy(observations, mask=True):  # of n observations; mask [n, actions]: 1 where an action is allowed, else 0
        kind = file["type"].item()  # empty: observations are a list of dicts or tuples, as the environment gives them
        values = {**file, "observation": np.asarray(observations, kind) if kind else observations}
        values["mask"] = np.asarray(mask, bool)
        for result, operation, *inputs in json.loads(str(file["steps"])):
            values[result] = (own.get(operation) or getattr(np, operation))(*(values[name] for name in inputs))
        return values["action"], values["mean"], values.get("std")  # [n, ...], and returns [n, actions]

    return policy
