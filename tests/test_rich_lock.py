"""RichLock: recorded episodes against a plain loop over the rules of Briee's lock, and its noise, decoded by SciPy."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from uppertail import RichLock
from uppertail.errors import InputError

KEY = jax.random.key(0)
ACTIONS, GOOD, BAD = 3, (0, 1), 2


class Played(NamedTuple):
    """Episodes with random actions: arrays of [episodes, steps]; there is an observation more than there are steps."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


def played(lock: RichLock, episodes: int) -> Played:
    """Whole episodes of one seed's lock, whose actions are drawn at random."""
    world = lock.build(KEY)

    def episode(key: jax.Array) -> tuple:
        reset_key, action_key, step_key = jax.random.split(key, 3)
        state, first = world.reset(reset_key)
        actions = jax.random.randint(action_key, (lock.horizon,), 0, lock.actions)

        def step(state, each):
            state, now = world.step(each[0], state, each[1])
            return state, now

        _, steps = jax.lax.scan(step, state, (jax.random.split(step_key, lock.horizon), actions))
        shown = jnp.concatenate([first.observation[None], steps.observation])
        return shown, actions, steps.reward, steps.terminated, steps.truncated

    return Played(*(np.asarray(each) for each in jax.jit(jax.vmap(episode))(jax.random.split(KEY, episodes))))


def decoded(observations: np.ndarray) -> np.ndarray:
    """The entries before they were rotated."""
    size = observations.shape[-1]
    return observations @ scipy.linalg.hadamard(size) / size


def test_episodes_follow_the_rules_of_the_lock() -> None:
    episodes = played(RichLock(horizon=4, actions=ACTIONS, noise=0.0), 4000)
    entries = decoded(episodes.observations)
    np.testing.assert_allclose(entries.sum(axis=-1), 2.0, atol=1e-5)
    np.testing.assert_allclose(entries.max(axis=-1), 1.0, atol=1e-5)
    latent, step = entries[..., :3].argmax(axis=-1), entries[..., 3:].argmax(axis=-1)
    right, followed, paid = {}, [], []
    for episode in range(len(latent)):
        for now in range(4):
            here, after = latent[episode, now], latent[episode, now + 1]
            action, reward = episodes.actions[episode, now], episodes.rewards[episode, now]
            assert step[episode, now] == now and step[episode, now + 1] == now + 1
            assert episodes.terminated[episode, now] == (now == 3) and not episodes.truncated[episode, now]
            if here == BAD:
                assert after == BAD and reward == 0
            elif after == BAD:
                assert right.get((now, here)) != action and reward in (0, np.float32(0.1))
                paid.append(reward > 0)
            else:
                assert right.setdefault((now, here), action) == action and reward == (now == 3)
                followed.append(after)
    assert len(right) == 4 * len(GOOD), "each good state of each step has one right action"
    assert len(set(right.values())) == ACTIONS, "which is drawn for each"
    for coin in (latent[:, 0], followed, paid):
        assert abs(np.mean(coin) - 0.5) < 5 * 0.5 / np.sqrt(len(coin))


def test_every_number_is_noisy_but_only_used_entries_are() -> None:
    lock = RichLock(horizon=3, actions=ACTIONS, noise=0.2)
    entries = decoded(played(lock, 2000).observations)
    plain = decoded(played(RichLock(horizon=3, actions=ACTIONS, noise=0.0), 2000).observations)
    noise = (entries - plain).reshape(-1, 8)
    assert abs(noise[:, :6].std(axis=0) - 0.2).max() < 5 * 0.2 / np.sqrt(2 * len(noise))
    np.testing.assert_allclose(noise[:, 6:], 0.0, atol=1e-6)
    assert abs(np.corrcoef(noise[:, :6].T)[np.triu_indices(6, 1)]).max() < 5 / np.sqrt(len(noise))


def test_seeds_have_right_actions_of_their_own() -> None:
    first, second = (RichLock().build(jax.random.key(seed)).mdp.next_state for seed in (1, 2))
    assert (np.asarray(first) != np.asarray(second)).any()


def test_the_best_return_is_one_and_observations_have_no_bounds() -> None:
    lock = RichLock(horizon=13)
    low, high = lock.build(KEY).return_range(1.0)
    assert (float(low), float(high), lock.success_return) == (0.0, 1.0, 1.0)
    for noise in (0.0, 0.1):
        shown = RichLock(horizon=13, noise=noise).build(KEY).observations
        assert shown.continuous and shown.low == (-np.inf,) * 32  # 13 + 4 = 17 entries at least


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RichLock(horizon=0), "horizon is 0, but an episode takes at least 1 step"),
        (lambda: RichLock(actions=1), "actions is 1, but a lock needs at least 2"),
        (lambda: RichLock(noise=-1.0), "noise is -1.0: use a finite number, 0 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, words) -> None:
    with pytest.raises(InputError, match=f"^{words}"):
        make()
