"""Files that are written whole or not at all, and files of named arrays."""

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uppertail.errors import InputError
from uppertail.schema import MismatchError

LARGEST = 2**31  # the most bytes that the arrays of one file may take in memory


@contextlib.contextmanager
def write_errors(what: str, remedy: str) -> Iterator[None]:
    """Turns an OSError into an InputError that says what cannot be written, why, and what helps."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be written ({error.strerror}): {remedy}.") from error


def write_bytes(path: Path, content: bytes, durable: bool = False) -> None:
    """Writes a file, whole or not at all; a durable one, and its name, are on the disk when this returns."""
    partial = path.with_name(f".{path.name}")
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


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes an .npz file, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # pyright: ignore[reportArgumentType]
    write_bytes(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; a damaged one raises many kinds of errors."""
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
            raise MismatchError("it is too large")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


def arrays_below(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with this, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


@contextlib.contextmanager
def read_errors(path: Path, remedy: str) -> Iterator[None]:
    """Turns whatever goes wrong with the contents of a file into an InputError that names it and says what helps."""
    try:
        yield
    except MismatchError as error:
        raise InputError(f"{path} is damaged ({error}): {remedy}.") from error
    except (Exception, MemoryError) as error:  # a damaged file raises many kinds of errors
        raise InputError(f"{path} is missing or damaged: {remedy}.") from error


def require_arrays(arrays: Mapping[str, np.ndarray], layout: Mapping[str, tuple[str, str]]) -> dict[str, int]:
    """Refuses arrays that have another layout, by a MismatchError; returns the length of each axis.

    The layout has for each array NumPy's letter of its type (b, i, f or U) and the names of its axes, with "..." for
    any further ones. Axes of one name have one length.
    """
    sizes: dict[str, int] = {}
    for name, (kind, axes) in layout.items():
        if name not in arrays:
            raise MismatchError(f"its array {name} is missing")
        shape, named = arrays[name].shape, axes.removesuffix(" ...").split()
        count_fits = len(shape) == len(named) or (len(shape) > len(named) and axes.endswith("..."))
        sizes_fit = all(sizes.setdefault(axis, size) == size for axis, size in zip(named, shape, strict=False))
        if arrays[name].dtype.kind != kind or not (count_fits and sizes_fit):
            raise MismatchError(f"its array {name} has another type or shape")
    if odd := sorted(arrays.keys() - layout.keys()):
        raise MismatchError(f"its array {odd[0]} is not expected")
    return sizes
