"""The command line: `uppertail COMMAND`. Heavy imports wait until a command needs them."""

import contextlib
import hashlib
import importlib
import importlib.metadata
import io
import os
import platform
import signal
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uppertail.cli.commands import COMMANDS
from uppertail.errors import InputError, join_names, message_of, nearest

NO_DEVICE = "Unable to initialize backend"  # what JAX's error says if it finds no device
LARGEST_CACHE = 2**30  # bytes of compiled programs that are kept at most; the oldest are deleted first

_SYNONYMS = {
    "evaluate": "eval test predict",
    "watch": "enjoy play render show",
    "report": "plot dashboard",
    "study": "tune sweep benchmark compare",
    "resume": "continue",
}
ELSEWHERE = {name: command for command, names in _SYNONYMS.items() for name in names.split()}
"""The command for each name that other libraries give it."""

USAGE = "\n".join(
    [
        "usage: uppertail COMMAND [options]",
        "",
        "Exploration with the return distribution: learn it whole, start it wide, act on its upper tail.",
        "",
        "commands:",
        *(
            f"  {name:<10} {' '.join(command.description.partition('. ')[0].split())}"
            for name, command in COMMANDS.items()
        ),
        "",
        "`uppertail COMMAND --help` lists a command's options.",
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0, 1 where some cells of a study failed, 2 for a request that cannot be met, 130 after Ctrl-C,
        143 after SIGTERM, 129 after SIGHUP.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # letters that its encoding lacks are escaped
    try:
        code = _command(*((sys.argv[1:] if arguments is None else arguments) or ["--help"]))
        print(end="", flush=True)  # a write that fails must fail here, where it is handled
        return code
    except KeyboardInterrupt as error:
        complain("interrupted.")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    except OSError as error:
        if error.filename is not None:
            raise
        with contextlib.suppress(OSError):  # else the interpreter tries to write the rest as it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of the output has closed it
            return 0
        complain(f"Standard output cannot be written ({message_of(error)}): its text is lost, but no file is.")
    except InputError as error:
        complain(str(error))
    except MemoryError as error:
        complain(f"There is not enough memory ({message_of(error) or 'none is left'}): ask for something smaller.")
    except RuntimeError as error:
        if NO_DEVICE not in str(error):
            raise
        complain(f"JAX finds no device ({message_of(error)}): unset JAX_PLATFORMS, or set it to cpu.")
    return 2


def _command(command: str, *rest: str) -> int:
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    if command == "--version":
        print(f"uppertail {importlib.metadata.version('uppertail')}")
        return 0
    if command not in COMMANDS:
        hint = nearest(command, [*COMMANDS, *ELSEWHERE], 1, shown=ELSEWHERE)
        raise InputError(f"Unknown command {command!r}: use one of {', '.join(COMMANDS)}.{hint}")
    if any(argument in ("-h", "--help") or argument.partition("=")[0].endswith(".help") for argument in rest):
        print(COMMANDS[command].help(rest))
        return 0
    try:
        os.getcwd()  # noqa: PTH109 - the path itself is not used
    except OSError as error:
        raise InputError("The current folder no longer exists: change to another one.") from error
    keep_programs()
    os.environ["JAX_ENABLE_X64"] = "0"  # results are computed in 32 bits, whatever the surroundings ask of JAX
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA reports slow compilation as an error
    values = COMMANDS[command].parse(rest)
    return importlib.import_module(f"uppertail.cli.{command}").main(values)


def complain(line: str) -> None:
    """Prints a line to standard error; where that is full, the command goes on."""
    with contextlib.suppress(OSError):
        print(f"uppertail: {line}", file=sys.stderr)


TEXT = 16  # columns that a text needs beside numbers; where there are more, it folds


def print_table(rows: Sequence[Mapping[str, str]], title: str | None = None, texts: Collection[str] = ()) -> None:
    """Prints rows of numbers by their headings; the columns of these headings hold texts.

    Where the terminal is too narrow for all numbers, each row is lines of `name: value`.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    look: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
    table, console = Table(show_edge=False, pad_edge=False, **look), Console()
    if title:  # beside the table, whose width would fold it
        console.print(title, style="bold", highlight=False, markup=False, soft_wrap=True)
    needed = 2 * (len(rows[0]) - 1)  # between columns
    for heading in rows[0]:
        is_text = heading in texts
        lines = "\n".join([heading, *(row[heading] for row in rows)]).split("\n")
        longest = max(map(cell_len, lines))
        needed += min(longest, TEXT) if is_text else longest
        justify = "left" if is_text else "right"
        table.add_column(heading, justify=justify, no_wrap=not is_text, overflow="fold", vertical="bottom")
    if needed > console.width:
        names = {heading: " ".join(heading.split()) for heading in rows[0]}
        filled = ({names[each]: text for each, text in row.items() if text} for row in rows)
        listed = ("\n".join(f"{name}: {text}".removeprefix(": ") for name, text in row.items()) for row in filled)
        console.print("\n\n".join(listed), highlight=False, markup=False)
        return
    for row in rows:
        table.add_row(*map(Text, row.values()))  # which is no markup
    console.print(table)


def require_parent(path: Path) -> None:
    """Refuses a file for which there is no folder."""
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} for the file {path.name}: make it first.")


def output_file(name: str, marks: Mapping[str, bytes], what: str) -> Path:
    """A file that a command is to write, if its name has a known ending and there is a folder for it.

    An existing file is replaced only if it has the mark of those that the command writes, which are known by ending.
    """
    path, endings = Path(name), [*marks]
    if path.suffix.lower() not in endings:
        raise InputError(f"The file {name!r} is {what}: give it a name that ends in {join_names(endings)}.")
    require_parent(path)
    with contextlib.suppress(OSError):  # writing says why
        if path.is_file() and marks[path.suffix.lower()] not in path.read_bytes():
            raise InputError(f"The file {name!r} exists already, and this command did not make it: give another name.")
    return path


@contextlib.contextmanager
def picture(path: Path) -> Iterator[None]:
    """Reports an error while the picture at a path is drawn; an OSError, such as a full disk, is still raised."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # matplotlib itself may not be importable
        why = f"The picture {path.name} cannot be drawn ({type(error).__name__}: {message_of(error)})."
        complain(str(error) if isinstance(error, InputError) else why)


def keep_programs() -> None:
    """Makes JAX keep compiled programs in the user's cache folder, unless its own environment variable names another.

    It must be called before JAX is imported. Programs that were compiled for one processor may be refused by another,
    or crash on it (jax issue 38445): each kind has a folder of its own. What cannot be kept or read is compiled again.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME", ""))  # as the XDG Base Directory Specification has it
        cache = named if named.is_absolute() else Path.home() / ".cache"
        folder = cache / "uppertail" / "programs" / hashlib.sha256(_processor().encode()).hexdigest()[:16]
        tidy(folder, LARGEST_CACHE)
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
