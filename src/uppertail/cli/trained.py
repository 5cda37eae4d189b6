"""A finished run, built again from its folder with the networks that it learned, if its code may run."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

from uppertail import records
from uppertail.cli import complain
from uppertail.cli.imports import find_here
from uppertail.cli.options import PartChoice
from uppertail.cli.train import Request, parse_request, read_request
from uppertail.cli.trust import require_trust
from uppertail.encodings import States
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.parts import PARTS, class_named
from uppertail.policies import ExplorationPolicy, Greedy
from uppertail.schema import require_type
from uppertail.training.checkpoint import LearnedFile, record_of
from uppertail.training.results import TrainingResult, remedy
from uppertail.training.run import Run


@dataclasses.dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run and its learned networks."""

    folder: Path
    run: Run  # built again, before its first step
    file: LearnedFile  # of the networks
    networks: Network  # of all seeds
    policy: ExplorationPolicy  # to play with

    @property
    def result(self) -> TrainingResult:
        """What `ut.train` returned."""
        files = records.RunFolder(self.folder)
        return self.run.result(record_of(files, self.file.header), self.networks, files.distributions)

    def require_finite(self, rows: slice) -> None:
        """Refuses networks of these seeds that hold NaN or infinite numbers."""
        for row in range(*rows.indices(self.run.settings.seeds)):
            if not all(np.isfinite(weight[row]).all() for weight in map(np.asarray, jax.tree.leaves(self.networks))):
                raise InputError(
                    f"The network of seed {self.run.settings.seed + row} holds NaN or infinite numbers: train again "
                    f"{remedy(self.file.header.asked)}."
                )


@contextlib.contextmanager
def elsewhere(opened: TrainedRun, changes: Sequence[str]) -> Iterator[Run]:
    """A run to play what was learned in: the same one, or with arguments of `uppertail train` that change it."""
    if not changes:
        yield opened.run
        return
    config = f"--config={records.config_of(opened.folder)}"
    request = parse_request([config, *changes])
    other = InputError(
        f"With {' '.join(changes)} the environment has other observations or actions than those of the run in "
        f"{opened.folder}, and what was learned does not apply to them: a table knows the states that it was made for, "
        "and a network has an input for each number. Change only what keeps them, such as a time limit, or train there."
    )
    try:
        run = request.run(opened.file.header.plan)
    except InputError as error:
        if _can_be_trained_in(request):
            raise other from error
        raise
    try:
        if not run.plays(opened.run):
            raise other
        here, there = run.driver.observations, opened.run.driver.observations
        if here != there and isinstance(here, States) and isinstance(there, States):
            complain(
                f"There are {here.count:,} states here, and {there.count:,} were learned: each is taken for the one of "
                "the same number, which is wrong if numbers mean something else here, as in a grid of other rows."
            )
        if run.draws_anew(opened.run):
            complain(
                f"Seed {run.settings.seed} draws other environments than those of the run, in which what was learned "
                "may be wrong."
            )
        yield run
    finally:
        run.close()


def _can_be_trained_in(request: Request) -> bool:
    """Whether a request is good but for the plan of the earlier run, whose choices do not fit another environment."""
    try:
        dataclasses.replace(request, plan=None).run().close()
    except InputError:
        return False
    return True


@contextlib.contextmanager
def open_run(folder: Path, trust: bool | None, policy: str = "trained") -> Iterator[TrainedRun]:
    """The run in a folder, with its environments open; `trust` as for `require_trust`, `policy` as help says."""
    find_here({"policy": policy})
    kind = _policy_class(policy)
    config = records.config_of(folder)
    require_trust(folder, trust)
    request = read_request(config)
    file = LearnedFile.read(folder)
    request.require_same(file.header.asked)
    run = request.run(file.header.plan)
    own = run.method.policy
    try:
        yield TrainedRun(
            folder, run, file, file.networks(run), own if isinstance(own, kind) else PartChoice(kind, {}).build()
        )
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
    with jax.enable_x64(False), open_run(Path(require_type("folder", folder, Path | str)), trust) as opened:
        return opened.result
