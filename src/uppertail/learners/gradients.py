"""The parts and settings of learning by gradients."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import optax

from uppertail.networks import NetworkBuilder
from uppertail.replay import Replay
from uppertail.targets import Target

OnPolicy = Literal["fresh", "all", "none"]
"""The names of `Settings.on_policy`."""


@runtime_checkable
class Optimizer(Protocol):
    """What turns gradients into updates: any transformation of optax."""

    @property
    def init(self) -> Callable[..., optax.OptState]:
        """Makes its state before the first update."""
        ...

    @property
    def update(self) -> Callable[..., Any]:
        """Turns a gradient, a state and a network into a step and the next state."""
        ...


@dataclasses.dataclass(frozen=True)
class Gradients:
    """Parts and settings of learning by gradients; those of `Settings` have the same names.

    Args:
        network: builds the network.
        replay: the replay buffer.
        target: the network that bootstraps.
        optimizer: turns gradients into updates.
        rollout_steps: environment steps between updates.
        updates_per_rollout: updates after each rollout.
        batch_size: transitions per update, half of them fresh.
        replay_size: transitions that the replay buffer holds.
        on_policy: which data keep the next action that was taken.
        replay_start: transitions stored before replay is used.
    """

    network: NetworkBuilder
    replay: Replay
    target: Target
    optimizer: Optimizer
    rollout_steps: int
    updates_per_rollout: int
    batch_size: int
    replay_size: int
    on_policy: OnPolicy = "fresh"
    replay_start: int = 0

    @property
    def fresh_count(self) -> int:
        """How many transitions of a minibatch are fresh once replay has started."""
        return min(self.rollout_steps, self.batch_size // 2)
