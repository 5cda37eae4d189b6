"""docs/defaults.md, made from the table of rules: `python -m uppertail.defaults.page > docs/defaults.md`."""

import dataclasses
import sys
from collections.abc import Iterator

from uppertail.defaults.rules import RULES
from uppertail.encodings import Encoding, Image, OneHot, Vector
from uppertail.learners import LearnerBuilder
from uppertail.parts import PARTS

HEAD = """<!-- Made by `python -m uppertail.defaults.page > docs/defaults.md`; a test compares it with the rules. -->

# What is chosen if you leave it open

Before a run, a random policy takes steps in the environment: 20 episodes or at least 5,000 steps, and at least
2,000 if observations are looked at; in a table 2,000, in NumPy. These *facts* are measured once, only if a rule
asks for them, and are the same for every seed. If they take more than five seconds, a line says so. Each *rule*
chooses one setting, and looks at facts, at the kind of observations and at what earlier rules chose. A setting
that you give is taken as it is, and turns off no other choice. A setting of a part whose class you leave open, such as
`--network.width`, changes the class that is chosen.

The *plan* is every setting with where it came from (given, default or measured) and why:

```sh
uppertail train --env CartPole-v1 --dry-run   # prints the plan and ends
```

The first line of a run says it in words, and `config.yaml` and checkpoints hold it beside what you asked for.
`resume`, `evaluate`, `watch`, `uppertail.load` and `--config` with the file of a run use it and choose nothing
again, also in a later version. With another option beside `--config`, or after a change by hand, a plan no longer
holds and all is chosen anew; only limits, seeds and logs may differ.

## The rules

They are asked in this order. Constants are in `src/uppertail/defaults/`.
"""

RETURNS = """
## The range of returns

`--env.returns` if it is given, else the range that a table or bsuite's names imply, else measured: it reaches
to the returns of the lowest and of the highest reward at every step of the time limit, but at most two widths
beyond the measured returns, 0 included. `Twin` beside kernel counts takes no more than was seen, and follows
what is seen later, whenever a return is beyond the range. In a table it grows when a return or a learned mean
is beyond it ([decision 50](decisions/0050-what-is-read-once-is-kept.md)). If the random policy saw no reward, the
range is a guess, and the first reward sets the scale. If actions last several steps, it is measured again with
such actions. Where the range follows what is seen, what is hoped for lies at most three times the width between the
bounds of the start above a mean (`MARGIN` in `src/uppertail/agent.py`, set once: 1 moved a run of Acrobot, 3 none).
"""

LEARNERS = """
## What belongs to a learner

Settings that are null get these values, by the kind of observations. A learner of your own has its own
(`LearnerBuilder.rollout_steps`, `usual`). Those of networks on states were chosen in decision
[29](decisions/0029-evidence-apart-from-the-regressor.md), those on vectors in decisions
[29](decisions/0029-evidence-apart-from-the-regressor.md), [32](decisions/0032-a-network-for-vectors.md) and
[49](decisions/0049-a-short-mean-acts.md), those on images in [23](decisions/0023-images-a-copy-bootstraps.md) and
[25](decisions/0025-images-start-narrower-with-biases.md). `evidence.reach` is halved where nothing new is met and
nothing was found (a mean share of 0.01, its rate 0.01: decision
[65](decisions/0065-a-finer-reach-where-nothing-was-found.md)).

| learner | setting | states | vectors | images |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The text of docs/defaults.md."""
    return "\n".join([HEAD, *_rules(), RETURNS, f"{LEARNERS.strip()}", *_rows(), ""])


def _rules() -> Iterator[str]:
    for number, rule in enumerate(RULES, 1):
        yield f"### {number}. `--{rule.setting}`\n"
        facts = {
            "looks at": rule.looks_at,
            "chooses": rule.chooses,
            "constants": rule.constants,
            "chosen on": rule.chosen_on,
            "tested on": rule.tested_on,
        }
        yield from (f"- *{name}*: {text}" for name, text in facts.items() if text != "-")
        yield ""


def _rows() -> Iterator[str]:
    """A row for each setting of a learner."""
    kinds = OneHot(2), Vector((0.0,), (1.0,)), Image(12, 12, 1)
    for kind in PARTS["learner"].classes.values():
        of_kinds = [_settings(kind(), encoding) for encoding in kinds]
        for name in dict.fromkeys(name for each in of_kinds for name in each):
            shown = [str(each.get(name, "-")) for each in of_kinds]
            yield f"| {' | '.join([kind.__name__, f'`{name}`', *shown])} |"


def _settings(learner: LearnerBuilder, encoding: Encoding) -> dict[str, object]:
    """What is open with a learner, as it has it for such observations; nothing if it cannot learn from them."""
    if not (encoding.is_one_hot or learner.uses_gradients):
        return {}
    usual = {"rollout_steps": learner.rollout_steps(encoding), **learner.usual(encoding)}
    if learner.uses_gradients:
        evidence = learner.evidence(None, encoding)
        usual = {"evidence": evidence, **{f"evidence.{name}": each for name, each in vars(evidence).items()}, **usual}
        usual |= evidence.usual(encoding)
        if "target" in usual:
            usual |= {f"target.{name}": each for name, each in vars(usual["target"]).items()}
    return {name: type(each).__name__ if dataclasses.is_dataclass(each) else each for name, each in usual.items()}


if __name__ == "__main__":
    sys.stdout.write(page())
