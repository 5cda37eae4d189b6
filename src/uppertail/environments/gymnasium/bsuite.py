"""bsuite (Osband et al. 2020): the environments of its sweep, by their ids, and its own log."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.environments.base import EVALUATION
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.gymnasium.dm_env import DmEnvironment
from uppertail.environments.gymnasium.vector import HostEnvironments
from uppertail.environments.packages import import_extra, make_registered
from uppertail.errors import InputError
from uppertail.types import ReturnRange

RETURNS = {
    "bandit": (0.0, 1.0),
    "cartpole_swingup": (-20.0, 200.0),
    "cartpole": (0.0, 200.0),
    "catch": (-1.0, 1.0),
    "deep_sea": (-0.01, 1.0),
    "discounting_chain": (0.0, 1.1),
    "memory": (-1.0, 1.0),
    "mountain_car": (-200.0, 0.0),
    "umbrella": (-1.0, 1.0),
}
"""The range of mean returns of experiments whose names begin so, by the default discount, before rewards are scaled.

An upright pole earns 1 a step for 200 steps at most, as the discount sees them. So many steps cost the car 1 each, and
the pole to be swung up 0.1. Random rewards of mean 0, in the umbrella chain, are left out.
"""


class Logged(HostEnvironments):
    """One environment of bsuite's, in bsuite's own log; a checkpoint keeps what the log has counted."""

    def saved(self) -> dict[str, np.ndarray]:
        counts = [_numbers(layer) for layer in self._layers]
        text = json.dumps({"counts": counts, "rows": self._logger._data}, default=float)
        return {**super().saved(), "log": np.frombuffer(text.encode(), np.uint8)}

    def restore(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        observation = super().restore({name: array for name, array in arrays.items() if name != "log"})
        if "log" in arrays:
            log = json.loads(arrays["log"].tobytes())
            for layer, counts in zip(self._layers, log["counts"], strict=True):
                vars(layer).update(counts)
            self._logger._data = log["rows"]
        return observation

    @property
    def _layers(self) -> list[Any]:
        return [*self.env.envs[0].unwrapped.layers]  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def _logger(self) -> Any:
        return self._layers[0]._logger


@dataclasses.dataclass(frozen=True)
class Bsuite(GymnasiumBuilder):
    """An environment of bsuite's sweep; bsuite asks for 1,000 or 10,000 episodes, which --episodes has to say.

    Args:
        id: its id, for example deep_sea/0.
        results_dir: where bsuite's own logger writes the episodes of training, for its own analysis; each seed has a
            folder of its own, whose older file of this id is replaced. null: nowhere.

    Examples:
        >>> sea = ut.Bsuite("deep_sea/0")
        >>> sea.label, sea.may_go_on
        ('deep_sea/0', False)
    """

    id: str
    results_dir: str | None = None

    @property
    def known_returns(self) -> ReturnRange | None:
        found = [returns for name, returns in RETURNS.items() if self.id.startswith(name)]
        if self.returns is not None or not found:
            return super().known_returns
        scale = import_extra("bsuite.sweep", "bsuite").SETTINGS[self.id].get("reward_scale", 1.0)
        return ReturnRange(scale * found[0][0], scale * found[0][1])

    @property
    def may_go_on(self) -> bool:
        return False  # each of its episodes ends

    def bare_maker(self) -> functools.partial[DmEnvironment]:
        return functools.partial(_make, self.id)

    def open(self, seed: int, num_envs: int, time_limit: int | None = None) -> HostEnvironments:
        vector = super().open(seed, num_envs, time_limit)
        if self.results_dir is None or seed >= EVALUATION:
            return vector
        if num_envs > 1:
            raise InputError(
                f"bsuite's log counts the episodes of one environment, not of {num_envs}: use --num_envs 1."
            )
        environment: Any = vector.env.envs[0].unwrapped  # pyright: ignore[reportAttributeAccessIssue]
        logging, folder = import_extra("bsuite.logging.csv_logging", "bsuite"), Path(self.results_dir) / f"seed-{seed}"
        environment.env = logging.wrap_environment(environment.env, self.id, str(folder), overwrite=True)
        return Logged(vector.env, vector.interface, seed, vector.reset_seed, adapted=True)


def _make(asked: str) -> DmEnvironment:
    """The environment of an id."""
    sweep, library = import_extra("bsuite.sweep", "bsuite"), import_extra("bsuite.bsuite", "bsuite")
    settings = sweep.SETTINGS
    name, _, setting = asked.partition(sweep.SEPARATOR)
    made = make_registered("bsuite", asked, list(settings), lambda: library.load(name, settings[asked]))
    return DmEnvironment(made, int(setting))


def _numbers(layer: Any) -> dict[str, float]:
    """The attributes that are numbers, among them all that a layer counts."""
    return {name: value for name, value in vars(layer).items() if isinstance(value, int | float)}
