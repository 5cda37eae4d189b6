"""Lists the package's files whose functions one command calls, in the order of their first calls.

    python benchmarks/walk.py train --env Chain --env.length 10 --seeds 1 --episodes 60

A move is a call of a function in another file than the call before it. What an import runs is not counted.
"""

import collections
import inspect
import itertools
import sys
import threading
import types
from pathlib import Path

import uppertail
from uppertail.cli import main

PACKAGE = f"{Path(uppertail.__file__).parent}/"
called: list[str] = []
"""The file of each call."""


def note(frame: types.FrameType, event: str, _: object) -> None:
    """Notes the call of a function of the package by another function: bodies of modules and classes are none."""
    code, caller = frame.f_code, frame.f_back
    flags = code.co_flags & (caller.f_code.co_flags if caller else inspect.CO_OPTIMIZED)
    if event == "call" and flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(PACKAGE):
        called.append(code.co_filename.removeprefix(PACKAGE))


if __name__ == "__main__":
    sys.argv[0] = "uppertail"
    threading.setprofile(note)
    sys.setprofile(note)
    code = main()
    sys.setprofile(None)
    files = collections.Counter(called)
    for file, times in files.items():
        print(f"{times:8,}  {file}")
    moves = sum(before != after for before, after in itertools.pairwise(called))
    print(f"{len(files)} files, {moves:,} moves between them")
    sys.exit(code)
