"""What `uppertail study --compare` says: the runs that it names, and whether those of B are better than those of A.

The probability that a run of B is better, with its interval, is that of Agarwal et al. (2021, Section 4.3).
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from uppertail.analysis.statistics import (
    RESAMPLES,
    Interval,
    Times,
    bootstrap,
    percentiles,
    resample,
    restricted_means,
    significant,
)
from uppertail.errors import InputError
from uppertail.records import CONFIG, RunFolder
from uppertail.studies.cells import ENVIRONMENT, FINAL_RETURN, NAME, TIMES, Cell, environment_of, key, text
from uppertail.studies.definition import Definition
from uppertail.studies.folder import StudyFolder, finished_run, settings_of

SIGNIFICANT = 0.05
DEALS = 10_000  # random deals of the permutation test
ENTRIES = ("episodes", "final_return", *TIMES.values())  # of summary.json, which are compared


@dataclasses.dataclass(frozen=True, eq=False)
class SeedResults:
    """The results of one method's seeds in one environment."""

    # first success and solved, in episodes; a seed that never got there is censored at its last one; none: not defined
    times: Mapping[str, Times]
    # mean return of each seed's last 100 episodes; seeds that finished none are left out
    final_return: Float[np.ndarray, " seeds"]

    @classmethod
    def of(cls, runs: Sequence[RunFolder]) -> "SeedResults":
        """The seeds of one or several runs."""
        all_of = {name: [each for run in runs for each in run.summary[name]] for name in ENTRIES}
        last = [max(1, count) for count in all_of["episodes"]]
        defined = all(run.success.is_defined for run in runs)
        times = {metric: Times.of(all_of[entry], last) for metric, entry in TIMES.items() if defined}
        return cls(times, np.array([each for each in all_of["final_return"] if each is not None], np.float64))


def select_runs(what: str, study: StudyFolder | None) -> tuple[dict[str, SeedResults], list[str]]:
    """The seeds of one side, by the key of the environment, and the unfinished runs, which are left out.

    A side is a folder, or `option=value,option=value`: the cells of the study in which that holds.
    """
    environments: dict[str, list[RunFolder]] = {}
    left_out: list[str] = []
    for folder in _folders(what, study):
        if (run := finished_run(folder)) is None:
            left_out.append(folder.name)
        else:
            environments.setdefault(key(environment_of(run.config or {})), []).append(run)
    if not environments:
        raise InputError(f"There is no finished run in {what}: {', '.join(left_out) or 'it has no cells'}.")
    return {name: SeedResults.of(found) for name, found in environments.items()}, left_out


def labels(keys: Iterable[str]) -> dict[str, str]:
    """Names for environments, by their keys from `key`: their class, and the settings in which they differ."""
    each = {name: json.loads(name) for name in keys}
    options = dict.fromkeys(option for settings in each.values() for option in settings)
    varying = {option for option in options if len({key(s.get(option)) for s in each.values()}) > 1}
    shown = {ENVIRONMENT, f"{ENVIRONMENT}.id", *varying}
    return {
        name: " ".join(str(v) if o == ENVIRONMENT else f"{o}={v}" for o, v in settings.items() if o in shown)
        for name, settings in each.items()
    }


def compare(a: Mapping[str, SeedResults], b: Mapping[str, SeedResults]) -> dict[str, Any]:
    """For each metric, the probability that a run of B is better than one of A, and the effect, by environments."""
    shared = [name for name in a if name in b]
    if not shared:
        raise InputError(
            f"A was run in {'; '.join(a)}, and B in {'; '.join(b)}: only runs in the same environment can be compared."
        )
    document: dict[str, Any] = {"environments": shared, "left_out": [name for name in {**a, **b} if name not in shared]}
    for metric in TIMES:
        if not all(metric in side[name].times for side in (a, b) for name in shared):
            continue
        pairs = [(a[name].times[metric], b[name].times[metric]) for name in shared]
        found = improvement([earlier_is_better(*pair) for pair in pairs])
        document[metric] = {**_round(found), "ratio": _round(ratio_of_times(pairs))}
    returns = [(a[name].final_return, b[name].final_return) for name in shared]
    if all(values.size for pair in returns for values in pair):
        found = improvement([higher_is_better(*pair) for pair in returns])
        document[FINAL_RETURN] = {**_round(found), "difference": _round(difference_of_means(returns))}
    return document


def verdict(found: Mapping[str, float]) -> str:
    """The verdict of a metric, in a word or two: the interval and the permutation test must agree."""
    if found["p_value"] < SIGNIFICANT and not found["low"] <= 0.5 <= found["high"]:
        return "B is better" if found["probability"] > 0.5 else "A is better"
    return "no clear difference"


def _round(numbers: Any) -> dict[str, float]:
    return {name: significant(value) for name, value in numbers._asdict().items()}


def _folders(what: str, study: StudyFolder | None) -> list[Path]:
    path, other = Path(what), StudyFolder(Path(what))
    if (path / CONFIG).is_file():
        return [path]
    if other.definition.is_file():
        return [other.cell(cell) for cell in Definition.read(other.definition).cells]
    if path.exists() or "=" not in what:
        raise InputError(f"{what} is neither the folder of a run nor of a study, nor cells such as policy=UCB.")
    if study is None or not study.exists():
        raise InputError(f"Of which study are the cells with {what}? Name its file or folder before --compare.")
    return _cells(what, study)


def _cells(what: str, study: StudyFolder) -> list[Path]:
    """The folders of a study's cells in which options have certain values."""
    cells = {study.cell(cell): _options(study, cell) for cell in Definition.read(study.definition).cells}
    for part in what.split(","):
        option, _, value = part.partition("=")
        values = {folder: text(options.get(option.strip())) for folder, options in cells.items()}
        cells = {folder: cells[folder] for folder in cells if values[folder].casefold() == value.strip().casefold()}
        if not cells:
            there = sorted({*values.values()} - {"null"})
            known = f"it is {' or '.join(there)}" if there else "there is no such option"
            raise InputError(f"No cell of the study in {study.path} has {part}: {known}.")
    return list(cells)


def _options(study: StudyFolder, cell: Cell) -> Mapping[str, Any]:
    """A cell's options; with defaults, where it has begun."""
    options = {**cell.options, **cell.varying}
    return {**(settings_of(study.cell(cell)) or {}), **options, NAME: options.get(NAME)}


class Scores(NamedTuple):
    """All runs of an environment against all, those of A first."""

    scores: Float[np.ndarray, "runs runs"]  # 1 if the second is better, 0 if the first, 1/2 if neither is known to be
    first: int  # how many of them are A's

    @property
    def between(self) -> Float[np.ndarray, "first second"]:
        """Scores of A's runs against B's."""
        return self.scores[: self.first, self.first :]


class Improvement(NamedTuple):
    """How B compares with A."""

    probability: float  # that a run of B is better than one of A, in the same environment; mean over environments
    low: float  # its 95% interval, by resampling seeds within each environment
    high: float
    p_value: float  # how often runs that are dealt to A and B at random, within each environment, differ as much


def higher_is_better(a: Float[np.ndarray, " first"], b: Float[np.ndarray, " second"]) -> Scores:
    """Scores of returns."""
    each = np.concatenate([a, b])
    return Scores((np.sign(each[None, :] - each[:, None]) + 1) / 2, a.size)


def earlier_is_better(a: Times, b: Times) -> Scores:
    """Scores of times, some censored: a run that got there is earlier than one that had not by then (Gehan, 1965).

    Where that cannot be known, as neither got there or one was last seen before the other got there, it is 1/2.
    """
    at, happened = (np.concatenate(both) for both in zip(a, b, strict=True))
    later = (at[:, None] > at) | ((at[:, None] == at) & ~happened[:, None])
    second = later & happened
    return Scores((second.astype(np.float64) - second.T + 1) / 2, a.at.size)


def improvement(environments: Sequence[Scores]) -> Improvement:
    """Probability of improvement over environments, which all count equally."""
    generator = np.random.default_rng(0)
    estimates, dealt = np.zeros(1 + RESAMPLES), np.zeros(DEALS)
    for each in environments:
        rows, columns = (resample(seeds, generator) for seeds in each.between.shape)
        estimates += each.between[rows[:, :, None], columns[:, None, :]].mean(axis=(1, 2)) / len(environments)
        deals = generator.permuted(np.tile(np.arange(len(each.scores)), (DEALS, 1)), axis=1)
        a, b = deals[:, : each.first, None], deals[:, None, each.first :]
        dealt += each.scores[a, b].mean(axis=(1, 2)) / len(environments)
    found = percentiles(estimates)
    extreme = np.abs(dealt - 0.5) >= abs(found.value - 0.5) - 1e-9
    # the observed runs count as one of the deals, so that p is never 0
    return Improvement(*found, float((extreme.sum() + 1) / (DEALS + 1)))


def ratio_of_times(environments: Sequence[tuple[Times, Times]]) -> Interval:
    """Mean time of B over that of A, geometric mean over environments: below 1, B is faster.

    The means are restricted: each run counts until the last time at which both A and B were seen, at most.
    """
    generator, logarithms = np.random.default_rng(0), np.zeros(1)
    for a, b in environments:
        until = [seen.at.max() for seen in (a, b) if not seen.happened.all()]  # where all got there, all was seen
        horizon = min(until, default=max(a.at.max(), b.at.max()))
        means = [restricted_means(seen, horizon, resample(seen.at.size, generator)) for seen in (a, b)]
        logarithms = logarithms + np.log(means[1] / means[0]) / len(environments)
    return percentiles(np.exp(logarithms))


def difference_of_means(environments: Sequence[tuple[np.ndarray, np.ndarray]]) -> Interval:
    """Mean of B less that of A, mean over environments."""

    def difference(*values: np.ndarray, axis: int) -> Any:
        means = [each.mean(axis=axis) for each in values]
        return np.mean([b - a for a, b in zip(means[::2], means[1::2], strict=True)], axis=0)

    return Interval(*map(float, bootstrap([values for pair in environments for values in pair], difference)))
