"""Work on cells, in this process or by Dask's workers: of this machine, of a running cluster, or as its jobs."""

import contextlib
import dataclasses
import importlib
import itertools
import logging
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uppertail.errors import InputError, import_package, message_of
from uppertail.studies.cells import LOSSES, LOST, Cell, Outcome
from uppertail.studies.folder import StudyFolder, checksums, finished_run
from uppertail.studies.search import Pruner, Space, TrialPrunedError

SETTINGS = dict.fromkeys(("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SETTINGS |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
"""A worker has one thread of work, shares an accelerator, and may start processes, as some environments do."""
JOBS = {"cores": 1, "memory": "4GB", "walltime": "04:00:00", "job_name": "uppertail"}  # a job's parameters by default
DEATHS = 30  # Dask counts a worker's death against cells that only waited for it, too; see StudyFolder.begin
TIMEOUT = 10.0  # seconds until a scheduler must answer
DASHBOARD = "127.0.0.1:0"  # on a free port: several studies may run at a time

Train = Callable[[Cell, Path, Sequence[Callable[[Any], object]]], object]
"""Trains a cell to its end in a folder, from its last checkpoint if there is one; calls the functions with progress."""


@dataclasses.dataclass(frozen=True)
class Work:
    """Runs cells of a study; what a worker is sent."""

    folder: Path  # the study's, under a name that every worker sees
    train: Train
    space: Space | None = None  # of a search, if the cells are its trials

    def __call__(self, cell: Cell) -> Outcome:
        """Runs a cell, unless it has ended: each ends once, whoever works on it."""
        study = StudyFolder(self.folder)
        if not study.definition.is_file():
            raise InputError(f"there is no study in {self.folder} on this machine: use a folder that all share.")
        with study.working_on(cell.name):
            outcome = study.outcome(cell.name)
            if outcome is None:
                outcome = self._run(cell, study.cell(cell)) if study.begin(cell) <= LOSSES else LOST
                study.end(cell.name, outcome)
        return outcome

    def _run(self, cell: Cell, place: Path) -> Outcome:
        began, message = time.monotonic(), "it ended without results"
        try:
            if finished_run(place) is None:
                self.train(cell, place, [] if self.space is None else [Pruner(self.folder, cell)])
        except TrialPrunedError:
            return Outcome("pruned", seconds=time.monotonic() - began)
        except InputError as error:
            message = str(error)
        except Exception as error:  # the user's own code may raise anything
            traceback.print_exc()
            message = f"{type(error).__name__}: {error}"
        run = finished_run(place)
        if run is None:
            return Outcome("failed", message)
        if at := run.summary["diverged"]:
            step = at["step"]
            return Outcome("failed", f"the loss of seed {at['seed']} became NaN or infinite by environment step {step}")
        seconds = round(max(time.monotonic() - began, run.summary["wall_seconds"]), 3)
        value = None if self.space is None else self.space.value(run)
        if self.space is not None and value is None:
            return Outcome("failed", "it finished no episode")
        return Outcome("done", "", seconds, checksums(place), value)


def outcomes(work: Work, cells: Iterator[Cell], client: Any) -> Iterator[tuple[Cell, Outcome]]:
    """Runs cells, as many at a time as the workers have threads; yields each when it ends, and how it ended."""
    from distributed import CancelledError, wait
    from distributed.comm.core import CommClosedError

    running: dict[Any, Cell] = {}
    try:
        while True:
            room = max(1, sum(client.nthreads().values())) - len(running)
            running |= {client.submit(work, cell, pure=False): cell for cell in itertools.islice(cells, max(0, room))}
            if not running:
                return
            with contextlib.suppress(TimeoutError):
                wait(list(running), timeout=1, return_when="FIRST_COMPLETED")
            for future in [each for each in running if each.done()]:
                yield running.pop(future), _outcome(future)
    except (CancelledError, CommClosedError) as error:
        raise InputError(
            "The Dask scheduler is gone; finished cells are kept: start it, then repeat the command."
        ) from error


def _outcome(future: Any) -> Outcome:
    from distributed import CancelledError, KilledWorker

    try:
        return future.result()
    except KilledWorker:
        return LOST
    except (InputError, CancelledError):
        raise
    except Exception as error:  # such as a package that it lacks
        raise InputError(
            f"A worker cannot run cells ({type(error).__name__}: {message_of(error)}); finished cells are kept: "
            "fix the worker, then repeat the command."
        ) from error


@contextlib.contextmanager
def connected(
    workers: int, scheduler: str | None, launcher: str, jobs: Mapping[str, Any], folder: Path
) -> Iterator[Any]:
    """Yields a client of Dask whose workers are started and ended again, or are those of a running scheduler.

    The launcher is here, for processes of this machine, or slurm, pbs, lsf or sge, for jobs with these parameters.
    """
    distributed = import_package("distributed", "More than one worker", ", or use --workers 1")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # a worker that dies is Dask's to replace
    asked = {"distributed.scheduler.allowed-failures": DEATHS, "distributed.worker.daemon": False}
    with importlib.import_module("dask.config").set(asked), contextlib.ExitStack() as stack:
        try:
            place: Any = scheduler
            if scheduler is None:
                own = _processes(workers) if launcher == "here" else _jobs(launcher, workers, jobs, folder)
                place = stack.enter_context(own)
            client = stack.enter_context(distributed.Client(place, timeout=TIMEOUT))
        except (OSError, RuntimeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            where = f"scheduler at {scheduler}" if scheduler else "cluster"
            raise InputError(f"There is no Dask {where} ({message_of(error)}): start it, or use --workers.") from error
        yield client


def _processes(workers: int) -> Any:
    """A cluster of processes on this machine; a worker whose process dies is replaced."""
    from distributed import LocalCluster

    quiet: dict[str, Any] = {"dashboard_address": DASHBOARD, "silence_logs": logging.CRITICAL}
    env = {name: os.environ.get(name, value) for name, value in SETTINGS.items()}
    return LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=0, env=env, **quiet)


def _jobs(launcher: str, workers: int, parameters: Mapping[str, Any], folder: Path) -> Any:
    """A cluster whose workers are jobs; one that ends, at its time limit or otherwise, is replaced."""
    cluster_class = getattr(import_package("dask_jobqueue", f"The launcher {launcher}"), f"{launcher.upper()}Cluster")
    command = cluster_class.job_cls.submit_command
    if shutil.which(command) is None:
        raise InputError(f"There is no {command} here: run the command where it works, or use --workers.")
    exports = [f"export {name}={value}" for name, value in SETTINGS.items()]
    asked = {**JOBS, "job_script_prologue": exports, "log_directory": str(folder / "jobs")}
    asked |= {"scheduler_options": {"dashboard_address": DASHBOARD}, **parameters}
    try:
        cluster = cluster_class(**asked)
    except (TypeError, ValueError) as error:
        raise InputError(f"The jobs cannot be made ({message_of(error)}): correct jobs in the study's file.") from error
    cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)
    return cluster
