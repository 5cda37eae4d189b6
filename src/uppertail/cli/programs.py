"""Where compiled programs are kept, so that the next run of the same shapes starts without compiling."""

import hashlib
import os
import platform
from pathlib import Path

LARGEST = 2**30
"""Bytes of programs that are kept; those used longest ago go first."""


def keep() -> None:
    """Has JAX keep its programs in the user's cache folder, unless its own environment variables say otherwise.

    It must be called before JAX is imported. Programs that were compiled for one processor may be refused by another,
    or crash on it (jax issue 38445): each kind has a folder of its own.
    """
    folder = _folder()
    if folder is None:
        return
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(LARGEST))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")


def _folder() -> Path | None:
    """A folder that can be written; None if there is none."""
    try:
        user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(user) / "uppertail" / "programs" / hashlib.sha256(_processor().encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a full or read-only disk; nobody's home
        return None
    return folder if os.access(folder, os.W_OK) else None


def _processor() -> str:
    """What tells one kind of processor from another: its name and all that it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(sorted({line for line in lines if line.lower().startswith(("model name", "flags", "features"))}))
