"""How far a study is, and about how long the rest takes."""

from collections import Counter
from collections.abc import Mapping

from uppertail.studies.folder import Outcome

OPEN = ("begun", "waiting")


def counts(standings: Mapping[str, Outcome]) -> str:
    """`12 done, 1 failed`; empty if nothing has begun."""
    count = Counter("done" if each.state == "pruned" else each.state for each in standings.values())
    return ", ".join(f"{count[state]} {state}" for state in ("done", "begun", "failed") if count[state])


def time_left(standings: Mapping[str, Outcome], workers: int) -> str:
    """About how long the rest takes, if each cell takes as long as those that are done, on average."""
    done = [each.seconds for each in standings.values() if each.state == "done"]
    left = sum(each.state in OPEN for each in standings.values())
    if not done and left:
        return "unknown, as no cell is done"
    seconds = left * sum(done) / (len(done) or 1) / max(1, min(workers, left))
    if seconds < 120:
        return f"about {seconds:.0f} seconds"
    if seconds < 7200:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def line(standings: Mapping[str, Outcome], workers: int) -> str:
    """`12 of 60 cells: 11 done, 1 failed; time left: about 3 minutes`."""
    over = sum(each.state not in OPEN for each in standings.values())
    said = f"{over} of {len(standings)} cells have ended"
    return f"{said}; time left: {time_left(standings, workers)}" if over < len(standings) else said
