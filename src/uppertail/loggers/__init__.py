"""Where a run's numbers go while it trains: a file of lines, TensorBoard, Weights & Biases, or a logger of your own.

Examples:
    >>> import uppertail as ut
    >>> list(ut.loggers.LOGGERS)
    ['tensorboard', 'wandb']
"""

import inspect
import pydoc
from collections.abc import Callable
from pathlib import Path

from uppertail.errors import InputError, message_of, nearest
from uppertail.loggers.base import JSONL, Logger, metrics
from uppertail.loggers.services import TensorBoard, WandB
from uppertail.records import TENSORBOARD

__all__ = ["JSONL", "Logger", "TensorBoard", "WandB", "metrics", "named"]

LOGGERS: dict[str, Callable[[Path], Logger]] = {
    "tensorboard": lambda folder: TensorBoard(folder / TENSORBOARD),
    "wandb": WandB,
}


def named(name: str, folder: Path) -> Logger:
    """The logger of this name, or of the class at this import path, for the run in a folder; nothing is written yet.

    Raises:
        InputError: there is none, or its package is not installed.

    Examples:
        >>> from pathlib import Path
        >>> import uppertail as ut
        >>> isinstance(ut.loggers.named("tensorboard", Path("runs/mine")), ut.loggers.Logger)
        True
    """
    if name in LOGGERS:
        return LOGGERS[name](folder)
    try:
        found = pydoc.locate(name)
    except pydoc.ErrorDuringImport as error:
        raise InputError(f"The logger {name} cannot be imported ({error.value}): correct it there.") from error
    if isinstance(found, type) and issubclass(found, Logger) and not inspect.isabstract(found):
        try:
            return found(folder)  # pyright: ignore[reportCallIssue]
        except TypeError as error:
            why = message_of(error)
            raise InputError(f"The logger {name} cannot be made with the run's folder ({why}).") from error
    raise InputError(
        f"Unknown logger {name!r}: use {', '.join(LOGGERS)}, or the import path of a class that is an "
        f"uppertail.loggers.Logger and takes the run's folder.{nearest(name, LOGGERS, 1)}"
    )
