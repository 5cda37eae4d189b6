"""`uppertail watch`: shows a run's agent as it plays, in a window, in a GIF or as text."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array
from PIL import Image

from uppertail.cli import output_file
from uppertail.cli.options import Values
from uppertail.cli.trained import open_run
from uppertail.compiling import jitted
from uppertail.environments import EVALUATION, Frame, WatchedEnvironment
from uppertail.errors import InputError
from uppertail.masks import ActionMask
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.records import write_bytes, write_errors
from uppertail.training.driver import EVALUATION_STEPS
from uppertail.training.loop import Actor, Choice
from uppertail.training.run import Run
from uppertail.types import PyTree

MOST_PIXELS = 400_000_000  # of all frames of a GIF, which stay in memory: 1,666 frames of 600 x 400 take 400 MB
COLORS = 256
MARK = b"uppertail watch"  # the comment in a GIF
LAST_FRAME, SHORTEST_FRAME = 1000, 20  # milliseconds: of an episode's last frame; browsers slow down shorter ones


def main(config: Values) -> int:
    """Runs the command."""
    if config.episodes < 1:
        raise InputError(f"episodes is {config.episodes}: use 1 or more.")
    if config.fps is not None and not 1 <= config.fps <= 1000:
        raise InputError(f"fps is {config.fps}: use 1 to 1000 frames per second.")
    gif = None if config.gif is None else output_file(config.gif, {".gif": MARK}, "to be an animated GIF")
    with open_run(config.folder, config.trust, config.policy) as opened:
        row = _row(opened.run, config.seed)
        opened.require_finite(slice(row, row + 1))
        environment = opened.run.builder.watched(gif is not None, config.fps)
        animation = Animation(environment.frames_per_second)
        pause = 1 / environment.frames_per_second if sys.stdout.isatty() else 0.0

        def show(frame: Frame, last: bool) -> None:
            if gif is not None:
                animation.add(frame, last)
            elif isinstance(frame, str):  # a window draws by itself
                print(frame)
                time.sleep(pause)

        try:
            played = watch(opened.run, opened.networks, opened.policy, row, environment, config.episodes, show)
            for number, (ret, length) in enumerate(played, 1):
                print(f"Episode {number}: return {ret:g} in {length:,} steps")
        finally:
            environment.close()
    if gif is not None:
        animation.write(gif)
        cut = ", and there is no room for more: try fewer --episodes" if animation.is_full else ""
        print(f"{sum(animation.durations) / 1000:.1f} seconds in {gif}{cut}")
    return 0


def _row(run: Run, seed: int | None) -> int:
    """The position of a seed among those of the run."""
    first, count = run.settings.seed, run.settings.seeds
    row = 0 if seed is None else seed - first
    if not 0 <= row < count:
        known = f"the seeds {first} to {first + count - 1}" if count > 1 else f"the seed {first} only"
        raise InputError(f"seed is {seed}, but the run has {known}.")
    return row


def watch(
    run: Run,
    networks: Network,
    policy: ExplorationPolicy,
    row: int,
    environment: WatchedEnvironment,
    episodes: int,
    show: Callable[[Frame, bool], object],
) -> Iterator[tuple[float, int]]:
    """Plays episodes of the seed in one row of a run's networks; yields undiscounted return and length of each.

    Where Python steps a run's environments, they begin as the first ones of an evaluation do. `show` is called before
    the first and after each step with the current frame, and whether the episode is over.
    """
    actor, keys = Actor(run.loop.agent, policy), run.keys.evaluation[row]
    network = jax.tree.map(lambda leaf: leaf[row], networks)
    nothing = actor.blank(network, run.driver.first[row])

    @jitted
    def choose(episode: Array, step: Array, observation: Array, memory: PyTree, mask: ActionMask) -> Choice:
        key = jax.random.fold_in(jax.random.fold_in(keys, episode), step)
        return actor.play(key, network, observation, memory, step == 0, mask)

    for episode in range(episodes):
        observation = environment.reset(EVALUATION + run.settings.seed + row, episode)
        ended, ret, length, memory = False, 0.0, 0, nothing
        show(environment.frame(), ended)
        while not ended:
            choice = choose(np.int32(episode), np.int32(length), observation, memory, environment.action_mask)
            observation, reward, ended = environment.step(int(choice.action))
            memory = choice.memory
            ret, length = ret + reward, length + 1
            ended = ended or run.builder.repeats * length >= EVALUATION_STEPS
            show(environment.frame(), ended)
        yield ret, int(run.builder.steps_of(np.array(environment.length)))


class Animation:
    """The frames of a GIF in order, each with its duration; beyond 50 a second, some are left out."""

    def __init__(self, frames_per_second: float) -> None:
        self.every = max(1, round(frames_per_second * SHORTEST_FRAME / 1000))
        self.duration = round(self.every * 1000 / frames_per_second)
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []
        self.pixels = self.shown = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another frame."""
        return self.pixels >= MOST_PIXELS

    def add(self, frame: Any, last: bool) -> None:
        """Adds a frame, an array of [rows, columns, red green blue], if there is room for it."""
        self.shown += 1
        if self.is_full or not (last or (self.shown - 1) % self.every == 0):
            return
        self.frames.append(Image.fromarray(frame).convert("RGB").quantize(COLORS))
        self.durations.append(max(self.duration, LAST_FRAME) if last else self.duration)
        self.pixels += frame.shape[0] * frame.shape[1]
        if last:
            self.shown = 0

    def write(self, path: Path) -> None:
        """Writes the GIF, whole or not at all; it plays in a loop."""
        content = io.BytesIO()
        first, *others = self.frames
        settings: dict[str, Any] = {"duration": self.durations, "loop": 0, "disposal": 1, "comment": MARK}
        first.save(content, "GIF", save_all=True, append_images=others, **settings)
        with write_errors(str(path), "give --gif another file"):
            write_bytes(path, content.getvalue())
