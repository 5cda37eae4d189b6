"""One seed of a run that recorded: its path, and the states that are shown."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from uppertail.environments import FiniteMDP
from uppertail.records.distributions import Distributions
from uppertail.reports.rebuilt import Rebuilt

SHOWN = 8
"""How many states are shown with their distributions, unless the user names some."""

OPTIMISM = 2.0
"""The upper bound is the mean plus this many standard deviations: the middle of UCB's range."""


@dataclasses.dataclass(frozen=True, eq=False)
class Seed:
    """One seed of a run that recorded.

    Args:
        recorded: the records of all seeds.
        row: which of the seeds.
        parts: the run's parts.
        table: its environment's table; None if it has none.
        discount: discount per step.
    """

    recorded: Distributions
    row: int
    parts: Rebuilt
    table: FiniteMDP | None
    discount: float

    def path(self, moment: int = -1) -> list[int]:
        """The states along the greedy path at a moment, as far as they were recorded."""
        states = self.recorded.states[moment, self.row]
        if self.table is None or states[0] < 0:
            return states[states >= 0][:1].tolist()
        best = dict(zip(states.tolist(), self.recorded.mean[moment, self.row].argmax(axis=1).tolist(), strict=True))
        state, path = int(self.table.start_state[0]), []
        while state in best and state not in path:
            path.append(state)
            where = (state, best[state], int(jnp.argmax(self.table.probability[state, best[state]])))
            if bool(self.table.terminated[where]):
                break
            state = int(self.table.next_state[where])
        return path

    def choose_states(self, asked: list[int]) -> list[int]:
        """The states whose distributions are shown: those asked for, else some along the path, else often visited."""
        if asked:
            return asked
        path = self.path()
        states = [path[place] for place in np.unique(np.linspace(0, len(path) - 1, SHOWN).round().astype(int))]
        if self.recorded.visits is not None:
            counts = self.recorded.visits[-1, self.row].sum(axis=1)
            order = self.recorded.states[-1, self.row][np.argsort(-counts, kind="stable")]
            states += [int(each) for each in order[: (counts > 0).sum()] if each >= 0 and each not in path]
        along = {state: place for place, state in enumerate(path)}
        return sorted(dict.fromkeys(states[:SHOWN]), key=lambda state: (along.get(state, len(path)), state))

    def places(self, states: list[int]) -> Int[np.ndarray, "moments states"]:
        """The position of each state among those recorded at each moment; -1: it is not there."""
        recorded = self.recorded
        found = [
            [recorded.place_of(moment, self.row, state) for state in states] for moment in range(len(recorded.step))
        ]
        return np.array([[-1 if place is None else place for place in row] for row in found])
