"""Trains from Python, in one call."""

import contextlib
import warnings
from pathlib import Path
from typing import Any

from uppertail.distributions import ReturnDistribution
from uppertail.environments import EnvironmentBuilder, builder_of
from uppertail.errors import InputError
from uppertail.learners import LearnerBuilder
from uppertail.networks import NetworkBuilder
from uppertail.policies import ExplorationPolicy
from uppertail.records import locked
from uppertail.replay import Replay
from uppertail.schema import require_type
from uppertail.targets import Target
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.drive import OnChunk, drive
from uppertail.training.interrupt import interruptible
from uppertail.training.method import Method
from uppertail.training.process import in_32_bits
from uppertail.training.progress import updating_line
from uppertail.training.results import TrainingInterrupted, TrainingResult
from uppertail.training.run import Run
from uppertail.training.settings import Settings


def train(
    environment: EnvironmentBuilder | object,
    distribution: ReturnDistribution[Any] | None = None,
    policy: ExplorationPolicy | None = None,
    settings: Settings | None = None,
    on_chunk: OnChunk = lambda progress: None,
    checkpoints: Checkpoints | None = None,
    network: NetworkBuilder | None = None,
    replay: Replay | None = None,
    target: Target | None = None,
    record: str | None = None,
    record_over: tuple[int, int] | None = None,
    learner: LearnerBuilder | None = None,
) -> TrainingResult:
    """Trains all seeds side by side; seed k follows the run of seed k alone.

    Args:
        environment: a builder such as Chain or Gym, the id of a Gymnasium environment, such an environment, or a
            function that makes one.
        distribution: the family of return distributions; Gaussian if left out.
        policy: the exploration policy; UCB if left out.
        settings: how long, on how much data, with how many seeds.
        on_chunk: called with the progress after each chunk of steps; a `Stop` that it returns stops the run.
        checkpoints: where the run's state is saved; the same call again continues from there.
        network: builds the network of GradientDescent; PerAction if left out.
        replay: its replay buffer; Uniform if left out.
        target: which network gives its bootstrap; Online if left out.
        record: distributions, for return distributions at moments of the run (`result.distributions`).
        record_over: two numbers of a vector over which their width is recorded; None: the first two.
        learner: how return distributions are learned; LeastSquares if left out, GradientDescent if a part or setting
            of gradient descent is given.

    Raises:
        InputError: an argument is of another kind, the distribution cannot represent the environment's returns, or the
            checkpoints cannot be used.
        TrainingDivergedError: a loss became NaN or infinite.
        TrainingFailedError: an environment could not go on.
        TrainingInterrupted: Ctrl-C or SIGTERM came; it is a KeyboardInterrupt, and its `result` is what was learned.

    Examples:
        >>> import uppertail as ut
        >>> result = ut.train(ut.Toy(), ut.Gaussian(), ut.UCB(), ut.Settings(seeds=2, episodes=64))
        >>> result.record.summary()["final_greedy_return"]
        [3.0, 3.0]
    """
    for name, value, kind in (("settings", settings, Settings), ("checkpoints", checkpoints, Checkpoints)):
        if not isinstance(value, kind | None):
            raise InputError(f"{name} is {value!r}: give an object of class {kind.__name__}, or leave it out.")
    require_type("on_chunk", on_chunk, OnChunk)
    parts = {"network": network, "replay": replay, "target": target}
    method = Method.of(distribution=distribution, policy=policy, learner=learner, **parts)
    builder = builder_of(environment)
    with in_32_bits(), updating_line() as show, contextlib.ExitStack() as lock, interruptible() as asked_to_stop:
        before = checkpoints.asked() if checkpoints else None
        run = Run(builder, method, settings or Settings(), before, record, record_over)
        for note in run.notes:
            warnings.warn(note, stacklevel=2)
        if checkpoints is not None:
            checkpoints.make_folder()
            lock.enter_context(locked(Path(checkpoints.folder)))
        result = drive(run, lambda progress: (show(progress), on_chunk(progress))[1], checkpoints)
    if asked_to_stop.is_set():
        raise TrainingInterrupted(result)
    if remark := result.networks.remark():
        warnings.warn(remark, stacklevel=2)
    return result
