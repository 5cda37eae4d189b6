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


def chosen(builder: Any, learner: Any = None, before: Plan | None = None, **parts: Any) -> Chosen:
    space = builder.build(jax.random.key(0)).observations if builder.compiles else builder.observations
    parts = {"family": ut.Gaussian(), "policy": ut.UCB(), **parts}
    draft = Draft(builder, space, learner=learner, **parts)
    draft, entries, notes = decide(Facts(builder), draft, before)
    return Chosen(draft.builder, draft.learner, entries, notes)
