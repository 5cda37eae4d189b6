"""What training returns at its end, or raises."""

import contextlib
import dataclasses
import functools
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from uppertail.agent import Agent
from uppertail.environments import Environment, Interface
from uppertail.environments.packages import LARGEST
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.records import Distributions, RunRecord, episode_text, median_episode, table_of
from uppertail.schema import require_type
from uppertail.training.player import ActionReturns, Player

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 10  # how many seeds' returns a result's text shows

USES = {
    **dict.fromkeys(("predict", "get_action", "select_action", "choose_action", "compute_action"), "act(observation)"),
    "save": "ut.train(..., checkpoints=ut.Checkpoints(folder, every=10_000)), whose same call goes on from there, or "
    "`uppertail train`, whose folder `ut.load`, `uppertail evaluate` and `uppertail export` read",
    "load": "ut.load(folder), of a folder that `uppertail train` wrote",
    "export": "`uppertail export` on the folder of a run that `uppertail train` wrote",
    "learn": "ut.train(..., checkpoints=ut.Checkpoints(folder, every=10_000)), and the same call with more steps",
    "evaluate": "record.greedy_returns, or `uppertail evaluate` on the folder of a run",
    "report": "plot(), or `uppertail report` on the folder of a run that `uppertail train` wrote",
    "watch": "`uppertail watch` on the folder of a run that `uppertail train` wrote",
    "summary": "record.summary()",
    "history": "episodes",
    "policy": "act(observation), or act(observation, explore=True, key=0)",
    "q_values": "distribution(observation).mean",
    "env": "the environment that `ut.train` was given; record.environment is its name",
    "model": "network(0) for what the first seed learned, and distribution(observation) for what it says",
}
"""What to use in place of what other libraries' agents have."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TrainingResult:
    """A run and what it learned: what `ut.train` returns, and `ut.load` from a folder.

    Where a method takes a `seed`, it is one of `seeds`; left out, it is `best_seed`. An observation is one as the
    environment gives it. A batch is an array with one axis more than an observation has, or a list of observations
    where these are not arrays (dicts, tuples, texts).

    Args:
        record: episodes, figures and settings of the run; `record.summary()` is summary.json.
        agent: the algorithm.
        networks: the learned networks; every array has a leading axis of seeds.
        interface: how observations are read, and how actions are numbered.
        environments: the compiled environments, with the same axis; None where Python made the steps.
        distributions: return distributions at moments of the run; None if it did not record them.
        opening: what was chosen, in a line.

    Examples:
        >>> import uppertail as ut
        >>> result = ut.train(ut.Toy(), settings=ut.Settings(seeds=2, episodes=256))
        >>> result.act(0), result.act([0, 1, 2]).shape  # of state 0; of a batch
        (0, (3,))
        >>> z = result.distribution(0, seed=1)
        >>> z.mean.shape, z.quantiles([0.05, 0.95]).shape  # by action
        ((2,), (2, 2))
        >>> len(result.episodes)
        512
    """

    record: RunRecord
    agent: Agent
    networks: Network
    interface: Interface
    environments: Environment | None
    distributions: Distributions | None = None
    opening: str = ""
    _players: dict[int, Player] = dataclasses.field(default_factory=dict, init=False)  # each has compiled programs

    @property
    def seeds(self) -> list[int]:
        """The seeds of the run."""
        first = self.record.asked["settings"]["seed"]
        return list(range(first, first + len(self.record.episodes)))

    @functools.cached_property
    def best_seed(self) -> int:
        """The seed whose greedy policy earned most at the end; the first of several."""
        returns = np.array(self.record.greedy_returns)
        return self.seeds[0 if np.isnan(returns).all() else int(np.nanargmax(returns))]

    @property
    def action_repeat(self) -> int:
        """For how many steps of the environment each action was taken."""
        return self.record.asked["environment"].get("action_repeat") or 1

    @property
    def episodes(self) -> Any:
        """A row for each finished episode: seed, episode (from 1), return, length, step where it ended.

        A pandas.DataFrame where pandas is installed, else a structured NumPy array with the same columns.
        """
        return table_of(self.seeds, self.record.episodes)

    def act(
        self,
        observation: Any,
        explore: bool = False,
        key: PRNGKeyArray | int | None = None,
        seed: int | None = None,
        action_mask: Any = None,
    ) -> int | np.ndarray:
        """The action for an observation, or the actions for a batch, as the environment takes them.

        Args:
            observation: one observation or a batch.
            explore: whether the run's exploration policy chooses, as in the first step of an episode; else the action
                with the highest mean return is taken.
            key: randomness of the exploration: a key of JAX or a number. A policy that draws something for an episode
                keeps it as long as the key stays the same.
            seed: whose network acts.
            action_mask: 1 for each action that is allowed and 0 for each other one, [actions], of a batch [batch,
                actions], as the environment's `info["action_mask"]` has it; needed if the environment gives one. Of
                several integers, it may be 1 or 0 for each value of each of them, unless there are as many actions.

        Returns:
            A whole number; an array of the space's shape if actions are a Box or several integers. Of a batch, an array
            with one more axis.

        Raises:
            InputError: it is no observation of this environment, there is no such seed, or the key or
                the action mask is missing.
        """
        player = self.player(seed)
        if not explore:
            return player.act(observation, action_mask)
        if key is None:
            raise InputError("Exploring is random: give a key, for example key=jax.random.key(0), a new one each time.")
        return player.explore(observation, one_key(key), action_mask)

    def distribution(self, observation: Any, seed: int | None = None) -> ActionReturns:
        """The return distribution of each action, for one observation or a batch.

        Raises:
            InputError: it is no observation of this environment, or there is no such seed.
        """
        return self.player(seed).returns(observation)

    def plot(self) -> "Figure":
        """The mean return by episode with its 95% interval over seeds, as a matplotlib.figure.Figure."""
        from uppertail.analysis.figures import curves_figure  # matplotlib takes a second

        return curves_figure(self.record.environment, {self.record.method: self.record.episodes})

    def network(self, index: int) -> Network:
        """The learned network of one seed, counted from 0; an InputError says if there is no such seed."""
        count = len(self.record.episodes)
        index = require_type("The index of a network", index, int)
        if not 0 <= index < count:
            raise InputError(f"network({index}): the run has {count} seeds, so give a number from 0 to {count - 1}.")
        return jax.tree.map(lambda leaf: leaf[index], self.networks)

    def __getattr__(self, name: str) -> Any:
        hint = f": use {USES[name]}" if name in USES else ""
        raise AttributeError(f"a TrainingResult has no {name!r}{hint}")

    def __repr__(self) -> str:
        record, seeds = self.record, self.seeds
        counts = sorted(each.returns.size for each in record.episodes)
        count = f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
        steps = f"{sum(record.env_steps):,} steps"
        played = f"seed {seeds[0]}, {count} episodes, {steps}"
        if len(seeds) > 1:
            played = f"seeds {seeds[0]} to {seeds[-1]}, {count} episodes each, {steps} in all"
        solved = sum(episode is not None for episode in record.solved_episode)
        success = episode_text(median_episode(record.first_success_episode))
        doing = f"solved: {solved} of {len(seeds)} seeds; median first success: {success}; " * record.has_success
        repeat = f"\n  each action of act is for {self.action_repeat} steps, as in training" * (self.action_repeat > 1)
        returns = [f"{value:.4g}" for value in record.greedy_returns]
        if record.kept_step:
            returns = [f"{each} ({record.network_of(row)})" for row, each in enumerate(returns)]
        chosen = f"  {self.opening.removeprefix(f'{record.environment}: ')}\n" * bool(self.opening)
        return (
            f"{record.environment}: {record.method}, {record.asked['learner']['name']}\n{chosen}"
            f"  {played}, {record.wall_seconds:.1f} s{' (interrupted)' * record.interrupted}\n"
            f"  {doing}greedy return: {', '.join([*returns[:MOST_SHOWN], *['...'] * (len(returns) > MOST_SHOWN)])}\n"
            f"  best seed: {self.best_seed}; use act(observation), distribution(observation), episodes, plot(), record"
            f"{repeat}"
        )

    def player(self, seed: int | None = None) -> Player:
        """What plays with the network of a seed; an InputError says if there is no such seed."""
        number = self.best_seed if seed is None else require_type("seed", seed, int)
        if number not in self._players:
            if number not in self.seeds:
                raise InputError(f"seed is {number}: the run has the seeds {self.seeds[0]} to {self.seeds[-1]}.")
            network = self.network(number - self.seeds[0])
            self._players[number] = Player(self.agent, network, self.interface)
        return self._players[number]


def one_key(key: Any) -> PRNGKeyArray:
    """A key of JAX, from itself or from a number; InputError if it is neither, or several."""
    try:
        with contextlib.suppress(TypeError):
            return jax.random.key(operator.index(key))
        jax.random.bits(key, ())  # JAX says what is no key when it is used
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError("key is not one key: give one of JAX, such as jax.random.key(0), or a number.") from error
    return key


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGHUP ended `ut.train`; `result` holds what was learned until then.

    A signal in the last steps of a run ends the program, too: the run is complete then, and
    `result.record.interrupted` is False.

    Examples:
        >>> import os, signal
        >>> import uppertail as ut
        >>> long = ut.Settings(seeds=1, episodes=10**9)
        >>> try:
        ...     ut.train(ut.Toy(), settings=long, on_chunk=lambda progress: os.kill(os.getpid(), signal.SIGINT))
        ... except ut.TrainingInterrupted as stop:
        ...     stop.result.record.interrupted
        True
    """

    def __init__(self, result: TrainingResult) -> None:
        interrupted = "Training was interrupted: `result` holds what was learned until then."
        complete = "A signal came as the run ended: it is complete, and `result` is all of it."
        super().__init__(interrupted if result.record.interrupted else complete)
        self.result = result


class TrainingFailedError(InputError):
    """Training could not go on; `result` holds what was learned until then.

    Examples:
        >>> import uppertail as ut
        >>> issubclass(ut.TrainingDivergedError, ut.TrainingFailedError)
        True
    """

    def __init__(self, message: str, result: TrainingResult) -> None:
        super().__init__(message)
        self.result = result


def remedy(asked: Mapping[str, Any]) -> str:
    """What helps a run whose numbers are no longer finite, given its parts: only some learners descend gradients."""
    if asked.get("network") is None:
        return "with smaller rewards, scaled by a wrapper (--env.wrappers)"
    return "with a lower --learning_rate or --gradient_clip"


class TrainingDivergedError(TrainingFailedError):
    """The loss of a seed is no longer a finite number.

    Examples:
        >>> import uppertail as ut
        >>> try:
        ...     ut.train(ut.Toy(), settings=ut.Settings(seeds=1, learning_rate=1e30))
        ... except ut.TrainingDivergedError as error:
        ...     print(error.seed, error.step)
        0 8
    """

    def __init__(self, seed: int, step: int, result: TrainingResult) -> None:
        returns = [abs(each.returns).max(initial=0.0) for each in result.record.episodes]
        large = f", and an episode returned up to {max(returns):g} in size" if max(returns) > LARGEST else ""
        super().__init__(
            f"The loss of seed {seed} became NaN or infinite by environment step {step}{large}, so training stopped: "
            f"train again {remedy(result.record.asked)}.",
            result,
        )
        self.seed, self.step = seed, step
