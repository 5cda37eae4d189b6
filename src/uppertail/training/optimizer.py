"""Adam as a run uses it."""

import dataclasses

import optax

from uppertail.schema import TRACED, traced
from uppertail.types import PyTree


@dataclasses.dataclass(frozen=True)
class Adam:
    """Adam on clipped gradients, by optax; unlike optax's own objects, it can be pickled.

    Args:
        learning_rate: step size.
        learning_rate_end: step size after `updates`, to which it falls linearly; None: it stays as it is.
        updates: updates of a whole run, where the step size falls.
        gradient_clip: largest size of any one entry of the gradient.
        mean_decay: decay rate of the mean of the gradient.
        square_decay: decay rate of the mean of its square.
        epsilon: added to the root of the mean square.
    """

    learning_rate: float = dataclasses.field(metadata=TRACED)
    learning_rate_end: float | None = traced(None)
    updates: int = 0
    gradient_clip: float = traced(1.0)
    mean_decay: float = traced(0.0)
    square_decay: float = traced(0.9)
    epsilon: float = traced(1e-4)

    @property
    def rate(self) -> optax.ScalarOrSchedule:
        """The step size, or its course over the updates of a run."""
        if self.learning_rate_end is None:
            return self.learning_rate
        return optax.linear_schedule(self.learning_rate, self.learning_rate_end, self.updates)

    def init(self, params: PyTree) -> optax.OptState:
        """The state before the first update."""
        return self._transformation.init(params)

    def update(self, updates: PyTree, state: optax.OptState, params: PyTree = None) -> tuple[PyTree, optax.OptState]:
        """The step that follows from a gradient, and the next state."""
        return self._transformation.update(updates, state, params)

    @property
    def _transformation(self) -> optax.GradientTransformation:
        adam = optax.adam(self.rate, b1=self.mean_decay, b2=self.square_decay, eps=self.epsilon)
        return optax.chain(optax.clip(self.gradient_clip), adam)
