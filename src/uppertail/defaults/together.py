"""Numbers that tell something only together with another one, or by their size, which no linear regression shows."""

import numpy as np
from jaxtyping import Float, Int

from uppertail.environments import Steps

CLEAR, SHUFFLES = 10.0, 30  # standard deviations beyond shuffled episodes: effects have over 100, noise up to 5
LEAST = 50  # steps of an action whose regression is asked; of fewer, chance tells as much
FEW, MOST = 10, 32  # episodes, of which shuffles are too much alike; numbers, of which more would take too long
ROUNDING = 1e-9  # share of a goal's square below which what a regression leaves of it is rounding


def telling_together(steps: Steps, numbers: Int[np.ndarray, " candidates"]) -> Int[np.ndarray, " telling"]:
    """Those of some numbers whose square, or whose product with another number, tells of what follows.

    What follows is the reward, whether the episode terminates, and how numbers change that are no candidates. For each
    action, linear regression on all numbers leaves something of it; what counts is the sum of squared correlations
    between that and the products. Had the number nothing to do with it, as much would be found with the number's values
    of other episodes, which are put in place of its own in `SHUFFLES` orders.
    """
    here, after = (np.asarray(each, np.float64) for each in (steps.observation, steps.next_observation))
    begins = steps.begins
    if len(begins) < FEW or here.shape[1] > MOST or not numbers.size:
        return numbers[:0]
    spread = here.std(axis=0)
    spread[spread == 0] = 1.0
    inputs = (here - here.mean(axis=0)) / spread
    changes = np.delete((after - here) / spread, numbers, axis=1)
    goals = np.column_stack([changes, steps.reward, steps.terminated]).astype(np.float64)
    actions = [rows for each in np.unique(steps.action) if len(rows := np.flatnonzero(steps.action == each)) >= LEAST]
    left = [_left(inputs[rows], goals[rows]) for rows in actions]

    def told(number: int, values: Float[np.ndarray, " steps"]) -> float:
        products = values[:, None] * inputs
        products[:, number] = values**2
        found = 0.0
        for rows, rest in zip(actions, left, strict=True):
            own = products[rows] - products[rows].mean(axis=0)
            size = np.maximum(np.sqrt(np.sum(own**2, axis=0)), np.finfo(float).tiny)
            found += float(np.sum(((own / size).T @ rest) ** 2))
        return found

    orders = [_from_others(begins, len(here), seed) for seed in range(SHUFFLES)]
    telling = list[int]()
    for number in numbers.tolist():
        by_chance = np.array([told(number, inputs[order, number]) for order in orders])
        likely = (1 + ROUNDING) * by_chance.mean()  # a clock has the values of other episodes
        if told(number, inputs[:, number]) > likely + CLEAR * by_chance.std():
            telling.append(number)
    return np.array(telling, numbers.dtype)


def _left(inputs: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """What linear regression leaves of goals, each of length 1; 0 where it is rounding."""
    inputs = np.column_stack([np.ones(len(inputs)), inputs])
    rest = goals - inputs @ np.linalg.lstsq(inputs, goals)[0]
    size = np.sqrt(np.sum(rest**2, axis=0))
    clear = size**2 > ROUNDING * np.sum((goals - goals.mean(axis=0)) ** 2, axis=0)
    return np.where(clear, rest / np.where(clear, size, 1.0), 0.0)


def _from_others(begins: Int[np.ndarray, " episodes"], count: int, seed: int) -> Int[np.ndarray, " steps"]:
    """For each step, one of another episode; an episode that is shorter is gone through again."""
    lengths = np.diff(np.append(begins, count))
    order = np.random.default_rng(seed).permutation(len(begins))
    place = np.arange(count) - np.repeat(begins, lengths)
    return np.repeat(begins[order], lengths) + place % np.repeat(lengths[order], lengths)
