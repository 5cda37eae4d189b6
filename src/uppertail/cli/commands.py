"""The commands of `uppertail`, with all of their options. Imports no part of a run, so that help is fast."""

import argparse
import dataclasses
import errno
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from uppertail.cli.options import Option, Values, flag, options_of, parse
from uppertail.errors import InputError, printable
from uppertail.parts import PARTS, PARTS_OF_GRADIENTS, class_named
from uppertail.training.settings import OF_EVERY_RUN, Settings

PLACES = ("folder", "folders", "study", "compare", "init", "out", "to", "gif")  # options that name files or folders


def _require_name(option: str, name: str | None) -> None:
    """Refuses what no file can be called, or what cannot be written in a file of text."""
    try:
        if name is not None:
            name.encode()
            Path(name).lstat()
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"The {option} {printable(name or '')[:200]!r} cannot be the name of a folder or a file: give another "
                "one, of fewer letters, all of them Unicode."
            ) from error


@dataclasses.dataclass(frozen=True)
class Command:
    """A command; the module of its name has the function `main`, which runs it."""

    name: str
    description: str  # what its help says first; the first sentence is in the list of all commands
    options: Mapping[str, Option]
    parts: Sequence[str] = ()  # of a run, which are options, too, with their settings
    settings: type | None = None  # a dataclass whose fields are options, too
    changed: Sequence[str] = ()  # parts of an earlier run whose settings may be given, in place of that run's
    examples: str = ""

    def parse(self, arguments: Sequence[str]) -> Values:
        """The values of its options; InputError if one is unknown or missing, or its value of another type."""
        settings = {} if self.settings is None else options_of(self.settings)
        program, options = f"uppertail {self.name}", {**settings, **self.options}
        values = parse(program, options, self.parts, arguments, self.changed)
        for name in PLACES:
            places = values.get(name)
            for place in places if isinstance(places, list | tuple) else [places]:
                _require_name(name, place)
        if "folder" in values:
            if values.folder is None:
                raise InputError(f"Which run? `uppertail {self.name} DIR`, with a folder of `uppertail train`.")
            values["folder"] = Path(values.folder)
        return values

    def help(self, arguments: Sequence[str]) -> str:
        """All of its options; with `--PART.help CLASS` among the arguments, the settings of that class."""
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
            name, equals, value = argument.removeprefix("--").partition("=")
            if name.endswith(".help") and (part := name.removesuffix(".help")) in self.parts:
                kind = class_named(part, value if equals else following)
                command, about = f"uppertail {self.name} --{part} {kind.__name__}", str(kind.__doc__)
                parser = argparse.ArgumentParser(command, description=about.partition("\n\n")[0])
                for setting, option in options_of(kind).items():
                    option.show(f"{part}.{setting}", parser)
                return parser.format_help().rstrip()
        name, settings = f"uppertail {self.name}", options_of(self.settings) if self.settings else {}
        every = gradients = rest = parser = argparse.ArgumentParser(name, description=self.description)
        if settings:
            parser.usage, parser.formatter_class = f"{name} [options]", argparse.RawDescriptionHelpFormatter
            parser.description = f"{self.examples}\n\n{textwrap.fill(self.description)}"
            titles = "every run", "gradient descent only", "files and output"
            every, gradients, rest = map(parser.add_argument_group, titles)
        of_gradients = {*PARTS_OF_GRADIENTS, *settings} - {*OF_EVERY_RUN}
        for part in self.parts:
            usual, own = PARTS[part], f"its settings: --{part}.NAME VALUE, listed by --{part}.help CLASS"
            text = f"{usual.meaning}: {usual.choices}, or the import path of your own class; {own}"
            option = Option(str, None if usual.optional else usual.default, text)
            option.show(part, gradients if part in of_gradients else every)
        for setting, option in settings.items():
            option.show(setting, gradients if setting in of_gradients else every)
        for each, option in self.options.items():
            option.show(each, rest)
        return parser.format_help().rstrip()


FOLDER = {"folder": Option(str, None, "the run's folder", nargs="?")}
QUIET = {"quiet": flag("print nothing but errors")}
TRUST = {"trust": flag("run the code that the folder names, even if you did not make it on this machine")}
PRESET = (
    "a set of options: paper (as in the paper), minigrid, minigrid_layouts, minigrid_imitation (need --env.id); others "
    "override it"
)
PLAN = "what an earlier run chose, as its config.yaml has it, and this one repeats; null: it is chosen anew"
CHECKPOINT_EVERY = (
    "environment steps of each seed between checkpoints; null: one at the end, if it takes at most 100 MB"
)
INIT = "folder of a run with checkpoints, from whose end this one starts: same observations, actions and parts"
RECORD = "distributions: return distributions at moments of the run, for `uppertail report`; null: nothing"
RECORD_OVER = (
    "two numbers of a vector over which the width is recorded, like '[2, 3]'; null: the first two that are not left out"
)
LOGGER = "besides log.jsonl: tensorboard, wandb, or the import path of your own class; several: '[tensorboard, wandb]'"
POLICY = {
    "policy": Option(
        str,
        "greedy",
        "greedy: the highest mean; trained: the run's own; else a policy's name, such as ucb, or import path: as the "
        "run had it, or with its defaults",
    )
}
STEP = "the last recorded moment up to this environment step (default: the end)"
EXACT_POLICY = "uniform, optimal (of the highest expected return, ties shared), or a .npy file of [states, actions]"
TOLERANCE = "largest acceptable Wasserstein-1 error of a grid (default: 0.001 of the range of returns)"
WORKERS = (
    "cells side by side, each in a process of its own, or as many jobs (default: the cores that are usable); 1: one "
    "after another in this process"
)
COMPARE = "instead: is B better than A? Folders of runs or of studies, or cells of this study: option=value,..."
LAUNCHERS = Literal["here", "slurm", "pbs", "lsf", "sge"]


COMMANDS = {
    command.name: command
    for command in [
        Command(
            "train",
            """Trains one method on one environment, for several seeds at once. Writes config.yaml, log.jsonl,
episodes.npz, summary.json, networks.safetensors and curve.png to a folder.""",
            {
                "config": Option(str, None, "YAML file with any of these options"),
                "plan": Option(dict[str, Any] | None, None, PLAN),
                "preset": Option(str | None, None, PRESET),
                "checkpoint_every": Option(int | None, None, CHECKPOINT_EVERY),
                "init": Option(str | None, None, INIT),
                "record": Option(Literal["distributions"] | None, None, RECORD),
                "record_over": Option(tuple[int, int] | None, None, RECORD_OVER),
                "logger": Option(list[str] | str, [], LOGGER),
                "out": Option(str, None, "folder for the results (default: runs/NAME)"),
                "overwrite": flag("replace the results in that folder"),
                "dry-run": flag("only print the plan: every setting, where it came from, and why"),
                **QUIET,
            },
            parts=tuple(PARTS),
            settings=Settings,
            examples="""examples:
  uppertail train --env Chain --env.length 100 --seeds 10
  uppertail train --env CartPole-v1 --distribution Categorical --steps 50000 --out runs/cartpole""",
        ),
        Command(
            "resume",
            """Continues a run that was killed or interrupted, from its last checkpoint; after a kill, it needs
`uppertail train --checkpoint_every N`. It writes what the run would have written. With --steps N, a run that ended at
its limit of steps continues to a later one. Until it has written results, the new limit is in config-next.yaml; without
that file the run has its old limit.""",
            {
                **FOLDER,
                "steps": Option(int | None, None, "a new limit of environment steps, beyond that of the run"),
                **TRUST,
                **QUIET,
            },
        ),
        Command(
            "evaluate",
            """Plays a run's learned networks for many episodes. Prints the returns of every seed with a 95% bootstrap
interval over seeds, and writes evaluation-POLICY.json to the run's folder. Called again, it prints the same. Settings
of the run's environment may be changed, like --env.max_episode_steps 500, as long as observations and actions stay.""",
            {
                **FOLDER,
                "episodes": Option(int, 100, "episodes of each seed"),
                "seed": Option(int | None, None, "base seed of the environments (default: that of the run)"),
                **POLICY,
                **TRUST,
                **QUIET,
            },
            changed=("env",),
        ),
        Command(
            "watch",
            """Shows a run's agent at play, in Gymnasium's own pictures, in a window or in a GIF. With --gif no display
is needed. An environment that draws only text is printed. Gymnasium draws with pygame, which
`pip install 'gymnasium[classic-control,toy-text]'` installs.""",
            {
                **FOLDER,
                "seed": Option(int | None, None, "which of the run's seeds (default: the first)"),
                "episodes": Option(int, 1, "how many episodes"),
                **POLICY,
                **TRUST,
                "gif": Option(str, None, "file for an animated GIF, instead of a window"),
                "fps": Option(int | None, None, "frames per second (default: the environment's own speed)"),
            },
        ),
        Command(
            "inspect",
            """Shows what a run learned: distributions of a state, the greedy path. They are those of its end, or with
--step of any moment that --record distributions recorded.""",
            {
                **FOLDER,
                "seed": Option(int | None, None, "which seed (default: the first)"),
                "state": Option(int | None, None, "which state (default: the greedy path's first)"),
                "step": Option(int | None, None, STEP),
                "json": flag("print the numbers as JSON"),
            },
        ),
        Command(
            "export",
            """Writes a run's greedy policy to a file for other programs: ONNX, or NumPy arrays. NAME.onnx needs
`pip install onnx`; NAME.npz has in its `readme` a loader that needs only NumPy. The file is checked against the run on
1,000 observations before it is written.""",
            {
                **FOLDER,
                "to": Option(str, None, "the file: NAME.onnx or NAME.npz"),
                "seed": Option(int | None, None, "which seed (default: that of the highest greedy return)"),
                **TRUST,
                **QUIET,
            },
        ),
        Command(
            "report",
            """Writes runs into one HTML file: curves, distributions over training, why it got stuck. It opens without
a network; distributions are those of runs with --record distributions.""",
            {
                "folders": Option(list[str], [], "folders of runs and of studies", nargs="*"),
                "out": Option(str, None, "the file (default: report.html in the folder, or here if there are more)"),
                "states": Option(list[int] | int, [], "states to show, like '[0, 5]' (default: along the greedy path)"),
                **QUIET,
            },
        ),
        Command(
            "exact",
            """Computes the exact distribution of the return of a finite MDP under a fixed policy. It enumerates returns
if no state can recur, else it uses a grid with a bound on its error. Prints a table of every state and action and draws
exact.png. A time limit is ignored.""",
            {
                "policy": Option(str, "uniform", EXACT_POLICY),
                "discount": Option(float, 0.995, "discount per step, in [0, 1]"),
                "tolerance": Option(float | None, None, TOLERANCE),
                "seed": Option(int, 0, "seed of the environment's random parts"),
                "out": Option(str, None, "folder for the figure (default: runs/exact-ENV)"),
                "json": flag("print all atoms and probabilities as JSON; draw only with --out"),
            },
            parts=("env",),
        ),
        Command(
            "study",
            """Runs many settings from one file, on one machine or many, and compares them. The file is YAML: base
(options of `uppertail train`), grid (option: list of values; their product) and cells (a list of options). Each cell is
a run folder; study.json has the results. The same command again does what is missing. Exit code 1: some cells failed.
Give the study's folder instead of the file to continue the study in it.""",
            {
                "study": Option(str, None, "the study's file, or its folder", nargs="?"),
                "out": Option(str, None, "the study's folder (default: runs/NAME)"),
                "workers": Option(int | None, None, WORKERS),
                "scheduler": Option(str, None, "use the workers of a running Dask cluster: tcp://HOST:PORT"),
                "launcher": Option(LAUNCHERS, "here", "where the workers are started: here, or as jobs of a cluster"),
                "dry-run": flag("only print the number of cells and about how long they take"),
                "compare": Option(tuple[str, str] | None, None, COMPARE, nargs=2),
                **QUIET,
            },
        ),
    ]
}
"""Each command by its name."""
