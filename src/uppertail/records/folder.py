"""The folder of a run: what its files are called, how it is claimed, and how it is locked."""

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from uppertail.errors import InputError
from uppertail.records.files import write_errors

CONFIG, EPISODES, SUMMARY, CURVE = "config.yaml", "episodes.npz", "summary.json", "curve.png"
NETWORKS = "networks.safetensors"
NEXT_CONFIG = "config-next.yaml"
"""The config.yaml of a run that goes beyond its limit, until the longer run has written results."""
FILES = (CONFIG, EPISODES, SUMMARY, NETWORKS, CURVE)
EVALUATION = "evaluation-*.json"
"""What `evaluate` writes: one file for each policy."""
DISTRIBUTIONS, REPORT = "distributions.npz", "report.html"
"""What `--record distributions` and `report` write."""
LOG, WANDB_ID = "log.jsonl", "wandb-id.txt"
"""What loggers write: numbers chunk by chunk, and the id of the run at Weights & Biases."""
DAMAGED_LOG = f"{LOG}.damaged"
"""The new name of a log that cannot be read."""
CHECKPOINTS, CHECKPOINT_PATTERN = "checkpoints", "step-*.safetensors"
TENSORBOARD = "tensorboard"
FOLDERS = {CHECKPOINTS: (CHECKPOINT_PATTERN, f".{CHECKPOINT_PATTERN}"), TENSORBOARD: ("events.out.tfevents.*",)}
"""The folders within the folder of a run, and the files in them, including those of a killed process."""
LOCK = ".lock"
"""The file in a locked folder. The operating system releases its lock when the process ends, however it ends."""
PROBE = ".writable"
LEFTOVERS = (LOCK, PROBE, *(f".{name}" for name in (*FILES, NEXT_CONFIG, DISTRIBUTIONS, REPORT, WANDB_ID)))
"""What a killed process may leave in the folder of a run."""
PATIENCE = 0.2
"""Seconds until a folder counts as in use: a process that has just ended may be removing its lock."""


def disk_errors(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Turns an OSError into an InputError that says that results cannot be written."""
    return write_errors(f"The output {folder}", "choose another --out")


@contextlib.contextmanager
def output_errors(folder: Path) -> Iterator[None]:
    """As `disk_errors`; also for a name that no folder can have."""
    try:
        with disk_errors(folder):
            yield
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"The output {str(folder)!r} cannot be the name of a folder: choose another --out.") from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks an existing folder for this process.

    Raises:
        InputError: another process has it, or it cannot be written.
    """
    lock = FileLock(folder / LOCK, timeout=PATIENCE)
    with write_errors(f"The folder {folder}", "make it writable"):
        try:
            lock.acquire()
        except Timeout as error:
            raise InputError(
                f"The folder {folder} is in use by another process: wait until that has ended, or use another folder."
            ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a folder that cannot be written any more
            (folder / LOCK).unlink(missing_ok=True)  # while the lock is held, so that it is this process's file
        lock.release()


def config_of(folder: Path) -> Path:
    """The config.yaml of a folder; one without it is refused, since it is not that of a run."""
    config = folder / CONFIG
    if not config.is_file():
        raise InputError(f"{folder} is not the folder of a run: give one with a {CONFIG}, as `train` writes it.")
    return config


def unused_folder(parent: Path, name: str) -> Path:
    """The first of parent/name, parent/name-2, parent/name-3, ... that does not exist."""
    folders = (parent / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())


def claim_unused(parent: Path, name: str) -> Path:
    """Makes the first of parent/name, parent/name-2, ... that does not exist: two processes never get the same one."""
    with output_errors(parent / name):
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            with contextlib.suppress(FileExistsError):  # another process was faster
                (folder := unused_folder(parent, name)).mkdir()
                _probe(folder)
                return folder


def claim_folder(folder: Path, overwrite: bool | None = None) -> None:
    """Makes the folder of a run, or empties one of its earlier results.

    Args:
        folder: where the results go.
        overwrite: whether earlier results may be replaced; None where a command has no such option.

    Raises:
        InputError: it exists and may not be overwritten, is not the folder of a run, or cannot be written.
    """
    with output_errors(folder):
        if not overwrite:
            require_unused(folder, "" if overwrite is None else ", or add --overwrite")
        if folder.exists():
            _require_a_run(folder)
            with locked(folder):
                for path in _files(folder):
                    path.unlink(missing_ok=True)
                for place in (folder / name for name in FOLDERS):
                    for path in _contents(place):
                        path.unlink()
                    if place.exists():
                        place.rmdir()
        folder.mkdir(parents=True, exist_ok=True)
        _probe(folder)


def require_unused(folder: Path, otherwise: str = "") -> None:
    """Refuses a folder that exists; `otherwise` is a remedy besides choosing another one."""
    with output_errors(folder):
        if folder.exists():
            raise InputError(f"The output {folder} exists already: choose another --out{otherwise}.")


def _probe(folder: Path) -> None:
    """Fails where the folder cannot be written."""
    (folder / PROBE).touch()
    (folder / PROBE).unlink()


def _require_a_run(folder: Path) -> None:
    """Refuses to empty a folder that holds anything but the files and folders of a run."""
    more = InputError(f"The output {folder} holds more than a run's files, so it is not overwritten.")
    places = [folder / name for name in FOLDERS]
    if not folder.is_dir() or set(folder.iterdir()) - {*_files(folder), *places, folder / LOCK}:
        raise more
    for place in places:
        if place.is_symlink():  # its files lie elsewhere, and may not be of a run
            raise InputError(
                f"The output {folder} has a link in place of its folder {place.name}, so it is not overwritten: "
                "remove the link, or choose another --out."
            )
        if place.exists() and (not place.is_dir() or set(place.iterdir()) != _contents(place)):
            raise more
    files = [*_files(folder), *(path for place in places for path in _contents(place))]
    if any(path.is_dir() and not path.is_symlink() for path in files):
        raise more


def _files(folder: Path) -> set[Path]:
    """The files that a run may leave in its folder, except for the lock."""
    names = {*FILES, NEXT_CONFIG, DISTRIBUTIONS, REPORT, LOG, DAMAGED_LOG, WANDB_ID, *LEFTOVERS} - {LOCK}
    return {folder / name for name in names}.union(*(folder.glob(each) for each in (EVALUATION, f".{EVALUATION}")))


def _contents(place: Path) -> set[Path]:
    """What a run has written to one of its folders."""
    return {path for pattern in FOLDERS[place.name] for path in place.glob(pattern)}
