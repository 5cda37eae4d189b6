"""Rules: what is chosen where a user leaves it open, and that a setting that is given turns off no other choice."""

import dataclasses
import functools
import itertools
import math
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import uppertail as ut
from choosing import chosen
from uppertail.defaults import Entry, Plan
from uppertail.defaults.page import page
from uppertail.defaults.rules import RULES
from uppertail.encodings import HashedNumbers, Vector
from uppertail.errors import InputError
from uppertail.training.method import Method
from uppertail.training.run import Run
from worlds import Corridor, Pictured

CAR: dict[str, Any] = {"returns": (-87.0, 0.0)}


def test_settings_that_the_user_left_open_are_chosen_and_no_others() -> None:
    sea = ut.RichSea(4, bits=3)
    found = chosen(sea)
    assert found.builder == dataclasses.replace(sea, left_out=(8, 9, 10), features="hashed")
    assert found.learner == ut.LeastSquares(stochastic=False)
    assert (
        len(found.notes) == 1
        and "The numbers 8, 9, 10 of observations, counted from 0, are left out: they told" in found.notes[0]
    )
    assert found.entries["env.features"].source == found.entries["learner.stochastic"].source == "measured"
    bits = chosen(dataclasses.replace(sea, left_out=()))
    assert (bits.builder.left_out, bits.builder.features, bits.notes) == ((), "hashed", [])
    assert bits.learner.stochastic, "random bits are no part of what an action leads to"
    assert chosen(dataclasses.replace(sea, features="random")).builder.features == "random"
    cells = chosen(near := dataclasses.replace(sea, radius=0.1))
    assert cells.builder == near, "cells are states"


@pytest.mark.slow
def test_what_rewards_depend_on_is_shown_with_the_last_observation() -> None:
    make = functools.partial(TimeLimit, max_episode_steps=100)
    found = chosen(builder := ut.FromGymnasium(lambda: make(Corridor())))
    assert (found.builder.stack, found.entries["env.stack"].source) == ("first", "measured")
    assert any("`act` takes (first, last) (--env.stack 1: the last" in note for note in found.notes)
    assert chosen(builder.with_settings(stack=1)).builder.stack == 1
    assert chosen(builder.with_settings(left_out=())).builder.stack == "first", "which only keeps all numbers"
    written = Plan.read(Plan(found.entries).chosen())
    again = chosen(builder, before=written)
    assert again.builder == found.builder and not again.notes
    plain = chosen(ut.FromGymnasium(lambda: gymnasium.make("CliffWalking-v1"), compile="never"))
    assert (plain.builder.stack, plain.entries["env.stack"].source) == (None, "measured")


@pytest.mark.slow
def test_a_corridor_with_a_cue_is_learned() -> None:
    with pytest.warns(UserWarning, match="the first observation of an episode told 100%"):
        result = ut.train(lambda: TimeLimit(Corridor(), 100), settings=ut.Settings(seeds=1, steps=1_000))
    assert result.record.episodes[0].returns[-20:].mean() == 1.0
    for paid in (2, 3):
        seen = {"place": 0, "cue": paid - 1}, {"place": 3, "cue": 0}
        assert result.act(seen) == paid
    with pytest.raises(
        InputError, match=r"give \(first, last\), each as the environment gives it, or a list of such\."
    ):
        result.act({"place": 3, "cue": 0})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The greedy policy of seed")
def test_a_hash_of_the_last_observation_alone_is_no_observation() -> None:
    builder = ut.FromGymnasium(lambda: TimeLimit(Corridor(), 9), stack="first", encoding="hashed", returns=(0.0, 1.0))
    result = ut.train(builder, settings=ut.Settings(seeds=1, steps=40))
    last = {"place": 3, "cue": 0}
    assert result.act(({"place": 0, "cue": 1}, last)) in range(4)
    with pytest.raises(InputError, match="it is no tuple of 2"):
        result.act(last)


@pytest.mark.parametrize("given", [{"left_out": ()}, {"features": "random", "action_repeat": 4}])
def test_a_given_setting_turns_off_no_other_choice(given: Any) -> None:
    """`--env.left_out '[]'`, which keeps what is kept anyway, changed the learner and the length of an action."""
    found = chosen(ut.Gym("MountainCar-v0", **CAR, **given))
    assert (type(found.learner), found.builder.repeats) == (ut.GradientDescent, 4)
    for name, value in given.items():
        assert getattr(found.builder, name) == value
        assert f"env.{name}" not in found.entries


def test_what_an_earlier_run_chose_is_chosen_again_without_a_look() -> None:
    sea = ut.RichSea(4, bits=3)
    found = chosen(sea)
    written = Plan({name: entry._replace(reason="") for name, entry in found.entries.items()})
    again = chosen(sea, before=Plan.read(written.chosen()))
    assert (again.builder, again.learner, again.notes) == (found.builder, ut.LeastSquares(stochastic=False), [])
    entries = {"env.left_out": [1], "env.features": "auto", "learner": "LeastSquares", "learner.sweeps": 2}
    other = chosen(sea, before=Plan({name: Entry(value, "measured") for name, value in entries.items()}))
    assert (other.builder.left_out, other.builder.features) == ((1,), "auto")
    assert other.learner == ut.LeastSquares(sweeps=2)
    entries |= {"learner": "Imitation", "learner.stochastic": True}
    changed = chosen(sea, before=Plan({name: Entry(value, "measured") for name, value in entries.items()}))
    assert changed.learner == ut.Imitation(), "a learner that was put in by hand"
    assert chosen(dataclasses.replace(sea, left_out=(2,)), before=written).builder.left_out == (2,), "given"


def pictured(flicker: bool = False) -> Any:
    return ut.FromGymnasium(lambda: TimeLimit(Pictured(flicker=flicker), 60), id="Pictured")


def test_images_that_come_again_are_states_and_others_stay_images() -> None:
    found = chosen(pictured())
    assert (found.builder.encoding, type(found.learner), found.learner.stochastic) == ("hashed", ut.LeastSquares, False)
    assert found.entries["env.encoding"].source == "measured"
    (note,) = found.notes
    assert "Images come again exactly" in note and "--learner GradientDescent" in note
    moving = chosen(pictured(flicker=True))
    assert (moving.builder.encoding, type(moving.learner)) == ("one_hot", ut.GradientDescent)
    assert not any("Images come again" in note for note in moving.notes)


@pytest.mark.slow
def test_a_given_setting_of_numbers_keeps_images() -> None:
    left = dataclasses.replace(pictured(), left_out=(0,))
    assert chosen(left).builder.encoding == "one_hot"
    with pytest.raises(ut.InputError, match=r"left_out is .* but each different observation is a state, as a whole"):
        chosen(dataclasses.replace(left, encoding="hashed"))


@pytest.mark.parametrize(
    "given", [{"learner": ut.GradientDescent()}, {"of_gradients": ("network",)}, {"family": ut.GaussianMixture()}]
)
def test_what_only_a_network_learns_keeps_images(given: Any) -> None:
    found = chosen(pictured(), **given)
    assert found.builder.encoding == "one_hot"
    assert "env.encoding" not in found.entries


@pytest.mark.slow
def test_a_run_hashes_images_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    settings = ut.Settings(seeds=1, steps=2_000, episodes=10**6)
    with pytest.warns(UserWarning, match="Images come again exactly"):
        result = ut.train(pictured(), settings=settings, checkpoints=ut.Checkpoints(tmp_path))
    assert result.record.greedy_returns == [1.0]
    assert result.record.asked["plan"]["env.encoding"]["value"] == "hashed"
    picture, _ = Pictured().reset(seed=0)
    batch = np.stack([picture, np.roll(picture, 4, axis=1)])
    singly = [int(result.act(each)) for each in batch]
    for several in (batch, batch.astype(np.float32), [*batch]):
        assert np.asarray(result.act(several)).tolist() == singly
    assert result.act(picture.tolist()) == singly[0]
    for wrong in (picture[:5], "picture", None):
        with pytest.raises(InputError, match="observation"):
            result.act(wrong)
    again = ut.train(pictured(), settings=settings, checkpoints=ut.Checkpoints(tmp_path))
    assert again.act(picture) == result.act(picture)
    np.testing.assert_array_equal(again.record.episodes[0].returns, result.record.episodes[0].returns)


def test_a_plan_that_no_run_wrote_is_refused() -> None:
    def measured(value: object) -> dict[str, object]:
        return {"value": value, "source": "measured"}

    forged: list[dict[str, object]] = [
        {"learner": 3},
        *({"learner": measured(value)} for value in ("Nonsense", [1], None)),
        {"network": measured({"name": "PerAction"})},
        *({"returns": measured(value)} for value in ([1], [1, 0], [0, math.nan], ["x", 1], 3)),
    ]
    for written in forged:
        with pytest.raises(InputError, match="plan is no plan of a run"):
            Plan.read(written)


def test_a_plan_by_what_was_removed_says_so() -> None:
    """Neighbors were a default once: config.yaml of such a run asks for no learner, and its plan names them."""
    with pytest.raises(InputError, match=r"learner NearestNeighbors was removed.* needs the version of uppertail that"):
        Plan.read({"learner": {"value": "NearestNeighbors", "source": "measured"}})


@pytest.mark.slow
def test_a_network_learns_where_numbers_stay_numbers() -> None:
    for builder in (ut.Gym("MountainCar-v0"), ut.Gym("CartPole-v1", returns=(0.0, 100.0)), ut.RichChain(4)):
        assert isinstance(chosen(builder).learner, ut.GradientDescent)


@pytest.mark.parametrize("family", [ut.Categorical(), ut.PointMass(), ut.Quantile(), ut.GaussianMixture()])
def test_every_family_of_numbers_is_learned_by_a_network(family: Any) -> None:
    assert isinstance(chosen(ut.Gym("CartPole-v1"), family=family).learner, ut.GradientDescent)


def test_actions_last_only_where_numbers_stay_numbers_and_can_be_repeated() -> None:
    assert chosen(ut.Gym("MountainCar-v0", action_repeat=2)).builder.action_repeat == 2
    states = chosen(ut.RichSea(4, bits=0))
    assert (states.builder.features, states.builder.repeats) == ("hashed", 1)
    vector = ut.FromGymnasium(lambda: SyncVectorEnv([lambda: gymnasium.make("MountainCar-v0")]))
    assert chosen(vector).builder.repeats == 1
    scaled = chosen(ut.Gym("MountainCar-v0", features="scaled"))
    assert scaled.builder.repeats == scaled.entries["env.action_repeat"].value == 1
    networks = chosen(ut.Gym("MountainCar-v0"), ut.GradientDescent())
    assert networks.builder.repeats == 4


class Cue(gymnasium.Env[Any, Any]):
    """First (0, 0), then (x, 1) with a new x: a bandit with a context, whose first observation is always the same."""

    observation_space, action_space = gymnasium.spaces.Box(-2, 2, (2,), np.float32), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.begins = True
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        over, self.begins = not self.begins, False
        self.x = self.x if over else self.np_random.uniform(-1, 1)
        return np.array([self.x, 1], np.float32), float(over and (self.x > 0) == (action == 1)), over, False, {}


def test_contexts_after_a_fixed_first_observation_stay_numbers() -> None:
    """A hash table cannot generalize from one to another."""
    found = chosen(ut.FromGymnasium(Cue))
    assert (found.builder.features, found.builder.repeats) == ("auto", 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Observations count the steps of an episode")
def test_they_are_learned() -> None:
    """As states of a table they earned 0.5, which is chance."""
    result = ut.train(ut.FromGymnasium(Cue), settings=ut.Settings(seeds=1, seed=7919, episodes=400))
    assert result.record.episodes[0].returns[-100:].mean() >= 0.9


def test_a_hash_tells_vectors_apart_by_the_numbers_that_count() -> None:
    """All 4,096 vectors of twelve bits, beside one that is left out: places are those of the twelve alone."""
    encoding = HashedNumbers(2**16, Vector((0.0,) * 13, (1.0,) * 13, left_out=(5,)))
    bits = np.array([*itertools.product((0.0, 1.0), repeat=12)], np.float32)
    shown = np.insert(bits, 5, 0.0, axis=1)
    hashes = jax.vmap(encoding.hash)(jnp.array(shown))
    assert np.unique(hashes).size == len(bits)
    assert int(hashes.min()) >= 1
    shown[:, 5] = 1.0
    np.testing.assert_array_equal(jax.vmap(encoding.hash)(jnp.array(shown)), hashes)
    table = encoding.observe(encoding.init(jax.random.key(0)), jnp.array(shown[:500]))
    places = jax.vmap(encoding.index, in_axes=(None, 0))(table, jnp.array(shown[:500]))
    assert np.unique(places).size == 500


def test_a_hash_takes_numbers_that_differ_by_rounding_for_one() -> None:
    """Multiples of 1e-5; a number without a rounding stays apart."""
    encoding = HashedNumbers(64, Vector((-1.0,) * 3, (1.0,) * 3, left_out=(0,)), rounding=(0.0, 1e-5, 0.0))
    one, *others = jnp.array([[1, 0.3, 0.3], [2, 0.300001, 0.3], [1, 0.3, 0.300001], [1, 0.3001, 0.3]])
    assert [int(encoding.hash(other)) == int(encoding.hash(one)) for other in others] == [True, False, False]
    zero, residue = jnp.array([0.0, 0, 0]), jnp.array([0.0, -2.7e-17, 0])
    assert int(encoding.hash(zero)) == int(encoding.hash(residue))


class Room(gymnasium.Env[Any, Any]):
    """Steps of 0.1 to and fro; the goal is at the other end."""

    observation_space, action_space = spaces.Box(-1, 1, (1,), np.float32), spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = -0.5
        return np.array([self.at], np.float32), {}

    def step(self, action: Any) -> Any:
        after = self.at + (-0.1, 0.1)[int(action)]
        self.at = after if after > -0.55 else self.at
        return np.array([self.at], np.float32), float(self.at > 0.45), self.at > 0.45, False, {}


def test_sums_are_rounded_where_each_observation_is_a_state() -> None:
    """0.1 added and subtracted leaves 2.7e-17 in place of 0, which led elsewhere, and looked like chance."""
    found = chosen(ut.FromGymnasium(Room))
    assert found.builder.features == "hashed"
    (step,) = found.builder.rounding
    assert 0 < step < 1e-3
    assert not found.learner.stochastic


@pytest.mark.parametrize(("given", "sentence"), [((-1.0,), "use finite numbers"), ((1e-5, 0.0), "give one for each")])
def test_roundings_that_there_cannot_be_are_refused(given: tuple[float, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ut.train(ut.FromGymnasium(Room, features="hashed", rounding=given), settings=ut.Settings(seeds=1, episodes=2))


@pytest.mark.slow
def test_random_bits_are_left_out_and_the_sea_is_solved() -> None:
    """The record has the settings that were chosen."""
    with pytest.warns(UserWarning, match="The numbers 8, 9, 10, 11 of observations, counted from 0, are left out"):
        result = ut.train(ut.RichSea(4, bits=4), settings=ut.Settings(seeds=1, episodes=40))
    chosen = result.record.asked["environment"]
    assert (chosen["features"], chosen["left_out"]) == ("hashed", [8, 9, 10, 11])
    assert result.record.greedy_returns == [pytest.approx(0.99, abs=0.01)]


def test_places_of_numbers_that_there_are_not_are_refused() -> None:
    with pytest.raises(InputError, match=r"left_out is \[8\]: an observation has 8 numbers, so use 0 to 7."):
        ut.train(ut.RichSea(4, bits=0, left_out=(8,)), settings=ut.Settings(seeds=1, episodes=2))
    with pytest.raises(InputError, match="left_out leaves no number"):
        ut.train(ut.RichSea(1, bits=0, left_out=(0, 1)), settings=ut.Settings(seeds=1, episodes=2))


def test_the_page_of_defaults_is_made_from_the_rules() -> None:
    written = (Path(__file__).parents[1] / "docs" / "defaults.md").read_text()
    assert written == page(), "run `python -m uppertail.defaults.page > docs/defaults.md`"
    for rule in RULES:
        assert f"`--{rule.setting}`" in written and rule.looks_at in written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("builder", "discount"),
    [
        (ut.Gym("CartPole-v1"), 0.9933),
        (ut.Gym("Acrobot-v1"), 0.99),
        (ut.Gym("MountainCar-v0"), 0.995),
        (ut.Gym("CartPole-v1", action_repeat=1), 0.9933),
        (ut.Gym("CartPole-v1", action_repeat=4), 0.995),
        (ut.Gym("FrozenLake-v1"), 0.995),
        (ut.Chain(10), 0.995),
    ],
    ids=str,
)
def test_an_action_of_two_or_three_steps_costs_as_much_delay_as_one_of_four(builder: Any, discount: float) -> None:
    assert chosen(builder).entries["discount"].value == discount


@pytest.mark.slow
def test_a_discount_that_is_given_stays() -> None:
    assert "discount" not in chosen(ut.Gym("CartPole-v1"), discount=0.995).entries
    run = ut.train(ut.Toy(), settings=ut.Settings(seeds=1, episodes=20, discount=0.0))
    assert run.record.summary()["settings"]["discount"] == 0.0
    left_open = Run(ut.Gym("CartPole-v1"), Method.of(), ut.Settings(seeds=1))
    left_open.driver.close()
    assert left_open.settings.discount == 0.9933 and left_open.plan.is_measured("discount")


def test_a_network_of_an_earlier_version_stays_without_a_setting_that_it_had_not() -> None:
    """Its run would be refused as another one: the setting that is chosen now was open."""
    found = chosen(ut.Gym("MountainCar-v0"))
    assert found.entries["learner.stochastic"].value is False
    earlier = {name: entry for name, entry in found.entries.items() if name != "learner.stochastic"}
    again = chosen(ut.Gym("MountainCar-v0"), before=Plan(earlier))
    assert again.learner == ut.GradientDescent() and "learner.stochastic" not in again.entries
