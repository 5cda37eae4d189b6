"""Stricter rules for every test: runtime types and shapes, no silent promotion, reproducible examples."""

import functools
import importlib.metadata
import inspect
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, get_args

os.environ.setdefault("MPLBACKEND", "Agg")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Compiled programs are kept for one session, and shared by its workers and the processes that tests start: no test
# depends on what ran before the session. A worker of pytest-xdist gets the folder from the process that started it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    PROGRAMS = tempfile.TemporaryDirectory(prefix="uppertail-tests-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = PROGRAMS.name
    os.environ["XDG_STATE_HOME"] = f"{PROGRAMS.name}/state"  # the key of seals: nothing is left in the user's home
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"
# Compiling is most of the time: the programs stay the same, their machine code is optimized less and emitted sooner.
# A jaxlib that does not know a flag ends the process.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    + " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    * importlib.metadata.version("jaxlib").startswith("0.10."),
)

import beartype
import hypothesis
import jax
import jaxtyping
import optax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_default_matmul_precision", "highest")  # also where tests call parts themselves, on a GPU

hypothesis.settings.register_profile("fixed", deadline=None, max_examples=25, derandomize=True)  # no test is luck
hypothesis.settings.register_profile("search", deadline=None, max_examples=600)  # --hypothesis-profile=search
hypothesis.settings.load_profile("fixed")

# Functions are decorated one at a time, where beartype cannot know what Self means; a state of optax refers to itself
checked = beartype.beartype(
    conf=beartype.BeartypeConf(
        hint_overrides=beartype.FrozenDict({Self: object, optax.OptState: object}),
        is_pep484_tower=True,
        violation_type=TypeError,
    )
)
as_published = jaxtyping.jaxtyped


def jaxtyped(function: Any = None, *, typechecker: Callable[..., Any]) -> Any:
    """jaxtyping's decorator, which checks a call once, and sizes only where annotations name arrays.

    The published one binds and checks the arguments of each call twice: half of the time of all tests.
    """
    if function is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if not inspect.isfunction(function):
        return as_published(function, typechecker=typechecker)
    once = typechecker(function)
    if not any(names_arrays(hint) for hint in function.__annotations__.values()):
        return once

    @functools.wraps(function)
    def with_sizes(*args: Any, **kwargs: Any) -> Any:
        with as_published("context"):
            return once(*args, **kwargs)

    return with_sizes


def names_arrays(hint: Any) -> bool:
    """Whether an annotation, or a part of it, is of jaxtyping or a text."""
    return (
        isinstance(hint, str) or type(hint).__module__.startswith("jaxtyping") or any(map(names_arrays, get_args(hint)))
    )


jaxtyping.jaxtyped = jaxtyping._decorator.jaxtyped = jaxtyped  # for functions of modules; for methods of classes
jaxtyping.install_import_hook(["uppertail", "experiments.paper"], f"{__name__}.checked")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test works in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """Calls a command that is refused in one sentence, and returns the sentence."""
    from uppertail.cli import main  # checked, as all of the package is, from the hook on

    def call(arguments: list[str]) -> str:
        capsys.readouterr()
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("uppertail: ") and error.count("\n") == 1
        return error

    return call


LONGEST = ("paper", "host", "watch", "training", "wrapped", "resume", "groups", "memory", "alike", "evaluate")
"""The files that take longest, `tests/test_<name>.py`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of two workers each is given one half of the tests, and begins with long ones: none is left for the end."""

    def of(*names: str) -> list[pytest.Item]:
        return [item for item in items if item.path.stem.removeprefix("test_") in names]

    one, other = of(*LONGEST[::2]), of(*LONGEST[1::2])
    long = {*one, *other}
    short = [item for item in items if item not in long]
    count = max(0, len(items) // 2 - len(one))
    items[:] = [*one, *short[:count], *other, *short[count:]]


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
