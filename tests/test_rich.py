"""RichChain and RichSea: what is shown against hand-worked cases, episodes against those of the tables behind them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uppertail import Chain, DeepSea, RichChain, RichSea, Settings, train
from uppertail.environments import FiniteMDP, RichMDP
from uppertail.environments.finite import FiniteState
from uppertail.errors import InputError

KEY = jax.random.key(0)


def observations(world: RichMDP, state: int, count: int) -> np.ndarray:
    """What a state shows in so many visits: those of a table that always leads there."""
    keys = jax.random.split(KEY, count)
    there = FiniteMDP(
        next_state=jnp.full_like(world.mdp.next_state, state),
        reward=world.mdp.reward,
        terminated=world.mdp.terminated,
        probability=world.mdp.probability,
        time_limit=10,
    )
    rich = RichMDP(there, world.codes, world.std, world.rotation, world.bits)
    before = FiniteState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
    step = jax.jit(jax.vmap(lambda key: rich.step(key, before, jnp.zeros((), jnp.int32))[1].observation))
    return np.asarray(step(keys))


def test_states_are_unit_vectors_and_the_noise_is_as_long_as_it_says() -> None:
    world = RichChain(length=6, dim=16, noise=0.5).build(KEY)
    np.testing.assert_allclose(np.linalg.norm(world.codes, axis=1), 1.0, rtol=1e-6)
    seen = observations(world, 4, 4000)
    assert len(np.unique(seen, axis=0)) == len(seen), "no observation repeats"
    noise = seen - np.asarray(world.codes)[4]
    # The squared length of each is 0.25 / 16 times a chi-squared of 16, whose standard deviation is sqrt(32).
    assert abs((noise**2).sum(axis=1).mean() - 0.25) < 5 * 0.25 / 16 * math.sqrt(32 / 4000)
    assert abs(noise.mean(axis=0)).max() < 5 * 0.125 / math.sqrt(4000)


def test_without_noise_a_state_shows_its_vector_and_no_bounds_mislead() -> None:
    world = RichChain(length=3, dim=4, noise=0.0).build(KEY)
    assert (observations(world, 2, 3) == np.asarray(world.codes)[2]).all()
    for shown in (world.observations, RichChain(length=3, dim=4).build(KEY).observations):
        assert shown.low == (-math.inf,) * 4 and shown.high == (math.inf,) * 4 and shown.continuous


def test_each_seed_has_vectors_and_actions_of_its_own() -> None:
    first, second = (RichChain(length=40, dim=8).build(jax.random.key(seed)) for seed in (1, 2))
    assert not np.isclose(first.codes, second.codes).any(axis=1).all()
    assert (np.asarray(first.mdp.terminated) != np.asarray(second.mdp.terminated)).any()


def play(world: RichMDP, actions: list[int]) -> list[tuple[float, bool, bool]]:
    """Reward, terminated and truncated of each step, until the episode ends."""
    state, _ = world.reset(KEY)
    steps = []
    for number, action in enumerate(actions):
        state, now = world.step(jax.random.fold_in(KEY, number), state, jnp.array(action))
        steps.append((float(now.reward), bool(now.terminated), bool(now.truncated)))
        if now.terminated or now.truncated:
            break
    return steps


@pytest.mark.slow
def test_its_episodes_are_those_of_the_chain_behind_it() -> None:
    world = RichChain(length=5, dim=3).build(KEY)
    right = [int(np.argmin(ends[:, 0])) for ends in np.asarray(world.mdp.terminated)[:-1]]
    right += [int(np.argmax(np.asarray(world.mdp.reward)[-1, :, 0]))]
    assert play(world, right) == [(0.0, False, False)] * 4 + [(1.0, True, False)]
    assert play(world, [*right[:2], 1 - right[2]]) == [(0.0, False, False)] * 2 + [(0.0, True, False)]
    assert (RichChain(5).success_return, RichChain(5).floor_episodes) == (1.0, Chain(5).floor_episodes)
    low, high = world.return_range(0.5)
    assert (float(low), float(high)) == (0.0, 1.0)


def test_a_sea_shows_row_and_column_and_bits_that_mean_nothing() -> None:
    world = RichSea(size=4, bits=3).build(KEY)
    seen = observations(world, 4 * 2 + 1, 4000)
    assert (seen[:, :8] == [0, 0, 1, 0, 0, 1, 0, 0]).all()
    assert set(np.unique(seen[:, 8:])) == {0.0, 1.0}
    assert abs(seen[:, 8:].mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(4000)
    assert abs(np.corrcoef(seen[:, 8:].T)[np.triu_indices(3, 1)]).max() < 5 / math.sqrt(4000)
    assert not world.observations.continuous and world.observations.high == (1.0,) * 11
    np.testing.assert_array_equal(world.mdp.reward, DeepSea(4).build(KEY).reward)
    assert RichSea(4).success_return == DeepSea(4).success_return


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RichChain(length=0), "length is 0, but a Chain needs at least 1 state"),
        (lambda: RichChain(dim=1), "dim is 1, but a unit vector needs at least 2 numbers: use 2 or more."),
        (lambda: RichChain(noise=-0.1), "noise is -0.1: use a finite number, 0 or more"),
        (lambda: RichSea(size=0), "size is 0, but a DeepSea needs at least 1 row"),
        (lambda: RichSea(bits=-1), "bits is -1: use 0 to 1024 random bits."),
    ],
)
def test_settings_that_cannot_be_are_refused(make, words) -> None:
    with pytest.raises(InputError, match=f"^{words}"):
        make()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Number 4 of observations, counted from 0, is left out")  # the random bit
def test_a_small_sea_is_solved() -> None:
    settings = Settings(seeds=1, episodes=300, replay_size=512, batch_size=64)
    assert train(RichSea(size=2, bits=1), settings=settings).record.greedy_returns == [pytest.approx(1.0, abs=0.02)]
