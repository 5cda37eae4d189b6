"""Which code a run was made by: the commit and the tree of its source checkout."""

import functools
import os
import subprocess
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]


@functools.cache
def birth() -> dict[str, Any]:
    """Commit, tree of the package's folder in it, and whether the folder differs from it, as this process began.

    Nothing where there is no Git or no checkout, as in a wheel, or where Git refuses, as in another user's folder.
    """
    try:
        commit, tree = _git("rev-parse", "HEAD", "HEAD:./").split()
        return {"commit": commit, "tree": tree, "dirty": bool(_git("status", "--porcelain", "--", "."))}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}


def _git(*words: str) -> str:
    # in a hook, variables say where another repository is; and no lock, since many runs may begin at once
    here = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(PACKAGE), "-c", "core.fsmonitor=false", *words]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=5, env={**here, "GIT_OPTIONAL_LOCKS": "0"}
    )
    return done.stdout
