"""Seconds of a run."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

from uppertail.capacity import require_memory

LESS = "use fewer seeds, a smaller width, batch_size or rollout_steps, or fewer bins or components"
"""What helps where the memory that a program works in does not suffice."""


class Stopwatch:
    """Seconds of a run, those before it was resumed included: of all of it, of compilation, of the training loop."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.before = self.compile = self.training = 0.0

    @property
    def wall(self) -> float:
        """Seconds of the whole run until now."""
        return self.before + time.perf_counter() - self.started

    def state(self) -> dict[str, float]:
        """What a resumed run adds its own times to."""
        return {"wall": self.wall, "compile": self.compile, "training": self.training}

    def add(self, state: Mapping[str, float]) -> None:
        """Adds the times of a run that is resumed."""
        self.before += state["wall"]
        self.compile += state["compile"]
        self.training += state["training"]

    def compiled(self, function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> Any:
        """A function, compiled for arguments of these shapes; the time it takes is counted.

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
