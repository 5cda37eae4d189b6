"""`uppertail export`: the greedy policy of a run as a file that other programs run."""

import numpy as np

from uppertail import records
from uppertail.cli import output_file
from uppertail.cli.options import Values
from uppertail.cli.trained import load
from uppertail.errors import InputError
from uppertail.export.operations import KINDS, Policy, Program
from uppertail.export.program import program_of
from uppertail.training.results import TrainingResult

MARKS = {".npz": b"readme.npy", ".onnx": b"made by"}  # what the files hold, by their endings
CHECKED = 1000
MOST_DIFFERENCE = 1e-3  # of mean returns that rounding explains, as a share of the largest one


def main(config: Values) -> int:
    """Runs the command."""
    if config.to is None:
        raise InputError("Which file? Add --to policy.onnx or --to policy.npz.")
    to = output_file(config.to, MARKS, "of no known kind")
    run = load(config.folder, config.trust)
    seed = run.best_seed if config.seed is None else config.seed
    program = program_of(run.player(seed))
    about = {"made by": "uppertail", "environment": run.record.environment, "method": run.record.method}
    about |= {"seed": str(seed), "action repeat": str(run.action_repeat)}
    content, policy = KINDS[to.suffix.lower()](program, about)
    checked = _checked(run, seed, program, policy)
    with records.write_errors(str(to), "give --to another file"):
        records.write_bytes(to, content)
    if not config.quiet:
        print(f"The greedy policy of seed {seed} in {to} ({len(content):,} bytes): {checked}.")
    return 0


def _checked(run: TrainingResult, seed: int, program: Program, policy: Policy) -> str:
    """Says how far the policy of a file differs from the run; InputError if by more than rounding."""
    observations = _observations(program)
    actions, means = policy(observations)
    asked = observations.reshape(CHECKED, *(run.interface.reading.shape or ()))
    expected = run.distribution(asked, seed).mean
    if not np.isfinite(expected).all():
        raise InputError(f"The network of seed {seed} holds NaN or infinite numbers: export another --seed.")
    difference = np.abs(means - expected).max()
    same = sum(map(np.allclose, actions, np.asarray(run.act(asked, seed=seed))))
    if difference > MOST_DIFFERENCE * max(1e-6, np.abs(expected).max()):
        raise InputError(f"Mean returns of the file and the run differ by {difference:.2g}, so nothing was written.")
    return f"{same:,} of {CHECKED:,} observations get the run's action; mean returns differ by up to {difference:.1g}"


def _observations(program: Program) -> np.ndarray:
    """Observations within the range of what the run saw, [CHECKED, ...]."""
    rng, size = np.random.default_rng(0), (CHECKED, *program.low.shape)
    if not program.low.ndim:
        return rng.integers(program.low, program.high, size, endpoint=True)
    drawn = rng.uniform(program.low, program.high, size).astype(np.float32)
    is_bit = (program.low == 0) & (program.high == 1)
    return np.where(is_bit, drawn.round(), drawn)
