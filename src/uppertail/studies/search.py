"""A worker of a search: takes trials that Optuna suggests, and ends those that look poor early.

The trials are in Optuna's journal in the study's folder, which all workers share. The run of each is a cell, which is
claimed like any other: if a process dies, another goes on with its trial.
"""

import dataclasses
import json
import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from uppertail import records
from uppertail.errors import InputError
from uppertail.studies import results
from uppertail.studies.cells import Cell
from uppertail.studies.claim import Claim
from uppertail.studies.runs import FINAL_RETURN, Sample
from uppertail.studies.space import Range, Space
from uppertail.studies.worker import INTERRUPTED, POLL, Command, end, release_if_cut_off, train_cell

JOURNAL, NAME = "search.journal", "uppertail"
INTERMEDIATE = "return/mean"
"""The entry of log.jsonl by which a trial is judged while it runs."""


def require_optuna() -> None:
    """Raises InputError unless Optuna is installed."""
    try:
        import optuna  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError(
            "A search needs the package optuna: install it with `pip install 'uppertail[search]'`."
        ) from error


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
    """Runs trials that have been claimed.

    Only the process that has claimed the cell of a number asks Optuna for the trial of that number, so there are never
    too many trials.

    Args:
        study: Optuna's study.
        space: the space of the search.
        place: the folder of all run folders.
        command: the command line that trains.
    """

    study: Any
    space: Space
    place: Path
    command: Command

    def __call__(self, cell: Cell, claim: Claim) -> bool:
        """Runs a trial; False if the worker shall end."""
        number = int(cell.name.rpartition("-")[2])
        with release_if_cut_off(claim):
            trial = self._trial(number)
        if trial is None:
            end(claim, "released")
            return True
        state = self.study.get_trials(deepcopy=False)[number].state
        if state.is_finished():  # its process died right after it had told Optuna
            end(claim, "failed" if state.name == "FAIL" else "done", pruned=state.name == "PRUNED")
            return True
        return self._run(trial, self.space.cell(trial.number, self._suggest(trial)), claim)

    def _trial(self, number: int, patience: float = 5.0) -> Any:
        """The trial of a number; None if the trials before it are not asked for in time."""
        import optuna  # pyright: ignore[reportMissingImports]

        over = time.monotonic() + patience
        while (count := len(trials := self.study.get_trials(deepcopy=False))) < number:
            if time.monotonic() > over:
                return None
            time.sleep(0.02)
        return self.study.ask() if count == number else optuna.trial.Trial(self.study, trials[number]._trial_id)

    def _suggest(self, trial: Any) -> dict[str, Any]:
        """The trial's options; a trial that goes on keeps those that it has."""
        options: dict[str, Any] = {}
        for option, values in self.space.options.items():
            if not isinstance(values, Range):
                options[option] = json.loads(trial.suggest_categorical(option, [json.dumps(value) for value in values]))
            elif values.whole:
                options[option] = trial.suggest_int(
                    option, values.low, values.high, log=values.log, step=values.step or 1
                )
            else:
                options[option] = trial.suggest_float(option, values.low, values.high, log=values.log, step=values.step)
        return options

    def _run(self, trial: Any, cell: Cell, claim: Claim) -> bool:
        folder = self.place / cell.name
        known = max(self.study.get_trials(deepcopy=False)[trial.number].intermediate_values, default=0)
        message, code, judge = "", 0, Judge(trial, folder / records.LOG, known)
        with release_if_cut_off(claim):
            if results.read_result(folder) is None:
                with judge:
                    code, message = train_cell(cell, folder, self.command)
        result = results.read_result(folder)
        value = self.space.value(Sample.of([result])) if result and not result.trouble else None
        if result is not None and value is not None:
            self._tell(trial, "COMPLETE", value)
            end(claim, "done", seconds=result.summary["wall_seconds"], sha256=results.checksums(folder))
        elif judge.pruned:
            self._tell(trial, "PRUNED")
            end(claim, "done", pruned=True)
        elif code == INTERRUPTED:
            end(claim, "released")
            return False
        else:
            self._tell(trial, "FAIL")
            end(claim, "failed", message=message or (result and result.trouble) or "it ended without results")
        return True

    def _tell(self, trial: Any, state: str, value: float | None = None) -> None:
        from optuna.trial import TrialState  # pyright: ignore[reportMissingImports]

        self.study.tell(trial.number, value, TrialState[state], skip_if_finished=True)


class Judge:
    """Reads the log of a run while it trains, and ends the run, as Ctrl-C would, if its trial looks poor.

    Args:
        trial: Optuna's trial.
        log: log.jsonl of the run.
        known: the last step that was reported to Optuna before.
    """

    def __init__(self, trial: Any, log: Path, known: int) -> None:
        self.pruned = False
        self._trial, self._log, self._known = trial, log, known
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._judge, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        try:
            self._thread.join()
        except KeyboardInterrupt:  # this judge's own, which came just after the run had ended
            if not self.pruned:
                raise

    def _judge(self) -> None:
        while not self._over.wait(POLL):
            if self._new_lines() and self._trial.should_prune() and not self._over.is_set():
                self.pruned = True
                os.kill(os.getpid(), signal.SIGINT)
                return

    def _new_lines(self) -> bool:
        """Reports new lines of the log to Optuna; whether there were any."""
        content = self._log.read_bytes() if self._log.exists() else b""
        lines = [json.loads(line) for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
        new = [line for line in lines if line["step"] > self._known and line[INTERMEDIATE] is not None]
        for line in new:
            self._trial.report(line[INTERMEDIATE], line["step"])
            self._known = line["step"]
        return bool(new)


def search_results(folder: Path, space: Space) -> dict[str, Any]:
    """The results of a search, the contents of its study.json: the best trials first."""
    trials = [each for each in open_study(folder).get_trials(deepcopy=False) if each.number < space.trials]
    rows = [
        {
            "name": f"trial-{trial.number:04d}",
            "state": trial.state.name.lower(),
            "value": trial.value if space.metric == FINAL_RETURN or trial.value is None else -trial.value,
            "options": {
                name: value if isinstance(space.options.get(name), Range) else json.loads(value)
                for name, value in trial.params.items()
            },
        }
        for trial in sorted(trials, key=lambda trial: -math.inf if trial.value is None else trial.value, reverse=True)
    ]
    return {"metric": space.metric, "trials": rows}
