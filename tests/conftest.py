"""Stricter rules for every test: runtime types and shapes, no silent promotion, reproducible examples."""

import os
from collections.abc import Callable
from typing import Any, Self

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # no test depends on what ran before
# compiling is nearly all of the time: the programs stay the same, their machine code is optimized less
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import beartype
import hypothesis
import jax
import jaxtyping
import optax

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile("local", deadline=None, max_examples=25)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# jaxtyping decorates functions one at a time, where beartype cannot know what Self means
checked = beartype.beartype(
    conf=beartype.BeartypeConf(hint_overrides=beartype.FrozenDict({Self: object}), is_pep484_tower=True)
)
jaxtyping.install_import_hook("uppertail", f"{__name__}.checked")


def standard_promotion(build: Callable[..., optax.GradientTransformation]) -> Callable[..., Any]:
    """An optimizer whose update runs under JAX's standard promotion: optax takes a float to an integer power."""

    def built(*args: Any, **kwargs: Any) -> optax.GradientTransformation:
        optimizer = build(*args, **kwargs)

        def update(updates: Any, state: Any, params: Any = None) -> Any:
            with jax.numpy_dtype_promotion("standard"):
                return optimizer.update(updates, state, params)

        return optax.GradientTransformation(optimizer.init, update)

    return built


optax.adam = standard_promotion(optax.adam)
