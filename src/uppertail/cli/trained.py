"""A finished run, built again from its folder with the networks that it learned, if its code may run."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from uppertail import records
from uppertail.cli.options import PartChoice, content_of
from uppertail.cli.train import read_request
from uppertail.errors import InputError, printable
from uppertail.networks import Network
from uppertail.parts import PARTS, class_named
from uppertail.policies import ExplorationPolicy, Greedy
from uppertail.schema import require_type
from uppertail.training.checkpoint import LearnedFile, record_of
from uppertail.training.results import TrainingResult
from uppertail.training.run import Run


@dataclasses.dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run and its learned networks."""

    run: Run  # built again, before its first step
    file: LearnedFile  # of the networks
    networks: Network  # of all seeds
    policy: ExplorationPolicy  # to play with

    def require_finite(self, rows: slice) -> None:
        """Refuses networks of these seeds that hold NaN or infinite numbers."""
        for row in range(*rows.indices(self.run.settings.seeds)):
            if not all(np.isfinite(weight[row]).all() for weight in map(np.asarray, jax.tree.leaves(self.networks))):
                seed, remedy = self.run.settings.seed + row, "train again with a lower learning_rate or gradient_clip"
                raise InputError(f"The network of seed {seed} holds NaN or infinite numbers: {remedy}.")


@contextlib.contextmanager
def open_run(folder: Path, trust: bool | None, policy: str = "trained") -> Iterator[TrainedRun]:
    """The run in a folder, with its environments open; `trust` as for `require_trust`, `policy` as help says."""
    kind = _policy_class(policy)
    config = records.config_of(folder)
    require_trust(folder, trust)
    request = read_request(config)
    file = LearnedFile.read(folder)
    run = request.run(file.header.plan)
    own = run.method.policy
    try:
        yield TrainedRun(run, file, file.networks(run), own if isinstance(own, kind) else PartChoice(kind, {}).build())
    finally:
        run.close()


def _policy_class(name: str) -> type:
    """The class of a policy by its name or import path; trained: any."""
    built_in = {each.lower(): each for each in PARTS["policy"].kinds}
    try:
        own = {"greedy": Greedy, "trained": ExplorationPolicy}
        return own.get(name) or class_named("policy", built_in.get(name.lower(), name))
    except InputError as error:
        raise InputError(f"{error} There are also greedy and trained.") from error


def load(folder: Path | str, trust: bool = False) -> TrainingResult:
    """A run of `uppertail train` and what it learned, as `ut.train` returns it.

    Args:
        folder: where the run's files are.
        trust: whether code that the folder names may run though you did not make it on this machine.

    Raises:
        InputError: it is not the folder of a run, or one of its files is missing or damaged.

    Examples:
        >>> import tempfile
        >>> import uppertail as ut
        >>> from uppertail.cli import main
        >>> folder = f"{tempfile.mkdtemp()}/toy"
        >>> main(["train", "--env=Toy", "--seeds=2", "--episodes=256", f"--out={folder}", "--quiet"])
        0
        >>> run = ut.load(folder)
        >>> run.act(0), run.distribution(0, seed=1).mean.shape  # of state 0; by action
        (0, (2,))
    """
    files = records.RunFolder(Path(require_type("folder", folder, Path | str)))
    with jax.enable_x64(False), open_run(files.path, trust) as opened:
        return opened.run.result(record_of(files, opened.file.header), opened.networks, files.distributions)


KNOWN = ("uppertail", "gymnasium")  # packages whose code runs without a question
PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_][\w.]*:\S+")  # import paths, and ids with their module


def require_trust(folder: Path, trust: bool | None) -> None:
    """Refuses to run code that a folder names, unless it is ours, the user's own, or wanted (None: it never is)."""
    named = sorted(set(foreign_names(records.RunFolder(folder).config or {})))
    if not named or trust or (trust is not None and records.made_here(folder)):
        return
    what = f"The run in {folder} names code that is not UpperTail's or Gymnasium's ({printable(', '.join(named[:5]))})"
    if trust is None:
        raise InputError(f"{what}, and this command runs none: train with --record distributions, which it then reads.")
    raise InputError(
        f"{what}, and you did not make it on this machine: read that code, then add --trust (in Python, trust=True)."
    )


def foreign_names(options: Mapping[str, Any]) -> Iterator[str]:
    """What a run's options name that looks like a class or module that is neither UpperTail's nor Gymnasium's."""
    if "config" in options:  # no run writes it; it would replace other options
        yield "config"
    for text in _texts(options):
        yield from (found for found in PATH.findall(text) if re.split(r"[.:]", found)[0] not in KNOWN)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if (content := content_of(value)) != value:
            yield from _texts(content)
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
