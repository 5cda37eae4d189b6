"""`uppertail evaluate`: what a run's learned networks earn, over many episodes."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from uppertail import records
from uppertail.analysis.statistics import mean_interval
from uppertail.cli import complain, print_table
from uppertail.cli.options import Values
from uppertail.cli.trained import TrainedRun, elsewhere, open_run
from uppertail.errors import InputError
from uppertail.training.process import hardware
from uppertail.training.run import Run

LONGEST_NAME = 100
MOST_EPISODES = 100_000  # compiled ones are played all at once, and take about 4 kB of memory each at width 256


def main(config: Values) -> int:
    """Runs the command."""
    if not 1 <= config.episodes <= MOST_EPISODES:
        raise InputError(f"episodes is {config.episodes}: use 1 to {MOST_EPISODES:,}.")
    changes = config.changes + ([] if config.seed is None else [f"--seed={config.seed}"])
    with open_run(config.folder, config.trust, config.policy) as opened, elsewhere(opened, changes) as run:
        document = _document(opened, run, changes, config.policy, config.episodes)
        family = type(opened.run.method.distribution).__name__
    path = config.folder / f"{_name(config.policy, changes)}.json"
    try:
        if not config.quiet:
            _show(family, document)
    finally:
        remedy = "make the folder writable, or evaluate a copy of it"
        with records.write_errors(f"The episodes were played, but {path}", remedy):
            records.write_json(path, document)
    if not config.quiet:
        print(f"Every episode in {path}")
    return 0


def _name(policy: str, changes: Sequence[str]) -> str:
    """The name of the file of an evaluation; one that is cut ends in a checksum, so that no other one has it."""
    asked = "".join(["evaluation-", policy.rpartition(".")[2], *changes])
    name = re.sub(r"[^\w.-]+", "-", asked)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{records.digest({}, asked)[:8]}"


def _document(opened: TrainedRun, run: Run, changes: Sequence[str], asked: str, episodes: int) -> dict[str, Any]:
    """The episodes of each seed in a run's environment, and their means; success may not be defined."""
    opened.require_finite(slice(None))
    header, record = opened.file.header, opened.result.record
    run.driver.say = complain
    run.driver.release()
    played = run.driver.play(opened.networks, opened.policy, episodes)
    steps = run.builder.steps_of(played.lengths)
    returns, lengths = (each.mean(axis=1, dtype=np.float64) for each in (played.returns, steps))
    success = run.builder.criterion
    rates = success.rate(played.returns) if success.is_defined else None
    mean, low, high = mean_interval(returns.tolist())
    return {
        "policy": {"asked": asked, **records.describe(opened.policy)},
        "env": run.asked()["environment"],
        **({"changes": changes} if changes else {}),
        "episodes": episodes,
        "mean_return": mean,
        "interval": [low, high],
        "mean_length": float(np.mean(lengths)),
        "success_return": success.mark if success.is_defined else None,
        "success_episodes": success.episodes if success.episodes == 1 else episodes,
        "success_rate": None if rates is None else float(np.mean(rates)),
        "seeds": [
            {
                "seed": opened.run.settings.seed + row,
                "network": record.network_of(row),
                "mean_return": float(returns[row]),
                "mean_length": float(lengths[row]),
                "success_rate": None if rates is None else float(rates[row]),
                "returns": played.returns[row].tolist(),
                "lengths": steps[row].tolist(),
            }
            for row in range(len(returns))
        ],
        "networks": {"env_steps": header.step, "sha256": records.digest(opened.file.arrays)},
        "hardware": hardware(),
    }


def _success(mark: float, episodes: int, rate: float) -> dict[str, str]:
    """A seed's share of successes or, if the mean of all its episodes is judged, whether that is one."""
    return {"successes": f"{rate:.0%}"} if episodes == 1 else {f"at least {mark:g}": "yes" if rate else "no"}


def _show(distribution: str, document: dict[str, Any]) -> None:
    """Prints a row for each seed, and the mean over seeds with its interval in a sentence."""
    env, policy, (low, high) = document["env"], document["policy"], document["interval"]
    settings = [f"{name} {value:g}" for name, value in policy.items() if isinstance(value, int | float)]
    label = f"{policy['name']} ({', '.join(settings)})" if settings else policy["name"]
    print(", ".join([env.get("id", env["name"]), distribution, label, *document.get("changes", [])]))
    rows, is_best = [], document["seeds"][0]["network"] != "last"
    for each in document["seeds"]:
        row = {"seed": str(each["seed"])} | ({"network": each["network"]} if is_best else {})
        row |= {name: f"{each[name.replace(' ', '_')]:.4g}" for name in ("mean return", "mean length")}
        if each["success_rate"] is not None:
            row |= _success(document["success_return"], document["success_episodes"], each["success_rate"])
        rows.append(row)
    print_table(rows)
    count = len(rows)
    seeds = f"95% interval over {count} seeds from {low:.4g} to {high:.4g}" if count > 1 else "one seed, so no interval"
    print(
        f"Mean return {document['mean_return']:.4g}, {seeds}; episodes of each: {document['episodes']:,}; "
        f"{'best' if is_best else 'last'} networks."
    )
