"""Files that are written whole or not at all, and files of named arrays."""

import contextlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.schema import MismatchError

LARGEST = 2**31
"""The most bytes that the arrays of one file may take in memory."""


@contextlib.contextmanager
def write_errors(what: str, remedy: str) -> Iterator[None]:
    """Turns an OSError into an InputError that says what cannot be written, why, and what helps."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be written ({error.strerror}): {remedy}.") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file, whole or not at all."""
    partial = path.with_name(f".{path.name}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes an .npz file, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # pyright: ignore[reportArgumentType]
    write_bytes(path, content.getvalue())


def read_arrays(path: Path, remedy: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file.

    Args:
        path: the file.
        remedy: what to do if it is of no use, for the end of a sentence.

    Raises:
        InputError: it is missing or damaged.
    """
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise ValueError("too large")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return dict(file)
    except (Exception, MemoryError) as error:  # a damaged file raises many kinds of errors
        raise InputError(f"{path} is missing or damaged: {remedy}.") from error


def require_array(name: str, array: np.ndarray | None, kinds: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """An array, if it is of one of these kinds and has this shape.

    Args:
        name: its name.
        array: the array; None if it is missing.
        kinds: NumPy's letters of the types that it may have: b, i, f.
        shape: its axes; None stands for any length above 0.

    Raises:
        MismatchError: it is not.
    """
    if array is None:
        raise MismatchError(f"its array {name} is missing")
    fits = array.ndim == len(shape) and all(
        size > 0 if wanted is None else size == wanted for size, wanted in zip(array.shape, shape, strict=True)
    )
    if array.dtype.kind not in kinds or not fits:
        raise MismatchError(f"its array {name} has another type or shape")
    return array
