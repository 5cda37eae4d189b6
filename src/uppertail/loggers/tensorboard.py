"""A log that TensorBoard shows, written by tensorboardX; the only file that imports it."""

import importlib
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from uppertail.loggers.base import Logger, import_extra


@final
class TensorBoard(Logger):
    """Scalars in event files: `tensorboard --logdir FOLDER`. Numbers that are not finite are left out.

    A run that goes on begins a file of its own, which says that later steps in the files before it do not count.

    Args:
        folder: where the event files go.

    Raises:
        InputError: tensorboardX is not installed.
    """

    def __init__(self, folder: Path | str) -> None:
        import_extra("tensorboardX", "tensorboard")
        self.folder = Path(folder)
        # SummaryWriter's own writer, without its queue, which a killed process would lose
        self._files: Any = importlib.import_module("tensorboardX.event_file_writer")
        self._events: Any = importlib.import_module("tensorboardX.proto.event_pb2")
        self._summaries: Any = importlib.import_module("tensorboardX.proto.summary_pb2")
        self._writer: Any = None

    def begin(self, step: int) -> None:
        self.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._files.EventsWriter(str(self.folder / "events"), f".{step:012d}")
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._add(step + 1, session_log=start)  # from this step on, earlier files do not count

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        value = self._summaries.Summary.Value
        known = [value(tag=name, simple_value=number) for name, number in numbers.items() if math.isfinite(number)]
        self._add(step, summary=self._summaries.Summary(value=known))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add(self, step: int, **content: Any) -> None:
        self._writer.write_event(self._events.Event(wall_time=time.time(), step=step, **content))
        self._writer.flush()
