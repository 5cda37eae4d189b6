"""Speeds, by experiments/speed/bench.py and experiments/speed/scaling.py."""

from experiments.tables.cells import read


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
