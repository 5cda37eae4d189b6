"""What is said of packages that are not installed."""

import importlib.util
import re

from uppertail.errors import message_of


def is_missing(module: str) -> bool:
    """Whether not even the package of this module can be found."""
    return importlib.util.find_spec(module.partition(".")[0]) is None


def missing(module: str) -> str:
    """A module that is not there, and how to get it."""
    if module.partition(".")[0] == "minigrid":
        remedy = "run `pip install 'uppertail[minigrid]'`"
    else:
        remedy = "install its package, or start in a folder from which Python finds it"
    return f"the module {module!r}, which is not installed: {remedy}"


def extra(error: Exception) -> str:
    """How Gymnasium says to install what is missing."""
    named = re.search(r"gymnasium\[[\w-]+\]", str(error))
    return f"run `pip install '{named[0]}'`" if named else message_of(error)
