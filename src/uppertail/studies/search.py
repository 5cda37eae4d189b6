"""A search: Optuna keeps the trials in the study's folder, and suggests the options of each."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uppertail.studies.cells import Cell
from uppertail.studies.folder import Outcome
from uppertail.studies.runs import FINAL_RETURN
from uppertail.studies.space import Space, decoded

JOURNAL, NAME = "search.journal", "uppertail"
STATES = {"done": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}


class TrialPrunedError(Exception):
    """A trial looks poor, and is ended early."""


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
    """The trials of a search.

    Args:
        study: Optuna's study.
        space: the space of the search.
    """

    study: Any
    space: Space

    def cells(self) -> Iterator[Cell]:
        """The trials that have not ended, those that were cut off first; Optuna is asked when one is taken."""
        import optuna  # pyright: ignore[reportMissingImports]

        for number in range(self.space.trials):
            trials = self.study.get_trials(deepcopy=False)
            if number == len(trials):
                trial = self.study.ask()
            elif trials[number].state.is_finished():
                continue
            else:
                trial = optuna.trial.Trial(self.study, trials[number]._trial_id)
            values = {
                name: trial._suggest(name, each) for name, each in self.space.options.items()
            }  # kept, if it has them
            yield self.space.cell(number, values)

    def tell(self, cell: Cell, outcome: Outcome) -> None:
        """Tells Optuna how a trial ended."""
        from optuna.trial import TrialState  # pyright: ignore[reportMissingImports]

        state = TrialState[STATES[outcome.state]]
        self.study.tell(_number(cell), outcome.value, state, skip_if_finished=True)

    def summary(self) -> dict[str, Any]:
        """The results, which are the contents of study.json: the best trials first."""
        trials = [each for each in self.study.get_trials(deepcopy=False) if each.number < self.space.trials]
        rows = [
            {
                "name": self.space.cell(trial.number, {}).name,
                "state": trial.state.name.lower(),
                "value": trial.value if self.space.metric == FINAL_RETURN or trial.value is None else -trial.value,
                "options": decoded(trial.params),
            }
            for trial in sorted(trials, key=lambda trial: trial.value if trial.value is not None else -math.inf)[::-1]
        ]
        return {"metric": self.space.metric, "trials": rows}


class Pruner:
    """Reports a run's mean return to Optuna after each chunk, and ends it if its trial looks poor.

    Args:
        folder: the study's folder.
        cell: the trial.
    """

    def __init__(self, folder: Path, cell: Cell) -> None:
        import optuna  # pyright: ignore[reportMissingImports]

        study = open_study(folder)
        known = study.get_trials(deepcopy=False)[_number(cell)]
        self._trial = optuna.trial.Trial(study, known._trial_id)
        self._step = max(known.intermediate_values, default=0)

    def __call__(self, progress: Any) -> None:
        """Ends the run by an exception if its trial looks poor.

        Raises:
            TrialPrunedError: it does.
        """
        if progress.step > self._step and math.isfinite(progress.mean_return):
            self._step = progress.step
            self._trial.report(progress.mean_return, progress.step)
            if self._trial.should_prune():
                raise TrialPrunedError


def _number(cell: Cell) -> int:
    return int(cell.name.rpartition("-")[2])
