"""What training reports while it goes on, and returns at its end."""

import dataclasses

import jax

from uppertail.agent import Agent
from uppertail.environments import Environment
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.records import RunRecord
from uppertail.records.distributions import Distributions
from uppertail.schema import require_type


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is, after each chunk. Measurements are means over seeds; NaN where there is nothing to measure.

    Args:
        episodes: finished episodes of each seed.
        solved: number of seeds solved so far.
        success_rate: share of successes among each seed's last 100 episodes, averaged over seeds; NaN where success is
            not defined.
        fraction: how much of its limit the slowest seed has used, from 0 to 1.
        env_steps: environment steps of all seeds together.
        steps_per_second: environment steps per second of all seeds together.
        loss: mean loss of the chunk's updates, over the iterations that seeds began before their limit.
        gradient_norm: mean norm of their gradients, likewise.
        outside: share of their targets whose mean lies outside of the support, likewise.
        exploratory: share of the chunk's actions that were not the greedy ones, likewise.
        mean_return: mean undiscounted return of the last 100 episodes of each seed.
        mean_length: their mean length.
        start_mean: mean of the return distribution where a run starts, of the action for which it is highest.
        start_std: its standard deviation.
        step: environment steps of each seed.
        chunk_steps: how many of them this chunk made; 0 if an environment failed before the first.

    Examples:
        >>> import uppertail as ut
        >>> small = ut.Settings(seeds=2, episodes=256, hidden_layers=1, width=16)
        >>> seen = []
        >>> def keep(progress: ut.Progress) -> None:
        ...     seen.append(progress.fraction)
        >>> result = ut.train(ut.Toy(), settings=small, on_chunk=keep)
        >>> seen[-1]
        1.0
    """

    episodes: list[int]
    solved: int
    success_rate: float
    fraction: float
    env_steps: int
    steps_per_second: float
    loss: float
    gradient_norm: float
    outside: float
    exploratory: float
    mean_return: float
    mean_length: float
    start_mean: float
    start_std: float
    step: int
    chunk_steps: int


@dataclasses.dataclass(frozen=True)
class Stop:
    """A callback returns it to stop a run; after any other value, the run goes on.

    Args:
        reason: why, for the run's record.

    Examples:
        >>> import uppertail as ut
        >>> small = ut.Settings(seeds=2, episodes=100_000, hidden_layers=1, width=16)
        >>> result = ut.train(ut.Toy(), settings=small, on_chunk=lambda progress: ut.Stop("seen enough"))
        >>> result.record.summary()["stopped"]
        'seen enough'
    """

    reason: str


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The result of a run in Python.

    Args:
        record: episodes, figures and settings of the run; `record.summary()` is summary.json.
        agent: the algorithm; `agent.returns(network, observation)` is a state's return distributions.
        networks: the learned networks; every array has a leading axis of seeds.
        environments: the compiled environments, likewise; None where Python made the steps.
        distributions: return distributions at moments of the run; None if it did not record them.

    Examples:
        >>> import uppertail as ut
        >>> small = ut.Settings(seeds=2, episodes=256, hidden_layers=1, width=16)
        >>> result = ut.train(ut.Toy(), settings=small)
        >>> z = result.agent.returns(result.network(0), 0)  # seed 0, state 0
        >>> z.mean.shape, [episodes.returns.size for episodes in result.record.episodes]
        ((2,), [256, 256])
    """

    record: RunRecord
    agent: Agent
    networks: Network
    environments: Environment | None
    distributions: Distributions | None = None

    def network(self, index: int) -> Network:
        """The learned network of one seed, counted from 0.

        Raises:
            InputError: there is no such seed.
        """
        return network_of(self.networks, index)


def network_of(networks: Network, index: int) -> Network:
    """The network of one seed among those of all, counted from 0.

    Raises:
        InputError: there is no such seed.
    """
    count = jax.tree.leaves(networks)[0].shape[0]
    index = require_type("The index of a network", index, int)
    if not 0 <= index < count:
        raise InputError(f"network({index}): the run has {count} seeds, so give a number from 0 to {count - 1}.")
    return jax.tree.map(lambda leaf: leaf[index], networks)


class TrainingFailedError(InputError):
    """Training could not go on; `result` holds what was learned until then.

    Examples:
        >>> import uppertail as ut
        >>> try:
        ...     ut.train(ut.Toy(), settings=ut.Settings(seeds=1, learning_rate=1e30))
        ... except ut.TrainingFailedError as error:  # of any kind
        ...     type(error.result).__name__
        'TrainingResult'
    """

    def __init__(self, message: str, result: TrainingResult) -> None:
        super().__init__(message)
        self.result = result


class TrainingDivergedError(TrainingFailedError):
    """The loss of a seed is no longer a finite number.

    Examples:
        >>> import uppertail as ut
        >>> try:
        ...     ut.train(ut.Toy(), settings=ut.Settings(seeds=1, learning_rate=1e30))
        ... except ut.TrainingDivergedError as error:
        ...     print(error.seed, error.step)
        0 16
    """

    def __init__(self, seed: int, step: int, result: TrainingResult) -> None:
        super().__init__(
            f"The loss of seed {seed} became NaN or infinite by environment step {step}, so training stopped: "
            "try a lower learning_rate or gradient_clip.",
            result,
        )
        self.seed, self.step = seed, step
