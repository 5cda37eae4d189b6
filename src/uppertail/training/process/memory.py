"""Errors of missing memory, in a sentence."""

import contextlib
from collections.abc import Iterator

import jax

from uppertail.errors import InputError

SMALLER = (
    "use fewer seeds, a smaller width, replay_size or --env.hash_size, or, where there are very many states, "
    "--env.encoding scalar"
)
"""The remedy if the state of all seeds does not fit into memory."""

SIGNS = ("RESOURCE_EXHAUSTED", "Out of memory")


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Turns JAX's errors of missing memory into a sentence.

    Raises:
        InputError: the code within asks JAX for more memory than there is.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not any(sign in str(error) for sign in SIGNS):
            raise
        raise InputError(f"The networks and replay buffers of all seeds do not fit into memory: {SMALLER}.") from error
