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


def accelerator() -> list[list[str]]:
    """Steps per second of all seeds together, on a GPU and on the CPU beside it."""
    told = {
        "images": "MinAtar's Breakout: a network, images",
        "network": "Chain 100: a network beside counts",
        "table": "Chain 100: least squares",
    }
    rates = {
        (row["task"], row["seeds"], name): row["steps_per_second"]
        for name in ("gpu", "cpu")
        for row in read(f"accelerator/{name}.json")["rows"]
    }
    both = {(task, seeds) for task, seeds, name in rates if name == "cpu"}
    rows = [["", "seeds", "GPU", "CPU", "GPU / CPU"]]
    for task, seeds in sorted(both, key=lambda each: (list(told).index(each[0]), each[1])):
        gpu, cpu = (rates[task, seeds, name] for name in ("gpu", "cpu"))
        rows.append([told[task], f"{seeds}", f"{gpu:,.0f}", f"{cpu:,.0f}", f"{gpu / cpu:.2g}"])
    return rows


def startup() -> list[list[str]]:
    """Seconds from the shell, with no compiled program on disk and with all of them."""
    heading = ("to the first step", "`compile_seconds` of the run", "to the last file")
    medians = read("startup.json")["median_seconds"]
    return [["ten seeds, Chain of length 100, least squares", *heading]] + [
        [told, *(f"{medians[state][name]:.2f} s" for name in ("to_first_step", "compile_seconds", "to_the_end"))]
        for state, told in (("cold", "no program on disk"), ("warm", "all of them"))
    ]


def compiled() -> list[list[str]]:
    """Steps per second on gymnax's MountainCar: medians, and the range of turns."""
    told = {
        "rejax DQN, equal load": "DQN of [rejax](https://github.com/keraJLi/rejax) 0.1",
        "Gaussian by gradient descent, equal load": "a Gaussian by gradient descent, equal load",
    }
    rates = read("gymnax_speed.json")["rates"]
    turns = {name: f"({min(each['turns']):,.0f} to {max(each['turns']):,.0f})" for name, each in rates.items()}
    rows = [[text, f"{rates[name]['steps_per_second']:,} {turns[name]}"] for name, text in told.items()]
    return [["", "steps/s"], *rows]
