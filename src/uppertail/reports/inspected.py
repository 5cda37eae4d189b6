"""One seed of a run at one moment: its distributions in a state, its greedy path."""

import dataclasses
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from uppertail.agent import Agent
from uppertail.environments import FiniteMDP
from uppertail.errors import InputError
from uppertail.networks import Network
from uppertail.records.distributions import Distributions
from uppertail.reports.details import SPREAD
from uppertail.reports.groups import environment_label
from uppertail.reports.rebuilt import Rebuilt
from uppertail.reports.seeds import OPTIMISM
from uppertail.training.run import Run
from uppertail.types import PyTree

MOST_PATH = 1000
"""The most states of a greedy path that are shown."""


class Drawn(NamedTuple):
    """Heights of each action's density over one range of returns."""

    low: float
    high: float
    of: list[list[float]]


@dataclasses.dataclass(frozen=True, eq=False)
class Inspected:
    """What `uppertail inspect` shows.

    Args:
        environment: the name of the environment.
        method: the distribution and the policy.
        seed: the seed.
        when: the moment, in words.
        step: environment steps until then.
        family: the return distributions.
        table: the environment's table; None if it has none.
        states: the states; empty if observations are not states, where 0 stands for the first one.
        returns: the distribution's parameters, with axes [states, members, actions].
        visits, last: data of each state and action, and the step of the last; None where they were not counted.
    """

    environment: str
    method: str
    seed: int
    when: str
    step: int
    family: Any
    table: FiniteMDP | None
    states: list[int]
    returns: PyTree
    visits: np.ndarray | None = None
    last: np.ndarray | None = None

    @classmethod
    def of(
        cls, run: Run, networks: Network, recorded: Distributions | None, seed: int | None, step: int | None
    ) -> Self:
        """Looks at a run, at its end or at a recorded moment.

        Raises:
            InputError: there is no such seed, or nothing was recorded.
        """
        first, count = run.settings.seed, run.settings.seeds
        number = first if seed is None else seed
        if number not in range(first, first + count):
            raise InputError(f"There is no seed {number} in this run: give one from {first} to {first + count - 1}.")
        if step is not None and recorded is None:
            raise InputError(
                "This run recorded no distributions, so only its end can be looked at: leave --step out, or train with "
                "--record distributions."
            )
        row = number - first
        tables = run.world.environments
        table = jax.tree.map(lambda leaf: leaf[row], tables) if isinstance(tables, FiniteMDP) else None
        common = {
            "environment": environment_label(run.asked()["environment"], Rebuilt(run.builder)),
            "method": f"{type(run.method.distribution).__name__}, {type(run.method.policy).__name__}",
            "seed": number,
            "family": run.loop.agent.family,
            "table": table,
        }
        if recorded is not None:
            return cls(**common, **_moment(recorded, row, step, run.loop.agent))
        network = jax.tree.map(lambda leaf: leaf[row], networks)
        states = list(range(table.num_states)) if table is not None else []
        observations = jnp.asarray(states, jnp.int32) if states else run.world.start_observations()[row][None]
        returns = jax.jit(jax.vmap(lambda each: run.loop.agent.returns_by_member(network, each)))(observations)
        return cls(**common, when="at the end", step=-1, states=states, returns=returns)

    @property
    def mean(self) -> Float[np.ndarray, "states actions"]:
        """Mean of each action's return, over all members."""
        return np.asarray(jnp.mean(self._each(self.family.mean), axis=1))

    @property
    def std(self) -> Float[np.ndarray, "states actions"]:
        """Its standard deviation, that of the mixture over members."""
        mean, std = self._each(self.family.mean), self._each(self.family.std)
        return np.asarray(jnp.sqrt(jnp.mean(std**2, axis=1) + jnp.var(mean, axis=1)))

    def place(self, state: int | None) -> int:
        """The position of a state; by default that of the path's first.

        Raises:
            InputError: there is no such state.
        """
        if state is None:
            return self._place_of_start()
        if state == 0 and not self.states:
            return 0
        if state not in self.states:
            raise InputError(f"There is no state {state} to look at: give {self._known()}.")
        return self.states.index(state)

    def document(self, state: int | None) -> dict[str, Any]:
        """Everything about a state, and the greedy path."""
        place = self.place(state)
        mean, upper = self.mean, self.mean + OPTIMISM * self.std
        actions = [
            {
                "action": action,
                "greedy": bool(mean[place, action] == mean[place].max()),
                "mean": float(mean[place, action]),
                "std": float(self.std[place, action]),
                "upper": float(upper[place, action]),
                "visits": None if self.visits is None else int(self.visits[place, action]),
                "age": self._age(place, action),
                "parameters": self._parameters(place, action),
            }
            for action in range(mean.shape[1])
        ]
        return {
            "environment": self.environment,
            "method": self.method,
            "seed": self.seed,
            "when": self.when,
            "state": self.states[place] if self.states else None,
            "actions": actions,
            "path": [self._on_path(each, mean, upper) for each in self._path(mean)] if self.states else [],
        }

    def densities(self, state: int | None, points: int) -> Drawn | None:
        """Densities of each action in a state; None for a family that has none."""
        if not self.family.has_density:
            return None
        place = self.place(state)
        mean, reach = self.mean[place], SPREAD * self.std[place]
        low, high = float((mean - reach).min()), float((mean + reach).max())
        edges = np.linspace(low, high, 8 * points, dtype=np.float32)  # finer than what is shown: peaks are narrow
        z = jax.tree.map(lambda leaf: leaf[place], self.returns)
        density = jnp.mean(jax.vmap(jax.vmap(lambda each: self.family.density(each, jnp.asarray(edges))))(z), axis=0)
        return Drawn(low, high, np.asarray(density).reshape(len(mean), points, 8).max(axis=2).tolist())

    def _known(self) -> str:
        """The states, for a sentence."""
        if not self.states:
            return "0, the first observation"
        if len(self.states) == max(self.states) + 1:
            return f"one from 0 to {max(self.states)}"
        return f"one of those recorded, such as {', '.join(map(str, self.states[:10]))}"

    def _each(self, moment: Any) -> Any:
        return jax.vmap(jax.vmap(jax.vmap(moment)))(self.returns)

    def _place_of_start(self) -> int:
        start = 0 if self.table is None else int(self.table.start_state[0])
        return self.states.index(start) if start in self.states else 0

    def _age(self, place: int, action: int) -> int | None:
        if self.last is None or not self.last[place, action]:
            return None
        return self.step - int(self.last[place, action])

    def _parameters(self, place: int, action: int) -> dict[str, Any]:
        leaves, _ = jax.tree_util.tree_flatten_with_path(self.returns)
        each = {jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf) for path, leaf in leaves}
        return {name: _plain(array[place, :, action]) for name, array in each.items()}

    def _path(self, mean: np.ndarray) -> list[int]:
        """The places along the greedy path."""
        places, place = [], self._place_of_start()
        while place not in places and len(places) < MOST_PATH:
            places.append(place)
            if self.table is None:
                break
            state, action = self.states[place], int(mean[place].argmax())
            where = (state, action, int(jnp.argmax(self.table.probability[state, action])))
            if bool(self.table.terminated[where]) or int(self.table.next_state[where]) not in self.states:
                break
            place = self.states.index(int(self.table.next_state[where]))
        return places

    def _on_path(self, place: int, mean: np.ndarray, upper: np.ndarray) -> dict[str, Any]:
        action = int(mean[place].argmax())
        others = np.delete(upper[place], action)
        other = float(others.max()) if others.size else None
        return {
            "state": self.states[place],
            "action": action,
            "mean": float(mean[place, action]),
            "upper": float(upper[place, action]),
            "other_upper": other,
            "gap": None if other is None else float(upper[place, action]) - other,
        }


def _moment(recorded: Distributions, row: int, step: int | None, agent: Agent) -> dict[str, Any]:
    """The record of a seed at the last moment up to a step."""
    steps = recorded.step[:, row]
    moment = len(steps) - 1 if step is None else int(np.searchsorted(steps, step, side="right")) - 1
    there = recorded.states[moment, row] >= 0
    paths, structure = jax.tree_util.tree_flatten_with_path(agent.family.terminal())
    names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
    leaves = [jnp.asarray(recorded.parameters[name][moment, row][there]) for name in names]
    return {
        "when": f"after {recorded.episode[moment, row]:,} episodes, {steps[moment]:,} steps",
        "step": int(steps[moment]),
        "states": recorded.states[moment, row][there].tolist() if recorded.of_states else [],
        "returns": jax.tree.unflatten(structure, leaves),
        "visits": None if recorded.visits is None else recorded.visits[moment, row][there],
        "last": None if recorded.last is None else recorded.last[moment, row][there],
    }


def _plain(array: np.ndarray) -> Any:
    """Numbers for JSON: without the axis of a single member, and with large numbers in place of infinite ones."""
    values = np.nan_to_num(array, neginf=-1e30, posinf=1e30)
    return (values[0] if len(values) == 1 else values).tolist()
