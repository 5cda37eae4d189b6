"""Seconds of a run, and what it compiles."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from uppertail.capacity import require_memory
from uppertail.training.process.programs import compile_program

LESS = "use fewer seeds, a smaller width, batch_size or rollout_steps, or fewer bins or components"
"""The remedy if a program needs too much memory."""


class Stopwatch:
    """Seconds of a run, including those before it was resumed: in total, for compilation, in the training loop.

    Attributes:
        compilations: programs that this process compiled for it; it shares the others with earlier runs.
    """

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0
        self.compilations = 0

    @property
    def wall(self) -> float:
        """Seconds of the whole run until now."""
        return self.before + time.perf_counter() - self.started

    def state(self) -> dict[str, float]:
        """The times until now, to which a resumed run adds its own."""
        return {"wall": self.wall, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        """Adds the times of a run that is resumed."""
        self.before += state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]

    def compiled(
        self,
        function: Callable[..., Any],
        parts: Any,
        *arguments: Any,
        static: tuple[Any, ...] = (),
        donate: tuple[int, ...] = (),
    ) -> Callable[..., Any]:
        """Compiles a function, as `compile_program` does, for these arguments, and counts the time it takes.

        Raises:
            InputError: the program needs more memory than there is.
        """
        began = time.perf_counter()
        program = compile_program(function, parts, arguments, static, donate)
        self.compile += time.perf_counter() - began
        self.compilations += program.is_new
        if (needs := program.compiled.memory_analysis()) is not None:
            new = needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes
            require_memory(new, "A step of this run needs", LESS)
        return program.call
