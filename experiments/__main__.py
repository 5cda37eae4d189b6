"""Where numbers come from: runs an experiment, certifies its results, writes its tables, and checks all of them."""

import argparse
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence

from experiments.registry import EXPERIMENTS


def run(name: str, words: Sequence[str], python: str | None) -> int:
    """Runs an experiment with further options, by another interpreter if there is one, and notes births of results.

    Results of this interpreter note their own births as they are written.
    """
    from experiments.provenance import checksum, record
    from uppertail.cli import keep_programs

    experiment = EXPERIMENTS[name]
    options = [*experiment.command.split()[1:], *words]
    before = {path: checksum(path) for path in experiment.files()}
    if python:
        code = subprocess.run([python, "-m", experiment.module, *options], check=False).returncode
    else:
        keep_programs()
        sys.argv = [experiment.module, *options]
        try:
            runpy.run_module(experiment.module, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if isinstance(ended.code, str):
                print(ended.code, file=sys.stderr)
    for path in experiment.files():
        if checksum(path) != before.get(path):
            record(path, " ".join(["python", "-m", experiment.module, *options]))
    return code


def certify(names: list[str], longest: float, only: Sequence[str]) -> int:
    """Certifies results of some experiments, or of all; 1: some came out otherwise."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from experiments.certificates import certify_all
    from uppertail.cli import keep_programs
    from uppertail.errors import InputError

    keep_programs()
    try:
        return int(certify_all(names, longest, lambda line: print(line, flush=True), only) > 0)
    except InputError as error:
        sys.exit(str(error))


def tables() -> int:
    """Writes tables and numbers of pages anew."""
    from experiments import documents

    for page, text in documents.stale().items():
        page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(documents.ROOT)} is written anew")
    return 0


def check(strict: bool) -> int:
    """Says what is wrong, and which results no code is known to make; 1: something is wrong, or none may be unknown."""
    from experiments.certificates import faults, uncertified
    from uppertail.training.birth import birth

    wrong = list(faults())
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    open_ones = uncertified(birth().get("tree"))
    for name, by_state in open_ones.items():
        for known, stems in by_state.items():
            print(f"{name}: {len(stems)} of {len(list(EXPERIMENTS[name].files()))} {known}: {', '.join(stems)}")
    return int(bool(wrong) or (strict and bool(open_ones)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the experiments")
    named = commands.add_parser("run", help="run one; options that this command does not have are its own")
    named.add_argument("name", choices=list(EXPERIMENTS), metavar="NAME")
    named.add_argument("--python", help="another interpreter, if it needs other packages")
    again = commands.add_parser("certify", help="make the first seeds of results again by the code as committed")
    again.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    again.add_argument("--longest", type=float, default=60.0, help="seconds that a seed may take (default: 60)")
    again.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="results whose names hold one of these")
    commands.add_parser("tables", help="write tables and numbers of README and docs anew")
    checked = commands.add_parser("check", help="check tables, numbers and births; trains nothing")
    checked.add_argument("--strict", action="store_true", help="fail if a result is neither born here nor certified")
    given, words = parser.parse_known_args(arguments)
    if words and given.command != "run":
        parser.error(f"unrecognized arguments: {' '.join(words)}")
    if given.command == "run":
        return run(given.name, words, given.python)
    if given.command == "certify":
        if unknown := [name for name in given.names if name not in EXPERIMENTS]:
            parser.error(f"unknown experiments: {', '.join(unknown)}; `list` names all")
        return certify(given.names or list(EXPERIMENTS), given.longest, given.only)
    if given.command == "check":
        return check(given.strict)
    if given.command == "tables":
        return tables()
    for name, each in EXPERIMENTS.items():
        print(f"{name:<22} {each.about}{f' (needs {each.needs})' if each.needs else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
