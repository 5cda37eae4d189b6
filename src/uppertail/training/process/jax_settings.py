"""JAX as a run needs it, whatever a user's surroundings say: it compiles, has a device, and counts in 32 bits."""

import contextlib

import jax

from uppertail.errors import InputError, said


def require_working() -> None:
    """Refuses surroundings in which nothing can be trained.

    Raises:
        InputError: JAX is told not to compile, or finds no device.
    """
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue] - made when JAX is imported
        raise InputError("JAX is told not to compile (JAX_DISABLE_JIT), but a run is a compiled program: unset it.")
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # a platform that there is not, one that has no device here
        why = f" ({said(error)})" if said(error) else ""
        raise InputError(f"JAX finds no device{why}: unset JAX_PLATFORMS, or set it to cpu.") from error


def in_32_bits() -> contextlib.AbstractContextManager[None]:
    """Within it JAX's numbers have 32 bits, as every result of this project, also for users of `jax_enable_x64`."""
    return jax.enable_x64(False)
