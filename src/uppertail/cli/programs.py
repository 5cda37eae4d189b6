"""Where compiled programs are kept, so that the next run of the same shapes starts without compiling."""

import hashlib
import os
import platform
import warnings
from pathlib import Path

LARGEST = 2**30
"""Bytes of programs that are kept at most; the oldest are deleted first."""


def keep() -> None:
    """Makes JAX keep its programs in the user's cache folder, unless its own environment variable names another.

    It must be called before JAX is imported. Programs that were compiled for one processor may be refused by another,
    or crash on it (jax issue 38445): each kind has a folder of its own. What cannot be kept or read is compiled again.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME", ""))  # as the XDG Base Directory Specification has it
        cache = named if named.is_absolute() else Path.home() / ".cache"
        folder = cache / "uppertail" / "programs" / hashlib.sha256(_processor().encode()).hexdigest()[:16]
        tidy(folder, LARGEST)
    except (OSError, RuntimeError):  # the folder cannot be read, or the user has no home
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")


def tidy(folder: Path, largest: int) -> None:
    """Deletes the oldest programs beyond a size."""
    size = 0
    for file in sorted(folder.glob("*-cache"), key=lambda file: -file.stat().st_mtime_ns):
        size += file.stat().st_size
        if size > largest:
            file.unlink(missing_ok=True)


def _processor() -> str:
    """The kind of processor: its name and its features."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(sorted({line for line in lines if line.lower().startswith(("model name", "flags", "features"))}))
