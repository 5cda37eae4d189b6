"""`uppertail train`: one method, one environment, several seeds."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from uppertail.cli.parsing import add_parts, command_parser, instantiate, parse
from uppertail.training.settings import Settings

if TYPE_CHECKING:
    from uppertail.training.train import Run

DESCRIPTION = """Trains one method on one environment, all seeds at once, and writes config.yaml, episodes.npz,
summary.json and curve.png to a folder."""

NOT_PART_OF_A_RUN = ("config", "out", "overwrite", "quiet")


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, with its classes built.

    Args:
        built: all options.
        config: config.yaml of the run.
    """

    built: Namespace
    config: str

    @property
    def checkpoint_every(self) -> int | None:
        """Environment steps between checkpoints."""
        return self.built.checkpoint_every

    def run(self) -> "Run":
        """The run before its first step."""
        from uppertail.training.train import Run

        settings = Settings(**{name: self.built[name] for name in Settings.__dataclass_fields__})
        return Run(self.built.env, self.built.distribution, self.built.policy, settings)

    def folder(self) -> Path:
        """Where its results go."""
        from uppertail.records import unused_folder

        parts = (self.built.env, self.built.distribution, self.built.policy)
        name = "-".join(type(part).__name__ for part in parts)
        return Path(self.built.out) if self.built.out else unused_folder(Path("runs"), name)


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail train`; a light parser only shows help."""
    options = command_parser("train", DESCRIPTION)
    options.add_argument("--config", action="config", help="YAML file with any of these options")
    add_parts(options, light)
    options.add_class_arguments(Settings, None)
    options.add_argument(
        "--checkpoint_every",
        type=int | None,
        default=None,
        help="environment steps of each seed between checkpoints, for `uppertail resume`; null: none",
    )
    options.add_argument("--out", type=str | None, default=None, help="folder for the results (default: runs/NAME)")
    options.add_argument("--overwrite", action="store_true", help="replace the results in that folder")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def requested(arguments: Sequence[str]) -> Request:
    """What these arguments ask for.

    Raises:
        InputError: one sentence about the first thing that is wrong with them.
    """
    options = parser()
    config = parse(options, arguments)
    saved = Namespace({name: value for name, value in config.items() if name not in NOT_PART_OF_A_RUN})
    return Request(instantiate(options, config), options.dump(saved, skip_unset=False))


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    return _train(requested(arguments))


def _train(request: Request) -> int:
    from uppertail import records
    from uppertail.cli import running
    from uppertail.locks import locked
    from uppertail.training.checkpoints import Checkpoints

    run, folder, every = request.run(), request.folder(), request.checkpoint_every
    checkpoints = None if every is None else Checkpoints(folder, every, running.complain)
    records.claim_folder(folder, request.built.overwrite)
    with locked(folder):
        records.write_text(folder / records.CONFIG, request.config)
        return running.drive(run, folder, checkpoints, request.built.quiet)
