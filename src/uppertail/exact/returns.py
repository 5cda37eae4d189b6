"""The exact distribution of the return Z(s, a) of a stationary policy in a finite MDP.

Z(s, a) is the sum of discounted rewards until the episode terminates. A time limit is no part of it: a stationary
policy does not know the time, so Z(s, a) = R + discount * Z(S', A') has one solution, without a limit.

Where no state can come back before the episode ends, the equation is solved by enumeration, from the last states
backward: Z(s, a) is the mixture, over outcomes and next actions, of shifted and scaled atoms, and equal ones are
merged. All other states go through distributional dynamic programming on a grid (`grid.py`), which bounds its error.
"""

import contextlib
import graphlib

import numpy as np
from jaxtyping import Float

from uppertail.environments import FiniteMDP
from uppertail.errors import InputError
from uppertail.exact.discrete import NOTHING, ExactReturn, merge
from uppertail.exact.grid import TARGET, grid_returns
from uppertail.exact.markov import MarkovReward

MAX_ATOMS = 10_000

WIDEST = 1e30  # the largest tolerance: the square of a much larger one overflows


def exact_returns(
    mdp: FiniteMDP,
    policy: Float[np.ndarray, "states actions"],
    discount: float,
    tolerance: float | None = None,
    max_atoms: int = MAX_ATOMS,
) -> dict[tuple[int, int], ExactReturn]:
    """The distribution of the return from every (state, action).

    Args:
        mdp: tables of one environment; its time limit is ignored.
        policy: probability of each action in each state, also of the actions that follow (s, a).
        discount: discount per step, in [0, 1]; with 1, the policy must end every episode.
        tolerance: largest Wasserstein-1 error wanted where enumeration is not possible, above 0; None: 0.001 of the
            range of returns. A grid that would take too long is coarser, and `error` says what it reached.
        max_atoms: enumeration stops at states with more atoms than this.

    Raises:
        InputError: an argument does not fit the MDP, or with discount 1 an episode never ends.
    """
    if tolerance is not None and not 0 < tolerance <= WIDEST:
        raise InputError(f"tolerance is {tolerance}: use a number above 0, at most {WIDEST:g}, or leave it out.")
    process = MarkovReward.of(mdp, policy, discount)
    process.require_end()
    values = _enumerate(process, max_atoms)
    if len(values) < mdp.num_states:
        values |= grid_returns(process, values, tolerance)
    only = np.eye(mdp.num_actions)  # one action each
    returns = {(s, a): _mixture(process, values, s, only[a]) for s, a in np.ndindex(mdp.num_states, mdp.num_actions)}
    # a mixture of several grids is put on one grid again; the grids left a part of the tolerance for that
    spacing = 2 * (1 / TARGET - 1) * max(value.error for value in values.values())
    return {pair: z.coarsened(spacing) if z.error else z for pair, z in returns.items()}


def _enumerate(process: MarkovReward, max_atoms: int) -> dict[int, ExactReturn]:
    """The return of each state from which the policy can never come back to a state, and has few enough atoms."""
    leads = (process.weight > 0) & process.goes_on
    followers = {s: np.unique(process.next_state[s][leads[s]]).tolist() for s in range(len(leads))}
    order = graphlib.TopologicalSorter(followers)
    with contextlib.suppress(graphlib.CycleError):  # states before or on a cycle never become ready
        order.prepare()
    values: dict[int, ExactReturn] = {}
    while ready := order.get_ready():
        for state in ready:
            value = _mixture(process, values, state, process.policy[state])
            if value.atoms.size <= max_atoms:
                values[state] = value
                order.done(state)
    return values


def _mixture(
    process: MarkovReward, values: dict[int, ExactReturn], state: int, policy: Float[np.ndarray, " actions"]
) -> ExactReturn:
    """R + discount * Z(S'). The W1 error scales with the discount, and a mixture averages it."""
    atoms, probabilities, error = [], [], 0.0
    weights = policy[:, None] * process.probability[state]
    for action, outcome in np.argwhere(weights > 0).tolist():
        share, where = weights[action, outcome], (state, action, outcome)
        value = values[int(process.next_state[where])] if process.goes_on[where] else NOTHING
        atoms.append(process.reward[where] + process.discount * value.atoms)
        probabilities.append(share * value.probabilities)
        error += float(share * process.discount * value.error)
    return merge(np.concatenate(atoms), np.concatenate(probabilities), error)
