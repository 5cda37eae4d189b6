"""All experiments, a row each: what makes a result, where it is told, and on which seeds anything was chosen."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parents[1] / "results"

Rows = list[list[str]]


class Experiment(NamedTuple):
    """What is measured.

    Args:
        about: what it says.
        command: the module that measures, below `experiments`, and its options.
        results: its files in `results`, as patterns.
        pages: README, or pages of docs.
        hours: of one or two busy cores, about; known where the results hold their times.
        tables: the tables of pages that are made from them: name to function, below `experiments.tables`.
        again: whether the module's function `again` makes the first seed of a result again.
        needs: what has to be installed.
        chosen_on: the seeds on which settings were chosen.
        reported_on: the seeds of the results.
    """

    about: str
    command: str
    results: tuple[str, ...]
    pages: tuple[str, ...]
    hours: float | None = None
    tables: Mapping[str, str] = {}
    again: bool = False
    needs: str = ""
    chosen_on: str = "unknown"
    reported_on: str = "unknown"

    @property
    def module(self) -> str:
        """The module that measures."""
        return f"experiments.{self.command.split()[0]}"

    @property
    def is_speed(self) -> bool:
        """Whether it times a machine: then no code says what comes out, and nothing is certified."""
        return self.command.startswith("speed.")

    def files(self) -> Iterator[Path]:
        """Its results that are there, but pictures."""
        found = {path for pattern in self.results for path in RESULTS.glob(pattern)}
        yield from sorted(filter(is_result, found))


def is_result(path: Path) -> bool:
    """Whether a file of results is one: no picture, no manifest, no mark of whose folder it is."""
    return path.suffix in (".json", ".npz") and path.name not in ("manifest.json", "figure.json")


NOTHING = "nothing: the defaults"
MINIGRID = "uppertail[minigrid]"
PEERS = "experiments/peers/requirements.txt"
SPEED: dict[str, Any] = {"chosen_on": NOTHING, "reported_on": "one machine, one day"}

EXPERIMENTS: dict[str, Experiment] = {
    "headline": Experiment(
        "the Chain of 100 by least squares and by networks (`make run`)", "paper.headline", ("headline/cells/*/*",),
        ("reproduction", "index"), 0.3, chosen_on=NOTHING, reported_on="0 to 4",
    ),
    "paper": Experiment(
        "the paper's figures", "paper.command", ("reproduction/*/*", "reproduction/*/cells/*"),
        ("reproduction", "uncertainties"), 1.3,
        {
            "reproduce-chain": "reproduction:chain", "reproduce-frozen-lake": "reproduction:lake",
            "reproduce-policy-evaluation": "reproduction:evaluation",
            "reproduce-uncertainties": "reproduction:uncertainties",
        },
        again=True, chosen_on="100 to 104, with one exception on the page", reported_on="0 to 9, 0 to 4, or 0",
    ),
    "least_squares": Experiment(
        "least squares by the defaults",
        "tasks.least_squares --out results/least_squares", ("least_squares/*",), ("README", "least-squares"), 0.3,
        {"first-page": "first_page:rows", "solved": "solved:solved"},
        again=True, chosen_on="other seeds (decisions 15 to 20)", reported_on="0 to 9 or fewer",
    ),
    "chance": Experiment(
        "the same where there is chance",
        "tasks.uncertainties --method least_squares posterior optimistic_value --out results/least_squares/chance",
        ("least_squares/chance/*-least_squares.json", "least_squares/chance/*-posterior.json",
         "least_squares/chance/*-optimistic_value.json"),
        ("README", "least-squares"), 0.7,
        {"solved-chance": "solved:chance"},
        again=True, chosen_on="100 to 119 (decisions 17 to 20)",
        reported_on="0 to 9; 0 to 29 on RiskyArm and the Chain",
    ),
    "count_bonus": Experiment(
        "a table with a count bonus, where there is chance", "peers.count_bonus --out results/least_squares/chance",
        ("least_squares/chance/*-count_bonus.json",), ("README", "least-squares"), 0.2,
        again=True, chosen_on="100 to 103 (the bonus)", reported_on="0 to 9; 0 to 29 on RiskyArm and the Chain",
    ),
    "chance_peers": Experiment(
        "published methods and ours on tables with chance",
        "chance.__main__ --tasks jackpot door river_swim river_swim_measured six_arms "
        "--methods least_squares posterior optimistic_value mbie_eb mbie rmax psrl q_learning --out results/chance",
        ("chance/*",), ("chance",), 0.2,
        {"chance-peers": "chance:peers"}, again=True, chosen_on="100 to 111 (decision 31)", reported_on="0 to 9",
    ),
    "colosseum": Experiment(
        "Colosseum's communicating tables, 500,000 steps",
        "chance.__main__ --tasks communicating_* --methods least_squares optimistic_value q_learning "
        "--seeds 2 --out results/colosseum", ("colosseum/*",), ("chance",), 1.5,
        {"colosseum": "chance:colosseum"}, again=True, chosen_on=NOTHING, reported_on="0 and 1",
    ),
    "uncertainties": Experiment(
        "ensembles by gradients, where there is chance", "tasks.uncertainties --out results/uncertainties",
        ("uncertainties/*",), ("uncertainties",), 0.9, {"uncertain": "uncertainties:uncertain"},
        again=True, chosen_on="other seeds, but for `within` (decision 14)", reported_on="0 to 9",
    ),
    "optimistic_table": Experiment(
        "optimistic dynamic programming on all data", "peers.optimistic_table --out results/optimistic_table",
        ("optimistic_table/*",), ("comparison",), 0.1, {"table-first": "optimistic:firsts"},
        again=True, chosen_on=NOTHING, reported_on="0 to 9",
    ),
    "rich": Experiment(
        "states seen through noise, or beside random bits",
        "tasks.rich_observations --out results/learned_features", ("learned_features/*",),
        ("learned-features", "minigrid"), 0.8, {"rich": "rich:rich"}, again=True,
        chosen_on="0 to 4 (the radius)", reported_on="10 to 14, or as the page says",
    ),
    "tabular": Experiment(
        "FrozenLake 8x8, Taxi and CliffWalking in the paper's form", "tasks.tabular --out results/tabular",
        ("tabular/*/*",), ("gymnasium",), 0.1, again=True, chosen_on="100 to 104 (decision 7)", reported_on="0 to 4",
    ),
    "classic_control": Experiment(
        "CartPole, Acrobot, MountainCar, swing-up in the paper's form",
        "tasks.classic_control --out results/classic_control", ("classic_control/*-seeds-*",), ("gymnasium",), 0.7,
        again=True, chosen_on="100 to 104; 100 to 102 (swing-up)", reported_on="0 to 4",
    ),
    "classic_control_peers": Experiment(
        "DQN and QR-DQN on classic control", "peers.sb3 all --out results/classic_control/peers.json",
        ("classic_control/peers.json",), ("gymnasium",), None, {"control-peers": "control:peers"}, needs=PEERS,
        chosen_on="tuned by rl-baselines3-zoo", reported_on="0 to 4",
    ),
    "evidence": Experiment(
        "networks beside kernel counts: control, LunarLander, dm_control and mazes",
        "tasks.evidence --out results/evidence", ("evidence/*",), ("evidence",), 2.0,
        {"evidence": "evidence:reached"}, again=True,
        needs="gymnasium[box2d], uppertail[dm_control] and gymnasium-robotics",
        chosen_on="100 to 105, and 9000 for the bounds, on four of the tasks", reported_on="9100 to 9109",
    ),
    "pictures": Experiment(
        "networks beside counts of pixels: rooms in pictures that hardly repeat",
        "tasks.pictures --method defaults network_alone whole_images optimistic_value no_evidence count_bonus "
        "--out results/pictures",
        ("pictures/*",), ("evidence",), 1.5, {"pictures": "pictures:found"}, again=True,
        chosen_on="100 to 102, and a fault met on 9100 to 9102, on the same rooms", reported_on="9200 to 9202",
    ),
    "users": Experiment(
        "ten environments as users bring them, by all defaults: learned, exported, reported",
        "tasks.users --out results/users", ("users/[A-Z]*",), ("sparse",), 0.3, {"users": "users:users"},
        again=True, chosen_on="100 and 101 (two counts of steps); the queue's steps on 0 and 1", reported_on="0 and 1",
    ),
    "users_peers": Experiment(
        "DQN and PPO by their defaults on the same ten", "peers.sb3_users --out results/users/peers.json",
        ("users/peers.json",), ("sparse",), 0.1, {"users-peers": "users:peers"}, needs=PEERS,
        chosen_on=NOTHING, reported_on="0 and 1",
    ),
    "invariance": Experiment(
        "classic control in other units, directions, limits and steps, with numbers that mean nothing",
        "tasks.invariance --out results/invariance", ("invariance/*",), ("invariance",), 0.3,
        {"invariance": "invariance:changes"}, again=True, chosen_on=NOTHING, reported_on="200 and 201",
    ),
    "blackjack": Experiment(
        "Blackjack, against the best policy", "tasks.blackjack --out results/blackjack.json", ("blackjack.json",),
        ("gymnasium",), 0.1, reported_on="0 to 4",
    ),
    "minigrid": Experiment(
        "MiniGrid, a layout for each seed", "tasks.minigrid_runs --out results/minigrid",
        ("minigrid/*-seeds-*", "minigrid/choice.json"), ("README", "minigrid"), 0.3,
        {"minigrid": "grids:grids", "minigrid-greedy": "grids:greedy"}, again=True, needs=MINIGRID,
        chosen_on="100 to 114, 103 to 107; the discount on 0 to 4", reported_on="0 to 4",
    ),
    "minigrid_peers": Experiment(
        "DQN, QR-DQN and PPO in the same environments",
        "peers.minigrid_peers --out results/minigrid/peers_greedy.json", ("minigrid/peers*.json",),
        ("README", "minigrid"), needs=PEERS, reported_on="0 to 4; greedy ones fewer",
    ),
    "minigrid_layouts": Experiment(
        "MiniGrid, a new layout in each episode", "tasks.minigrid_layouts --out results/minigrid_layouts",
        ("minigrid_layouts/*",), ("minigrid",), 1.1,
        {"minigrid-layouts": "grids:layouts", "minigrid-whole": "grids:whole_views"}, again=True, needs=MINIGRID,
        chosen_on="101 to 103 on DoorKey-6x6", reported_on="0 to 4",
    ),
    "minigrid_imitation": Experiment(
        "the same by imitation of the best episodes",
        "tasks.minigrid_imitation --seed 10 --out results/minigrid_imitation",
        ("minigrid_imitation/*", "minigrid_imitation/*/*"), ("minigrid",), 2.3,
        {"minigrid-imitation": "grids:imitated"}, again=True, needs=MINIGRID,
        chosen_on="0 to 4", reported_on="10 to 14",
    ),
    "minigrid_ids": Experiment(
        "MiniGrid's smaller environments by two presets, and by their ids",
        "tasks.minigrid_ids --out results/minigrid_ids", ("minigrid_ids/*",), ("minigrid",), 3.5,
        {"minigrid-ids": "grids:by_ids", "minigrid-parts": "grids:by_parts"}, again=True, needs=MINIGRID,
        chosen_on="100, 101 (decision 61)", reported_on="0 to 4",
    ),
    "bsuite": Experiment(
        "bsuite's scores, after `uppertail study experiments/tasks/bsuite.yaml`",
        "tasks.bsuite_scores --out results/bsuite", ("bsuite/*.json",), ("bsuite",), None,
        {"bsuite": "bsuite:scores"}, needs="uppertail[bsuite]",
        chosen_on=f"{NOTHING}, but for swing-up (103, 104 and, in part, 0)", reported_on="0",
    ),
    "gymnax": Experiment(
        "gymnax's environments by the defaults, beside rejax's DQN",
        "tasks.gymnax_table --out results/gymnax_table.json", ("gymnax_table.json",), ("comparison",), 1.0,
        {"gymnax": "gymnax:gymnax"}, needs="uppertail[gymnax], rejax", chosen_on=NOTHING, reported_on="0 to 2",
    ),
    "minatar": Experiment(
        "what the return distribution is worth from images: MinAtar's games for 300,000 frames",
        "tasks.minatar --out results/minatar", ("minatar/*-*_*.json", "minatar/[A-Z]*-defaults.json"),
        ("learned-features",), 1.0, {"minatar-worth": "gymnax:worth"}, again=True, needs="uppertail[gymnax]",
        chosen_on="100 (decision 25)", reported_on="10 to 12",
    ),
    "minatar_1m": Experiment(
        "MinAtar for 1,000,000 frames", "tasks.gymnax_table --steps 1000000 --out results/minatar_1m.json",
        ("minatar_1m.json",), ("comparison", "learned-features"), 0.8,
        {"minatar": "gymnax:minatar"}, needs="uppertail[gymnax], rejax",
        chosen_on=NOTHING, reported_on="0 to 2; 0 to 4 on Freeway",
    ),
    "minatar_500k": Experiment(
        "Freeway of MinAtar for 500,000 frames, each seed alone",
        "tasks.gymnax_table --env Freeway-MinAtar --method UpperTail --steps 500000",
        ("minatar/freeway-defaults.json", "minatar/published.json"),
        ("learned-features",), 0.2, {"freeway": "gymnax:freeway"}, needs="uppertail[gymnax], rejax",
        chosen_on=NOTHING, reported_on="0 to 4",
    ),
    "bench": Experiment(
        "steps per second, beside peers", "speed.bench --out results/bench", ("bench/*", "ensemble_cost/*"),
        ("performance", "uncertainties"), 0.2, {"bench": "speeds:contest"}, needs=PEERS,
        **SPEED,
    ),
    "scaling": Experiment(
        "how the cost grows", "speed.scaling --out results/scaling", ("scaling/*",), ("performance",), 0.2,
        {"scaling": "speeds:growth"}, **SPEED,
    ),
    "gymnax_speed": Experiment(
        "steps per second beside rejax's DQN", "speed.gymnax_speed --out results/gymnax_speed.json",
        ("gymnax_speed.json",), ("gymnax",), 0.1, {"gymnax-speed": "speeds:compiled"},
        needs="uppertail[gymnax], rejax", **SPEED,
    ),
    "host_loop": Experiment(
        "steps per second where Python steps", "speed.host_loop --out results/host_loop.json", ("host_loop.json",),
        ("gymnasium",), 0.1, needs=PEERS, **SPEED,
    ),
    "accelerator": Experiment(
        "steps per second on a GPU and on the CPU beside it, whose rows `JAX_PLATFORMS=cpu` makes",
        "speed.accelerator --out results/accelerator/gpu.json", ("accelerator/*.json",), ("performance",), 0.1,
        {"accelerator": "speeds:accelerator"}, needs="uppertail[gymnax], jax[cuda13]", **SPEED,
    ),
    "startup": Experiment(
        "seconds to the first step, and to solve the Chain of 100", "speed.startup --out results",
        ("startup.json", "time_to_solve.json"), ("performance",), 0.1, {"startup": "speeds:startup"}, **SPEED,
    ),
    "acting": Experiment(
        "actions per second", "speed.acting --out results/acting.json", ("acting.json",), ("evaluation",), 0.1, **SPEED
    ),
    "checkpoints": Experiment(
        "size and seconds of checkpoints", "speed.checkpoints --out results/checkpoints.json", ("checkpoints.json",),
        ("checkpoints",), 0.1, **SPEED,
    ),
    "recording": Experiment(
        "what recording costs", "speed.recording --out results/recording.json", ("recording.json",), ("report",), 0.1,
        **SPEED,
    ),
    "kills": Experiment(
        "20 kills each of runs", "robustness.kills --out results/kills.json", ("kills.json",), ("checkpoints",),
        0.3,
    ),
    "study_kills": Experiment(
        "kills of a study's processes", "robustness.study_kills --out results/study_kills.json",
        ("study_kills.json",), ("studies",), 0.1,
    ),
    "mutations": Experiment(
        "damaged files", "robustness.mutations --out results/mutations.json", ("mutations.json",), ("trust",), 0.2
    ),
}  # fmt: skip
"""Name to experiment."""

OF_THE_PACKAGE = {"parts": "parts:parts", "experiments": "experiments:index"}
"""Tables that are made from code, not from results."""


def tables() -> dict[str, Callable[[], Rows]]:
    """The tables by the names that pages have for them."""
    named = OF_THE_PACKAGE | {name: text for each in EXPERIMENTS.values() for name, text in each.tables.items()}
    return {name: _function(text) for name, text in named.items()}


def _function(text: str) -> Callable[[], Any]:
    module, _, name = text.partition(":")

    def made() -> Rows:
        return getattr(importlib.import_module(f"experiments.tables.{module}"), name)()

    return made
