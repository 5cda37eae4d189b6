"""The space of a search: options with a range or with choices, the number of trials, and the metric."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from uppertail.errors import InputError, require_choice
from uppertail.studies.cells import Cell
from uppertail.studies.runs import FINAL_RETURN, TIMES, Sample

METRICS = (FINAL_RETURN, *TIMES)
RANGE = ("low", "high", "log", "step")


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included; whole ones if both are.

    Args:
        low: the lowest.
        high: the highest.
        log: whether their logarithms are drawn evenly.
        step: distance between neighbours; None: any number, or 1 for whole ones.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(f"low is {self.low} and high is {self.high}: use a low that is lower.")
        if self.log and (self.low <= 0 or self.step is not None):
            raise InputError(f"low is {self.low} and step is {self.step}: with log, use a low above 0, and no step.")
        if self.step is not None and self.step <= 0:
            raise InputError(f"step is {self.step}: use a number above 0.")

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return all(isinstance(each, int) for each in (self.low, self.high, self.step) if each is not None)


@dataclasses.dataclass(frozen=True)
class Space:
    """A search.

    Args:
        base: options of every trial.
        options: option to its range, or to a list of choices.
        trials: how many trials.
        metric: what is better: a high final_return, or an early solved or first_success, by their means over seeds.
    """

    base: Mapping[str, Any]
    options: Mapping[str, Range | list[Any]]
    trials: int
    metric: str

    @classmethod
    def of(cls, document: Mapping[str, Any], base: Mapping[str, Any], search: Mapping[str, Any]) -> "Space":
        """The search in a study's file.

        Raises:
            InputError: it is not valid.
        """
        if other := [key for key in ("grid", "cells") if key in document]:
            raise InputError(f"it has search and {other[0]}: leave one of them out.")
        trials, metric = document.get("trials"), document.get("metric", FINAL_RETURN)
        if isinstance(trials, bool) or not isinstance(trials, int) or not 1 <= trials < 10_000:
            raise InputError(f"trials is {trials}: say how many the search has, 1 to 9,999.")
        require_choice("metric", metric, METRICS)
        if not search:
            raise InputError("search is empty: give an option a range, {low: 1, high: 9}, or a list of choices.")
        return cls(base, {option: _values(option, values) for option, values in search.items()}, trials, metric)

    def cell(self, number: int, values: Mapping[str, Any]) -> Cell:
        """A trial."""
        return Cell(f"trial-{number:04d}", {**self.base, **values}, values)

    def cells(self) -> Sequence[Cell]:
        """All trials by name; their options are not known yet."""
        return [self.cell(number, {}) for number in range(self.trials)]

    def probes(self) -> list[Cell]:
        """Trials that try each choice and each end of a range, with the first value of all other options."""
        ends = {name: [v.low, v.high] if isinstance(v, Range) else v for name, v in self.options.items()}
        first = {name: values[0] for name, values in ends.items()}
        probes = [(f"{name}={value}", {**first, name: value}) for name, values in ends.items() for value in values]
        return [Cell(name, {**self.base, **values}, values) for name, values in probes]

    def value(self, sample: Sample) -> float | None:
        """How good a trial was, higher for better; None if it finished no episode."""
        if self.metric == FINAL_RETURN:
            return float(sample.final_return.mean()) if sample.final_return.size else None
        return -float(sample.times[self.metric].at.mean())  # a seed that never got there: all its episodes


def _values(option: str, values: Any) -> Range | list[Any]:
    if isinstance(values, list) and values:
        return values
    if not isinstance(values, dict) or not {"low", "high"} <= values.keys() <= set(RANGE):
        raise InputError(f"search has {option}: {values!r}: use {{low: 1, high: 9}}, with log or step, or a list.")
    try:
        return Range(**{name: value if name == "log" else _number(name, value) for name, value in values.items()})
    except InputError as error:
        raise InputError(f"search has {option}: {error}") from error


def _number(name: str, value: Any) -> Any:
    """A number; YAML reads 1e-3, without a point, as text."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    try:
        return float(str(value))
    except ValueError as error:
        raise InputError(f"{name} is {value!r}, but it must be a number.") from error
