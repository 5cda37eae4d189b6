"""The folder of a run: its files, written whole or not at all; how it is claimed, locked, and sealed by its user."""

import contextlib
import fnmatch
import hashlib
import hmac
import io
import itertools
import json
import os
import re
import secrets
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from uppertail.errors import InputError

CONFIG, EPISODES, SUMMARY, CURVE = "config.yaml", "episodes.npz", "summary.json", "curve.png"
NETWORKS = "networks.safetensors"
NEXT_CONFIG = "config-next.yaml"
"""The config.yaml of a run that goes beyond its limit, until the longer run has written results."""
EVALUATION = "evaluation-*.json"  # what `evaluate` writes: one file for each policy
DISTRIBUTIONS, REPORT = "distributions.npz", "report.html"
"""What `--record distributions` and `report` write."""
LOG, WANDB_ID = "log.jsonl", "wandb-id.txt"
"""What loggers write: numbers chunk by chunk, and the id of the run at Weights & Biases."""
CHECKPOINTS, CHECKPOINT_PATTERN = "checkpoints", "step-*.safetensors"
TENSORBOARD = "tensorboard"
LOCK = ".lock"
"""The file in a locked folder. The operating system releases its lock when the process ends, however it ends."""
CONTENTS = (
    *(CONFIG, NEXT_CONFIG, EPISODES, SUMMARY, CURVE, NETWORKS, DISTRIBUTIONS, REPORT, LOG, WANDB_ID),
    *(EVALUATION, f"{CHECKPOINTS}/{CHECKPOINT_PATTERN}", f"{TENSORBOARD}/events.out.tfevents.*"),
)
"""What a run may leave in its folder; a killed process may leave each with `PARTIAL` before its name."""
PARTIAL = re.compile(r"^\.(\d+-)?")  # what stands before the name of a file that is being written
PATIENCE = 0.2  # seconds until a folder counts as in use: a process that has just ended may be removing its lock
KEY_BYTES = 32
SEAL = "# made here: "
"""The beginning of the last line of config.yaml; the rest is the HMAC of all lines before, with the user's own key."""


@contextlib.contextmanager
def write_errors(what: str, remedy: str) -> Iterator[None]:
    """Turns an OSError into an InputError that says what cannot be written, why, and what helps."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be written ({error.strerror}): {remedy}.") from error


def write_bytes(path: Path, content: bytes, durable: bool = False) -> None:
    """Writes a file, whole or not at all; a durable one, and its name, are on the disk when this returns.

    Two processes can write the same file, unless it is a durable one, whose folder they lock.
    """
    partial = path.with_name(f".{path.name}" if durable else f".{threading.get_native_id()}-{path.name}")
    try:
        with partial.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    if durable:
        with contextlib.suppress(PermissionError):  # Windows opens no folders, so it cannot make the new name durable
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def digest(arrays: Mapping[str, np.ndarray], text: str = "") -> str:
    """SHA-256 of a text and of arrays: their names, types, shapes and bytes."""
    total = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.asarray(array, order="C").reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes an .npz file whose comment is the checksum of its arrays, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # pyright: ignore[reportArgumentType]
    with zipfile.ZipFile(content, "a") as archive:
        archive.comment = digest(arrays).encode()
    write_bytes(path, content.getvalue())


def arrays_below(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with this, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


@contextlib.contextmanager
def output_errors(folder: Path) -> Iterator[None]:
    """Turns an OSError into an InputError that says that results cannot be written; refuses impossible names."""
    with contextlib.suppress(OSError):
        try:
            folder.lstat()
        except ValueError as error:
            raise InputError(
                f"The output {str(folder)!r} cannot be the name of a folder: choose another --out."
            ) from error
    with write_errors(f"The output {folder}", "choose another --out"):
        yield


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks an existing folder for this process; one that another process has or that cannot be written is refused."""
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
        if (folder / CHECKPOINTS).is_dir() and not (folder / SUMMARY).exists():
            raise InputError(
                f"{folder} holds checkpoints of ut.train alone: repeat that call in Python, and use its result."
            )
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
                return folder


def claim_folder(folder: Path, overwrite: bool | None = None) -> None:
    """Makes the folder of a run, or empties one of its earlier results; `overwrite` is None where that is no option."""
    with output_errors(folder):
        if not overwrite:
            require_unused(folder, "" if overwrite is None else ", or add --overwrite")
        if folder.exists():
            files, places = _contents(folder)
            with locked(folder):
                for path in files:
                    path.unlink(missing_ok=True)
                for place in places:
                    place.rmdir()
        folder.mkdir(parents=True, exist_ok=True)


def require_unused(folder: Path, otherwise: str = "") -> None:
    """Refuses a folder that exists; `otherwise` is a remedy besides choosing another one."""
    with output_errors(folder):
        _require_no_file(folder)
        if folder.exists():
            raise InputError(f"The output {folder} exists already: choose another --out{otherwise}.")


def _require_no_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"The output {folder} is a file: choose another --out.")


def _contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files in the folder of a run, except for the lock, and the folders there; anything else in it is refused."""
    places = [folder / CHECKPOINTS, folder / TENSORBOARD]
    if link := next(filter(Path.is_symlink, places), None):  # its files lie elsewhere, and may not be of a run
        raise InputError(
            f"The output {folder} has a link in place of its folder {link.name}, so it is not overwritten: "
            "remove the link, or choose another --out."
        )
    places = [place for place in places if place.is_dir()]
    files = [path for place in (folder, *places) if place.is_dir() for path in place.iterdir()]
    files = [path for path in files if path not in (*places, folder / LOCK)]

    def is_of_a_run(path: Path) -> bool:
        name = path.relative_to(folder).with_name(PARTIAL.sub("", path.name)).as_posix()
        is_folder = path.is_dir() and not path.is_symlink()
        return not is_folder and any(fnmatch.fnmatchcase(name, pattern) for pattern in CONTENTS)

    _require_no_file(folder)
    if strange := next((path for path in files if not is_of_a_run(path)), None):
        raise InputError(
            f"The output {folder} holds more than a run's files, so it is not overwritten: move "
            f"{strange.relative_to(folder)} elsewhere, or choose another --out."
        )
    return files, places


def write_config(path: Path, options: str) -> None:
    """Writes a config.yaml with its seal, whole or not at all; without one where the user's key cannot be kept."""
    seal = _seal(options)
    write_text(path, options if seal is None else f"{options}{SEAL}{seal}\n")


def made_here(config: Path) -> bool:
    """Whether this user made the run with this config.yaml on this machine, and nobody has changed the file since."""
    with contextlib.suppress(OSError, ValueError):
        options, mark, seal = config.read_text(encoding="utf-8").rpartition(SEAL)
        expected = _seal(options)
        return bool(mark) and expected is not None and hmac.compare_digest(expected.encode(), seal.strip().encode())
    return False


def _seal(options: str) -> str | None:
    """The HMAC of a text; None where there is no key."""
    try:
        return hmac.new(_key(), options.encode(), hashlib.sha256).hexdigest()
    except (OSError, RuntimeError):  # the folder cannot be written, or the user has no home
        return None


def _key() -> bytes:
    """The user's secret, made when it is first needed."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    folder = (named if named.is_absolute() else Path.home() / ".local" / "state") / "uppertail"
    path = folder / "key"
    if not path.is_file() or path.stat().st_size < KEY_BYTES:  # an emptied file is no secret
        path.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".key-{os.getpid()}"
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(partial, path)
        partial.unlink()
    return path.read_bytes()
