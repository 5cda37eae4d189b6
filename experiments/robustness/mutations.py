"""Damages each file of a run folder at random, and reads it: a sentence or sound numbers, never a traceback or a hang.

Usage: python -m experiments.robustness.mutations [--mutations 1000] [--out results/mutations.json]

Of a small run that recorded distributions, summary.json, episodes.npz, distributions.npz, config.yaml and
networks.safetensors are changed, one at a time: bits flip, bytes go or come, the file is cut, or values and arrays are
replaced by others and the file is written whole again, without its checksum. What
`report`, `inspect` and `evaluate` do with a file is done with each; every fiftieth that is read goes through the whole
report. A change that takes longer than twenty seconds counts as a hang.
"""

import argparse
import collections
import contextlib
import io
import json
import random
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from uppertail.cli import inspect, main, train
from uppertail.errors import InputError
from uppertail.records import RunFolder, find_runs, write_text
from uppertail.reports import groups
from uppertail.reports.seeds import Seed
from uppertail.training.checkpoint import LearnedFile
from uppertail.training.process import hardware

RUN = "--env.length 4 --seeds 2 --width 4 --hidden_layers 1 --replay_size 256 --batch_size 16 --episodes 80"
FILES = ("summary.json", "episodes.npz", "distributions.npz", "config.yaml", "networks.safetensors")
LONGEST, WHOLE, COMPILING = 20, 50, 120
"""Seconds after which a change hangs; each such one goes through a whole report, with so many seconds."""

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -0.5, 1e300, float("nan"), float("inf"), "", "x", "\0", "nan",
    [], [[]], {}, {"name": []}, [None], [1, "a"], "2001-01-01", "*a", "[" * 2000,
]  # fmt: skip


def mutated(name: str, content: bytes, draw: random.Random) -> bytes:
    """The content of a file with one change."""
    if draw.random() < 0.4 or name.endswith(".safetensors"):
        return _bytes(content, draw)
    if name.endswith(".npz"):
        return _arrays(content, draw)
    tree = yaml.safe_load(content)
    _replace(tree, draw)
    text = json.dumps(tree) if name.endswith(".json") else yaml.safe_dump(tree)
    return text.encode()


def _bytes(content: bytes, draw: random.Random) -> bytes:
    changed, at = bytearray(content), draw.randrange(len(content))
    kind = draw.randrange(5)
    if kind == 0:
        changed[at] ^= 1 << draw.randrange(8)
    elif kind == 1:
        del changed[at : at + draw.randrange(1, 40)]
    elif kind == 2:
        changed[at:at] = draw.randbytes(draw.randrange(1, 40))
    elif kind == 3:
        del changed[at:]
    else:
        changed[at : at + 4] = draw.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"{[*&", b"\n- :\t"])
    return bytes(changed)


def _replace(tree: Any, draw: random.Random) -> None:
    """Replaces, removes or adds one value somewhere in a tree."""
    places = [(node, key) for node in _nodes(tree) for key in (node if isinstance(node, dict) else range(len(node)))]
    node, key = draw.choice(places)
    kind = draw.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[f"{key}x"] = node[key]
    else:
        node[key] = draw.choice(HOSTILE)


def _nodes(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict | list):
        yield tree
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _nodes(each)


def _arrays(content: bytes, draw: random.Random) -> bytes:
    arrays = dict(np.load(io.BytesIO(content)))
    name = draw.choice(sorted(arrays))
    array = arrays.pop(name)
    flat = array.astype(float).reshape(-1)
    flat[draw.randrange(flat.size)] = draw.choice([np.nan, np.inf, -np.inf, -1, 1e300, 2**40, 7, 0])
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: np.zeros((0, *array.shape[1:])),
        lambda: array[None],
        lambda: array.T,
        lambda: array.reshape(-1),
        lambda: array.reshape(-1)[:1],
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array.astype(str),
        lambda: array.astype(complex),
        lambda: array.astype(np.float16),
        lambda: np.full_like(array, 0),
        lambda: np.full(array.shape, np.nan),
        lambda: np.array(3.0),
        *[lambda: flat.reshape(array.shape)] * 3,
        *[lambda: np.clip(np.nan_to_num(flat), -(2**40), 2**40).reshape(array.shape).astype(array.dtype)] * 3,
    ]
    with np.errstate(all="ignore"):
        new = draw.choice(changes)()
    if new is not None:
        arrays[draw.choice([name, name, name, f"{name}x"])] = new
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def read(folder: Path, name: str, whole: bool) -> None:
    """Reads what a command would.

    Raises:
        InputError: the file is damaged.
    """
    if name == "config.yaml":
        RunFolder(folder).config  # noqa: B018
        train.read_request(folder / name)
        return
    if name == "networks.safetensors":
        LearnedFile.read(folder)
        return
    (run,) = find_runs([folder])
    recorded = run.distributions
    groups.table_row("run", run, groups.times(run))
    groups.curve(0, run.episodes)
    if recorded is not None:
        json.dumps(inspect.document(run, Seed.of(run, recorded, 0), len(recorded.step) - 1, None), allow_nan=False)
    if whole:
        json.dumps([[each.data, each.details, each.table] for each in groups.groups([run], [])], allow_nan=False)


def outcome(folder: Path, name: str, whole: bool) -> str:
    """What becomes of a damaged file: sentence, read, or the traceback's last line."""

    def late(*_: Any) -> None:
        raise TimeoutError("hangs")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(COMPILING if whole else LONGEST)
    try:
        read(folder, name, whole)
    except InputError as error:
        return "sentence" if str(error).count("\n") == 0 and str(error).isprintable() else f"ugly: {error!r}"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"[:200]
    finally:
        signal.alarm(0)
    return "read"


def damage(run: Path, name: str, mutations: int, seed: int) -> collections.Counter[str]:
    """How often each outcome came of so many changes of one file of a run."""
    draw, content, found = random.Random(f"{name} {seed}"), (run / name).read_bytes(), collections.Counter[str]()
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(shutil.copytree(run, f"{place}/run"))
        for _ in range(mutations):
            (folder / name).write_bytes(mutated(name, content, draw))
            found[outcome(folder, name, found["read"] % WHOLE == WHOLE - 1)] += 1
    return found


def train_small(out: Path) -> Path:
    """Trains the run."""
    main(["train", *RUN.split(), "--record", "distributions", "--quiet", "--out", str(out)])
    return out


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--mutations", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("results/mutations.json"))
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = train_small(Path(place, "run"))
        counts = {name: dict(damage(run, name, asked.mutations, asked.seed)) for name in FILES}
    document = {"mutations": asked.mutations, "seed": asked.seed, "outcomes": counts, "hardware": hardware()}
    write_text(asked.out, json.dumps(document, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
