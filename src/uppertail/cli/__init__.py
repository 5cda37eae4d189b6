"""The command line: `uppertail COMMAND`. Heavy imports wait until a command needs them.

Errors while a command prints or draws are reported, not raised, so that results are kept.
"""

import contextlib
import importlib
import importlib.metadata
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from uppertail.cli import programs
from uppertail.cli.commands import COMMANDS
from uppertail.errors import InputError, join_names, message_of, nearest

NO_DEVICE = "Unable to initialize backend"
"""What JAX's error says if it finds no device."""

USAGE = "\n".join(
    [
        "usage: uppertail COMMAND [options]",
        "",
        "Exploration with the return distribution: learn it whole, start it wide, act on its upper tail.",
        "",
        "commands:",
        *(f"  {name:<10} {command.purpose}" for name, command in COMMANDS.items()),
        "",
        "`uppertail COMMAND --help` lists a command's options.",
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0, 1 where some cells of a study failed, 2 for a request that cannot be met, 130 after Ctrl-C,
        143 after SIGTERM.
    """
    with forgiving() as lost:
        code = _main([*(sys.argv[1:] if arguments is None else arguments)])
    for line in lost:
        complain(line)
    return code or (2 if lost else 0)


def _main(arguments: Sequence[str]) -> int:
    try:
        code = _command(*(arguments or ["--help"]))
        print(end="", flush=True)  # a write that fails must fail here, where it is handled
        return code
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:
        complain("interrupted.")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    except (InputError, MemoryError, RuntimeError) as error:
        complain(_sentence(error))
        return 2


def _sentence(error: Exception) -> str:
    """What a user is told of an error; a defect of the program is raised again."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"There is not enough memory ({message_of(error) or 'none is left'}): ask for something smaller."
    if NO_DEVICE in str(error):
        return f"JAX finds no device ({message_of(error)}): unset JAX_PLATFORMS, or set it to cpu."
    raise error


def _command(command: str, *rest: str) -> int:
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    if command == "--version":
        print(f"uppertail {importlib.metadata.version('uppertail')}")
        return 0
    if command not in COMMANDS:
        raise InputError(
            f"Unknown command {command!r}: use one of {', '.join(COMMANDS)}.{nearest(command, COMMANDS, 1)}"
        )
    if any(argument in ("-h", "--help") or argument.partition("=")[0].endswith(".help") for argument in rest):
        print(COMMANDS[command].help(rest))
        return 0
    try:
        os.getcwd()  # noqa: PTH109 - the path itself is not used
    except OSError as error:
        raise InputError("The current folder no longer exists: change to another one.") from error
    programs.keep()
    os.environ["JAX_ENABLE_X64"] = "0"  # results are computed in 32 bits, whatever the surroundings ask of JAX
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA reports slow compilation as an error
    values = COMMANDS[command].parse(rest)
    return importlib.import_module(f"uppertail.cli.{command}").main(values)


def complain(line: str) -> None:
    """Prints a line to standard error."""
    print(f"uppertail: {line}", file=sys.stderr)


def output_file(name: str, endings: Sequence[str], what: str) -> Path:
    """A file that a command is to write, if its name has one of these endings and there is a folder for it."""
    path = Path(name)
    if path.suffix.lower() not in endings:
        raise InputError(f"The file {name!r} is {what}: give it a name that ends in {join_names(endings)}.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} for the file {path.name}: make it first.")
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


@contextlib.contextmanager
def forgiving() -> Iterator[list[str]]:
    """Keeps a command going while standard output or error is full, or can write ASCII only.

    Yields:
        A list; once the command is over, it holds a sentence for each output that was lost.
    """
    lost: list[str] = []
    out, errors = (_Forgiving(stream or io.StringIO()) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            yield lost
        finally:
            out.flush()
            errors.flush()
            if out.error:
                what = message_of(out.error)
                lost.append(f"Standard output cannot be written ({what}): its text is lost, but no file is.")


class _Forgiving:
    """A text stream that goes silent when it cannot be written; a reader that has closed it is still an error."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.error = stream, None

    def write(self, text: str) -> int:
        encoding = self.stream.encoding or "utf-8"  # letters that it does not know are escaped
        self._try(lambda: self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding)))
        return len(text)

    def flush(self) -> None:
        self._try(self.stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _try(self, act: Callable[[], object]) -> None:
        if self.error is not None:
            return
        try:
            act()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.error = error
            with contextlib.suppress(OSError):  # else the interpreter tries to write the rest as it ends
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)
