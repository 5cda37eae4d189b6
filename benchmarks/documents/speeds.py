"""Speeds, by benchmarks/bench.py and benchmarks/scaling.py."""

from documents.cells import read


def contest() -> list[list[str]]:
    """Steps per second of each contestant, by depth."""
    rows = [["", "hidden layers", "steps/s", "times DQN", "times QR-DQN", "share", "compile"]]
    for row in read("bench/bench.json")["rows"]:
        times, name = row.get("times", {}), row["label"].rpartition(",")[0]
        rows.append([
            name, str(row["hidden_layers"]), f"{row['steps_per_second']:,.0f}",
            *(f"{times[peer]:.1f}" if peer in times else "" for peer in ("DQN", "QRDQN")),
            f"{row['share_of_small_products']:.0%}" if row["ours"] else "",
            f"{row['compile_seconds']:.1f} s" if row["ours"] else "",
        ])  # fmt: skip
    return rows


def speeds() -> list[list[str]]:
    """Steps per second of ten seeds of Gaussian/UCB, and how many times as many these are as a peer's, by depth."""
    contestants = read("bench/bench.json")["rows"]
    peers = {
        (row["algorithm"], row["hidden_layers"]): row["steps_per_second"] for row in contestants if not row["ours"]
    }
    rows = [["hidden layers", "UpperTail, Gaussian/UCB", "DQN", "QR-DQN"]]
    for row in (row for row in contestants if row["ours"] and not row["host"]):
        if (row["distribution"], row["seeds"]) == ("Gaussian", 10):
            depth, times = row["hidden_layers"], row["times"]
            told = (f"{peers[name, depth]:,.0f} ({times[name]:.1f} times)" for name in ("DQN", "QRDQN"))
            rows.append([str(depth), f"{row['steps_per_second']:,.0f} steps/s", *told])
    return rows


def growth() -> list[list[str]]:
    """Steps per second along each axis."""
    return [
        ["", "", "steps/s", "GFLOP/s", "state, MB"],
        *(
            [
                row["axis"],
                f"{row['value']:,}",
                f"{row['steps_per_second']:,.0f}",
                f"{row['gflops']:.1f}",
                f"{row['state_megabytes']:,.0f}",
            ]
            for row in read("scaling/scaling.json")["rows"]
        ),
    ]
