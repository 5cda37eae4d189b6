"""Environments of other packages: their settings, and calls of their code, whose errors become sentences."""

import abc
import dataclasses
import importlib
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from uppertail.environments.actions import Actions
from uppertail.environments.base import VectorBuilder
from uppertail.errors import ContractError, InputError, message_of, nearest
from uppertail.types import ReturnRange

Answer = TypeVar("Answer")

OTHERS = [Path(__file__).parents[1], *map(Path, sysconfig.get_paths().values())]
"""Where code lies that is no user's own: this package, Python's library, and what is installed."""

LARGEST = 1e18  # the largest return whose square a float32 can hold, rounded
NOT_FINITE = "{} gave the reward {}: rewards must be finite numbers of 32 bits."
TOO_LARGE = f"{{}} gave the reward {{:g}}: scale its rewards by a wrapper (--env.wrappers), to {LARGEST:g} at most."


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackageBuilder(VectorBuilder):
    """Builds environments of another package.

    Args:
        returns: lowest and highest discounted return that the run has to tell apart; null: as known, or measured by
            steps of a random policy.
        success: undiscounted return from which an episode counts as a success; null: as the environment declares, if
            it does. The `reward_threshold` of Gymnasium is one for the mean of 100 episodes in a row.
        reset_seed: the seed of every reset, which keeps a random layout the same; run: each run's own seed; null: a
            new one for each episode.
    """

    returns: tuple[float, float] | None = None
    success: float | None = None
    reset_seed: int | Literal["run"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.returns is not None and not -LARGEST <= self.returns[0] < self.returns[1] <= LARGEST:
            raise InputError(f"returns is {list(self.returns)}: give the lowest, then the highest, within {LARGEST:g}.")
        if isinstance(self.reset_seed, int) and self.reset_seed < 0:
            raise InputError(f"reset_seed is {self.reset_seed}: use 0 or more, or run, or leave it out.")

    @property
    @abc.abstractmethod
    def actions(self) -> Actions:
        """How its actions are numbered."""

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        return self.actions.names

    @property
    def success_return(self) -> float:
        return super().success_return if self.success is None else self.success

    @property
    def known_returns(self) -> ReturnRange | None:
        return None if self.returns is None else ReturnRange(min(self.returns[0], 0.0), max(self.returns[1], 0.0))


class EnvironmentFailedError(InputError):
    """An environment raised an exception, or gave a number that is not finite; its text says which, and when."""


def import_extra(package: str, needed: str) -> Any:
    """A package that an environment needs; InputError if it is not installed, or does not work here."""
    remedy = f"run `pip install {needed}`"
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        why = f"needs the module {error.name!r}, which is not installed"
        raise InputError(f"This environment {why}: {remedy}.") from error
    except Exception as error:  # a version that does not go with the others here may raise anything
        raise InputError(f"{package} cannot be imported ({described(error)}): {remedy}.") from error


def make_registered(package: str, asked: str, known: list[str], make: Callable[[], Any]) -> Any:
    """What a package makes of an id; InputError if it is not registered, or cannot be made."""
    if asked not in known:
        raise InputError(f"There is no environment {asked!r} in {package} here.{nearest(asked, known)}")
    try:
        return make()
    except Exception as error:
        raise InputError(f"{asked} cannot be made ({described(error)}).") from error


def described(error: BaseException) -> str:
    """The type and the message of an exception, for a sentence."""
    return f"{type(error).__name__}: {message_of(error)}"


def call(ask: Callable[[], Answer], where: Callable[[], str]) -> Answer:
    """The result of `ask`, which calls an environment; an exception becomes a sentence that begins with `where`."""
    try:
        return ask()
    except KeyboardInterrupt:
        raise
    except ContractError as error:
        raise EnvironmentFailedError(f"{where()} does not keep to Gymnasium's contract: {error}.") from error
    except BaseException as error:
        words = f": {message_of(error)}" if message_of(error) else ""
        raise EnvironmentFailedError(f"{where()} raised {type(error).__name__}{words}{_place(error)}.") from error


def _place(error: BaseException) -> str:
    """The last line of a user's own code on the way to an exception, in parentheses; empty if there is none.

    A reset that misses its options is told how to get them.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if not any(map(Path(each.filename).is_relative_to, OTHERS))]
    missed = any(each.name == "reset" and "option" in f"{each.line} {error}" for each in frames[-1:])
    options = ": give its options by --env.reset_options" * missed
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno}){options}" if own else options


def begin_host(ask: Callable[[], np.ndarray], where: Callable[[], str]) -> np.ndarray:
    """The first observations of episodes that `ask` begins, as `call` makes it; they must be usable, too."""
    return require_finite(call(ask, where), where)


def begin_all(asked: list[Callable[[], np.ndarray]], seeds: list[int], when: str) -> np.ndarray:
    """The first observations of episodes that each seed's call begins, with a leading axis of seeds."""
    wheres = [f"The environment of seed {seed}, {when}," for seed in seeds]
    return np.stack([begin_host(ask, lambda w=where: w) for ask, where in zip(asked, wheres, strict=True)])


def require_finite(observations: np.ndarray, where: Callable[[], str]) -> np.ndarray:
    """The observations; EnvironmentFailedError unless all their numbers are finite, and their squares are."""
    if observations.dtype.kind != "f" or (usable := np.abs(observations) <= LARGEST).all():
        return observations
    if not np.isfinite(worst := observations[~usable][0]):
        raise EnvironmentFailedError(
            f"{where()} gave an observation that is not finite in 32 bits: all its numbers must be."
        )
    raise EnvironmentFailedError(
        f"{where()} gave an observation with the number {worst:g}: scale or clip its numbers by a wrapper "
        f"(--env.wrappers, gymnasium.wrappers.TransformObservation), to {LARGEST:g} at most."
    )
