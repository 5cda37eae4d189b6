"""`uppertail watch`: shows a run's agent as it plays, in a window, in a GIF or as text."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from uppertail.cli import trained
from uppertail.cli.parsing import parse_run, run_parser
from uppertail.cli.trust import HELP
from uppertail.errors import InputError

if TYPE_CHECKING:
    from uppertail.environments import Frame, WatchableBuilder, WatchedEnvironment
    from uppertail.training.run import Run

DESCRIPTION = """Plays episodes with the network that one seed of a run learned, in Gymnasium's own pictures of the
environment: in a window, or, with --gif, in a file, which needs no display. An environment that draws only text is
printed. Gymnasium draws with pygame, which `pip install 'gymnasium[classic-control,toy-text]'` installs."""


def parser() -> ArgumentParser:
    """The options of `uppertail watch`."""
    options = run_parser("watch", DESCRIPTION)
    options.add_argument("--seed", type=int | None, default=None, help="which of the run's seeds (default: the first)")
    options.add_argument("--episodes", type=int, default=1, help="how many episodes")
    options.add_argument("--policy", type=str, default="greedy", help=trained.POLICY)
    options.add_argument("--trust", action="store_true", help=HELP)
    options.add_argument("--gif", type=str, default=None, help="file for an animated GIF, instead of a window")
    options.add_argument("--fps", type=int | None, default=None, help="frames per second (default: the environment's)")
    return options


def main(arguments: Sequence[str]) -> int:
    """Runs the command."""
    config = parse_run(parser(), arguments)
    if config.episodes < 1:
        raise InputError(f"episodes is {config.episodes}: use 1 or more.")
    if config.fps is not None and not 1 <= config.fps <= 1000:
        raise InputError(f"fps is {config.fps}: use 1 to 1000 frames per second.")
    trained.check_policy(config.policy)
    gif = None if config.gif is None else _gif(config.gif)
    return _watch(Path(config.folder), config.seed, config.episodes, config.policy, gif, config.fps, config.trust)


def _gif(name: str) -> Path:
    """The file of a GIF, where there is a folder for it."""
    path = Path(name)
    if path.suffix.lower() != ".gif":
        raise InputError(f"The file {name!r} is to be an animated GIF: give it a name that ends in .gif.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} for the file {path.name}: make it first.")
    return path


def _watch(
    folder: Path, seed: int | None, episodes: int, name: str, gif: Path | None, fps: int | None, trust: bool
) -> int:
    from uppertail.analysis.animation import Animation
    from uppertail.training.watching import watch

    with trained.open_run(folder, trust) as finished:
        row = _row(finished.run, seed)
        finished.require_finite(slice(row, row + 1))
        environment = _watchable(finished.run).watched(gif is not None, fps)
        animation = None if gif is None else Animation(environment.frames_per_second)
        show = _printer(environment) if animation is None else animation.add
        try:
            played = watch(finished.run, finished.networks, finished.policy(name), row, environment, episodes, show)
            for number, episode in enumerate(played, 1):
                print(f"Episode {number}: return {episode.ret:g} in {episode.length:,} steps")
        finally:
            environment.close()
    if gif is not None and animation is not None:
        try:
            animation.write(gif)
        except OSError as error:
            raise InputError(f"{gif} cannot be written ({error.strerror}): give --gif another file.") from error
        cut = ", and there is no room for more: try fewer --episodes" if animation.full else ""
        print(f"{sum(animation.durations) / 1000:.1f} seconds in {gif}{cut}")
    return 0


def _row(run: "Run", seed: int | None) -> int:
    """The position of a seed among those of the run."""
    first, count = run.settings.seed, run.settings.seeds
    row = 0 if seed is None else seed - first
    if not 0 <= row < count:
        known = f"the seeds {first} to {first + count - 1}" if count > 1 else f"the seed {first} only"
        raise InputError(f"seed is {seed}, but the run has {known}.")
    return row


def _watchable(run: "Run") -> "WatchableBuilder":
    from uppertail.environments import WatchableBuilder

    if not isinstance(run.builder, WatchableBuilder):
        raise InputError(
            f"{type(run.builder).__name__} has no picture of itself, so there is nothing to watch: "
            "`uppertail reproduce chain-distributions` draws what is learned along a Chain."
        )
    return run.builder


def _printer(environment: "WatchedEnvironment") -> "Callable[[Frame, bool], None]":
    """Prints frames that are text, in a terminal at the environment's pace; a window draws by itself."""
    pause = 1 / environment.frames_per_second if sys.stdout.isatty() else 0.0

    def show(frame: "Frame", last: bool) -> None:
        del last
        if isinstance(frame, str):
            print(frame)
            time.sleep(pause)

    return show
