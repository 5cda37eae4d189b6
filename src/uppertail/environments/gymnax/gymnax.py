"""Environments of gymnax, by their ids, and any of your own in its form."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from uppertail.environments.gymnasium.from_gymnasium import fingerprint
from uppertail.environments.gymnax.world import GymnaxBuilder, Rules, rules_of, with_params
from uppertail.environments.packages import described, import_extra, make_registered
from uppertail.errors import InputError, short_text
from uppertail.schema import require_type

METHODS = ("reset_env", "step_env", "action_space", "observation_space")  # of an environment in gymnax's form
NEEDED = "gymnax six"  # what pip has to install: gymnax imports six without declaring it


@dataclasses.dataclass(frozen=True)
class Gymnax(GymnaxBuilder):
    """An environment of gymnax, compiled with the training loop, or one of your own in its form.

    Args:
        id: its id in gymnax, for example MountainCar-v0, or module:Class of your own; from Python also an object.
        params: its parameters: those that differ from the default, for example '{max_steps_in_episode: 500}'; from
            Python also the parameters themselves.
        kwargs: arguments of its constructor, for example '{size: 20}'.
        images: whether a bounded Box of at least 10 x 10 is an image, read by convolutions; else its numbers are.
        levels: into how many levels each number of an action is cut, both ends among them, if actions are a Box with
            bounds: an action is then one of all combinations, of which there may be 1,024; null: 3.

    Attributes:
        code: a checksum of an object, so that a run does not load the checkpoints of another one.

    Examples:
        >>> car = ut.Gymnax("MountainCar-v0", params={"max_steps_in_episode": 500}, returns=(-100.0, 0.0))
        >>> car.label
        'MountainCar-v0'
    """

    id: Any
    params: Any = None
    kwargs: dict[str, Any] | None = None
    images: bool = True
    levels: int | None = None
    code: str = dataclasses.field(init=False, default="", compare=False)
    environment: Any = dataclasses.field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.id, str):
            if not dataclasses.is_dataclass(self.params):
                object.__setattr__(self, "params", require_type("params", self.params, dict[str, Any] | None))
            return
        if missing := [name for name in METHODS if not hasattr(self.id, name)]:
            raise InputError(
                f"id is {short_text(self.id)}, which has no {missing[0]}: give an id such as MountainCar-v0, or an "
                f"object with {', '.join(METHODS)}."
            )
        object.__setattr__(self, "environment", self.id)
        object.__setattr__(self, "code", fingerprint(type(self.id)))
        object.__setattr__(self, "id", str(getattr(self.id, "name", type(self.id).__name__)))

    def make(self) -> Rules:
        environment, params = self._made() if self.environment is None else self.environment, self.params
        if isinstance(params, Mapping) or params is None:
            params = with_params(self.id, environment.default_params, params or {})
        return rules_of(self.id, environment, params, self.images, self.features == "auto", self.levels)

    def _made(self) -> Any:
        """The environment of this id, or of this import path."""
        kwargs = self.kwargs or {}
        module, colon, name = self.id.partition(":")
        if not colon:
            gymnax = import_extra("gymnax", NEEDED)
            known = list(gymnax.registered_envs)
            return make_registered("gymnax", self.id, known, lambda: gymnax.make(self.id, **kwargs)[0])
        try:
            made = getattr(importlib.import_module(module), name)(**kwargs)
        except Exception as error:  # the module's own code may raise anything
            raise InputError(
                f"{self.id} cannot be made ({described(error)}): give module:Class, from a "
                "folder in which Python finds it."
            ) from error
        return Gymnax(made).environment

    def picture(self, state: Any) -> np.ndarray:
        import_extra("gymnax", NEEDED)
        visualizer = import_extra("gymnax.visualize.visualizer", NEEDED)
        shown = visualizer.Visualizer(self.rules.env, self.rules.params, [state])
        try:
            shown.init()
            if not shown.ax.images:
                raise InputError(f"gymnax draws no pictures of {self.id}, so there is no GIF of it.")
            shown.fig.canvas.draw()
            return np.asarray(shown.fig.canvas.buffer_rgba())[..., :3]
        finally:
            visualizer.plt.close(shown.fig)
