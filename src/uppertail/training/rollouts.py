"""What one seed does in environments that Python steps: its episodes in progress, and the transitions they give."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from uppertail.environments import HostEnvironment, HostStep
from uppertail.errors import InputError, said
from uppertail.training.loop import Episode, StepRecord
from uppertail.types import POLICY_CHOICE, Transition

Columns = tuple[Any, ...]
"""The arrays of a Transition or a StepRecord, on the host."""


class EnvironmentFailedError(InputError):
    """An environment raised an exception, or gave what is no reward; its text says which, and when."""


def stepped(host: HostEnvironment, actions: Int[np.ndarray, " envs"], where: Callable[[], str]) -> HostStep:
    """One step of environments.

    Args:
        host: the environments.
        actions: theirs.
        where: names the environment and the moment, if something goes wrong.

    Raises:
        EnvironmentFailedError: one raised an exception, or a reward is not a finite number.
    """
    try:
        now = host.step(actions)
    except Exception as error:
        raise EnvironmentFailedError(f"{where()} raised {type(error).__name__}: {said(error)}.") from error
    if not np.isfinite(now.reward).all():
        reward = now.reward[~np.isfinite(now.reward)][0]
        raise EnvironmentFailedError(f"{where()} gave the reward {reward}: rewards must be finite numbers.")
    return now


class Rollouts:
    """The episodes in progress of one seed, and the transitions that have not been learned from yet.

    Args:
        host: the environments.
        seed: the seed.
        episode: the episodes in progress, with the action already chosen in each.
        episodes: how many have ended before.
        steps: how many steps were made before.
    """

    def __init__(self, host: HostEnvironment, seed: int, episode: Episode, episodes: int, steps: int) -> None:
        self.host, self.seed, self.episode, self.episodes, self.steps = host, seed, episode, episodes, steps
        self.latest: HostStep | None = None
        self.transitions: list[Columns] = []
        self.records: list[Columns] = []
        self.waiting = 0

    @property
    def where(self) -> np.ndarray:
        """Where the next actions are taken."""
        return self.episode.observation if self.latest is None else self.latest.observation  # pyright: ignore[reportReturnType]

    def step(self) -> None:
        """Takes the chosen actions.

        Raises:
            EnvironmentFailedError: an environment raised an exception, or a reward is not a finite number.
        """
        self.latest = stepped(self.host, np.asarray(self.episode.action), self._where)

    def chose(self, actions: Int[np.ndarray, " envs"], exploratory: Bool[np.ndarray, " envs"]) -> None:
        """Goes on with the actions chosen where the step has led; that completes the transition before."""
        now, before = self.latest, self.episode
        assert now is not None
        ended, real = (now.terminated | now.truncated) & now.real, now.real
        ret, length = before.ret + now.reward * real, before.length + real
        next_action = np.where(ended, POLICY_CHOICE, actions).astype(np.int32)  # that one is of the new episode
        transition: Columns = (
            *(before.observation, before.action, now.reward),
            *(now.terminated, now.next_observation, next_action),
        )
        record: Columns = (ended, ret, length, exploratory)
        count = int(real.sum())
        rows = slice(None) if count == len(real) else real
        self.transitions.append(tuple(column[rows] for column in transition))
        self.records.append(tuple(column[rows] for column in record))
        self.waiting += count
        self.steps += count
        self.episodes += int(ended.sum())
        going_on: Columns = (now.observation, actions, ret * ~ended, length * ~ended)
        self.episode = Episode((), *going_on)

    def take(self, count: int) -> tuple[Transition, StepRecord]:
        """The oldest `count` transitions; those beyond wait for the next call."""
        self.waiting -= count
        return Transition(*_taken(self.transitions, count)), StepRecord(*_taken(self.records, count))

    def _where(self) -> str:
        episode, step = self.episodes + 1, self.steps + 1
        return f"The environment of seed {self.seed}, in episode {episode}, at environment step {step},"


def _taken(blocks: list[Columns], count: int) -> Columns:
    """The first rows of all blocks together; the others stay, as one block."""
    columns = tuple(map(np.concatenate, zip(*blocks, strict=True)))
    blocks[:] = [tuple(column[count:] for column in columns)] if len(columns[0]) > count else []
    return tuple(column[:count] for column in columns)
