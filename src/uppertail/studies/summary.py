"""The results of a study, cell by cell and method by method: the contents of study.json."""

import itertools
from collections.abc import Mapping
from typing import Any

from uppertail.analysis.statistics import growth_exponent, mean_interval, median, share_interval
from uppertail.records import RunFolder
from uppertail.studies.cells import ENVIRONMENT, TIMES, Outcome, environment_of, key, label, method_of
from uppertail.studies.comparison import SeedResults, compare
from uppertail.studies.definition import Definition

SIZES = ("env.length", "env.size")  # options over which the growth of episodes is fitted

CellSettings = Mapping[str, Mapping[str, Any]]  # the settings of each cell


def summary(
    definition: Definition, settings: CellSettings, outcomes: Mapping[str, Outcome], results: Mapping[str, RunFolder]
) -> dict[str, Any]:
    """All results of a study, from those of its cells that have some."""
    environments, methods = _labels(definition, settings)
    cells = [
        {
            "name": cell.name,
            "environment": environments[cell.name],
            "method": methods[cell.name],
            "state": outcomes[cell.name].state,
            **({"message": outcomes[cell.name].message} if outcomes[cell.name].state == "failed" else {}),
            "settings": settings[cell.name],
            **(_numbers(results[cell.name]) if cell.name in results else {}),
        }
        for cell in definition.cells
    ]
    runs: dict[str, dict[str, list[RunFolder]]] = {}
    for name, run in results.items():
        runs.setdefault(methods[name], {}).setdefault(environments[name], []).append(run)
    samples = {name: {env: SeedResults.of(found) for env, found in each.items()} for name, each in runs.items()}
    return {
        "cells": cells,
        "methods": [{"method": name, "environments": list(each)} for name, each in samples.items()],
        "growth": _growth(settings, methods, results),
        "improvement": [
            {"a": a, "b": b, **compare(samples[a], samples[b])}
            for a, b in itertools.combinations(samples, 2)
            if samples[a].keys() & samples[b].keys()
        ],
    }


def _numbers(run: RunFolder) -> dict[str, Any]:
    sample = SeedResults.of([run])
    numbers: dict[str, Any] = {"seeds": len(run.episodes), "seconds": run.summary["wall_seconds"]}
    numbers |= dict.fromkeys(TIMES)  # None where success is not defined
    for metric, seen in sample.times.items():
        numbers[metric] = {
            **dict(zip(("median", "low", "high"), median(seen), strict=True)),
            "seeds": int(seen.happened.sum()),
            "share": share_interval(seen.happened.tolist()),
        }
    values = sample.final_return.tolist()
    numbers["final_return"] = dict(zip(("mean", "low", "high"), mean_interval(values), strict=True)) if values else None
    return numbers


def _labels(definition: Definition, settings: CellSettings) -> tuple[dict[str, str], dict[str, str]]:
    """A name for each cell's environment and method; different ones have different names."""
    environments, methods = {}, {}
    labels: dict[str, str] = {}
    for cell in definition.cells:
        full, varying = settings[cell.name], cell.varying
        for found, part, named in (
            (environments, environment_of(full), label(environment_of(varying)) or str(full[ENVIRONMENT])),
            (methods, method_of(full), label(method_of(varying)) or "all"),
        ):
            free = named if named not in labels.values() else cell.name
            found[cell.name] = labels.setdefault(key(part), free)
    return environments, methods


def _growth(
    settings: CellSettings, methods: Mapping[str, str], results: Mapping[str, RunFolder]
) -> list[dict[str, Any]]:
    """The exponent of episodes over size, for each method whose environments differ only in size."""
    groups: dict[tuple[str, str, str], dict[float, list[RunFolder]]] = {}
    for name, result in results.items():
        environment = environment_of(settings[name])
        for option in SIZES:
            if isinstance(size := environment.get(option), int | float) and size > 0:
                rest = {each: value for each, value in environment.items() if each != option}
                groups.setdefault((methods[name], option, key(rest)), {}).setdefault(float(size), []).append(result)
    rows = []
    for (method, option, _), sizes in groups.items():
        samples = {size: SeedResults.of(found) for size, found in sorted(sizes.items())}
        if len(samples) > 1 and all(sample.times for sample in samples.values()):
            row: dict[str, Any] = {"method": method, "over": option, "sizes": list(samples)}
            for metric in TIMES:
                growth = growth_exponent({size: sample.times[metric] for size, sample in samples.items()})
                row[metric] = None if growth is None else {k: round(v, 4) for k, v in growth._asdict().items()}
            rows.append(row)
    return rows
