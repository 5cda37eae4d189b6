"""The suite of dm_control (Tassa et al. 2018), by ids such as dm_control/pendulum-swingup-v0."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

from uppertail.environments.gymnasium.dm_env import DmEnvironment
from uppertail.environments.packages import import_extra, make_registered

PREFIX = "dm_control/"
NEEDED = "dm-control 'mujoco<4'"  # what pip has to install: dm_control 1.0.50 breaks on mujoco 4, which it allows
HEIGHT, WIDTH = 240, 320  # of pictures


class Control(DmEnvironment):
    """A task of the suite. Its observations are a Dict of float64, in the order of the task."""

    def __init__(self, env: Any, render_mode: str | None = None) -> None:
        super().__init__(env)
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / env.control_timestep())}

    @property
    def generators(self) -> list[np.random.RandomState]:
        return [self.env.task.random]

    def render(self) -> Any:
        """The picture of its first camera, or of a free one where it has none."""
        physics = self.env.physics
        return physics.render(HEIGHT, WIDTH, camera_id=min(physics.model.ncam, 1) - 1)

    def close(self) -> None:
        self.env.close()


def make_control(asked: str, kwargs: dict[str, Any], max_episode_steps: int | None) -> gymnasium.Env[Any, Any]:
    """The task of an id, with the time limit that it has or another one; InputError if it cannot be made.

    `kwargs` are those of `suite.load`. What a task draws when it is made, as lqr does, is the same each time.
    """
    suite = import_extra("dm_control.suite", NEEDED)
    known = {f"{PREFIX}{domain}-{task}-v0": (domain, task) for domain, task in suite.ALL_TASKS}
    others = {name: value for name, value in kwargs.items() if name not in ("render_mode", "task_kwargs")}
    task = {"random": 0, **(kwargs.get("task_kwargs") or {})}
    if max_episode_steps is not None:
        task["time_limit"] = math.inf
    made = make_registered("dm_control", asked, [*known], lambda: suite.load(*known[asked], task_kwargs=task, **others))
    control, steps = Control(made, kwargs.get("render_mode")), max_episode_steps or made._step_limit
    return TimeLimit(control, math.ceil(steps)) if steps < math.inf else control
