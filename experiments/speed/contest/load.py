"""The work of every contestant, and the arithmetic that it takes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Load:
    """The Chain, the network and the data of a comparison.

    Args:
        length: states of the Chain.
        width: units of each hidden layer.
        batch_size: transitions per update.
        rollout_steps: environment steps between updates.
        updates_per_rollout: updates after each rollout.
        replay_size: transitions that the replay buffer holds.
    """

    length: int = 100
    width: int = 256
    batch_size: int = 32
    rollout_steps: int = 16
    updates_per_rollout: int = 1
    replay_size: int = 50_000

    @property
    def updates_per_step(self) -> float:
        """Updates per environment step."""
        return self.updates_per_rollout / self.rollout_steps

    def flops_per_step(self, hidden_layers: int, outputs: int, actions: int = 2) -> float:
        """The fewest floating-point operations that an environment step takes, including its share of the updates.

        One network forward counts as m, of which the first layer is a row of a table. Acting needs every action's
        network: actions * m. An update needs the chosen action's network forward and backward, 3 m a transition; its
        target needs the network of the action that was taken next for the fresh half, all of them for replay.

        Args:
            hidden_layers: hidden layers of each action's network.
            outputs: its outputs.
            actions: how many networks.
        """
        m = 2.0 * ((hidden_layers - 1) * self.width**2 + self.width * outputs)
        update = self.batch_size * (3 * m + (1 + actions) / 2 * m)
        return actions * m + update * self.updates_per_step
