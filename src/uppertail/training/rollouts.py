"""What Python steps: the rollouts of one seed, and episodes with learned networks.

Two programs choose an action. XLA runs a program of at most eight operations, or one whose arrays have at most 512
bytes each, in the thread that calls it; it hands parts of larger ones to other threads, which takes longer.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray

from uppertail.environments import (
    EVALUATION,
    EnvironmentFailedError,
    GymnasiumBuilder,
    HostEnvironments,
    HostStep,
    begin_all,
    step_host,
)
from uppertail.errors import InputError
from uppertail.masks import ActionMask
from uppertail.networks import Network
from uppertail.training.driver import EVALUATION_STEPS, Played
from uppertail.training.loop import Actor, Episode, StepRecord, View, step_keys
from uppertail.types import POLICY_CHOICE, PyTree, Transition

LEAST_MET, LEAST_LENGTH = 5, 10
"""How many episodes have to terminate at the greatest length, and the least such length, to look like a time limit."""

REMEMBERED = 4096  # steps of a seed that are compared

Columns = tuple[Any, ...]
"""The arrays of a Transition or a StepRecord, on the host."""


class Rollouts:
    """The episodes in progress of one seed, and the transitions that have not been learned from yet.

    A step does as little as possible: transitions, returns and lengths are computed later, for many steps at once.
    In each episode in progress the next action is already chosen; `episodes` ended and `steps` were made before. In the
    environment, each of these steps is `repeats`.
    """

    def __init__(
        self,
        host: HostEnvironments,
        seed: int,
        episode: Episode,
        episodes: int,
        steps: int,
        repeats: int = 1,
        discount: float = 1.0,
    ) -> None:
        self.host, self.seed, self.repeats, self.discount = host, seed, repeats, discount
        self.waiting = 0
        self._observation, self._action = np.asarray(episode.observation), np.asarray(episode.action)
        self._ret, self._length, self._earned = map(np.asarray, (episode.ret, episode.length, episode.earned))
        self._episodes, self._steps = episodes, steps
        self._latest: HostStep | None = None
        self._made: list[Columns] = []
        self._done: list[Columns] = []

    @property
    def where(self) -> np.ndarray:
        """The observations for the next actions."""
        return self._observation if self._latest is None else self._latest.observation

    @property
    def begins(self) -> Bool[np.ndarray, " envs"]:
        """Where the next action is the first of an episode, by the last step."""
        now = self._latest
        return np.zeros(len(self._action), bool) if now is None else now.terminated | now.truncated | ~now.real

    @property
    def episode(self) -> Episode:
        """The episodes in progress, with the action already chosen in each."""
        self._settle()
        now: Columns = self._observation, self._action, self._ret, self._length, self._earned
        return Episode((), *now)

    def step(self) -> None:
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
        columns = self._columns()
        self.waiting -= count
        self._done = [_rows(columns, slice(count, None))]
        *transitions, mask = _rows(columns, slice(count))
        size = len(StepRecord._fields)
        return Transition(*transitions[:-size], next_action_mask=mask), StepRecord(*transitions[-size:])

    def saved(self) -> dict[str, np.ndarray]:
        """The columns of transitions that wait, which are more than a rollout takes in some vector environments."""
        columns = self._columns() if self.waiting else ()
        return {str(number): column for number, column in enumerate(columns) if column is not None}

    def restore(self, saved: Mapping[str, np.ndarray]) -> None:
        """Lets saved transitions wait again."""
        if saved:
            count = 6 + len(StepRecord._fields) + 1  # those of a transition, its record, and masks if there are any
            self._done = [tuple(saved.get(str(number)) for number in range(count))]
            self.waiting = len(saved["0"])

    def _columns(self) -> Columns:
        """The columns of all transitions that wait."""
        self._settle()
        return tuple(_all(np.concatenate, column) for column in zip(*self._done, strict=True))

    def _settle(self) -> None:
        """Computes transitions, returns and lengths of the steps since the last call."""
        if not self._made:
            return
        columns = (_all(_stack, column) for column in zip(*self._made, strict=True))
        observation, action, after, reward, terminated, truncated, _, real, taken, mask, _, *chosen = columns
        next_action, exploratory = chosen
        self._made = []
        ended = (terminated | truncated) & real
        ret, self._ret = _running_sums(self._ret, reward * real, ended)
        length, self._length = _running_sums(self._length, (taken * real).astype(np.int32), ended)
        earned, self._earned = _running_sums(self._earned, reward * real, ended, np.where(real, self.discount, 1.0))
        following = np.where(ended, POLICY_CHOICE, next_action).astype(np.int32)  # at an end: the new episode's
        transitions: Columns = observation, action, reward, terminated, after, following
        records: Columns = ended, ret, length, earned, exploratory, truncated & ~terminated & real
        self._done.append(_rows((*transitions, *records, mask), real))
        self._steps += int(real.sum())
        self._episodes += int(ended.sum())

    def _moment(self) -> str:
        self._settle()
        episode, step = self._episodes + 1, self.repeats * self._steps + 1
        return f"The environment of seed {self.seed}, in episode {episode}, at environment step {step},"


class Ends:
    """Counts how episodes of one seed end, to tell whether their environment says `terminated` at its own time limit.

    It looks so if several episodes terminated at exactly the greatest length of all, and what was seen and done in
    their last step does not say why: it went on elsewhere, or, in vectors, no number had the same value at all ends,
    nor only values that it has nowhere else.
    """

    def __init__(self) -> None:
        self.longest = self.met = 0
        self.low, self.high = np.array(np.inf), np.array(-np.inf)  # of numbers where episodes go on
        self._last: dict[bytes, np.ndarray] = {}  # the last steps of those episodes, and where they led
        self._going_on: set[bytes] = set()  # steps after which an episode went on

    def add(self, fresh: Transition, record: StepRecord) -> None:
        on = np.asarray(fresh.next_observation)[~np.asarray(record.ended)]
        if on.ndim == 2 and on.dtype.kind == "f" and len(on):
            self.low, self.high = np.minimum(self.low, on.min(axis=0)), np.maximum(self.high, on.max(axis=0))
        steps = zip(fresh.observation, fresh.action, fresh.terminated, record.ended, record.length, strict=True)
        for row, (observation, action, terminated, ended, length) in enumerate(steps):
            if not ended:
                if len(self._going_on) < REMEMBERED:
                    self._going_on.add(observation.tobytes() + action.tobytes())
            elif length >= self.longest:
                if length > self.longest:
                    self.longest, self.met, self._last = int(length), 0, {}
                self.met += int(terminated)
                if len(self._last) < REMEMBERED and terminated:
                    self._last[observation.tobytes() + action.tobytes()] = np.asarray(fresh.next_observation[row])

    @property
    def look_like_a_limit(self) -> bool:
        if self.met < LEAST_MET or self.longest < LEAST_LENGTH:
            return False
        where = np.stack([*self._last.values()])
        differs = (
            where.ndim == 2
            and where.dtype.kind == "f"
            and bool(
                ((np.ptp(where, axis=0) > 0) & (where.min(axis=0) <= self.high) & (where.max(axis=0) >= self.low)).all()
            )
        )
        return differs or not self._going_on.isdisjoint(self._last)


def _all(join: Callable[..., np.ndarray], column: tuple[Any, ...]) -> Any:
    """A column of joined arrays; None if it holds none."""
    return None if column[0] is None else join(column)


def _rows(columns: Columns, which: Any) -> Columns:
    """Some rows of all columns that there are."""
    return tuple(None if column is None else column[which] for column in columns)


def _stack(rows: tuple[np.ndarray, ...]) -> np.ndarray:
    """The result of np.stack for arrays of one shape, in a third of its time."""
    return np.concatenate(rows).reshape(len(rows), *rows[0].shape)


def _running_sums(
    start: np.ndarray, each: np.ndarray, ended: np.ndarray, discounts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The sums up to each step, whose discount what was before has; they start again after an end; the next start."""
    sums = np.empty_like(each)
    for step, over in enumerate(ended):
        before = start if discounts is None else (start * discounts[step]).astype(each.dtype)
        sums[step] = start = before + each[step]
        if over.any():
            start = np.where(over, 0, start).astype(each.dtype)
    return sums, start


def choose_all(
    actor: Actor,
    key: PRNGKeyArray,
    step: Array,
    view: View,
    observations: Array,
    memory: PyTree,
    begins: PyTree,
    masks: ActionMask,
) -> tuple[Array, PyTree, Array]:
    """A row of actions and one that says which are not greedy, the policy's memory, and the next step.

    `begins` says where an episode begins; it is () for a policy without memory.
    """
    envs = observations.shape[0]
    keys = environment_keys(step_keys(key, step)[2], envs)
    starts = jnp.zeros(envs, bool) if isinstance(begins, tuple) else begins
    choice = jax.vmap(actor.next)(keys, view, observations, memory, starts, masks)
    return jnp.stack([choice.action, choice.exploratory.astype(choice.action.dtype)]), choice.memory, step + 1


def play_all(
    actor: Actor, network: Network, key: PRNGKeyArray, step: Array, *of_environments: PyTree
) -> tuple[Array, PyTree]:
    """Actions and memory in an evaluation, from observations, memory, where an episode begins, and masks."""
    keys = environment_keys(jax.random.fold_in(key, step), of_environments[0].shape[0])
    choice = jax.vmap(actor.play, in_axes=(0, None, 0, 0, 0, 0))(keys, network, *of_environments)
    return choice.action, choice.memory


def masks_of(hosts: list[HostEnvironments]) -> np.ndarray | None:
    """Which actions are allowed now, [seeds, envs, actions]; None: the environments do not say."""
    masks = [host.action_mask for host in hosts if host.action_mask is not None]
    if masks and len(masks) < len(hosts):
        raise InputError("Only some of the environments give an action_mask in their info: give it in all, or in none.")
    return np.stack(masks) if masks else None


def environment_keys(key: PRNGKeyArray, count: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single environment has the seed's own, as in compiled runs."""
    return key[None] if count == 1 else jax.random.split(key, count)


PLAYED_TOGETHER = 20
"""The most environments of each seed in which evaluation episodes are played side by side in one process."""

REHEARSED = 2  # how many of these environments are tried before training

AT_FIRST = "at the first reset of its evaluation"


def rehearse(builder: GymnasiumBuilder, seed: int, in_training: int) -> np.ndarray:
    """The first observations of an evaluation, so that errors of its environments show before training."""
    together = _side_by_side(builder, REHEARSED, in_training)
    with contextlib.closing(builder.open_to_play([EVALUATION + seed], together, EVALUATION_STEPS)[0]) as host:
        return begin_all([host.reset], [seed], AT_FIRST)[0]


def require_alike(seed: int, rehearsed: np.ndarray, first: np.ndarray) -> None:
    """Refuses first observations of an evaluation that differ in shape or type from the first ones of training."""
    there, here = ((each.dtype, [*each.shape[1:]]) for each in (rehearsed, first))
    if there != here:
        of_play, of_training = (f"{kind}{shape}" for kind, shape in (there, here))
        raise EnvironmentFailedError(
            f"The environment of seed {seed}, {AT_FIRST}, gave an observation of {of_play}, in training of "
            f"{of_training}: give a function that makes the same environment at each call."
        )


def play_episodes(
    builder: GymnasiumBuilder,
    seeds: list[int],
    in_training: int,
    act: Callable[..., Any],
    memory_of: Callable[[np.ndarray], PyTree],
    episodes: int,
    after_step: Callable[[int], object],
) -> Played:
    """Plays episodes of each seed, in each of its environments as many or one fewer: short ones are not preferred.

    `in_training` is the number of environments of each seed while it trained. `act` gives actions [seeds, envs] and
    memory, from steps, observations, memory, where an episode begins, and masks; `memory_of` the memory at first.
    `after_step` is called with how many episodes are over.
    """
    count, asked = len(seeds), min(episodes, _side_by_side(builder, PLAYED_TOGETHER, in_training))
    with contextlib.ExitStack() as opened:
        hosts = builder.open_to_play([EVALUATION + seed for seed in seeds], asked, EVALUATION_STEPS)
        for host in hosts:
            opened.callback(host.close)
        envs = hosts[0].num_envs  # a user's vector environment has its own number
        quota = -(-np.maximum(episodes - np.arange(envs), 0) // envs)  # of each environment
        shape = count, int(quota.max()), envs
        returns, lengths, taken, idle = (np.zeros(shape, kind) for kind in (float, np.int64, float, float))
        played = np.zeros((count, envs), np.int64)
        step, begins = 0, np.ones((count, envs), bool)
        observations = begin_all([host.reset for host in hosts], seeds, AT_FIRST)
        memory = memory_of(observations)
        while (played < quota).any():
            actions, memory = act(np.full(count, step, np.int32), observations, memory, begins, masks_of(hosts))
            actions, step = np.asarray(actions), step + 1
            for row, host in enumerate(hosts):
                where = f"The environment of seed {seeds[row]}, in an episode by what it learned,"
                now = step_host(host, actions[row], lambda w=where: w)
                on = np.flatnonzero(now.real & (played[row] < quota))
                returns[row, played[row, on], on] += now.reward[on]
                lengths[row, played[row, on], on] += now.steps[on]
                same = (now.next_observation == observations[row]).reshape(envs, -1).all(axis=1) & ~now.terminated
                taken[row, played[row, on], on] += 1
                idle[row, played[row, on], on] += same[on]
                ended = now.terminated | now.truncated
                played[row, on] += ended[on]
                begins[row] = ended | ~now.real
                observations[row] = now.observation
            after_step(int(played.sum()))
    returns, lengths, idle, taken = (each.reshape(count, -1)[:, :episodes] for each in (returns, lengths, idle, taken))
    return Played(returns, lengths, idle / taken)


def _side_by_side(builder: GymnasiumBuilder, most: int, in_training: int) -> int:
    """How many environments of a seed to open; with processes no more than in training, as each imports JAX anew."""
    return min(most, in_training) if builder.vectorization == "async" else most
