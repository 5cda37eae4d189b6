"""The space of a search: options with Optuna's distributions, the number of trials, and the metric."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from uppertail.errors import InputError, message_of, require_choice
from uppertail.studies.cells import Cell
from uppertail.studies.runs import FINAL_RETURN, TIMES, Sample

METRICS = (FINAL_RETURN, *TIMES)
RANGE = ("low", "high", "log", "step")
MOST_TRIALS = 9_999


def require_optuna() -> None:
    """Raises InputError unless Optuna is installed."""
    try:
        import optuna  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(
            "a search needs the package optuna: install it with `pip install 'uppertail[search]'`."
        ) from error


@dataclasses.dataclass(frozen=True)
class Space:
    """A search.

    Args:
        base: options of every trial.
        options: option to the distribution of its values; choices are JSON.
        trials: how many trials.
        metric: what is better: a high final_return, or an early solved or first_success, by their means over seeds.
    """

    base: Mapping[str, Any]
    options: Mapping[str, Any]
    trials: int
    metric: str

    @classmethod
    def of(cls, document: Mapping[str, Any], base: Mapping[str, Any], search: Mapping[str, Any]) -> "Space":
        """The search in a study's file.

        Raises:
            InputError: it is not valid, or Optuna is not installed.
        """
        require_optuna()
        if other := [key for key in ("grid", "cells") if key in document]:
            raise InputError(f"it has search and {other[0]}: leave one of them out.")
        trials, metric = document.get("trials"), document.get("metric", FINAL_RETURN)
        if isinstance(trials, bool) or not isinstance(trials, int) or not 1 <= trials <= MOST_TRIALS:
            raise InputError(f"trials is {trials}: say how many the search has, 1 to {MOST_TRIALS:,}.")
        require_choice("metric", metric, METRICS)
        if not search:
            raise InputError("search is empty: give an option a range, {low: 1, high: 9}, or a list of choices.")
        return cls(base, {option: _distribution(option, values) for option, values in search.items()}, trials, metric)

    def cell(self, number: int, values: Mapping[str, Any]) -> Cell:
        """A trial, with values of Optuna's."""
        options = decoded(values)
        return Cell(f"trial-{number:04d}", {**self.base, **options}, options)

    def cells(self) -> Sequence[Cell]:
        """All trials by name; their options are not known yet."""
        return [self.cell(number, {}) for number in range(self.trials)]

    def probes(self) -> list[Cell]:
        """Trials that try each choice and each end of a range, with the first value of all other options."""
        ends = {name: getattr(each, "choices", None) or (each.low, each.high) for name, each in self.options.items()}
        first = {name: values[0] for name, values in ends.items()}
        probes = [{**first, name: value} for name, values in ends.items() for value in values]
        return [dataclasses.replace(self.cell(0, each), name=f"trial of {decoded(each)}") for each in probes]

    def value(self, sample: Sample) -> float | None:
        """How good a trial was, higher for better; None if it finished no episode."""
        if self.metric == FINAL_RETURN:
            return float(sample.final_return.mean()) if sample.final_return.size else None
        return -float(sample.times[self.metric].at.mean())  # a seed that never got there: all its episodes


def decoded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Optuna's values as values of options: its choices are JSON."""
    return {name: json.loads(value) if isinstance(value, str) else value for name, value in values.items()}


def _distribution(option: str, values: Any) -> Any:
    from optuna import distributions  # pyright: ignore[reportMissingImports]

    if isinstance(values, list) and values:
        return distributions.CategoricalDistribution([json.dumps(value) for value in values])
    if not isinstance(values, dict) or not {"low", "high"} <= values.keys() <= set(RANGE):
        raise InputError(f"search has {option}: {values!r}: use {{low: 1, high: 9}}, with log or step, or a list.")
    try:
        asked: dict[str, Any] = {name: value if name == "log" else _number(value) for name, value in values.items()}
        whole = all(isinstance(value, int) for value in asked.values())
        return (distributions.IntDistribution if whole else distributions.FloatDistribution)(**asked)
    except (ValueError, TypeError) as error:
        raise InputError(f"search has {option}: {values!r}: {message_of(error)}") from error


def _number(value: Any) -> int | float:
    """A number; YAML reads 1e-3, without a point, as text."""
    return value if isinstance(value, int) else float(value)
