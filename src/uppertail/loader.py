"""Reads a policy that `uppertail export DIR --to NAME.npz` wrote; it needs only NumPy.

Files hold this source, and encodings hash by it, too.
"""

import functools
import hashlib
import json
from collections.abc import Mapping

import numpy as np


def place_of(observation, places):
    """The place, from 0, of numbers, arrays, texts, or mappings or sequences of these; the same in every process."""
    total = hashlib.blake2b(digest_size=8)
    for part in parts_of(observation):
        total.update(len(part).to_bytes(8, "big") + part)
    return int.from_bytes(total.digest(), "big") % int(places)


def parts_of(value):
    """The parts of an observation, with marks of where mappings and sequences begin; 0 and -0 are the same."""
    if isinstance(value, str):
        yield from (b"text", value.encode(errors="surrogatepass"))
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)}".encode()
        for name in sorted(value, key=str):
            yield from (*parts_of(str(name)), *parts_of(value[name]))
    elif isinstance(value, tuple | list):
        yield f"sequence of {len(value)}".encode()
        for part in value:
            yield from parts_of(part)
    elif (array := np.asarray(value)).dtype.kind in "biuf":  # whatever the width of its type
        wide = np.ascontiguousarray(array, np.float64 if array.dtype.kind == "f" else np.int64)
        yield from (str(array.shape).encode(), (wide + 0.0 if array.dtype.kind == "f" else wide).tobytes())
    else:
        yield repr(value).encode(errors="surrogatepass")


def without(value, background):
    """An observation with zeros for these pixels of its images, whose last axis is that of channels."""
    if isinstance(value, Mapping):
        return {name: without(part, background) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [without(part, background) for part in value]
    if np.ndim(value) != 3 or np.shape(value)[-1] != background.shape[-1]:
        return value
    is_background = (np.asarray(value)[..., None, :] == background).all(axis=-1).any(axis=-1)
    return np.where(is_background[..., None], 0, value)


def load(path):
    """The policy in a file of `uppertail export DIR --to NAME.npz`: a function of observations."""
    file = dict(np.load(path))

    def part(observations, *keys):
        return [functools.reduce(lambda x, key: x[key.item()], keys, each) for each in observations]

    def convolve(images, kernels, biases, strides, pads):  # images and kernels [number, channels, rows, columns]
        top, left, bottom, right = pads
        wide = np.pad(images, ((0, 0), (0, 0), (top, bottom), (left, right)))
        seen = np.lib.stride_tricks.sliding_window_view(wide, kernels.shape[2:], (2, 3))
        sums = np.tensordot(seen[:, :, :: strides[0], :: strides[1]], kernels, ((1, 4, 5), (1, 2, 3)))
        return np.moveaxis(sums + biases, -1, 1)

    own = {
        "part": lambda seen, *keys: np.array([np.ravel(each) for each in part(seen, *keys)]),
        "texts": lambda seen, places, *keys: np.array([[place_of(str(each), places)] for each in part(seen, *keys)]),
        "hashes": lambda seen, places, blank: np.array([[1 + place_of(without(each, blank), places)] for each in seen]),
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
        kind = file["type"].item()  # empty: observations are a list, as the environment gives them
        values = {**file, "observation": np.asarray(observations, kind) if kind else observations}
        values["mask"] = np.asarray(mask, bool)
        for result, operation, *inputs in json.loads(str(file["steps"])):
            values[result] = (own.get(operation) or getattr(np, operation))(*(values[name] for name in inputs))
        return values["action"], values["mean"], values.get("std")  # [n, ...], and returns [n, actions]

    return policy
