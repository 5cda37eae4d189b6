"""Trains from Python in one call; drives a run chunk after chunk until its end."""

import contextlib
import dataclasses
import inspect
import math
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import threadpoolctl

from uppertail.defaults import Plan
from uppertail.distributions import ReturnDistribution
from uppertail.environments import EnvironmentBuilder, builder_of
from uppertail.errors import InputError, nearest
from uppertail.evidence import EvidenceBuilder
from uppertail.learners import LearnerBuilder, LearnerState
from uppertail.networks import NetworkBuilder
from uppertail.parts import ABSENT, ELSEWHERE
from uppertail.policies import ExplorationPolicy
from uppertail.records import RunRecord, locked, write_errors
from uppertail.replay import Replay
from uppertail.schema import require_type
from uppertail.targets import Target
from uppertail.training.birth import birth
from uppertail.training.checkpoints import Checkpoints, Saver
from uppertail.training.driver import State
from uppertail.training.earlier import Earlier
from uppertail.training.ledger import Progress, Stop
from uppertail.training.method import Method
from uppertail.training.process import OutOfTimeError, StopRequest, hardware, interruptible, memory_errors
from uppertail.training.remarks import remarks
from uppertail.training.results import TrainingDivergedError, TrainingFailedError, TrainingInterrupted, TrainingResult
from uppertail.training.run import Run
from uppertail.training.settings import Settings

PAUSE = 0.2  # the fewest seconds between two lines in a notebook

OnChunk = Callable[[Progress], object]
"""Called with the progress after each compiled chunk; a `Stop` that it returns stops the run, all else is ignored."""

LOGGERS = "on_chunk, which a logger can be (docs/logs.md)"
OF_OPTIONS = {
    "out": "checkpoints, or `uppertail train --out DIR`, which makes the folder of a run",
    "quiet": "on_chunk, which is called with the progress",
    "logger": LOGGERS,
    "env": "environment",
}
OF_GYM = "environment=ut.Gym(id, max_episode_steps=..., kwargs={...})"
OF_PYTHON = {
    **OF_OPTIONS,
    **{each: OF_OPTIONS[name] for each, option in ELSEWHERE.items() if (name := option.split()[0]) in OF_OPTIONS},
    **dict.fromkeys(("callback", "callbacks", "log"), "on_chunk"),
    **dict.fromkeys(("max_episode_steps", "time_limit", "env_kwargs", "env_config", "env_args"), OF_GYM),
    "policy_kwargs": "network=ut.PerAction(width=...)",
}
"""Names that other libraries give to what only Python has."""


def train(
    environment: EnvironmentBuilder | object = None,
    distribution: ReturnDistribution[Any] | str | None = None,
    policy: ExplorationPolicy | str | None = None,
    settings: Settings | None = None,
    on_chunk: OnChunk = lambda progress: None,
    checkpoints: Checkpoints | None = None,
    network: NetworkBuilder | str | None = None,
    replay: Replay | str | None = None,
    target: Target | str | None = None,
    record: str | None = None,
    record_over: tuple[int, int] | None = None,
    learner: LearnerBuilder | str | None = None,
    evidence: EvidenceBuilder | str | None = None,
    init: Path | str | None = None,
    **more: Any,
) -> TrainingResult:
    """Trains all seeds side by side; seed k follows the run of seed k alone.

    A part may also be the name of its class: then it has that class's defaults.

    Args:
        environment: a builder such as Chain or Gym, its name, the id of a Gymnasium environment, such an environment,
            or a function that makes one.
        distribution: the family of return distributions; Gaussian if left out.
        policy: the exploration policy; UCB if left out.
        settings: how long, on how much data, with how many seeds.
        on_chunk: called with the progress after each chunk of steps; a `Stop` that it returns stops the run.
        checkpoints: where the run's state is saved; the same call again continues from there.
        network: builds the network of GradientDescent; if left out, Twin beside kernel counts, PerAction for all else.
        replay: its replay buffer; Uniform if left out.
        target: which network gives its bootstrap; if left out, RunningMean beside counts of numbers or pixels,
            Periodic(250) for other images and Online for all else.
        record: distributions, for return distributions at moments of the run (`result.distributions`).
        record_over: two numbers of a vector over which their width is recorded; None: the first two that are not
            left out.
        learner: how return distributions are learned; if left out, LeastSquares for what repeats, GradientDescent for
            numbers, for images, and where a part or setting of gradient descent is given.
        evidence: what share of the wide start is left beside the network of GradientDescent; if left out, Counts for
            one-hot states, KernelCounts for numbers, PixelCounts for images of environments that are not compiled, and
            NoEvidence for all else.
        init: the folder of a run with checkpoints, from whose end this one starts: with what each seed learned and
            stored, and what was chosen for it. Observations, actions and parts must be the same.
        more: single settings, such as seeds=2, in place of those in `settings`.

    Raises:
        InputError: an argument is unknown or of another kind, the distribution cannot represent the environment's
            returns, or the checkpoints cannot be used.
        TrainingDivergedError: a loss became NaN or infinite.
        TrainingFailedError: an environment could not go on.
        TrainingInterrupted: Ctrl-C or SIGTERM came; it is a KeyboardInterrupt, and its `result` is what was learned.

    Examples:
        >>> import uppertail as ut
        >>> result = ut.train(ut.Toy(), ut.Gaussian(), ut.UCB(), ut.Settings(seeds=2, episodes=64))
        >>> result.record.summary()["final_greedy_return"]
        [3.0, 3.0]
        >>> ut.train("Toy", policy="Thompson", seeds=1, steps=256).record.method
        'Gaussian, Thompson'
    """
    if isinstance(distribution, Settings) or isinstance(policy, Settings):
        raise InputError("Settings stand where a part is expected: give them by name, settings=ut.Settings(...).")
    if isinstance(distribution, int | float) and not isinstance(distribution, bool):
        raise InputError(f"distribution is {distribution}: give a number by name, such as steps={distribution:.0f}.")
    for name, value, kind in (("settings", settings, Settings), ("checkpoints", checkpoints, Checkpoints)):
        if not isinstance(value, kind | None):
            raise InputError(f"{name} is {value!r}: give an object of class {kind.__name__}, or leave it out.")
    require_type("on_chunk", on_chunk, OnChunk)
    settings = _with(settings or Settings(), more)
    if environment is None:
        raise InputError("environment is left out: give a builder, the id of a Gymnasium environment, or a function.")
    parts = {"network": network, "replay": replay, "target": target, "evidence": evidence}
    method = Method.of(distribution=distribution, policy=policy, learner=learner, **parts)
    builder = builder_of(environment)
    # numbers have 32 bits, as in all results of this project, also where a program has asked JAX for 64
    with jax.enable_x64(False), updating_line() as show, contextlib.ExitStack() as lock:
        earlier = None if init is None else Earlier.read(require_type("init", init, Path | str))
        before = checkpoints and checkpoints.plan()

        def made(plan: Plan | None) -> Run:
            return Run(builder, method, settings, before or plan, record, record_over)

        run, learned = earlier.begun(made) if earlier else (made(None), None)
        for note in run.notes:
            warnings.warn(note, stacklevel=2)
        if checkpoints is not None:
            folder = Path(checkpoints.folder)
            with write_errors(f"The folder {folder}", "give the checkpoints another one"):
                folder.mkdir(parents=True, exist_ok=True)
            lock.enter_context(locked(folder))
        asked = lock.enter_context(interruptible())
        result = drive(run, lambda progress: (show(progress), on_chunk(progress))[1], checkpoints, learned)
    if asked.is_set():
        raise TrainingInterrupted(result)
    for remark in remarks(run, result):
        warnings.warn(remark, stacklevel=2)
    return result


def _with(settings: Settings, more: Mapping[str, Any]) -> Settings:
    """Settings with some replaced by name; an unknown name is refused."""
    known = [field.name for field in dataclasses.fields(Settings)]
    here = {name: name for name in [*known, *inspect.signature(train).parameters]}
    there = {each: _argument(option) for each, option in ELSEWHERE.items() if re.split("[ .]", option)[0] in here}
    shown = there | OF_PYTHON
    for name in [each for each in more if each not in known]:
        hint = ABSENT.get(name) or nearest(name, shown | here, 1, shown=shown)
        raise InputError(f"There is no setting {name}.{hint or ' `help(ut.Settings)` lists them.'}")
    return dataclasses.replace(settings, **more)


def _argument(option: str) -> str:
    """An option of the command line as an argument: `policy EpsilonGreedy` is `policy="EpsilonGreedy"`."""
    name, _, value = option.partition(" ")
    return f'{name}="{value}"' if value else name.partition(".")[0]


def drive(
    run: Run, on_chunk: OnChunk, checkpoints: Checkpoints | None = None, learned: LearnerState | None = None
) -> TrainingResult:
    """Trains chunk after chunk until every seed has reached a limit, the user stops it, or it fails.

    It continues from the last checkpoint if there is one, else it starts with what was `learned` earlier. In the end
    the run is closed. It raises what `train` raises.
    """
    birth()  # of the code as it is now, not as it may be edited during the run
    try:
        # LAPACK gets one thread: its threads wait by spinning, which takes 100 times as long on a busy machine
        with memory_errors(), threadpoolctl.threadpool_limits(1, "blas"), interruptible() as asked_to_stop:
            run.driver.stop = asked_to_stop
            state = _start(run, saver := Saver(checkpoints, run) if checkpoints else None, learned)
            state = _train(run, state, on_chunk, saver, asked_to_stop)
            result = _result(run, state)
    finally:
        run.close()
    if run.ledger.diverged:
        raise TrainingDivergedError(result=result, **run.ledger.diverged)
    if run.ledger.failed:
        raise TrainingFailedError(run.ledger.failed, result)
    return result


def _start(run: Run, saver: Saver | None, learned: LearnerState | None) -> State:
    """The state to go on from: of a checkpoint, else before the first step."""
    if saver and (state := saver.restore()) is not None:
        return state
    state = run.driver.start()
    if learned is not None:
        state = run.driver.begun_with(state, learned)
    run.record(state)
    return state


def _train(run: Run, state: State, on_chunk: OnChunk, saver: Saver | None, asked_to_stop: StopRequest) -> State:
    """The state of all seeds at the end."""
    ledger, driver = run.ledger, run.driver
    over = ledger.over
    while not over:
        steps_before = ledger.step
        state, records, metrics = run.advance(state)
        ledger.failed = driver.failure
        progress = ledger.extend(records, metrics, run.start_returns(state))
        if run.is_evaluated:
            try:
                state, returns = run.evaluated(state)
                progress = dataclasses.replace(progress, greedy_return=float(returns.mean()))
            except OutOfTimeError:
                pass
            except InputError as error:
                ledger.failed = ledger.failed or str(error)
        answer = on_chunk(progress)
        if isinstance(answer, Stop) and not ledger.over:
            ledger.stopped = answer.reason
        over = ledger.over or asked_to_stop.is_set()
        if saver:
            saver.after_chunk(state, steps_before, over)
    run.record(state)  # not in a checkpoint: a run that goes on from there has no moment there
    return state


def _result(run: Run, state: State) -> TrainingResult:
    """The result of a run; greedy episodes are played for its record."""
    ledger, networks, kept_step = run.ledger, run.networks(state), None
    run.met_chance = run.has_met_chance(state)
    if run.builder.known_returns:
        run.best_mean = run.best_mean_of(state)
    interrupted = not ledger.over or ledger.failed is not None  # what fails from here on does not interrupt it
    greedy_returns = np.full(run.settings.seeds, math.nan)
    run.driver.release()
    try:
        greedy_returns = run.greedy_returns(networks)
    except OutOfTimeError:
        pass
    except InputError as error:  # an environment cannot be made again, or fails
        ledger.failed = ledger.failed or str(error)
    if run.loop.keeps_best:
        best = run.driver.gather(run.driver.compared(state, greedy_returns), lambda each: each.best)
        networks, greedy_returns = best.network, np.asarray(best.ret)
        steps = run.builder.repeats * run.loop.rollout_steps * np.asarray(best.iteration)
        kept_step = np.minimum(steps, ledger.env_steps).tolist()
    record = RunRecord(
        asked=run.asked(),
        success=run.builder.criterion,
        floor_episodes=run.builder.floor_episodes,
        episodes=ledger.episodes,
        env_steps=ledger.env_steps,
        greedy_returns=greedy_returns.tolist(),
        **{f"{name}_seconds": seconds for name, seconds in ledger.programs.state().items()},
        interrupted=interrupted,
        diverged=ledger.diverged,
        failed=ledger.failed,
        hardware=hardware(),
        stopped=ledger.stopped,
        outside_share=ledger.outside_share,
        compilations=ledger.programs.compilations,
        kept_step=kept_step,
    )
    return run.result(record, networks, run.recorded(networks))


def is_notebook() -> bool:
    """Whether this process is a notebook's kernel; it imports nothing to find out."""
    return "ipykernel" in sys.modules and sys.modules["IPython"].get_ipython() is not None


@contextlib.contextmanager
def updating_line() -> Iterator[Callable[[Progress], None]]:
    """Shows that a run compiles; yields the callback that shows its progress instead, and does nothing elsewhere."""
    if not is_notebook():
        yield lambda progress: None
        return
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    line = display({"text/plain": "compiling"}, raw=True, display_id=True)
    last, shown = "", time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last, shown
        last = f"{progress.fraction:4.0%}  {progress.text}"
        if time.monotonic() >= shown + PAUSE:
            line.update({"text/plain": last}, raw=True)
            shown = time.monotonic()

    try:
        yield show
    finally:
        line.update({"text/plain": last}, raw=True)
