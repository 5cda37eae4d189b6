"""Reads a policy that `uppertail export DIR --to NAME.npz` wrote; it needs only NumPy."""

import json

import numpy as np


def load(path):
    """The policy in a file of `uppertail export DIR --to NAME.npz`: a function of observations."""
    file = dict(np.load(path))
    own = {
        "rows": lambda table, row: table[row],
        "highest": lambda x: x.max(-1, keepdims=True),
        "best": lambda x: x.argmax(-1),
    }

    def policy(observations):  # [n] states, or [n, entries] numbers -> actions [n, ...], mean returns [n, actions]
        values = {**file, "observation": np.asarray(observations, file["type"].item())}
        for result, operation, *inputs in json.loads(str(file["steps"])):
            values[result] = (own.get(operation) or getattr(np, operation))(*(values[name] for name in inputs))
        return values["action"], values["mean"]

    return policy
