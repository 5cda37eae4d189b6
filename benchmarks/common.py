"""What benchmarks share: options, files of results, and the way to `reproduction` at the root of the checkout."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uppertail.records import write_text

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))


def options(
    description: str | None, out: str, usual: Mapping[str, Sequence[str]] | None = None, **settings: Any
) -> argparse.Namespace:
    """The options of a benchmark: --out, and one for each setting.

    Args:
        description: the benchmark's docstring.
        out: where results go if nothing else is said.
        usual: for settings that are mappings, the keys that are chosen if nothing is said; all of them by default.
        settings: their defaults, which say of what type they are; a list is one of several values, a mapping one of
            several of its keys.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(out))
    for name, default in settings.items():
        if isinstance(default, dict):
            parser.add_argument(f"--{name}", nargs="+", choices=default, default=list((usual or {}).get(name, default)))
        elif isinstance(default, Sequence) and not isinstance(default, str):
            parser.add_argument(f"--{name}", nargs="+", type=type(default[0]), default=default)
        else:
            parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def write(path: Path, document: Any, indent: int | None = 2) -> None:
    """Writes a result as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=indent) + "\n")
