"""`uppertail export`: the greedy policy of a run as a file that other programs run."""

from typing import Any

import numpy as np

from uppertail import records
from uppertail.cli import output_file
from uppertail.cli.options import Values
from uppertail.cli.trained import open_run
from uppertail.environments import EnvironmentBuilder
from uppertail.environments.gymnasium.builder import GymnasiumBuilder
from uppertail.environments.random_policy import random_steps
from uppertail.errors import InputError
from uppertail.export.operations import KINDS, Policy, Program
from uppertail.export.program import program_of
from uppertail.training.results import TrainingResult

MARKS = {".npz": b"readme.npy", ".onnx": b"made by"}  # what the files hold, by their endings
CHECKED, AT_ONCE = 1000, 100  # observations that are compared, in all and at once, since images are large
MOST_DIFFERENCE = 1e-3  # of mean returns that rounding explains, as a share of the largest one


def main(config: Values) -> int:
    """Runs the command."""
    if config.to is None:
        raise InputError("Which file? Add --to policy.onnx or --to policy.npz.")
    to = output_file(config.to, MARKS, "of no known kind")
    with open_run(config.folder, config.trust) as opened:
        run = opened.result
        seed = run.best_seed if config.seed is None else config.seed
        program, observations = program_of(run.player(seed)), _observations(opened.run.builder)
    about = {"made by": "uppertail", "environment": run.record.environment, "method": run.record.method}
    about |= {"seed": str(seed), "action repeat": str(run.action_repeat)}
    kept = run.record.network_of(seed - run.seeds[0])
    content, policy = KINDS[to.suffix.lower()](program, about)
    checked = _checked(run, seed, observations, program, policy)
    with records.write_errors(str(to), "give --to another file"):
        records.write_bytes(to, content)
    if not config.quiet:
        print(f"The greedy policy of seed {seed} ({kept}) in {to} ({len(content):,} bytes): {checked}.")
        if run.action_repeat > 1:
            print(f"Take each of its actions for {run.action_repeat} steps, as in training.")
    return 0


def _checked(run: TrainingResult, seed: int, asked: Any, program: Program, policy: Policy) -> str:
    """Says how far the policy of a file differs from the run at observations; InputError if by more than rounding."""
    mask = np.random.default_rng(0).random((CHECKED, program.actions)) < 0.5
    mask[np.arange(CHECKED), np.arange(CHECKED) % program.actions] = True
    given = np.reshape(asked, (CHECKED, *program.shape)) if program.type else asked
    same, difference, largest = 0, 0.0, 1e-6
    for rows in (slice(begin, begin + AT_ONCE) for begin in range(0, CHECKED, AT_ONCE)):
        actions, *found = policy(given[rows], mask[rows])
        returns = run.distribution(asked[rows], seed)
        if not np.isfinite(returns.mean).all():
            raise InputError(f"The network of seed {seed} holds NaN or infinite numbers: export another --seed.")
        same += sum(map(np.allclose, actions, np.asarray(run.act(asked[rows], seed=seed, action_mask=mask[rows]))))
        moments = [*zip(found, (returns.mean, returns.std), strict=True)]
        difference = max(difference, *(np.abs(own - wanted).max() for own, wanted in moments if own is not None))
        largest = max(largest, np.abs(returns.mean).max())
    if difference > MOST_DIFFERENCE * largest:
        raise InputError(
            f"Returns of the file and the run differ by {difference:.2g}, so nothing was written: use ut.load(DIR).act."
        )
    return f"{same:,} of {CHECKED:,} observations get the run's action; mean returns differ by up to {difference:.1g}"


def _observations(builder: EnvironmentBuilder) -> Any:
    """Observations of a random policy, as the environment gives them."""
    if isinstance(builder, GymnasiumBuilder) and (seen := builder.walk(CHECKED)):
        return seen if builder.interface.reading.shape is None else np.array(seen)
    return np.asarray(random_steps(builder, observed=True).observation)[:CHECKED]
