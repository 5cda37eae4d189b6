"""The plan of a run: every setting, where it came from, and why."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self

from uppertail.defaults.draft import Draft
from uppertail.defaults.facts import Facts
from uppertail.defaults.rules import DISCOUNT, RULES, STAY_NUMBERS
from uppertail.encodings import HashedStates, Numbers, ObservationSpace, States
from uppertail.environments import Actions
from uppertail.errors import InputError
from uppertail.parts import PARTS, require_kept
from uppertail.records import Success, describe, plain
from uppertail.types import ReturnRange

Source = Literal["given", "default", "measured"]


class Entry(NamedTuple):
    """One setting of a plan."""

    value: Any
    source: Source
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Settings by the names that `uppertail train` gives them."""

    entries: Mapping[str, Entry]

    def __contains__(self, setting: object) -> bool:
        return setting in self.entries

    def __getitem__(self, setting: str) -> Any:
        return self.entries[setting].value

    def get(self, setting: str) -> Any:
        """The value of a setting; None also if there is no such setting."""
        entry = self.entries.get(setting)
        return None if entry is None else entry.value

    def is_measured(self, setting: str) -> bool:
        """Whether steps of a random policy decided."""
        return setting in self and self.entries[setting].source == "measured"

    @classmethod
    def read(cls, written: Any) -> Self | None:
        """The plan that `chosen` wrote; None: there is none."""
        if not isinstance(written, Mapping):
            return None
        learner = written.get("learner")
        if isinstance(learner, Mapping):
            require_kept("learner", str(learner.get("value")))
        try:
            entries = {
                str(name): Entry(each["value"], each["source"], each.get("reason", ""))
                for name, each in written.items()
            }
            return cls({name: each._replace(value=_checked(name, each.value)) for name, each in entries.items()})
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise InputError("plan is no plan of a run: leave it out.") from error

    def chosen(self) -> dict[str, dict[str, Any]]:
        """All settings that the user left open, for a file."""
        found = {name: each._asdict() for name, each in self.entries.items() if each.source != "given"}
        return {
            name: {key: value for key, value in each.items() if key != "reason" or value}
            for name, each in found.items()
        }

    @property
    def returns(self) -> ReturnRange | None:
        """The range of returns, if it was measured; what is given or named is known anyway."""
        entry = self.entries.get("returns")
        if entry is None or entry.source != "measured":
            return None
        low, high = entry.value
        return ReturnRange(float(low), float(high), known=False)

    def part(self, name: str, without: Collection[str] = ()) -> Any:
        """A part that was chosen, `without` some of its settings, which is built in; None: none was."""
        kind = PARTS[name].classes.get(self[name]) if name in self and self.entries[name].source != "given" else None
        names = [setting for setting in _settings(kind) if setting not in without and f"{name}.{setting}" in self]
        return kind and kind(**{setting: _settled(self[f"{name}.{setting}"]) for setting in names})

    def filled(self, part: Any, prefix: str) -> Any:
        """A part of a run with each of its open settings as it was chosen."""
        names = [name for name in _settings(type(part)) if getattr(part, name) is None and f"{prefix}{name}" in self]
        return dataclasses.replace(part, **{name: _settled(self[f"{prefix}{name}"]) for name in names})


def _checked(name: str, value: Any) -> Any:
    """A value that a plan may have under this name; else one of several errors."""
    if name == "returns":
        low, high = map(float, value)
        if not -math.inf < low <= high < math.inf:
            raise ValueError("no range")
    elif name == "learner":
        _ = PARTS[name].classes[value]
    elif name in PARTS and not isinstance(value, str | None):
        raise TypeError(f"{name} is no name")
    return value


def _settled(value: Any) -> Any:
    """A value from a file, which has lists in place of tuples."""
    return tuple(map(_settled, value)) if isinstance(value, list) else value


def _settings(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.init] if kind else []


def decide(facts: Facts, draft: Draft, before: Plan | None) -> tuple[Draft, dict[str, Entry], list[str]]:
    """Chooses what a draft leaves open, as an earlier plan has it or else by the rules; what was chosen, and notes."""
    given, chosen, notes = draft.given, dict[str, Entry](), list[str]()
    for rule in RULES:
        if rule.setting in given:
            continue
        if before is not None and rule.setting in before:
            entry = before.entries[rule.setting]
            value = before.part(rule.setting) if rule.setting in PARTS else _settled(entry.value)
        elif before is not None and rule.setting.partition(".")[0] in before:
            continue  # a part of an earlier version, which had no such setting
        elif choice := rule.decide(facts, draft):
            value, source = choice.value, "measured" if choice.is_measured else "default"
            entry = Entry(value, source, choice.reason)
            notes += [choice.note] if choice.note else []
        else:
            continue
        draft = draft.with_value(rule.setting, value)
        facts = facts.of(draft.builder)
        named = type(value).__name__ if rule.setting in PARTS else plain(value)
        chosen[rule.setting] = entry._replace(value=named)
    return draft, chosen, notes


def flat(parts: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Each setting of these parts and of `settings` by its name, its value, and whether it is its class's default."""
    for name, part in parts.items():
        if part is None:
            continue
        described = describe(part)
        kind, prefix = described.pop("name"), "" if name == "settings" else f"{name}."
        if prefix:
            yield name, kind, kind == PARTS[name].default and not PARTS[name].optional
        usual = {field.name: field.default for field in dataclasses.fields(part)}
        for setting, value in described.items():
            if setting != "name" or prefix:
                yield prefix + setting, value, value == plain(usual[setting])


def plan_of(
    asked: Mapping[str, Any],
    filled: Mapping[str, Any],
    chosen: Mapping[str, Entry],
    open_settings: Mapping[str, Mapping[str, Any]],
) -> Plan:
    """The plan of a run.

    Args:
        asked: its parts and settings as the user gave them.
        filled: the same without anything open.
        chosen: what rules chose.
        open_settings: what the user gave of parts whose classes are open.
    """
    given = {f"{part}.{name}" for part, settings in open_settings.items() for name in settings}
    before = {name: (value, is_usual) for name, value, is_usual in flat(asked)}
    entries = dict[str, Entry]()
    for name, value, is_usual in flat(filled):
        was, was_usual = before.get(name, (None, True))
        if name in chosen:
            entries[name] = chosen[name]
        elif name in given or (was == value and not was_usual):
            entries[name] = Entry(value, "given")
        elif was == value or (was is None and is_usual):
            entries[name] = Entry(value, "default")
        else:
            is_fitted = name.startswith("distribution.")
            entries[name] = Entry(value, "default", "fitted to the returns" if is_fitted else "usual for the learner")
    return Plan({**entries, **{name: each for name, each in chosen.items() if name not in entries}})


def in_words(plan: Plan, space: ObservationSpace, actions: Actions, success: Success, has_masks: bool) -> str:
    """What was chosen for a run, in a line.

    Args:
        plan: of the run.
        space: of the observations.
        actions: how they are numbered.
        success: when episodes are a success.
        has_masks: whether the environment says which actions are allowed.
    """
    by_parts = ", learned by their parts" * bool(actions.sizes)
    allowed = ", only those that an action mask allows" * has_masks
    listed = f"{counted(actions.size, 'action')}{by_parts}{allowed}"
    parts = [listed, *_of_observations(plan, space), _learns(plan["learner"])]
    low, high = plan["returns"]
    span = f"{low:.4g} to {high:.4g}" if low < high else "not known yet"
    parts.append(f"returns {span}, {plan.entries['returns'].reason}")
    if success.episodes > 1:
        parts.append(f"solved: mean of {success.window} episodes at least {success.solved_mark:g}")
    elif success.is_defined:
        parts.append(f"an episode succeeds from {success.mark:g} on")
    else:
        top = f"{high:.4g}" if plan.entries["returns"].source != "measured" else "N"  # measured ones reach farther
        counts = f": --env.success {top} counts it" if "env.success" in plan else ""
        parts.append(f"success is not defined{counts}")
    return f"{'; '.join(parts)}."


def counted(number: int, name: str) -> str:
    """So many of them, in words.

    Examples:
        >>> counted(1, "state"), counted(2000, "state")
        ('1 state', '2,000 states')
    """
    return f"{number:,} {name}{'s' * (number != 1)}"


def _of_observations(plan: Plan, space: ObservationSpace) -> Iterator[str]:
    """What the plan makes of the observations."""
    if isinstance(space, States):
        yield counted(space.count, "state")
    elif isinstance(space, HashedStates) or plan.get("env.features") == "hashed":
        rounded = ", once they are rounded (--env.rounding)" * bool(plan.get("env.rounding"))
        yield f"observations repeat{rounded}, so each is a state"
    elif isinstance(space, Numbers) and plan.get("env.radius") is not None:
        yield "near observations are one state"
    elif isinstance(space, Numbers) and plan.get("env.features") == "one_hot":
        yield f"{counted(len(space.low), 'number')}, read as names"
    elif isinstance(space, Numbers):
        count = len(space.low)
        is_measured = plan.is_measured("env.features") and not plan.get("learner.stochastic")
        differ = is_measured and STAY_NUMBERS in plan.entries["env.features"].reason
        repeats = f", which {'does' if count == 1 else 'do'} not repeat" if differ else ""
        yield f"{counted(count, 'number')}{repeats}"
    else:
        yield "images"
    if (steps := plan.get("env.action_repeat") or 1) > 1:
        yield f"each action is taken for {steps} steps (--env.action_repeat)"
    discount = plan.entries.get("discount")
    if discount and discount.source != "given" and discount.value != DISCOUNT:
        yield f"a step is discounted by {discount.value:g} (--discount)"
    if plan.get("learner.stochastic") and not plan.is_measured("learner.stochastic"):
        yield "equal observations and actions may lead to different outcomes: chance, as given"
    elif plan.get("learner.stochastic"):
        is_alone = plan.get("env.stack") in (None, 1)
        shown = "one observation does not show (--env.stack 2 shows two)" if is_alone else "these do not show"
        hidden = f", or what {shown}" if "env.stack" in plan else ""
        is_rounded = isinstance(space, Numbers) and plan.is_measured("env.features")
        coarse = ", or numbers rounded too far (--env.features random learns from near ones)" if is_rounded else ""
        yield f"the same action led from equal observations to different outcomes: chance{hidden}{coarse}"


def _learns(learner: str) -> str:
    known = {
        "LeastSquares": "least squares learns",
        "GradientDescent": "a network learns by gradient descent",
    }
    return known.get(learner, f"{learner} learns")
