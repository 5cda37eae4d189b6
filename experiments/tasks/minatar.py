"""MinAtar's games: what the return distribution is worth where features are learned from images.

    python -m experiments.tasks.minatar --out results/minatar                            # all games and methods
    python -m experiments.tasks.minatar --task Seaquest --method defaults --seeds 1

The same network, replay and updates throughout. Each game and method is one JSON file of all seeds; what is there
already is not run again. Needs `uppertail[gymnax]`.
"""

import itertools
from typing import Any

import numpy as np

import uppertail as ut
from experiments.common import options, write
from uppertail.training.process import hardware

FIRST = 10
"""The first seed: none of them chose anything."""

STEPS = 300_000

GAMES = {game: f"{game}-MinAtar" for game in ("Seaquest", "Breakout", "Asterix", "SpaceInvaders", "Freeway")}

METHODS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "epsilon_greedy": {"policy": ut.EpsilonGreedy()},
    "optimistic_value": {"learner": ut.GradientDescent(), "distribution": ut.PointMass(start=0.1)},
}
"""The defaults, a Gaussian and UCB; the same Gaussian by epsilon-greedy (0.05); and one optimistic value, which starts
where the bound of the Gaussian does."""


def measure(game: str, method: str, seeds: int) -> dict[str, Any]:
    """All seeds side by side."""
    settings = ut.Settings(seeds=seeds, seed=FIRST, steps=STEPS, episodes=10**7)
    record = ut.train(ut.Gymnax(GAMES[game]), settings=settings, **METHODS[method]).record
    summary, returns = record.summary(), [np.asarray(each.returns) for each in record.episodes]
    return {
        "task": game, "method": method, "steps": STEPS, "seeds": [*range(FIRST, FIRST + seeds)],
        "episodes": [len(every) for every in returns],
        "tenths": [[round(float(part.mean()), 3) for part in np.array_split(every, 10)] for every in returns],
        "greedy": summary["final_greedy_return"],
        "training_seconds": round(record.training_seconds, 1),
        **{part: summary[part] for part in ("distribution", "policy", "learner", "settings")},
        "hardware": hardware(),
    }  # fmt: skip


def again(stem: str, stored: dict[str, Any]) -> dict[str, Any] | None:
    """The first seed of a stored result, made again."""
    found = measure(stored["task"], stored["method"], 1)
    return {each: found[each] for each in ("episodes", "tenths", "greedy")}


def main() -> None:
    """Runs what is asked for."""
    asked = options(__doc__, "results/minatar", task=GAMES, method=METHODS, seeds=3)
    for method, game in itertools.product(asked.method, asked.task):
        if (path := asked.out / f"{game}-{method}.json").exists():
            continue
        document = measure(game, method, asked.seeds)
        write(path, document, indent=None)
        last = ", ".join(f"{each[-1]:.1f}" for each in document["tenths"])
        print(f"{game:<14} {method:<17} {last} (greedy {document['greedy']})", flush=True)


if __name__ == "__main__":
    main()
