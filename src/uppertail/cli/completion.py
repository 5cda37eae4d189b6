"""`uppertail completion`: what a shell needs to complete commands, options and the names of parts."""

import argparse
import importlib
import inspect
from collections.abc import Sequence

from jsonargparse import ArgumentParser

from uppertail.cli.parsing import command_parser, parse
from uppertail.errors import InputError
from uppertail.parts import PARTS

SHELLS = ("bash", "zsh", "tcsh")

DESCRIPTION = """Prints what makes a shell complete commands, options and names. Bash:
uppertail completion bash > ~/.local/share/bash-completion/completions/uppertail"""


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail completion`."""
    del light  # it names no class
    options = command_parser("completion", DESCRIPTION)
    options.add_argument("shell", type=str, help=f"one of {', '.join(SHELLS)}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    shell = parse(parser(), arguments).shell
    if shell not in SHELLS:
        raise InputError(f"shell is {shell!r}: use one of {', '.join(SHELLS)}.")
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise InputError("Completion needs a package: run `pip install 'uppertail[completion]'`.") from error
    print(shtab.complete(tree(), shell), end="")
    return 0


def tree() -> argparse.ArgumentParser:
    """All commands and their options, as one parser that is never used to parse."""
    from uppertail.cli import COMMANDS

    whole = argparse.ArgumentParser(prog="uppertail")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers()
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=_plain(purpose), add_help=False)
        for action in importlib.import_module(f"uppertail.cli.{name}").parser(light=True)._actions:
            _copy(action, command)
    return whole


def _copy(action: argparse.Action, command: argparse.ArgumentParser) -> None:
    """Adds an option or an argument as a shell sees it; a part also with the settings of its kinds."""
    text = _plain(action.help or "").partition(":")[0]
    if not action.option_strings:
        command.add_argument(action.dest, nargs="*", help=text)
    elif action.dest in PARTS:
        kinds = PARTS[action.dest].kinds
        command.add_argument(*action.option_strings, choices=list(kinds), help=text)
        command.add_argument(f"--{action.dest}.help", choices=list(kinds), help="list the settings of one of these")
        for setting in _settings(action.dest):
            command.add_argument(f"--{action.dest}.{setting}", help=f"a setting of the {action.dest}")
    elif not action.dest.endswith(".help"):
        flag = {"action": "store_true"} if action.nargs == 0 else {}
        command.add_argument(*action.option_strings, dest=action.dest, help=text, **flag)  # pyright: ignore[reportArgumentType]


def _settings(option: str) -> list[str]:
    """The settings of all kinds of a part."""
    kinds = [getattr(importlib.import_module(module), name) for name, module in PARTS[option].kinds.items()]
    return sorted({name for kind in kinds for name in inspect.signature(kind).parameters})


def _plain(text: str) -> str:
    """A help text in one line, its percent signs escaped for argparse."""
    return " ".join(text.replace("%", "%%").split())
