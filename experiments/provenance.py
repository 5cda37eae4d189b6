"""Births of results: which code, machine and command made each file, and at which code one seed was made again.

Each folder of results has a manifest.json: for each file its checksum, its birth and, once it was certified, the Git
tree of `src/uppertail` at which its first seed came out the same. Of a result that is older than manifests only the
commit that stored it is known: its birth is "unknown". What others published is stored with its source: "published".
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from uppertail.records import write_text
from uppertail.training.birth import birth

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
MANIFEST, UNKNOWN, PUBLISHED = "manifest.json", "unknown", "published"
LOAD_BEFORE = os.getloadavg()[0]
PACKAGES = ("uppertail", "jax", "numpy", "gymnasium")


def entries(folder: Path) -> dict[str, dict[str, Any]]:
    """What the manifest of a folder says of each file."""
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def record(path: Path, command: str | None = None) -> None:
    """Notes the birth of a result, made by this process or by a command that it called; one that is noted stays."""
    found = checksum(path)
    with _lock(path.parent):
        known = entries(path.parent)
        if known.get(path.name, {}).get("sha256") != found:
            _write(path.parent, {**known, path.name: {"sha256": found, "birth": _born(path, command)}})


def certify(path: Path, tree: str) -> None:
    """Notes that the first seed of a result came out the same by the code of a tree."""
    with _lock(path.parent):
        known = entries(path.parent)
        _write(path.parent, {**known, path.name: {**known[path.name], "certified": tree}})


def state(entry: dict[str, Any], tree: str | None) -> str:
    """What is known of a result: `certified` or `born` at this tree, `older`, `unknown`, or `published` by others."""
    if tree is not None and entry.get("certified") == tree:
        return "certified"
    if entry["birth"] in (UNKNOWN, PUBLISHED):
        return entry["birth"]
    return "born" if tree is not None and _made_at(entry) == tree else "older"


def tree_of(entry: dict[str, Any]) -> str | None:
    """The tree at which a result was made again or else made; None: it is not known."""
    return entry.get("certified") or _made_at(entry)


def _made_at(entry: dict[str, Any]) -> str | None:
    made = entry["birth"]
    return None if made in (UNKNOWN, PUBLISHED) or made.get("dirty") else made.get("tree")


def _born(path: Path, command: str | None) -> dict[str, Any]:
    process = psutil.Process()
    spent = sum(process.cpu_times()[:4])  # children's, too
    return {
        **birth(),
        "command": re.sub(r"(?<![^\s=])/\S*/", "", command or " ".join(["python", *sys.orig_argv[1:]])),  # no own paths
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(process.create_time())),
        "wall_seconds": round(time.time() - process.create_time(), 1),
        "cpu_seconds": round(spent, 1),
        "load": [round(LOAD_BEFORE, 2), round(os.getloadavg()[0], 2)],
        "processor": processor(),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        "seeds": _seeds(path),
    }


def processor() -> str:
    """The name of the processor, and its cores."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text(encoding="utf-8").splitlines() if cpu.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _seeds(path: Path) -> Any:
    """The seeds of a result, as far as it says them."""
    document = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else {}
    settings = document.get("settings", {})
    if "seeds" not in document and isinstance(settings, dict) and isinstance(settings.get("seeds"), int):
        return list(range(settings.get("seed", 0), settings.get("seed", 0) + settings["seeds"]))
    return document.get("seeds")


def _lock(folder: Path) -> FileLock:
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return FileLock(Path(tempfile.gettempdir(), f"manifest-{name}.lock"))


def _write(folder: Path, known: dict[str, dict[str, Any]]) -> None:
    # a line for each file, so that merges are easy
    lines = [f" {json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
    write_text(folder / MANIFEST, "{\n" + ",\n".join(lines) + "\n}\n")
