"""`uppertail train`: what it asks for; a run, from its first step to its files."""

import contextlib
import dataclasses
import functools
import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from uppertail import records
from uppertail.capacity import size_of
from uppertail.cli import complain, picture, print_table
from uppertail.cli.commands import COMMANDS
from uppertail.cli.options import OpenChoice, PartChoice, Values
from uppertail.defaults import Plan
from uppertail.errors import InputError
from uppertail.learners import LearnerState
from uppertail.loggers import JSONL, Logger, named
from uppertail.parts import PARTS
from uppertail.records import RunRecord, digest, episode_text, median_episode
from uppertail.records.run_folder import PLAN
from uppertail.training import process
from uppertail.training.checkpoint import save_networks
from uppertail.training.checkpoints import MOST_BYTES, Checkpoints
from uppertail.training.earlier import Earlier
from uppertail.training.ledger import Progress
from uppertail.training.method import Method
from uppertail.training.process import StopRequest, interruptible
from uppertail.training.remarks import remarks
from uppertail.training.results import TrainingFailedError, TrainingResult
from uppertail.training.run import Run
from uppertail.training.settings import Settings
from uppertail.training.train import OnChunk, drive
from uppertail.yaml_files import read_options

RUNS = Path("runs")  # the folder of runs without --out
OF = "of"  # the entry of a plan with the checksum of what it was made for
FILES = ("checkpoint_every", "record", "record_over", "logger")
BESIDE = {"seeds", "seed", "episodes", "steps", "until", "evaluate_every", *FILES}
"""Options that no choice depends on."""
SAVED = (*PARTS, *Settings.__dataclass_fields__, "init", *FILES)  # in the file


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, with its classes built."""

    built: Values  # all options
    saved: dict[str, Any]  # those that config.yaml of the run has, beside the plan
    plan: Plan | None  # of the run that it repeats, plays or goes on with

    @property
    def config(self) -> str:
        """The text of config.yaml before anything is chosen."""
        return _yaml(self.saved)

    def config_with(self, plan: Plan) -> str:
        """The text of config.yaml: what was asked for, and what was chosen."""
        made = {PLAN: {OF: _fingerprint(self.saved), **plan.chosen()}}
        return self.config + yaml.safe_dump(
            made, allow_unicode=True, sort_keys=False, default_flow_style=None, width=999
        )

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return Settings(**{name: self.built[name] for name in Settings.__dataclass_fields__})

    def check(self, folder: Path) -> None:
        """Refuses what can be refused before the run is built and its folder is made."""
        _ = self.settings, self.loggers(folder)
        if self.built.checkpoint_every is not None:
            self.checkpoints(folder)

    @functools.cached_property
    def earlier(self) -> Earlier | None:
        """The run that it starts from."""
        return None if self.built.init is None else Earlier.read(self.built.init)

    def run(self, before: Plan | None = None) -> Run:
        """The run before its first step; `before` is the plan of one that it continues, plays or repeats."""
        method = Method(**{name: self.built[name] for name in Method.__dataclass_fields__})
        return Run(self.built.env, method, self.settings, before, self.built.record, self.built.record_over, complain)

    def begun(self) -> tuple[Run, LearnerState | None]:
        """The run before its first step, and what it starts from; InputError if the two do not go together."""

        def made(plan: Plan | None) -> Run:
            return self.run(self.plan or plan)

        return self.earlier.begun(made) if self.earlier else (made(None), None)

    def require_same(self, asked: Mapping[str, Any]) -> None:
        """Refuses the networks of a run in another environment, or of another number of seeds.

        Args:
            asked: the parts and settings of that run.
        """
        env, before = self.built.env, asked["environment"]
        usual = {field.name: field.default for field in dataclasses.fields(env)}
        added = [name for name in records.describe(env).keys() - before.keys() if getattr(env, name) != usual[name]]
        if before["name"] != type(env).__name__ or added:  # a later version has more settings, which are open here
            raise InputError(
                f"{records.CONFIG} asks for {type(env).__name__}, but the run was in {before['name']}, with other "
                "settings: correct the file, or train again."
            )
        if (id_now := getattr(env, "id", None)) != (id_then := before.get("id")):
            raise InputError(
                f"{records.CONFIG} asks for {id_now}, but the run was in {id_then}: correct the file, or train again."
            )
        if (seeds := asked["settings"].get("seeds")) != self.settings.seeds:  # before memory is taken for them
            raise InputError(
                f"{records.CONFIG} asks for {self.settings.seeds} seeds, but the run had {seeds}: correct the file, or "
                "train again."
            )

    def checkpoints(self, folder: Path) -> Checkpoints:
        """Where the states of a run in this folder are saved, and how often."""
        every = self.built.checkpoint_every
        return Checkpoints(folder, every, complain, MOST_BYTES if every is None else None)

    def loggers(self, folder: Path) -> list[Logger]:
        """The loggers beside log.jsonl; each is ready, but has written nothing."""
        names = [self.built.logger] if isinstance(self.built.logger, str) else self.built.logger
        return [named(name, folder) for name in dict.fromkeys(names)]

    @property
    def name(self) -> str:
        """The name of its folder without --out."""
        names = (self.built.env.label, *(type(self.built[part]).__name__ for part in ("distribution", "policy")))
        return re.sub(r"[^\w.-]+", "-", "-".join(names))[:100]

    def claim(self) -> Path:
        """Makes the folder of its results."""
        if not self.built.out:
            return records.claim_unused(RUNS, self.name)
        records.claim_folder(folder := Path(self.built.out), self.built.overwrite)
        return folder


def request_of(values: Values) -> Request:
    """What the options of `uppertail train` ask for; InputError if a part refuses its settings."""
    built, saved = Values(values, open_settings={}), dict[str, Any]()
    for name in SAVED:
        choice = values[name]
        if isinstance(choice, PartChoice):
            built[name] = choice.build()
        if isinstance(choice, OpenChoice):
            built[name], built["open_settings"][name] = None, choice.settings
        saved |= choice.options(name) if isinstance(choice, PartChoice) else {name: choice}
    saved = yaml.safe_load(_yaml(saved))  # lists in place of tuples, as in a file
    return Request(built, saved, _plan(values, saved))


def _yaml(options: Mapping[str, Any]) -> str:
    return yaml.safe_dump(options, allow_unicode=True, sort_keys=False, width=120)


def _plan(values: Values, saved: Mapping[str, Any]) -> Plan | None:
    """The plan in the file that is asked for, unless options beside it, or a hand, made another run of it."""
    if not isinstance(values.plan, dict) or not values.config:
        return None
    entries, file = {name: each for name, each in values.plan.items() if name != OF}, read_options(Path(values.config))
    there = {name: value for name, value in saved.items() if name in file}  # a later version may have more of them
    return Plan.read(entries) if values.plan.get(OF) == _fingerprint(there) else None


def _fingerprint(saved: Mapping[str, Any]) -> str:
    """A checksum of what decides the plan of a run."""
    return digest({}, json.dumps({name: saved[name] for name in sorted(saved.keys() - BESIDE)}))[:16]


def parse_request(arguments: Sequence[str]) -> Request:
    """What these arguments of `uppertail train` ask for."""
    return request_of(COMMANDS["train"].parse(arguments))


def read_request(config: Path, beside: Sequence[str] = ()) -> Request:
    """What the config.yaml of a run asks for, but for options that replace its own."""
    try:
        return parse_request([f"--config={config}", *beside])
    except InputError as error:
        raise InputError(f"In {config}: {error}") from error


def main(values: Values) -> int:
    """Runs the command."""
    return begin(request_of(values), keeps_end=True)


def begin(request: Request, beside: Sequence[OnChunk] = (), keeps_end: bool = False) -> int:
    """Trains what was asked for, and returns the exit code; `beside` are called with the progress after each chunk.

    `keeps_end`: whether there is a small checkpoint at the end, if none was asked for.
    """
    process.limit_threads(request.settings.seeds)
    request.check(Path(request.built.out or RUNS / request.name))  # an error here or in the next line leaves no file
    run, learned = request.begun()
    if request.built["dry-run"]:
        run.close()
        show_plan(run)
        return 0
    folder = request.claim()
    fits = keeps_end and size_of(run.driver.template) <= MOST_BYTES  # else its state is not gathered for nothing
    checkpoints = request.checkpoints(folder) if fits or request.built.checkpoint_every is not None else None
    with records.locked(folder):
        records.write_config(folder / records.CONFIG, request.config_with(run.plan))
        return train(run, folder, checkpoints, request.loggers(folder), request.built.quiet, beside, learned)


def train(
    run: Run,
    folder: Path,
    checkpoints: Checkpoints | None,
    loggers: Sequence[Logger],
    quiet: bool,
    beside: Sequence[OnChunk] = (),
    learned: LearnerState | None = None,
) -> int:
    """Trains, writes the files of the run to a locked folder, also if training fails, and returns the exit code."""
    env, label = run.builder.label, f"{type(run.method.distribution).__name__}, {type(run.method.policy).__name__}"
    whose = f"{folder}: " if quiet else ""  # nothing else says which of several runs it is
    for note in run.notes:
        complain(whose + note)
    if not quiet:
        print(f"{env}: {run.opening}", file=sys.stderr)
    log, shown = JSONL(folder / records.LOG), shlex.quote(str(folder))

    def on() -> str:
        goes_on = checkpoints and (checkpoints.every or checkpoints.files())
        return f"; `uppertail resume {shown}` continues the run" if goes_on else ""

    with interruptible() as asked_to_stop:  # an interrupted run still writes what it learned
        try:
            with progress_bar(label, quiet, asked_to_stop) as show, contextlib.ExitStack() as logs:
                callbacks = [show, *map(logs.enter_context, (log, *loggers)), *beside]
                result = drive(
                    run, lambda progress: [callback(progress) for callback in callbacks], checkpoints, learned
                )
        except TrainingFailedError as error:
            _write(folder, error.result, label)
            goes_on = "" if error.result.record.diverged else on()
            raise InputError(f"{error} What was learned until then is in {folder}{goes_on}.") from error
        _write(folder, result, label)
    for remark in remarks(run, result):
        complain(whose + remark)
    if asked_to_stop.is_set() and not quiet:
        if result.record.interrupted:
            said = f"Interrupted: what was learned until now is kept{on()}"
        else:
            said = "The run was at its end when the signal came: it is complete"
        unplayed = any(map(math.isnan, result.record.greedy_returns))
        plays = f"; `uppertail evaluate {shown}` plays it greedily" if unplayed else ""
        print(f"{said}{plays}.", file=sys.stderr)
    if not quiet:
        print_results(f"{env}, seeds: {len(result.record.episodes)}", label, result.record)
        print(f"Results in {folder}")
        print(f"Next: uppertail report {shown}")
    return asked_to_stop.exit_code if result.record.interrupted else 0


def _write(folder: Path, result: TrainingResult, label: str) -> None:
    """Writes the files, the curve last: a folder with a curve and a summary has all files of one moment."""
    with records.output_errors(folder):
        for name in (records.CURVE, records.REPORT, records.DISTRIBUTIONS, records.EVALUATION):
            for path in folder.glob(name):  # left by earlier networks
                path.unlink()
        save_networks(folder, result)  # first: they took longest to make
        records.write_run(folder, result.record, result.distributions)
        if (later := folder / records.NEXT_CONFIG).is_file():
            later.replace(folder / records.CONFIG)
        with picture(folder / records.CURVE):
            from uppertail.analysis.figures import learning_curves  # imported late: it takes a second

            learning_curves(folder / records.CURVE, result.record.environment, {label: result.record.episodes})


class Status(ProgressColumn):
    """What a run does: it compiles, until there is a first report; it trains; it plays greedy episodes; it stops."""

    def __init__(self, asked_to_stop: StopRequest | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.asked_to_stop = asked_to_stop

    def render(self, task: Task) -> Text:
        if self.asked_to_stop and self.asked_to_stop.is_set():
            return Text("stopping (Ctrl-C again: at once)")
        if task.finished:
            since = task.get_time() - (task.start_time or 0.0) - (task.finished_time or 0.0)
            return Text(f"playing greedy episodes ({since:.0f} s)")
        return Text(task.fields["status"] or f"compiling ({task.elapsed or 0.0:.0f} s; cached next time)")


@contextlib.contextmanager
def progress_bar(
    label: str, quiet: bool, asked_to_stop: StopRequest | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Yields the callback that keeps a progress bar up to date; a quiet one shows nothing."""
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=3)),
        BarColumn(bar_width=6),
        Status(asked_to_stop, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=11)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
    )
    console = Console(stderr=True)  # one that is no terminal, such as a file, shows nothing: it may be full
    with Bar(*columns, console=console, disable=quiet or not console.is_terminal, expand=True) as bar:
        task = bar.add_task(label, total=1.0, status="")

        def show(now: Progress) -> None:
            bar.update(task, completed=now.fraction, status=now.text)

        yield show


def show_plan(run: Run) -> None:
    """Prints every setting of a run, where it came from, and why."""
    rows = [
        {"setting": name, "value": json.dumps(value), "from": source, "because": reason}
        for name, (value, source, reason) in run.plan.entries.items()
    ]
    print_table(rows, f"{run.builder.label}: {run.opening}", texts=("value", "because"))


def print_results(title: str, label: str, record: RunRecord) -> None:
    """Prints the results of a run over its seeds."""
    row = {heading: value for heading, value in {"method": label, **_results(record)}.items() if value is not None}
    print_table([row], title, texts=("method",))


def _results(record: RunRecord) -> dict[str, str | None]:
    """The numbers of a run by their headings; None where there is nothing to say."""
    kept = [share for share in record.kept if share is not None]
    floor = None if record.floor_episodes is None else episode_text(record.first_success_over_floor, ".1f")
    of_success = {
        "seeds\nsolved": _count(record.solved_episode),
        "first\nsuccess": episode_text(median_episode(record.first_success_episode)),
        "solved\nafter": episode_text(median_episode(record.solved_episode)),
        "times\nminimum": floor,
        "stays\nsolved": f"{math.floor(min(kept) * 1000) / 10:.4g}%" if kept else None,  # never rounded up to the whole
        "greedy\nsolves": _count([solves or None for solves in record.greedy_solves]),
    }
    return {
        **(of_success if record.has_success else {"last\nreturn": _mean(record.final_returns)}),
        "greedy\nreturn": _mean(record.greedy_returns),
        "steps\nper s": f"{record.steps_per_second:,.0f}",
    }


def _count(values: Sequence[object]) -> str:
    return f"{sum(value is not None for value in values)}/{len(values)}"


def _mean(values: Sequence[float | None]) -> str | None:
    known = [value for value in values if value is not None and not math.isnan(value)]
    return f"{sum(known) / len(known):.4g}" if known else None
