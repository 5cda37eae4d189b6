"""A search: the space of its options, and its trials, which Optuna keeps in the study's folder."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from uppertail.errors import InputError, import_package, message_of, require_choice
from uppertail.records import RunFolder
from uppertail.studies.cells import FINAL_RETURN, TIMES, Cell, Outcome

METRICS, RANGE, MOST_TRIALS = (FINAL_RETURN, *TIMES), ("low", "high", "log", "step"), 9_999
JOURNAL, NAME = "search.journal", "uppertail"
STATES = {"done": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}  # Optuna's names of the states of outcomes


@dataclasses.dataclass(frozen=True)
class Space:
    """What is searched."""

    base: Mapping[str, Any]  # options of every trial
    options: Mapping[str, Any]  # option to the distribution of its values; choices are JSON
    trials: int  # how many trials
    metric: str  # what is better: a high final_return, or an early solved or first_success, by their means over seeds

    @classmethod
    def of(cls, document: Mapping[str, Any], base: Mapping[str, Any], search: Mapping[str, Any]) -> "Space":
        """The search in a study's file."""
        import_package("optuna", "a search")
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

    def value(self, run: RunFolder) -> float | None:
        """How good a trial was, higher for better; None if it finished no episode."""
        counts, sign = run.summary["episodes"], 1
        if self.metric == FINAL_RETURN:
            values = [each for each in run.summary["final_return"] if each is not None]
        else:  # a seed that never got there: all its episodes
            found, sign = run.summary[TIMES[self.metric]], -1
            values = [count if at is None else at for at, count in zip(found, counts, strict=True)]
        return sign * fmean(values) if any(counts) else None


def decoded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Optuna's values as values of options: its choices are JSON."""
    return {name: json.loads(value) if isinstance(value, str) else value for name, value in values.items()}


def _distribution(option: str, values: Any) -> Any:
    from optuna import distributions  # pyright: ignore[reportMissingImports]

    if isinstance(values, list) and values:
        return distributions.CategoricalDistribution([json.dumps(value) for value in values])
    if not isinstance(values, dict) or not {"low", "high"} <= values.keys() <= set(RANGE):
        raise InputError(f"search has {option}: {values!r}: use {{low: 1, high: 9}}, with log or step, or a list.")
    try:  # YAML reads 1e-3, without a point, as text
        numbers: dict[str, Any] = {n: v if n == "log" or isinstance(v, int) else float(v) for n, v in values.items()}
        whole = all(isinstance(value, int) for value in numbers.values())
        return (distributions.IntDistribution if whole else distributions.FloatDistribution)(**numbers)
    except (ValueError, TypeError) as error:
        raise InputError(f"search has {option}: {values!r}: {message_of(error)}") from error


def open_study(folder: Path) -> Any:
    """Optuna's study in a folder."""
    import optuna  # pyright: ignore[reportMissingImports]
    from optuna.storages import journal  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(journal.JournalFileBackend(str(folder / JOURNAL))),
        sampler=optuna.samplers.TPESampler(),
        pruner=optuna.pruners.MedianPruner(),
        study_name=NAME,
        direction="maximize",
        load_if_exists=True,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Search:
    """The trials of a search, which Optuna's study keeps."""

    study: Any
    space: Space

    def cells(self) -> Iterator[Cell]:
        """The trials that have not ended, interrupted ones first; Optuna chooses options when a trial is taken."""
        for number in range(self.space.trials):
            trials = self.study.get_trials(deepcopy=False)
            if number == len(trials):
                self.study.ask()
            elif trials[number].state.is_finished():
                continue
            trial = trial_of(self.study, number)
            # Optuna keeps the values, and gives those that the trial has already
            yield self.space.cell(number, {n: trial._suggest(n, each) for n, each in self.space.options.items()})

    def tell(self, cell: Cell, outcome: Outcome) -> None:
        """Tells Optuna how a trial ended."""
        from optuna.trial import TrialState  # pyright: ignore[reportMissingImports]

        self.study.tell(_number(cell), outcome.value, TrialState[STATES[outcome.state]], skip_if_finished=True)

    def summary(self) -> dict[str, Any]:
        """The results, which are the contents of study.json: the best trials first."""
        trials = [each for each in self.study.get_trials(deepcopy=False) if each.number < self.space.trials]
        trials.sort(key=lambda trial: math.inf if trial.value is None else -trial.value)
        sign = 1 if self.space.metric == FINAL_RETURN else -1
        rows = [
            {
                "name": self.space.cell(trial.number, {}).name,
                "state": trial.state.name.lower(),
                "value": None if trial.value is None else sign * trial.value,
                "options": decoded(trial.params),
            }
            for trial in trials
        ]
        return {"metric": self.space.metric, "trials": rows}


class TrialPrunedError(Exception):
    """A trial looks poor, and is ended early."""


class Pruner:
    """Reports a run's mean return to Optuna after each chunk, and ends it by an exception if its trial looks poor."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        self._trial = trial_of(open_study(folder), _number(cell))
        self._step = max(self._trial.storage.get_trial(self._trial._trial_id).intermediate_values, default=0)

    def __call__(self, progress: Any) -> None:
        if progress.step > self._step and math.isfinite(progress.mean_return):
            self._step = progress.step
            self._trial.report(progress.mean_return, progress.step)
            if self._trial.should_prune():
                raise TrialPrunedError


def trial_of(study: Any, number: int) -> Any:
    """One of Optuna's trials, which takes more reports."""
    import optuna  # pyright: ignore[reportMissingImports]

    return optuna.trial.Trial(study, study.get_trials(deepcopy=False)[number]._trial_id)


def _number(cell: Cell) -> int:
    return int(cell.name.rpartition("-")[2])
