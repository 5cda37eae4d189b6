"""Where the spread of a return comes from, exactly: the environment's chance, and the policy's own later choices.

Given the state S' that an action leads to, the return is R + discount * Z(S', A'). By the law of total variance,
applied once at the environment's draw and once at the policy's (docs/uncertainties.md),

    chance(s, a)  = Var[R + discount V(S')] + discount^2 E[sum over a' of policy(a' | S') chance(S', a')]
    choices(s, a) = discount^2 E[Var over A' of Q(S', A') + sum over a' of policy(a' | S') choices(S', a')]

and their sum is Var Z(s, a). Both are linear equations, of the kind that O'Donoghue et al. (2018) call the uncertainty
Bellman equation.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from uppertail.environments import FiniteMDP
from uppertail.exact.markov import MarkovReward


@dataclasses.dataclass(frozen=True, eq=False)
class Sources:
    """Variance of the return of each state and action, in squared units of return.

    Args:
        chance: what the environment's draws of rewards and next states add.
        choices: what the policy's draws of later actions add.
    """

    chance: Float[np.ndarray, "states actions"]
    choices: Float[np.ndarray, "states actions"]

    @property
    def total(self) -> Float[np.ndarray, "states actions"]:
        """The variance of the return."""
        return self.chance + self.choices


def sources(mdp: FiniteMDP, policy: Float[np.ndarray, "states actions"], discount: float) -> Sources:
    """Both parts of the variance, by linear systems.

    Args:
        mdp: tables of one environment; its time limit is ignored.
        policy: probability of each action in each state.
        discount: discount per step, in [0, 1]; with 1, the policy must end every episode.

    Raises:
        InputError: an argument does not fit the MDP, or with discount 1 an episode never ends.
    """
    process = MarkovReward.of(mdp, policy, discount)
    process.require_end()
    value, _ = process.moments()
    after = process.after(value)
    q = np.sum(process.probability * after, axis=2)
    chance = np.sum(process.probability * (after - q[..., None]) ** 2, axis=2)
    choice = np.sum(process.policy * (q - value[:, None]) ** 2, axis=1)
    return Sources(
        chance=_accumulate(process, chance, np.zeros_like(choice)),
        choices=_accumulate(process, np.zeros_like(q), choice),
    )


def _accumulate(
    process: MarkovReward,
    here: Float[np.ndarray, "states actions"],
    at_state: Float[np.ndarray, " states"] | float = 0.0,
) -> Float[np.ndarray, "states actions"]:
    """u(s, a) = here(s, a) + discount^2 E[u(S')], where u(s) = at_state(s) + sum over a of policy(a | s) u(s, a)."""
    of_state = at_state + np.sum(process.policy * here, axis=1)
    states = np.linalg.solve(np.eye(len(of_state)) - process.discount**2 * process.transitions, of_state)
    going_on = np.where(process.goes_on, states[process.next_state], 0.0)
    return here + process.discount**2 * np.sum(process.probability * going_on, axis=2)
