"""Output of commands. Errors while printing or drawing are reported, not raised, so that results are kept."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from uppertail.errors import InputError, join_names, message_of


def complain(line: str) -> None:
    """Prints a line to standard error."""
    print(f"uppertail: {line}", file=sys.stderr)


def output_file(name: str, endings: Sequence[str], what: str) -> Path:
    """A file that a command is to write, if its name has one of these endings and there is a folder for it."""
    path = Path(name)
    if path.suffix.lower() not in endings:
        raise InputError(f"The file {name!r} is {what}: give it a name that ends in {join_names(endings)}.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} for the file {path.name}: make it first.")
    return path


@contextlib.contextmanager
def picture(path: Path) -> Iterator[None]:
    """Reports an error while the picture at a path is drawn; an OSError, such as a full disk, is still raised."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # matplotlib itself may not be importable
        why = f"The picture {path.name} cannot be drawn ({type(error).__name__}: {message_of(error)})."
        complain(str(error) if isinstance(error, InputError) else why)


@contextlib.contextmanager
def forgiving() -> Iterator[list[str]]:
    """Keeps a command going while standard output or error is full, or can write ASCII only.

    Yields:
        A list; once the command is over, it holds a sentence for each output that was lost.
    """
    lost: list[str] = []
    out, errors = (_Forgiving(stream or io.StringIO()) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            yield lost
        finally:
            for stream in (out, errors):
                stream.restore()
            if out.error:
                what = message_of(out.error)
                lost.append(f"Standard output cannot be written ({what}): its text is lost, but no file is.")


class _Forgiving:
    """A text stream that goes silent when it cannot be written; a reader that has closed it is still an error."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.error = stream, None
        self._strict = isinstance(stream, io.TextIOWrapper) and stream.errors == "strict"
        if self._strict:
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        self._try(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self.stream.flush)

    def restore(self) -> None:
        """Leaves the stream as it was."""
        self.flush()
        if self._strict:
            self._try(lambda: self.stream.reconfigure(errors="strict"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _try(self, act: Callable[[], object]) -> None:
        if self.error is not None:
            return
        try:
            act()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.error = error
            with contextlib.suppress(OSError):  # else the interpreter tries to write the rest as it ends
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)
