"""Whether stored results still hold: their first seeds made again, and all that pages say of them."""

import importlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments import documents
from experiments.paper import cells
from experiments.provenance import RESULTS, ROOT, UNKNOWN, certify, checksum, entries, processor, state
from experiments.registry import EXPERIMENTS, is_result
from uppertail.errors import InputError
from uppertail.training.birth import birth

NAMES_OF_SECONDS = ("wall_seconds", "training_seconds", "seconds")


def seconds_of(stored: dict[str, Any]) -> float:
    """About how long the first seed takes, by what all of them took."""
    total = next((stored[name] for name in NAMES_OF_SECONDS if name in stored), 0.0)
    lists = [value for value in stored.values() if isinstance(value, list)]
    total = sum(total) if isinstance(total, list) else total
    return total / max([1, *map(len, lists)])


def differences(stored: dict[str, Any], again: dict[str, list[Any]]) -> list[str]:
    """What of the first seed came out otherwise; a series may end earlier than the stored one."""
    found = json.loads(json.dumps(again))
    kept = {name: value for name, (value,) in found.items() if name in stored}
    return [name for name, value in kept.items() if not _begins(stored[name][0], value)] if kept else ["all"]


def _begins(stored: Any, value: Any) -> bool:
    if isinstance(stored, list) and isinstance(value, list):
        return bool(value) and stored[: len(value)] == value
    return stored == value


def certify_all(names: list[str], longest: float, say: Callable[[str], object], only: Sequence[str] = ("",)) -> int:
    """Makes the first seed of each result again that no tree or another one made, and notes what comes out the same.

    Args:
        names: of experiments.
        longest: seconds that a seed may take, by what it took before.
        say: receives a line for each result.
        only: results whose names hold one of these texts; by default all.

    Returns:
        How many came out otherwise.

    Raises:
        InputError: the package is no checkout, or its files are not as committed.
    """
    code = birth()
    if code.get("dirty", True):
        raise InputError("Commit src/uppertail first: a certificate names the tree that made a result again.")
    other = 0
    for each in (EXPERIMENTS[name] for name in names if EXPERIMENTS[name].again):
        for path in each.files():
            if state(_entry(path), code["tree"]) not in ("older", UNKNOWN):
                continue
            name = str(path.relative_to(RESULTS))
            if not any(text in name for text in only):
                continue
            stored = _stored(path)
            if (expected := seconds_of(stored)) > longest:
                say(f"{name}: left out, takes about {expected:,.0f} s")
                continue
            began = time.perf_counter()
            again = importlib.import_module(each.module).again(path.stem, stored)
            if again is None:
                say(f"{name}: no command makes its first seed alone")
                continue
            wrong = differences(stored, again)
            other += bool(wrong)
            spent = f"{time.perf_counter() - began:,.0f} s"
            say(f"{name}: {'OTHERWISE: ' + ', '.join(wrong) + _elsewhere(path) if wrong else 'the same'}, {spent}")
            if not wrong:
                certify(path, code["tree"])
    return other


def faults() -> Iterator[str]:
    """What is wrong with pages and results, in sentences."""
    for page in documents.stale():
        yield f"{page.relative_to(ROOT)} does not say what the results say: run `python -m experiments tables`."
    owned = {path for each in EXPERIMENTS.values() for path in each.files()}
    for path in sorted(RESULTS.rglob("*")):
        if is_result(path):
            name = path.relative_to(ROOT)
            if path not in owned:
                yield f"{name} belongs to no experiment: name it in experiments/registry.py, or delete it."
            if _entry(path).get("sha256") != checksum(path):
                yield f"{name} is not as its manifest.json has it: make it by `python -m experiments run`."
    for manifest in sorted(RESULTS.rglob("manifest.json")):
        for gone in sorted(name for name in entries(manifest.parent) if not (manifest.parent / name).exists()):
            yield f"{manifest.relative_to(ROOT)} names {gone}, which is not there."
    for name, each in EXPERIMENTS.items():
        for page in each.pages:
            if not (ROOT / (page if page == "README" else f"docs/{page}")).with_suffix(".md").exists():
                yield f"The experiment {name} names the page {page}, which is not there."


def uncertified(tree: str | None) -> dict[str, dict[str, list[str]]]:
    """The results, but speeds, that are neither of this tree nor certified at it: by experiment and what is known."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, each in EXPERIMENTS.items():
        for path in () if each.is_speed else each.files():
            known = state(_entry(path), tree)
            if known in ("older", UNKNOWN):
                found.setdefault(name, {}).setdefault(known, []).append(str(path.relative_to(RESULTS).with_suffix("")))
    return found


def _stored(path: Path) -> dict[str, Any]:
    return cells.stored(path) if path.suffix == ".npz" else json.loads(path.read_text(encoding="utf-8"))


def _elsewhere(path: Path) -> str:
    """Words on a result of another processor, on which alone it may come out otherwise."""
    made = _entry(path)["birth"]
    there, here = made.get("processor") if isinstance(made, dict) else None, processor()
    return f" (made on {there}, here {here})" if there not in (None, here) else ""


def _entry(path: Path) -> dict[str, Any]:
    return entries(path.parent).get(path.name, {"birth": UNKNOWN})
