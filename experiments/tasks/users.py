"""Ten environments as users bring them, by all defaults: is each learned, exported, and shown in the report?

    python -m experiments.tasks.users --out results/users                   # all of them
    python -m experiments.tasks.users --env Tank --out users                # one of them

Each is one JSON file: a run of two seeds by `uppertail train`, then `uppertail export` and `uppertail report` on its
folder. The greedy policies, the rule written by hand and random actions play the same 100 episodes.
"""

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import uppertail as ut
from experiments.common import options, write
from experiments.tasks import users_environments
from experiments.tasks.users_environments import EPISODES, USERS
from uppertail import cli, records
from uppertail.reports.groups import groups
from uppertail.training.process import hardware


def id_of(name: str) -> str:
    """The id by which the command line finds an environment."""
    return f"{users_environments.__name__}:{name}-v0"


def measure(name: str, seeds: int = 2) -> dict[str, Any]:
    """One environment: what was chosen, what each seed reached, and what export and report made of it."""
    users = USERS[name]
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        asked = ["--env", "Gym", "--env.id", id_of(name), "--steps", str(users.steps), "--seeds", str(seeds)]
        trained = said(folder, "train", *asked, "--record", "distributions", "--quiet", "--out", run)
        if trained["code"]:  # what an interrupted run has learned is no result
            raise SystemExit(trained["text"])
        result = ut.load(run)
        exported = {kind: said(folder, "export", run, "--to", f"{folder}/policy.{kind}") for kind in ("npz", "onnx")}
        reported = said(folder, "report", run)
        (group,) = groups(records.find_runs([Path(run)]), [])
        kilobytes = Path(run, "report.html").stat().st_size / 1_000
    asked_of = result.record.asked
    detail = group.details[0]
    return {
        "env": name, "steps": users.steps, "seeds": result.seeds, "best": users.best,
        "rule": float(np.mean(returns_of(name, users.rule))),
        "random": float(np.mean(returns_of(name, None))),
        "greedy": [float(np.mean(greedy_returns(name, result, seed))) for seed in result.seeds],
        "greedy_return": result.record.greedy_returns, "episodes": [len(e.returns) for e in result.record.episodes],
        "learner": asked_of["learner"]["name"], "said": trained, "exported": exported, "reported": reported,
        "report": {
            "kilobytes": round(kilobytes), "states": len(detail["rows"]),
            "pictures": [each for each in ("grid", "plane") if detail.get(each)], "table": group.table[0],
        },
        "training_seconds": round(result.record.training_seconds, 1), "hardware": hardware(),
    }  # fmt: skip


def said(folder: str, command: str, *words: str) -> dict[str, Any]:
    """The exit code of a command, and all that it prints, with DIR in place of the folder that it works in."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = cli.main([command, *words])
    return {"code": code, "text": out.getvalue().replace(folder, "DIR")}


def returns_of(name: str, policy: Any) -> list[float]:
    """The returns of the compared episodes by a rule; None: random actions."""

    def acts(environments: list[Any], seen: list[Any]) -> list[Any]:
        return [env.action_space.sample() for env in environments] if policy is None else [*map(policy, seen)]

    return played(name, acts)


def greedy_returns(name: str, result: ut.TrainingResult, seed: int) -> list[float]:
    """The returns of the compared episodes by the greedy policy of a seed."""
    return played(name, lambda _, seen: result.act(seen, seed=seed))


def played(name: str, acts: Any) -> list[float]:
    """Plays the compared episodes side by side; those that are over wait."""
    environments = [gymnasium.make(id_of(name)) for _ in EPISODES]
    seen, returns, over = [], np.zeros(len(environments)), np.zeros(len(environments), bool)
    for seed, env in zip(EPISODES, environments, strict=True):
        env.action_space.seed(seed)
        seen.append(env.reset(seed=seed)[0])
    while not over.all():
        for k, action in enumerate(acts(environments, seen)):
            if not over[k]:
                seen[k], reward, terminated, truncated, _ = environments[k].step(action)
                returns[k] += float(reward)
                over[k] = terminated or truncated
    return returns.tolist()


def share(document: dict[str, Any]) -> list[float]:
    """How far each seed came from random actions (0) to the rule (1)."""
    return [(each - document["random"]) / (document["rule"] - document["random"]) for each in document["greedy"]]


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again beside the others: they may widen its range of returns."""
    found = measure(stem, len(stored["seeds"]))
    return {each: found[each][:1] for each in ("greedy", "greedy_return", "episodes")}


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "results/users", env=USERS)
    for name in asked.env:
        if (path := asked.out / f"{name}.json").exists():
            continue
        document = measure(name)
        write(path, document)
        exported = [kind for kind, each in document["exported"].items() if each["code"] == 0]
        print(f"{name:<15} {np.round(share(document), 3)} {document['learner']} {exported}", flush=True)


if __name__ == "__main__":
    main()
