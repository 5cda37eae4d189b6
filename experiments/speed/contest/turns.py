"""All contestants in turns, again and again, since machines are noisy; medians count."""

import statistics
from collections.abc import Callable
from typing import Any

from experiments.speed.contest import machine
from experiments.speed.contest.contestants import Contestant, Ours, Peer
from experiments.speed.contest.load import Load
from uppertail.distributions import Categorical, Gaussian, GaussianMixture
from uppertail.training.process import hardware

PEER_STEPS = 4_000
MEMBERS = 10
PEERS = {"DQN": "Stable-Baselines3 DQN", "QRDQN": "sb3-contrib QR-DQN"}


def contestants(python: str | None) -> list[Contestant]:
    """Who takes part.

    Args:
        python: the interpreter of the peers' environment; None: no peers.
    """
    ours: list[Contestant] = []
    for depth in (1, 2, 3):
        layers = f"{depth} hidden layer{'s'[: depth > 1]}"
        if python:
            ours += [Peer(f"{name}, {layers}", python, key, depth, PEER_STEPS) for key, name in PEERS.items()]
        for seeds in (1, 10, 100):
            ours.append(Ours(f"Gaussian, {seeds} seed{'s'[: seeds > 1]}, {layers}", Gaussian(), seeds, depth))
        if depth == 2:
            for family in (Categorical(), GaussianMixture()):
                ours.append(Ours(f"{type(family).__name__}, 10 seeds, {layers}", family, 10, depth))
            for seeds in (1, 10):
                label = f"Gaussian, {seeds} seed{'s'[: seeds > 1]}, host loop, {layers}"
                ours.append(Ours(label, Gaussian(), seeds, depth, host=True))
            for members, what in ((1, "width 64"), (MEMBERS, f"ensemble of {MEMBERS}, width 64")):
                ours.append(
                    Ours(f"Gaussian, 1 seed, {what}, {layers}", Gaussian(), 1, depth, members=members, width=64)
                )
    return ours


def contest(
    entrants: list[Contestant], load: Load, repetitions: int, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Prepares every contestant, then times them in turns.

    Args:
        entrants: who takes part.
        load: what each of them does.
        repetitions: how many turns.
        seconds: how long a turn of ours takes, about.
        say: receives a line for each step.

    Raises:
        InputError: a peer cannot run.
    """
    products = {"small": [], "large": []}
    rates: dict[str, list[float]] = {entrant.label: [] for entrant in entrants}
    ready: list[Contestant] = []
    try:
        for entrant in entrants:
            say(f"preparing {entrant.label}")
            entrant.prepare(load)
            ready.append(entrant)
        for turn in range(repetitions):
            products["small"].append(machine.small_products(load.batch_size, load.width, 2))
            products["large"].append(machine.large_products())
            for entrant in entrants:
                rates[entrant.label].append(entrant.rate(seconds))
                say(f"turn {turn + 1} of {repetitions}: {entrant.label}: {rates[entrant.label][-1]:,.0f} steps/s")
        small, large = (statistics.median(each) for each in products.values())
        rows = [_row(entrant, rates[entrant.label], load, small) for entrant in entrants]
    finally:
        for entrant in ready:
            entrant.close()
    return {
        "load": {"env": "Chain", **vars(load)},
        "repetitions": repetitions,
        "products_gflops": {"small": round(small, 1), "large": round(large, 1)},
        "rows": _beside_peers(rows),
        "peak_megabytes": round(machine.peak_megabytes()),
        "hardware": hardware(),
    }


def _row(entrant: Contestant, rates: list[float], load: Load, small: float) -> dict[str, Any]:
    """What is reported about one contestant."""
    rate, facts = statistics.median(rates), entrant.facts(load)
    row = {
        "label": entrant.label,
        "ours": isinstance(entrant, Ours),
        "hidden_layers": entrant.hidden_layers,
        "steps_per_second": round(rate, 1),
        "updates_per_second": round(rate * load.updates_per_step, 1),
        "all": [round(each, 1) for each in rates],
        **facts,
    }
    if "flops_per_step" in facts:
        gflops = rate * facts["flops_per_step"] / 1e9
        row |= {"gflops": round(gflops, 2), "share_of_small_products": round(gflops / small, 3)}
    return row


def _beside_peers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds to each of our rows how many times as fast it is as each peer of the same depth."""
    for row in (row for row in rows if row["ours"]):
        peers = [peer for peer in rows if not peer["ours"] and peer["hidden_layers"] == row["hidden_layers"]]
        row["times"] = {
            peer["algorithm"]: round(row["steps_per_second"] / peer["steps_per_second"], 1) for peer in peers
        }
    return rows
