"""How many iterations a driver makes in a chunk, between two calls of the run's callback."""

import math

from uppertail.training.loop import Loop


def iterations_per_chunk(loop: Loop, steps: int) -> int:
    """Iterations of about this many steps; the chunks of a run with a limit of steps are equal and end close to it."""
    most = max(1, steps // loop.rollout_steps)
    if loop.steps is None:
        return most
    iterations = math.ceil(loop.steps / loop.rollout_steps)
    return math.ceil(iterations / math.ceil(iterations / most))
