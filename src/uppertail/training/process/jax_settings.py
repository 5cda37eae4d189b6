"""The JAX settings that a run needs: JAX compiles, has a device, and computes in 32 bits."""

import contextlib

import jax

from uppertail.errors import InputError, message_of


def require_working() -> None:
    """Checks that JAX can train here.

    Raises:
        InputError: JAX is told not to compile, or finds no device.
    """
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue] - made when JAX is imported
        raise InputError("JAX is told not to compile (JAX_DISABLE_JIT), but a run is a compiled program: unset it.")
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # an unknown platform, or one without a device here
        why = f" ({message_of(error)})" if message_of(error) else ""
        raise InputError(f"JAX finds no device{why}: unset JAX_PLATFORMS, or set it to cpu.") from error


def in_32_bits() -> contextlib.AbstractContextManager[None]:
    """A context in which JAX's numbers have 32 bits, as all results of this project do, despite `jax_enable_x64`."""
    return jax.enable_x64(False)
