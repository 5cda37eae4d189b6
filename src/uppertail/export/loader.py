"""Reads a policy that `uppertail export DIR --to NAME.npz` wrote; it needs only NumPy."""

import functools
import json

import numpy as np


def load(path):
    """The policy in a file of `uppertail export DIR --to NAME.npz`: a function of observations."""
    file = dict(np.load(path))

    def part(observations, *keys):
        return np.array([np.ravel(functools.reduce(lambda x, key: x[key.item()], keys, each)) for each in observations])

    own = {
        "part": part,
        "beside": lambda *parts: np.concatenate(parts, axis=-1),
        "columns": lambda x, places: x[..., places],
        "bits": lambda x: (x + np.float32(0)).view(np.uint32),  # 0 and -0 are the same
        "rows": lambda table, row: table[row],
        "ascending": lambda x, _: np.sort(x),
        "highest": lambda x: x.max(-1, keepdims=True),
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
