"""A training run looked at several times on its way."""

from typing import NamedTuple

import jax
import numpy as np

from experiments.paper.cells import Report
from experiments.paper.snapshots import Snapshot
from uppertail.environments import EnvironmentBuilder
from uppertail.training.method import Method
from uppertail.training.process import interruptible
from uppertail.training.run import Run
from uppertail.training.settings import Settings
from uppertail.types import PyTree


class Stage(NamedTuple):
    """All seeds of a run after a number of environment steps of each."""

    step: int
    snapshot: Snapshot


def stages(
    environment: EnvironmentBuilder, method: Method, settings: Settings, count: int, report: Report
) -> list[Stage]:
    """The start and the end of a run with a limit of steps, and stages between them at about geometric intervals.

    Raises:
        KeyboardInterrupt: Ctrl-C; an experiment needs the whole run.
    """
    run = Run(environment, method, settings)
    seen: list[Stage] = []

    def look(state: PyTree) -> None:
        networks = run.driver.gather(state, lambda each: each.learned.network)
        step = int(run.driver.gather(state, lambda each: each.iteration)[0]) * run.loop.rollout_steps
        seen.append(Stage(step, Snapshot(run.loop.agent, jax.tree.map(np.array, networks), run.driver.environments)))

    try:
        with interruptible() as asked_to_stop:
            state = run.driver.start()
            look(state)
            while not run.ledger.over:
                state, records, metrics = run.driver.advance(state, run.ledger.finished)
                report(run.ledger.extend(records, metrics, run.start_returns(state)))
                look(state)
                if asked_to_stop.is_set():
                    raise KeyboardInterrupt(asked_to_stop.signal_number)
    finally:
        run.close()
    later = [stage.step for stage in seen[1:]]
    wanted = np.geomspace(later[0], later[-1], count - 1)
    kept = sorted({0, *(1 + int(np.argmin(np.abs(np.array(later) - step))) for step in wanted)})
    return [seen[index] for index in kept]
