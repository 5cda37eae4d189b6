"""bsuite's scores, beside those that others have published."""

from experiments.tables.cells import read

TAGS = ("exploration", "noise", "scale", "generalization", "basic", "credit_assignment", "memory")
"""The order of bsuite's tags."""


def scores() -> list[list[str]]:
    """Each experiment that was run, then each tag all of whose experiments were."""
    ours, published = read("bsuite/scores.json"), read("bsuite/published.json")["scores"]
    rows = [["experiment", "settings run", "episodes of each", "UpperTail", *published]]
    for name, each in ours["experiments"].items():
        counts = each["episodes"].values()
        ends = dict.fromkeys(f"{count:,}" for count in (min(counts), max(counts)))
        shown = (each["score"], *(agent[name] for agent in published.values()))
        run, long = f"{len(counts)} of {each['settings']}", f"{' to '.join(ends)} of {each['asked']:,}"
        rows.append([name, run, long, *(f"{score:.2f}" for score in shown)])
    tags = ours["tags"].values()
    there = [tag for tag in TAGS if tag in ours["tags"]["UpperTail"]]
    run = {tag: "{} of {}".format(*ours["ids_by_tag"][tag]) for tag in there}
    return rows + [[f"tag {tag}", run[tag], "", *(f"{each[tag]:.2f}" for each in tags)] for tag in there]
