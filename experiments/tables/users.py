"""Ten environments as users bring them."""

from experiments.provenance import RESULTS
from experiments.tables.cells import read


def users() -> list[list[str]]:
    """What each seed's greedy policy earns, beside a rule by hand and random actions; what was exported and shown."""
    rows = [["environment", "steps", "learned by", "random", "rule by hand", "learned", "exported", "in the report"]]
    for path in sorted((RESULTS / "users").glob("[A-Z]*.json")):
        cell = read(f"users/{path.name}")
        exported = [f".{kind}" for kind, each in cell["exported"].items() if each["code"] == 0]
        states = cell["report"]["states"]
        rows.append([
            cell["env"], f"{cell['steps']:,}", cell["learner"], f"{cell['random']:.2f}",
            f"{cell['rule']:.2f}{' (best)' * cell['best']}", ", ".join(f"{each:.2f}" for each in cell["greedy"]),
            " and ".join(exported) or "no",
            ", ".join([f"{states} state{'s' * (states > 1)}", *cell["report"]["pictures"]]),
        ])  # fmt: skip
    return rows


def peers() -> list[list[str]]:
    """What each seed's greedy policy earns after as many steps, beside ours."""
    rows = [["environment", "steps", "UpperTail", "SB3's DQN", "SB3's PPO"]]
    runs = read("users/peers.json")["runs"]
    for path in sorted((RESULTS / "users").glob("[A-Z]*.json")):
        cell = read(f"users/{path.name}")
        of_peers = [
            [run["greedy"] for run in runs if (run["env"], run["algorithm"]) == (cell["env"], algorithm)]
            for algorithm in ("DQN", "PPO")
        ]
        rows.append([cell["env"], f"{cell['steps']:,}", *map(_earned, (cell["greedy"], *of_peers))])
    return rows


def _earned(greedy: list[float | None]) -> str:
    return ", ".join(f"{each:.2f}" for each in greedy if each is not None) or "cannot take it"
