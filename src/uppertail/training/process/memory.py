"""What to say where memory does not suffice."""

import contextlib
from collections.abc import Iterator

import jax

from uppertail.errors import InputError

SIGNS = ("RESOURCE_EXHAUSTED", "Out of memory")


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Says in a sentence that memory does not suffice.

    Raises:
        InputError: what happens within asks JAX for more memory than there is.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not any(sign in str(error) for sign in SIGNS):
            raise
        raise InputError(
            "The networks and replay buffers of all seeds do not fit into memory: use fewer seeds, a smaller width or "
            "replay_size, or, where there are very many states, --env.encoding scalar."
        ) from error
