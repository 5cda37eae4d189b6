"""How far a study is, and about how long the rest takes."""

import datetime
from collections import Counter
from collections.abc import Mapping

from uppertail.studies.claims import Standing, State


def counts(standings: Mapping[str, Standing]) -> Mapping[State, int]:
    """How many cells are in each state."""
    return Counter(standing.state for standing in standings.values())


def seconds_left(standings: Mapping[str, Standing], workers: int, now: datetime.datetime) -> float | None:
    """About how long the rest takes, if each cell takes as long as those that are done, on average.

    Args:
        standings: the states of the cells.
        workers: how many cells can run side by side here; if more are running, their number counts.
        now: the time.

    Returns:
        Seconds; None while no cell is done.
    """
    done = [standing.ended["seconds"] for standing in standings.values() if "seconds" in standing.ended]
    if not done:
        return None
    mean = sum(done) / len(done)
    running = [standing.began for standing in standings.values() if standing.state == "running"]
    spent = [(now - datetime.datetime.fromisoformat(began["began"])).total_seconds() for began in running if began]
    left = [max(0.0, mean - max(0.0, seconds)) for seconds in spent]
    waiting = sum(standing.state == "waiting" for standing in standings.values())
    side_by_side = max(1, min(max(workers, len(running)), waiting + len(running)))
    return max((sum(left) + mean * waiting) / side_by_side, max(left, default=0.0))


def about(seconds: float | None) -> str:
    """A time for a person: `about 40 seconds`, `about 12 minutes`, `about 3.5 hours`."""
    if seconds is None:
        return "unknown, as no cell is done"
    if seconds < 120:
        return f"about {seconds:.0f} seconds"
    if seconds < 7200:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def line(standings: Mapping[str, Standing], workers: int, now: datetime.datetime) -> str:
    """`12 of 60 done, 2 running, 1 failed, 3 minutes left`."""
    count = counts(standings)
    parts = [f"{count['done']} of {len(standings)} done"]
    parts += [f"{count[state]} {state}" for state in ("running", "failed") if count[state]]
    if count["running"] + count["waiting"] and (left := seconds_left(standings, workers, now)) is not None:
        parts.append(f"{about(left)} left")
    return ", ".join(parts)
