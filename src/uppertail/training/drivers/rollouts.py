"""The rollouts of one seed in environments that Python steps: episodes in progress, and their transitions."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from uppertail.environments import HostEnvironments, HostStep, step_host
from uppertail.training.loop import Episode, StepRecord
from uppertail.types import POLICY_CHOICE, Transition

Columns = tuple[Any, ...]
"""The arrays of a Transition or a StepRecord, on the host."""


class Rollouts:
    """The episodes in progress of one seed, and the transitions that have not been learned from yet.

    A step does as little as possible: transitions, returns and lengths are computed later, for many steps at once.
    In each episode in progress the next action is already chosen; `episodes` ended and `steps` were made before.
    """

    def __init__(self, host: HostEnvironments, seed: int, episode: Episode, episodes: int, steps: int) -> None:
        self.host, self.seed = host, seed
        self.waiting = 0
        self._observation, self._action = np.asarray(episode.observation), np.asarray(episode.action)
        self._ret, self._length = np.asarray(episode.ret), np.asarray(episode.length)
        self._episodes, self._steps = episodes, steps
        self._latest: HostStep | None = None
        self._made: list[Columns] = []
        self._transitions: list[Columns] = []
        self._records: list[Columns] = []

    @property
    def where(self) -> np.ndarray:
        """The observations for the next actions."""
        return self._observation if self._latest is None else self._latest.observation

    @property
    def begins(self) -> Bool[np.ndarray, " envs"]:
        """Where the next action is the first of an episode, by the last step."""
        now = self._latest
        if now is None:
            return np.zeros(self._action.shape[0], bool)
        return now.terminated | now.truncated | ~now.real

    @property
    def episode(self) -> Episode:
        """The episodes in progress, with the action already chosen in each."""
        self._settle()
        now: Columns = self._observation, self._action, self._ret, self._length
        return Episode((), *now)

    def step(self) -> None:
        """Takes the chosen actions."""
        self._latest = step_host(self.host, self._action, self._moment)

    def continue_with(self, actions: Int[np.ndarray, " envs"], exploratory: Bool[np.ndarray, " envs"]) -> None:
        """Accepts the actions chosen after the last step, and so completes the transition of that step."""
        now = self._latest
        assert now is not None
        self._made.append((self._observation, self._action, *now, actions, exploratory))
        self._observation, self._action = now.observation, actions
        self.waiting += int(np.count_nonzero(now.real))

    def take(self, count: int) -> tuple[Transition, StepRecord]:
        """Takes the oldest `count` transitions; the others wait for the next call."""
        self._settle()
        self.waiting -= count
        return Transition(*_take_rows(self._transitions, count)), StepRecord(*_take_rows(self._records, count))

    def _settle(self) -> None:
        """Computes transitions, returns and lengths of the steps since the last call."""
        if not self._made:
            return
        columns = (_stack(column) for column in zip(*self._made, strict=True))
        observation, action, after, reward, terminated, truncated, _, real, next_action, exploratory = columns
        self._made = []
        ended = (terminated | truncated) & real
        ret, self._ret = _running_sums(self._ret, reward * real, ended)
        length, self._length = _running_sums(self._length, real.astype(np.int32), ended)
        following = np.where(ended, POLICY_CHOICE, next_action).astype(np.int32)  # at an end: the new episode's
        transitions: Columns = observation, action, reward, terminated, after, following
        self._transitions.append(tuple(column[real] for column in transitions))
        self._records.append(tuple(column[real] for column in (ended, ret, length, exploratory)))
        self._steps += int(real.sum())
        self._episodes += int(ended.sum())

    def _moment(self) -> str:
        self._settle()
        episode, step = self._episodes + 1, self._steps + 1
        return f"The environment of seed {self.seed}, in episode {episode}, at environment step {step},"


def _stack(rows: tuple[np.ndarray, ...]) -> np.ndarray:
    """The result of np.stack for arrays of one shape, in a third of its time."""
    return np.concatenate(rows).reshape(len(rows), *rows[0].shape)


def _running_sums(start: np.ndarray, each: np.ndarray, ended: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums up to each step, which start again after an end, and the start of the next sums."""
    sums = np.empty_like(each)
    for step, over in enumerate(ended):
        sums[step] = start = start + each[step]
        if over.any():
            start = np.where(over, 0, start).astype(each.dtype)
    return sums, start


def _take_rows(blocks: list[Columns], count: int) -> Columns:
    """Takes the first rows of all blocks together; the others stay, as one block."""
    columns = tuple(map(np.concatenate, zip(*blocks, strict=True)))
    blocks[:] = [tuple(column[count:] for column in columns)] if len(columns[0]) > count else []
    return tuple(column[:count] for column in columns)
