"""What all least squares share: targets in the family's coordinates, the wide start, and how much it counts."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from uppertail.agent import Agent, where
from uppertail.networks.linear import from_powers, roots
from uppertail.policies import Greedy
from uppertail.schema import TRACED
from uppertail.types import POLICY_CHOICE, PyTree, Transition

TINY = 1e-12
"""The least number that is divided by: the square of a start, or the c of a policy."""

MOST = 1.0
"""The largest lambda of the spread that noise can lead to."""


@dataclasses.dataclass(frozen=True)
class Regression:
    """Ridge regression of backed-up targets: theta = (sum phi phi' + lambda I)^-1 sum phi (y - y0).

    Args:
        agent: the policy, the family and the discount.
        spread_prior_count: lambda of every coordinate but the mean: how many transitions the start counts as.
        mean_prior_count: lambda of the mean.
        start_width: what the family's own initial spread is multiplied by.
        greedy_mean: whether the mean is backed up with the greedy next action, and the spread is lowered so that mean +
            c sd is the policy's; else both are backed up with the policy's next action.
        most_sweeps: the most sweeps over the data after a rollout.
        spread_power: what a spread beside a mean is raised to before it is averaged: 2: its variance.
        tolerance: the change of a coordinate below which sweeps end, as a share of the largest one of the start.
    """

    agent: Agent
    spread_prior_count: float = dataclasses.field(metadata=TRACED)
    mean_prior_count: float = dataclasses.field(metadata=TRACED)
    start_width: float = dataclasses.field(metadata=TRACED)
    greedy_mean: bool
    most_sweeps: int
    spread_power: float
    tolerance: float = dataclasses.field(metadata=TRACED)

    @property
    def start(self) -> Float[Array, " outputs"]:
        """y0: the coordinates of the wide start."""
        family, powers = self.agent.family, np.array(self.powers, np.float32)
        own = self.vector(family.from_outputs(jnp.zeros(family.num_outputs)))
        return jnp.where(self.is_spread, jnp.asarray(self.start_width) ** powers, 1.0) * own

    @property
    def start_square(self) -> Float[Array, ""]:
        """The second moment of the start: a point mass has no spread, but may start high."""
        family, start = self.agent.family, self.distribution(self.start)
        return family.mean(start) ** 2 + family.std(start) ** 2

    @property
    def largest_change(self) -> Float[Array, ""]:
        """The change of a coordinate below which sweeps end, in units of return or of probability."""
        largest = jnp.max(jnp.abs(self.roots(self.start)))
        return self.tolerance * jnp.where(largest > 0, largest, 1.0)  # a point mass may start at 0

    @property
    def powers(self) -> tuple[float, ...]:
        """What each coordinate of the family is raised to."""
        return tuple(np.where(self.is_spread, self.spread_power, 1.0).tolist())

    @property
    def is_spread(self) -> Bool[np.ndarray, " outputs"]:
        """Which coordinates are a spread beside a mean."""
        is_mean = np.array(self.agent.family.is_mean)
        return is_mean.any() & ~is_mean

    def vector(self, z: PyTree) -> Float[Array, " outputs"]:
        """The coordinates of one distribution that are averaged."""
        plain = self.agent.family.coordinates(z)
        return plain ** np.array(self.powers, np.float32) if set(self.powers) != {1.0} else plain

    def roots(self, vectors: Float[Array, "*batch outputs"]) -> Float[Array, "*batch outputs"]:
        """The coordinates before they were raised to their powers."""
        return roots(self.powers, vectors)

    def distribution(self, vector: Float[Array, " outputs"]) -> PyTree:
        """The valid distribution nearest to these coordinates."""
        return from_powers(self.agent.family, self.powers, vector)

    def prior_counts(self, noise: Float[Array, "*pairs"]) -> Float[Array, "*pairs outputs"]:
        """lambda of each coordinate.

        Args:
            noise: variance of the targets, in units of return squared.
        """
        least = self.spread_prior_count
        spread = jnp.clip(noise / jnp.maximum(self.start_square, TINY), least, jnp.maximum(MOST, least))
        is_mean = self.agent.family.is_mean
        return jnp.stack([jnp.where(each, self.mean_prior_count, spread) for each in is_mean], axis=-1)

    def targets(
        self, key: PRNGKeyArray, next_values: Float[Array, "batch actions outputs"], transitions: Transition
    ) -> Float[Array, "batch outputs"]:
        """y = r + discount * Z(s', a') in coordinates, for a batch of transitions.

        All states share the key: a policy that draws makes the same draws everywhere, so that sweeps can converge.
        With a greedy mean, the spread's target is what is left between it and the policy's upper bound, in units of c:
        a loop through known states would otherwise have the mean of the way to the goal and the spread of what is
        unknown.

        Args:
            key: randomness of the policy's next action.
            next_values: coordinates at s'.
            transitions: rewards and terminations; a' is the policy's choice.
        """
        family = self.agent.family
        z_next: PyTree = jax.vmap(jax.vmap(self.distribution))(next_values)
        targets = self._coordinates(self.agent, key, z_next, transitions)
        if not (self.greedy_mean and any(family.is_mean)):
            return targets
        greedy = self._coordinates(dataclasses.replace(self.agent, policy=Greedy()), key, z_next, transitions)
        is_mean, powers = np.array(family.is_mean)[None], np.array(self.powers, np.float32)[None]
        lost = jnp.sum(jnp.where(is_mean, greedy - targets, 0.0), axis=-1, keepdims=True)
        lost = lost / jnp.maximum(self.agent.policy.optimism, TINY)
        spread = jnp.maximum(jnp.maximum(targets, 0.0) ** (1 / powers) - lost, 0.0) ** powers
        return jnp.where(is_mean, greedy, spread)

    def _coordinates(
        self, agent: Agent, key: PRNGKeyArray, z_next: PyTree, transitions: Transition
    ) -> Float[Array, "batch outputs"]:
        def of_one(z_next: PyTree, transition: Transition) -> Float[Array, " outputs"]:
            bootstrap = agent.bootstrap(key, z_next, transition)
            bootstrap = where(transition.terminated, agent.family.terminal(), bootstrap)
            return self.vector(agent.back_up(bootstrap, transition))

        return jax.vmap(of_one)(z_next, transitions)


def to_back_up(reward: Float[Array, " batch"], terminated: Bool[Array, " batch"]) -> Transition:
    """What a backup needs of transitions: rewards and terminations; a' is the policy's choice."""
    none = jnp.zeros(reward.shape, jnp.int32)
    return Transition(none, none, reward, terminated, none, jnp.full_like(none, POLICY_CHOICE))
