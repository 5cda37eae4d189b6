"""What an agent has learned at a moment of its training: its distributions, and how policies act on them."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from experiments.paper.cells import Report
from experiments.paper.drawing.learned_returns import LearnedReturn
from experiments.paper.form import PARTS
from experiments.paper.training_cell import whole_run
from uppertail.agent import Agent
from uppertail.distributions import ReturnDistribution
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.networks import Network
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.training.method import Method
from uppertail.training.run import Run
from uppertail.training.settings import Settings
from uppertail.types import PyTree

DECISIONS = 10_000
"""How many decisions of a policy measure its action probabilities: their standard error is 0.005 at most."""


class Shape(NamedTuple):
    """What is drawn of a distribution: atoms with their probabilities, or a density at a grid of returns."""

    returns: Float[np.ndarray, " points"]
    density: Float[np.ndarray, " points"]
    discrete: bool


class Snapshot(NamedTuple):
    """All seeds of a run at one moment; networks and environments have a leading axis of seeds."""

    agent: Agent
    networks: Network
    environments: PyTree

    @property
    def num_seeds(self) -> int:
        """How many seeds there are."""
        return jax.tree.leaves(self.networks)[0].shape[0]

    def network(self, seed: int) -> Network:
        """The network of one seed, counted from 0."""
        return jax.tree.map(lambda leaf: leaf[seed], self.networks)

    def environment(self, seed: int) -> FiniteMDP:
        """The environment of one seed, counted from 0."""
        return jax.tree.map(lambda leaf: leaf[seed], self.environments)

    def returns(self, seed: int) -> PyTree:
        """p(Z | s, a) of one seed: parameters with leading axes of states and actions."""
        states = jnp.arange(self.environment(seed).num_states)
        return jax.vmap(self.agent.returns, in_axes=(None, 0))(self.network(seed), states)


def snapshot(
    environment: EnvironmentBuilder,
    distribution: ReturnDistribution[Any],
    policy: ExplorationPolicy,
    settings: Settings,
    episodes: int,
    report: Report,
    parts: Mapping[str, Any] = PARTS,
) -> Snapshot:
    """A run after a number of episodes of each seed; 0 is before its first step.

    The same seeds stopped later have the same past: keys depend on the iteration alone.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    if episodes == 0:
        run = Run(environment, Method(distribution, policy, **parts), settings)
        networks = run.driver.gather(run.driver.start(), lambda state: state.learned.network)
        return Snapshot(run.loop.agent, networks, run.driver.environments)
    settings = dataclasses.replace(settings, episodes=episodes)
    result = whole_run(environment, distribution, policy, settings, report, parts)
    return Snapshot(result.agent, result.networks, result.environments)


def learned_returns(
    at: Snapshot, seed: int, policies: Mapping[str, ExplorationPolicy], shape: Callable[[Any, PyTree], Shape]
) -> list[LearnedReturn]:
    """Every state and action of one seed, with the shape that is drawn and how often each policy takes the action."""
    family, z = at.agent.family, at.returns(seed)
    mean, std = jax.vmap(jax.vmap(family.mean))(z), jax.vmap(jax.vmap(family.std))(z)
    chosen = {label: action_probabilities(policy, family, z) for label, policy in policies.items()}
    learned = []
    for state, action in np.ndindex(mean.shape):
        drawn = shape(family, jax.tree.map(lambda leaf, where=(state, action): leaf[where], z))
        learned.append(
            LearnedReturn(
                state=state,
                action=action,
                **drawn._asdict(),
                mean=float(mean[state, action]),
                std=float(std[state, action]),
                chosen={label: float(share[state, action]) for label, share in chosen.items()},
            )
        )
    return learned


def action_probabilities(
    policy: ExplorationPolicy, family: ReturnDistribution[Any], z: PyTree
) -> Float[np.ndarray, "states actions"]:
    """How often a policy takes each action in each state, by 10,000 first decisions of an episode."""
    num_states, num_actions = jax.tree.leaves(z)[0].shape[:2]

    def shares(key: Any, z: PyTree) -> Any:
        alone = Decision(family, jax.tree.map(lambda leaf: leaf[None], z))
        actions = jax.vmap(lambda key: policy.first_action(key, alone))(jax.random.split(key, DECISIONS))
        return jnp.mean(jax.nn.one_hot(actions, num_actions), axis=0)

    return np.asarray(jax.jit(jax.vmap(shares))(jax.random.split(jax.random.key(0), num_states), z))


def atoms(family: Any, z: PyTree) -> Shape:
    """The bins of a Categorical, with their probabilities."""
    return Shape(family.centers.astype(np.float64), np.exp(np.asarray(z.log_probabilities, np.float64)), True)


def curve(family: ReturnDistribution[Any], z: PyTree) -> Shape:
    """The density within four standard deviations of the mean."""
    mean, std = float(family.mean(z)), float(family.std(z))
    returns = mean + std * np.linspace(-4.0, 4.0, 161)
    density = family.density(z, jnp.asarray(returns, jnp.float32))
    return Shape(returns, np.asarray(density, np.float64), False)
