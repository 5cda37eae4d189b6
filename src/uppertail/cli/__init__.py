"""The command line: `uppertail COMMAND`. Heavy imports wait until a command needs them."""

import importlib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Sequence

from uppertail.cli import output, programs
from uppertail.cli.commands import COMMANDS
from uppertail.errors import InputError, message_of, nearest

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
    with output.forgiving() as lost:
        code = _main([*(sys.argv[1:] if arguments is None else arguments)])
    for line in lost:
        output.complain(line)
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
        output.complain("interrupted.")
        return 128 + (error.args[0] if error.args else signal.SIGINT)
    except (InputError, MemoryError, RuntimeError) as error:
        output.complain(_sentence(error))
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
