"""A Gymnasium environment that shows itself, in Gymnasium's own render modes."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import HumanRendering

from uppertail.environments.base import Frame, WatchedEnvironment
from uppertail.environments.gymnasium.action_masks import KEY
from uppertail.environments.gymnasium.adapter import STEPS, Adapter, close_quietly
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.vector import episode_seed
from uppertail.environments.gymnasium.wrapping import extra
from uppertail.environments.packages import described
from uppertail.errors import InputError

WINDOW, PICTURES, TEXT = "human", "rgb_array", "ansi"  # Gymnasium's render modes
FRAMES_PER_SECOND = 30  # for an environment that does not say
VIDEO_DRIVER = "SDL_VIDEODRIVER"  # the environment variable that tells pygame where to draw; `dummy` needs no display


class Watched(WatchedEnvironment):
    """One environment, played to be watched, as `EnvironmentBuilder.watched` says; `make` makes it in a render mode."""

    def __init__(
        self,
        builder: GymnasiumBuilder,
        make: Callable[[str | None], Any],
        pictures: bool,
        frames_per_second: int | None,
    ) -> None:
        self.builder = builder
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        if pictures:
            os.environ.setdefault(VIDEO_DRIVER, "dummy")
        bare = make(None)
        close_quietly(bare)
        modes = list(bare.metadata.get("render_modes") or [])
        self.mode = _mode(builder.label, modes, pictures)
        in_window = self.mode == WINDOW and WINDOW not in modes  # its pictures, in a window of Gymnasium's
        env: gymnasium.Env[Any, Any] = make(PICTURES if in_window else self.mode)
        own_pace = env.metadata.get("render_fps") or FRAMES_PER_SECOND
        skipped = 1 if self.mode == WINDOW else builder.repeats  # a window shows every step
        pace = frames_per_second or max(1, round(own_pace / skipped))
        self.frames_per_second = float(pace)
        env.unwrapped.metadata = {**env.metadata, "render_fps": pace}
        seen = builder.inspected
        shown = HumanRendering(env) if in_window else env
        self.env = Adapter(shown, seen.interface.reading, seen.observed.example, builder.repeats)

    def reset(self, seed: int, episode: int) -> np.ndarray:
        """Resets as training's evaluation does, for the first episode of the environment of this number."""
        with self._explained():
            first, info = self.env.reset(seed=episode_seed(seed, episode, 0, self.builder.seed_of_resets(seed)))
        pygame: Any = sys.modules.get("pygame") if self.mode == WINDOW and VIDEO_DRIVER not in os.environ else None
        if pygame is not None and pygame.display.get_driver() == "offscreen":  # it draws an invisible window
            raise InputError("There is no display here to open a window on: --gif FILE needs none.")
        self.action_mask, self.length = info.get(KEY), 0
        return first

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        with self._explained():
            after, reward, terminated, truncated, info = self.env.step(action + self.builder.actions.first)
        self.action_mask = info.get(KEY)
        self.length += info.get(STEPS, 1)
        return after, float(reward), terminated or truncated

    def frame(self) -> Frame:
        if self.mode == WINDOW:
            return None
        with self._explained():
            shown: Any = self.env.render()
            return str(shown) if self.mode == TEXT else np.asarray(shown, np.uint8)

    def close(self) -> None:
        close_quietly(self.env)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns errors of the environment into sentences."""
        label = self.builder.label
        try:
            yield
        except gymnasium.error.DependencyNotInstalled as error:
            raise InputError(f"Drawing {label} needs packages that are not installed: {extra(error)}.") from error
        except Exception as error:
            raise InputError(f"{label} cannot be shown ({described(error)}).") from error


def _mode(label: str, modes: list[str], pictures: bool) -> str:
    """The render mode in which it is shown."""
    listed = f"render mode {', '.join(map(str, modes))}" if modes else "no render mode"
    if pictures and PICTURES not in modes:
        remedy = ": leave out --gif" if {WINDOW, TEXT} & set(modes) else ""
        raise InputError(f"{label} has {listed}, but a GIF needs {PICTURES}{remedy}.")
    for mode, needed in ((PICTURES, pictures), (WINDOW, {WINDOW, PICTURES} & {*modes}), (TEXT, TEXT in modes)):
        if needed:
            return mode
    raise InputError(f"{label} has {listed}, but to be watched it needs {WINDOW}, {PICTURES} or {TEXT}.")
