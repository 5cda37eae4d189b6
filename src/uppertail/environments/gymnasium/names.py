"""What actions, states and numbers of Gymnasium's own environments mean, as its documentation says."""

import itertools

STOPS = ("red", "green", "yellow", "blue")

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "FrozenLake": {"actions": ("left", "down", "right", "up")},
    "CliffWalking": {"actions": ("up", "right", "down", "left")},
    "Blackjack": {"actions": ("stick", "hit")},
    "Taxi": {
        "actions": ("south", "north", "east", "west", "pick up", "drop off"),
        "states": tuple(
            f"at {row},{column}, {passenger} to {stop}"
            for row, column, passenger, stop in itertools.product(range(5), range(5), (*STOPS, "in taxi"), STOPS)
        ),
    },
    "CartPole": {"actions": ("left", "right"), "numbers": ("position", "velocity", "angle", "angular velocity")},
    "MountainCar": {"actions": ("left", "none", "right"), "numbers": ("position", "velocity")},
    "Acrobot": {
        "actions": ("-1", "0", "+1"),
        "numbers": ("cos angle 1", "sin angle 1", "cos angle 2", "sin angle 2", "velocity 1", "velocity 2"),
    },
}


def names_of(environment_id: str) -> dict[str, tuple[str, ...]]:
    """The names of an environment by its id; empty: they are not known."""
    return NAMES.get(environment_id.rpartition("/")[2].partition("-v")[0], {})
