"""The machine that a process runs on."""

import importlib.metadata
import os
import platform
from typing import Any

import jax


def hardware() -> dict[str, Any]:
    """This process's machine, and the versions of packages."""
    return {
        "device": jax.devices()[0].device_kind,
        "cpu_cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("uppertail", "jax", "numpy")},
    }
