"""Options of every reset of a Gymnasium environment."""

import gymnasium
import numpy as np
import pytest

import uppertail as ut


class Began(gymnasium.Env):
    """Shows where its episode began, as the options of its reset say."""

    observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.array([(options or {}).get("at", 0)], np.float32)
        return self.at, {}

    def step(self, action):
        return self.at, 1.0, True, False, {}


def test_every_reset_has_them():
    builder = ut.FromGymnasium(Began, reset_options={"at": 3})
    host = builder.open(0, 2)
    seen = [host.reset(), *(host.step(np.array([0, 1])).observation for _ in range(2))]
    np.testing.assert_array_equal(np.array(seen), np.full((3, 2, 1), 3))
    assert builder.walk(3) == [3, 3, 3]


def test_a_table_does_not_know_them():
    assert not ut.Gym("FrozenLake-v1", reset_options={"at": 3}).compiles


def test_a_vector_environment_is_used_as_it_is():
    make = lambda: gymnasium.vector.SyncVectorEnv([Began])  # noqa: E731
    with pytest.raises(ut.InputError, match="reset_options are given, but a vector environment"):
        _ = ut.FromGymnasium(make, reset_options={"at": 3}).inspected


class Needy(Began):
    """Cannot begin without options."""

    def reset(self, *, seed=None, options=None):
        assert options, "options are needed"
        return super().reset(seed=seed, options=options)


def test_a_reset_that_misses_its_options_is_told_how_to_get_them():
    with pytest.raises(ut.InputError, match=r"line \d+\): give its options by --env.reset_options\."):
        _ = ut.FromGymnasium(Needy).walk(1)
    assert ut.FromGymnasium(Needy, reset_options={"at": 3}).walk(1) == [3]
