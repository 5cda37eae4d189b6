"""What rules choose for an environment, without a run."""

from typing import Any, NamedTuple

import jax

import uppertail as ut
from uppertail.defaults import Draft, Entry, Facts, Plan, decide


class Chosen(NamedTuple):
    builder: Any
    learner: Any
    entries: dict[str, Entry]
    notes: list[str]


def chosen(builder: Any, learner: Any = None, before: Plan | None = None, discount: float = 0.995) -> Chosen:
    space = builder.build(jax.random.key(0)).observations if builder.compiles else builder.observations
    draft = Draft(builder, space, ut.Gaussian(), ut.UCB(), learner)
    draft, entries, notes = decide(Facts(builder, discount), draft, before)
    return Chosen(draft.builder, draft.learner, entries, notes)
