"""Blackjack, Gymnasium's game of chance: how much the greedy policy loses to the best one, exactly.

Usage: python -m experiments.tasks.blackjack [--out results/blackjack.json] [--seeds 5] [--seed 0] [--steps 200000]

The settings are those of `--preset stochastic`. The best policy, and the mean return of the learned one, come from the
rules by dynamic programming, without this project's code: cards are drawn from an endless deck, the dealer stops at 17,
and a natural (an ace and a ten at once) wins against all but another one (`sab`, as Gymnasium registers it).
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.parts import PARTS
from uppertail.training.process import hardware

CARDS = {**dict.fromkeys(range(1, 10), 1 / 13), 10: 4 / 13}
STICK, HIT = 0, 1


class Hand(NamedTuple):
    """What a player holds.

    Args:
        total: its points, an ace that can count as 11 counted so.
        usable: whether there is such an ace.
    """

    total: int
    usable: bool

    def plus(self, card: int) -> "Hand":
        """The hand with one more card."""
        total, usable = self.total + card, self.usable
        if card == 1 and total + 10 <= 21:
            total, usable = total + 10, True
        if total > 21 and usable:
            total, usable = total - 10, False
        return Hand(total, usable)


NOTHING = Hand(0, False)
Policy = Callable[[Hand, int], int]
"""The action with this hand, where the dealer shows this card."""


@functools.cache
def dealer(hand: Hand) -> dict[int, float]:
    """How likely the dealer ends with how many points; above 21 all count as 22."""
    if hand.total >= 17:
        return {min(hand.total, 22): 1.0}
    ends = dict.fromkeys(range(17, 23), 0.0)
    for card, share in CARDS.items():
        for points, chance in dealer(hand.plus(card)).items():
            ends[points] += share * chance
    return ends


def stick(hand: Hand, shown: int) -> float:
    """The mean return of no further card."""
    return sum(
        chance * (1.0 if points > 21 else float(np.sign(hand.total - points)))
        for points, chance in dealer(NOTHING.plus(shown)).items()
    )


def stick_on_a_natural(shown: int) -> float:
    """The mean return of no further card with an ace and a ten: only the dealer's own natural draws."""
    return 1.0 - {1: CARDS[10], 10: CARDS[1]}.get(shown, 0.0)


def values(policy: Policy | None) -> Callable[[Hand, int], float]:
    """The mean return of a policy from a hand on; None: of the best."""

    def hit(hand: Hand, shown: int) -> float:
        """The mean return of one more card."""
        after = {card: hand.plus(card) for card in CARDS}
        return sum(
            share * (-1.0 if after[card].total > 21 else value(after[card], shown)) for card, share in CARDS.items()
        )

    @functools.cache
    def value(hand: Hand, shown: int) -> float:
        if policy is None:
            return max(stick(hand, shown), hit(hand, shown))
        return (stick, hit)[policy(hand, shown)](hand, shown)

    return value


def mean_return(policy: Policy | None) -> float:
    """The mean return of an episode, over the first cards of both."""
    value, natural = values(policy), NOTHING.plus(1).plus(10)

    def begun(first: int, second: int, shown: int) -> float:
        hand = NOTHING.plus(first).plus(second)
        if hand == natural and (policy is None or policy(hand, shown) == STICK):
            return stick_on_a_natural(shown)
        return value(hand, shown)

    return sum(
        CARDS[first] * CARDS[second] * CARDS[shown] * begun(first, second, shown)
        for first in CARDS
        for second in CARDS
        for shown in CARDS
    )


def learn(seed: int, seeds: int, steps: int) -> dict[str, object]:
    """Trains all seeds, and judges the greedy policy of each."""
    builder = ut.Gym("Blackjack-v1", encoding="hashed", hash_size=1024, returns=(-1.0, 1.0))
    settings = ut.Settings(
        seed=seed,
        seeds=seeds,
        steps=steps,
        episodes=10**6,
        replay_size=steps,
        learning_rate=3e-3,
        learning_rate_end=0.0,
    )
    parts = {"replay": ut.Uniform(), "target": ut.Online()}
    result = ut.train(builder, ut.Gaussian(), ut.UCB(), settings, **parts)
    read = builder.interface.reading.array

    def of_seed(place: int) -> float:
        network = result.network(place)
        means = jax.jit(lambda observation: result.agent.returns(network, observation).mean)

        def greedy(hand: Hand, shown: int) -> int:
            return int(jnp.argmax(means(jnp.asarray(read((hand.total, shown, int(hand.usable)))))))

        return mean_return(greedy)

    found = [round(of_seed(place), 5) for place in range(seeds)]
    summary = result.record.summary()
    return {
        "seeds": list(range(seed, seed + seeds)),
        "best": round(mean_return(None), 5),
        "learned": found,
        "always_stick": round(mean_return(lambda hand, shown: STICK), 5),
        "hit_below_17": round(mean_return(lambda hand, shown: HIT if hand.total < 17 else STICK), 5),
        "asked": {part: summary[part] for part in (*PARTS, "settings")},
        **{fact: summary[fact] for fact in ("wall_seconds", "steps_per_second")},
        "hardware": hardware(),
    }


if __name__ == "__main__":
    given = options(__doc__, "results/blackjack.json", seeds=5, seed=0, steps=200_000)
    document = learn(given.seed, given.seeds, given.steps)
    print(f"best {document['best']}, learned {document['learned']}")
    write(given.out, document, indent=1)
