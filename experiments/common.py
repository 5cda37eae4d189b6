"""What experiments share: options, and files of results."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from experiments.provenance import record
from uppertail.errors import InputError
from uppertail.records import write_text


def options(
    description: str | None, out: str, usual: Mapping[str, Sequence[str]] | None = None, **settings: Any
) -> argparse.Namespace:
    """The options of an experiment: --out, and one for each setting.

    Args:
        description: its docstring.
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


def ended(main: Callable[[], int | None]) -> NoReturn:
    """Runs a command to the end of the process: 2 after a sentence, 130 after Ctrl-C."""
    try:
        sys.exit(main())
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as error:
        sys.exit(128 + (error.args[0] if error.args else signal.SIGINT))


def write(path: Path, document: Any, indent: int | None = 2) -> None:
    """Writes a result as JSON, whole or not at all, and notes its birth."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=indent) + "\n")
    record(path)
