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
from uppertail.environments.gymnasium.adapter import Adapter, close_quietly
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
        self.builder, self.label = builder, builder.label
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        if pictures:
            os.environ.setdefault(VIDEO_DRIVER, "dummy")
        bare = make(None)
        close_quietly(bare)
        modes = list(bare.metadata.get("render_modes") or [])
        self.mode = _mode(self.label, modes, pictures)
        in_window = self.mode == WINDOW and WINDOW not in modes
        env: gymnasium.Env[Any, Any] = make(PICTURES if in_window else self.mode)
        pace = frames_per_second or env.metadata.get("render_fps") or FRAMES_PER_SECOND
        self.frames_per_second = float(pace)
        env.unwrapped.metadata = {**env.metadata, "render_fps": pace}
        seen = builder.inspected
        self.env = Adapter(HumanRendering(env) if in_window else env, seen.interface.reading, seen.example)

    def reset(self, seed: int, episode: int) -> np.ndarray:
        """Resets as training's evaluation does, for the first episode of the environment of this number."""
        with _explain_errors(self.label):
            first, _ = self.env.reset(seed=episode_seed(seed, episode, 0, self.builder.seed_of_resets(seed)))
        if self.mode == WINDOW and _no_display():
            raise InputError("There is no display here to open a window on: --gif FILE needs none.")
        return first

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        with _explain_errors(self.label):
            after, reward, terminated, truncated, _ = self.env.step(action + self.builder.interface.first_action)
        return after, float(reward), terminated or truncated

    def frame(self) -> Frame:
        if self.mode == WINDOW:
            return None
        with _explain_errors(self.label):
            shown: Any = self.env.render()
            return str(shown) if self.mode == TEXT else np.asarray(shown, np.uint8)

    def close(self) -> None:
        close_quietly(self.env)


def _mode(label: str, modes: list[str], pictures: bool) -> str:
    """The render mode in which it is shown."""
    listed = f"render mode {', '.join(map(str, modes))}" if modes else "no render mode"
    if pictures and PICTURES not in modes:
        remedy = ": leave out --gif" if {WINDOW, TEXT} & set(modes) else ""
        raise InputError(
            f"{label} draws no pictures (it has {listed}, not {PICTURES}), so there is no GIF of it{remedy}."
        )
    if pictures:
        return PICTURES
    if {WINDOW, PICTURES} & set(modes):  # pictures are shown in a window of Gymnasium's
        return WINDOW
    if TEXT in modes:
        return TEXT
    raise InputError(f"{label} has no render mode that could be watched: it has {listed}.")


@contextlib.contextmanager
def _explain_errors(label: str) -> Iterator[None]:
    """Turns errors of an environment into sentences."""
    try:
        yield
    except gymnasium.error.DependencyNotInstalled as error:
        raise InputError(f"Drawing {label} needs packages that are not installed: {extra(error)}.") from error
    except Exception as error:
        raise InputError(f"{label} cannot be shown ({described(error)}).") from error


def _no_display() -> bool:
    """Whether pygame found no display and draws an invisible window."""
    pygame: Any = sys.modules.get("pygame")
    return pygame is not None and VIDEO_DRIVER not in os.environ and pygame.display.get_driver() == "offscreen"
