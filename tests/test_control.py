"""What README and the page of evidence say of control, on a seed that no page reports."""

import pytest

import uppertail as ut
from experiments.tasks.evidence import METHODS, TASKS, reached

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore")  # remarks of the run, and of packages
@pytest.mark.parametrize(
    ("name", "package", "episodes"),
    [("dm_control/pendulum-swingup-v0", "dm_control", 40), ("LunarLander-v3", "Box2D", 200)],
)
def test_the_defaults_reach_the_goal_of_a_task(name: str, package: str, episodes: int) -> None:
    """Ten episodes in a row return 800 within 40; a hundred return 200 within 200."""
    pytest.importorskip(package)
    settings = ut.Settings(seeds=1, seed=103, episodes=episodes)
    record = ut.train(ut.Gym(name), settings=settings, **METHODS["gaussian"](TASKS[name])).record
    when = reached(record.episodes[0].returns, TASKS[name])
    assert when is not None and when <= episodes
