"""`uppertail train`: one method, one environment, several seeds."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace

from uppertail.cli.parsing import add_parts, instantiate, parse, wants_help
from uppertail.training.settings import Settings

if TYPE_CHECKING:
    from uppertail.records import RunRecord

DESCRIPTION = """Trains one method on one environment, all seeds at once, and writes config.yaml, episodes.npz,
summary.json and curve.png to a folder."""

NOT_PART_OF_A_RUN = ("config", "out", "overwrite", "quiet")


def parser(light: bool = False) -> ArgumentParser:
    """The options of `uppertail train`; a light parser only shows help."""
    options = ArgumentParser(prog="uppertail train", description=DESCRIPTION, exit_on_error=False, allow_abbrev=False)
    options.add_argument("--config", action="config", help="YAML file with any of these options")
    add_parts(options, light)
    options.add_class_arguments(Settings, None)
    options.add_argument("--out", type=str | None, default=None, help="folder for the results (default: runs/NAME)")
    options.add_argument("--overwrite", action="store_true", help="replace the results in that folder")
    options.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    if wants_help(arguments):
        parser(light=True).print_help()
        return 0
    options = parser()
    config = parse(options, arguments)
    built = instantiate(options, config)
    settings = Settings(**{name: built[name] for name in Settings.__dataclass_fields__})
    return _train(options, config, built, settings)


def _train(options: ArgumentParser, config: Namespace, built: Namespace, settings: Settings) -> int:
    from uppertail import records
    from uppertail.console import progress_bar
    from uppertail.training.interrupt import interruptible
    from uppertail.training.results import TrainingDivergedError
    from uppertail.training.train import Run

    run = Run(built.env, built.distribution, built.policy, settings)
    env, label = type(built.env).__name__, f"{type(built.distribution).__name__}, {type(built.policy).__name__}"
    name = f"{env}-{label.replace(', ', '-')}"
    folder = Path(built.out) if built.out else records.unused_folder(Path("runs"), name)
    records.claim_folder(folder, built.overwrite)
    saved = Namespace({name: value for name, value in config.items() if name not in NOT_PART_OF_A_RUN})
    records.write_text(folder / records.CONFIG, options.dump(saved, skip_unset=False))
    with interruptible():  # what has been learned is written, whatever happens meanwhile
        try:
            with progress_bar(label, built.quiet) as on_chunk:
                result = run.drive(on_chunk)
        except TrainingDivergedError as error:
            _write(folder, error.result.record, env, label, quiet=True)
            raise
        _write(folder, result.record, env, label, built.quiet)
    return 130 if result.record.interrupted else 0


def _write(folder: Path, record: "RunRecord", env: str, label: str, quiet: bool) -> None:
    from rich.console import Console

    from uppertail import records
    from uppertail.analysis.curves import learning_curves
    from uppertail.console import results_table

    records.write(folder, record)
    learning_curves(folder / records.CURVE, env, {label: record.episodes})
    if not quiet:
        if record.interrupted:
            print("Interrupted: what was learned until now is kept.", file=sys.stderr)
        Console().print(results_table(f"{env}, seeds: {len(record.episodes)}", {label: record}))
        print(f"Results in {folder}")
