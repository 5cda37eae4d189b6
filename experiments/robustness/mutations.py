"""Damages each file of a run folder at random, and reads it: a sentence or sound numbers, never a traceback or a hang.

Usage: python -m experiments.robustness.mutations [--mutations 1000] [--out results/mutations.json]

Of a small run that recorded distributions, summary.json, episodes.npz, distributions.npz, config.yaml,
networks.safetensors and log.jsonl are changed, one at a time: bits flip, bytes go or come, the file is cut, or (eight
of ten) values and arrays are replaced by others and the file is written whole again, with its right checksum, which
needs no secret. What `report`, `inspect`, `study --compare` and `evaluate` do with a file before they build a run is
done with each; every tenth that can be read goes through a whole command, one after the other. A change that takes
longer than twenty seconds, or with a whole command 120, counts as a hang.
"""

import argparse
import collections
import contextlib
import io
import itertools
import json
import random
import shutil
import signal
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import yaml

from uppertail.cli import inspect, main, train
from uppertail.errors import InputError
from uppertail.records import RunFolder, digest, find_runs, write_text
from uppertail.reports import groups
from uppertail.reports.seeds import Seed
from uppertail.studies import comparison
from uppertail.training import checkpoint
from uppertail.training.process import hardware

RUN = "--env.length 4 --seeds 2 --network.width 4 --replay_size 256 --batch_size 16 --episodes 80"
FILES = ("summary.json", "episodes.npz", "distributions.npz", "config.yaml", "networks.safetensors", "log.jsonl")
COMMANDS = ("inspect", "report", "evaluate --episodes 1 --quiet", "inspect --json", "study --compare")
LONGEST, WHOLE, COMPILING = 20, 10, 120
"""Seconds after which a change hangs; each such one goes through a whole command, with so many seconds."""
BYTES = 0.2  # share of the changes that are of bytes

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 10**6, 2**31 - 1, 2**31, 2**63, 10**400, -0.5, 1e300, float("nan"), float("inf"), "",
    "x", "\0", "nan", "\ud800", [], [[]], {}, {"name": []}, [None], [1, "a"], "2001-01-01", "*a", "[" * 2000,
]  # fmt: skip


def mutated(name: str, content: bytes, draw: random.Random) -> bytes:
    """The content of a file with one change."""
    if draw.random() < BYTES:
        return _bytes(content, draw)
    if name == "summary.json":
        summary = json.loads(content)
        del summary["sha256"]
        _replace(summary, draw)
        text = json.dumps(summary)
        return json.dumps({**summary, "sha256": digest({}, text)}).encode()
    if name == "networks.safetensors":
        return _networks(content, draw)
    if name.endswith(".npz"):
        return _packed(_arrays(dict(np.load(io.BytesIO(content))), draw))
    if name == "log.jsonl":
        lines = [json.loads(line) for line in content.splitlines()]
        _replace(lines, draw)
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    tree = yaml.safe_load(content)
    _replace(tree, draw)
    return yaml.safe_dump(tree).encode()


def _packed(arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz file with its checksum."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = digest(arrays).encode()
    return file.getvalue()


def _networks(content: bytes, draw: random.Random) -> bytes:
    """Networks with another header or array, and the checksum of both."""
    length = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + length])["__metadata__"][checkpoint.HEADER]
    arrays = safetensors.numpy.load(content)
    if draw.random() < 0.3:
        arrays = {name: array for name, array in _arrays(arrays, draw).items() if array.dtype.kind in "fiub"}
    else:
        header = [json.loads(text)]
        _replace(header, draw)
        text = json.dumps(header[0] if header else None)
    return safetensors.numpy.save(arrays, {checkpoint.HEADER: text, checkpoint.DIGEST: digest(arrays, text)})


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


def _arrays(arrays: dict[str, np.ndarray], draw: random.Random) -> dict[str, np.ndarray]:
    """Arrays of which one is another."""
    name = draw.choice(sorted(arrays))
    array = arrays.pop(name)
    flat = (array if array.dtype.kind in "fiub" else np.zeros(array.shape)).astype(float).reshape(-1)
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
    return arrays


def read(folder: Path, name: str, command: str | None) -> None:
    """Reads what a command would, or runs a whole one.

    Raises:
        InputError: the file is damaged.
    """
    if command is not None:
        words = [*command.split(), str(folder)] + [str(folder)] * ("--compare" in command)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = main(words)
        if code:
            raise InputError(said.getvalue().rstrip("\n"))
    elif name == "config.yaml":
        RunFolder(folder).config  # noqa: B018
        train.read_request(folder / name)
    elif name == "networks.safetensors":
        checkpoint.record_of(RunFolder(folder), checkpoint.LearnedFile.read(folder).header)
    else:
        (run,) = find_runs([folder])
        recorded = run.distributions
        groups.table_row("run", run, groups.times(run))
        groups.curve(0, run.episodes)
        groups.exploration(0, run.log)
        comparison.SeedResults.of([run])
        if recorded is not None:
            json.dumps(inspect.document(run, Seed.of(run, recorded, 0), len(recorded.step) - 1, None), allow_nan=False)


def outcome(folder: Path, name: str, command: str | None) -> str:
    """What becomes of a damaged file: sentence, read, or the traceback's last line."""

    def late(*_: Any) -> None:
        raise TimeoutError("hangs")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST if command is None else COMPILING)
    try:
        read(folder, name, command)
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
    commands = itertools.cycle(COMMANDS)
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(shutil.copytree(run, f"{place}/run"))
        for _ in range(mutations):
            (folder / name).write_bytes(mutated(name, content, draw))
            found[outcome(folder, name, next(commands) if found["read"] % WHOLE == WHOLE - 1 else None)] += 1
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
