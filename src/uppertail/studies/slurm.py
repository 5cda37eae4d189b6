"""Workers as Slurm's jobs, through submitit: one that reaches its time limit is queued again, and goes on."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from uppertail.errors import InputError, message_of

DEFAULTS = {"name": "uppertail", "timeout_min": 240, "cpus_per_task": 1}
"""The parameters of a job by default."""
TIMEOUTS = 100
"""How often a job may reach its time limit and be queued again."""
JOBS = "jobs"


@dataclasses.dataclass(frozen=True)
class Job:
    """A worker, in the form that submitit calls.

    Args:
        work: runs a study's cells until all are done or failed.
        folder: the study's folder.
    """

    work: Callable[[str], int]
    folder: str

    def __call__(self) -> int:
        return self.work(self.folder)

    def checkpoint(self) -> Any:
        """The job to queue when the time limit is near: the same, which goes on with the cells that are left."""
        from submitit.helpers import DelayedSubmission  # pyright: ignore[reportMissingImports]

        return DelayedSubmission(self)


def submit(
    folder: Path, work: Callable[[str], int], count: int, parameters: Mapping[str, Any], cluster: str = "slurm"
) -> list[Any]:
    """Submits workers.

    Args:
        folder: the study's folder, which every machine sees under the same name.
        work: the function that a worker runs.
        count: how many workers.
        parameters: parameters of the jobs, for submitit's `update_parameters`.
        cluster: one of submitit's clusters; local, for a trial run.

    Returns:
        submitit's jobs.

    Raises:
        InputError: submitit is not installed, there is no Slurm here, or it refuses the parameters.
    """
    try:
        import submitit  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(
            "The launcher slurm needs the package submitit: install it with `pip install 'uppertail[slurm]'`."
        ) from error
    place = folder.resolve()
    try:
        limits = {f"{cluster}_max_num_timeout": TIMEOUTS}
        executor = submitit.AutoExecutor(folder=place / JOBS, cluster=cluster, **limits)
        executor.update_parameters(**{**DEFAULTS, **parameters})
        with executor.batch():
            jobs = [executor.submit(Job(work, str(place))) for _ in range(count)]
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        raise InputError(
            f"Slurm takes no jobs ({message_of(error)}): call it where `sbatch` works, with settings under slurm that "
            "submitit's update_parameters knows."
        ) from error
    return jobs
