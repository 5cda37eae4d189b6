"""Drives a run from Python, chunk after chunk, until its end."""

import math
from collections.abc import Callable

import jax

from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.policies import Greedy
from uppertail.records import RunRecord
from uppertail.training.checkpoints import Checkpoints
from uppertail.training.drivers.base import State
from uppertail.training.drivers.recorder import with_environment
from uppertail.training.interrupt import interruptible
from uppertail.training.process import hardware, memory_errors, one_thread_for_linear_algebra
from uppertail.training.progress import Progress, Stop
from uppertail.training.results import TrainingDivergedError, TrainingFailedError, TrainingResult
from uppertail.training.run import Run
from uppertail.training.saver import Saver

GREEDY_EPISODES = 20

OnChunk = Callable[[Progress], object]
"""Called with the progress after each compiled chunk; a `Stop` that it returns stops the run, all else is ignored."""


def drive(run: Run, on_chunk: OnChunk, checkpoints: Checkpoints | None = None) -> TrainingResult:
    """Trains chunk after chunk until every seed has reached a limit, the user stops it, or it fails.

    Args:
        run: the run; its resources are freed in the end.
        on_chunk: called with the progress after each chunk; a `Stop` that it returns stops the run.
        checkpoints: where the run's state is saved; if the folder has some, the run continues from the last.

    Raises:
        InputError: a checkpoint cannot be written, or there are some and none can be used.
        TrainingDivergedError: a loss became NaN or infinite.
        TrainingFailedError: an environment could not go on.
    """
    try:
        result = _train(run, on_chunk, checkpoints)
    finally:
        run.close()
    if run.ledger.diverged:
        raise TrainingDivergedError(*run.ledger.diverged, result)
    if run.ledger.failed:
        raise TrainingFailedError(run.ledger.failed, result)
    return result


def _train(run: Run, on_chunk: OnChunk, checkpoints: Checkpoints | None) -> TrainingResult:
    ledger, driver, saver = run.ledger, run.driver, Saver(checkpoints, run) if checkpoints else None
    with memory_errors(), one_thread_for_linear_algebra(), interruptible() as asked_to_stop:
        run.compile_recording()
        recorder = run.recorder
        state = saver.restore() if saver else None
        if state is None:
            state = driver.start()
            _take_all(run, state)
        over = ledger.over
        while not over:
            steps_before = ledger.step
            if recorder:
                recorder.iteration = ledger.iteration
            state, records, metrics = driver.advance(state, ledger.finished, recorder)
            ledger.failed = None if driver.failure is None else str(driver.failure)
            answer = on_chunk(ledger.extend(records, metrics, run.start_returns(state)))
            if isinstance(answer, Stop) and not ledger.over:
                ledger.stopped = answer.reason
            over = ledger.over or asked_to_stop.is_set()
            if over:
                _take_all(run, state)
            if saver:
                saver.after_chunk(state, steps_before, over)
        networks = driver.gather(state, jax.vmap(run.loop.result))
        record = _record_of(run, networks, interrupted=not ledger.over or ledger.failed is not None)
    recorded = recorder.distributions(ledger.env_steps) if recorder else None
    if recorded:
        recorded = with_environment(recorded, run.driver.environments, run.builder)
    return TrainingResult(record, run.loop.agent, networks, run.interface, run.driver.environments, recorded)


def _take_all(run: Run, state: State) -> None:
    """Records the run at its beginning, and at its end."""
    if run.recorder:
        run.recorder.iteration = run.ledger.iteration
        run.recorder.take_all(state)


def _greedy_returns(run: Run, networks: Network) -> list[float]:
    """Mean return of greedy episodes of each seed; NaN if an environment fails in them."""
    try:
        return run.driver.play(networks, Greedy(), GREEDY_EPISODES).returns.mean(axis=1).tolist()
    except InputError as error:  # an environment cannot be made again, or fails
        run.ledger.failed = run.ledger.failed or str(error)
        return [math.nan] * run.settings.seeds


def _record_of(run: Run, networks: Network, interrupted: bool) -> RunRecord:
    greedy_returns, ledger = _greedy_returns(run, networks), run.ledger
    return RunRecord(
        asked=run.asked(),
        success_return=run.builder.success_return,
        floor_episodes=run.builder.floor_episodes,
        episodes=ledger.episodes,
        env_steps=ledger.env_steps,
        greedy_returns=greedy_returns,
        outside_share=ledger.outside_share,
        wall_seconds=ledger.seconds.wall,
        compile_seconds=ledger.seconds.compile,
        training_seconds=ledger.seconds.training,
        interrupted=interrupted,
        diverged=None if ledger.diverged is None else dict(zip(("seed", "step"), ledger.diverged, strict=True)),
        failed=ledger.failed,
        hardware=hardware(),
        stopped=ledger.stopped,
        compilations=ledger.seconds.compilations,
    )
