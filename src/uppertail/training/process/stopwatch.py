"""Seconds of a run."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

from uppertail.capacity import require_memory

LESS = "use fewer seeds, a smaller width, batch_size or rollout_steps, or fewer bins or components"
"""The remedy if a program needs too much memory."""


class Stopwatch:
    """Seconds of a run, including those before it was resumed: in total, for compilation, in the training loop."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0

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

    def compiled(self, function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> Any:
        """Compiles a function for arguments of these shapes, and counts the time it takes.

        Raises:
            InputError: the program needs more memory than there is.
        """
        began = time.perf_counter()
        program = jax.jit(function, donate_argnums=donate).lower(*arguments).compile()
        self.compile += time.perf_counter() - began
        if (needs := program.memory_analysis()) is not None:
            new = needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes
            require_memory(new, "A step of this run needs", LESS)
        return program
