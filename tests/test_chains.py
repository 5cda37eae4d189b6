"""The Chain's slips and noise."""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from uppertail.environments import Chain, EnvironmentBuilder, FiniteMDP
from uppertail.environments.finite import FiniteState
from uppertail.errors import InputError
from uppertail.exact import exact_returns, optimal_policy

KEY = jax.random.key(0)
DRAWS = 20_000


def built(builder: EnvironmentBuilder, key: jax.Array) -> FiniteMDP:
    return jax.jit(builder.build)(key)


def right_actions(builder: Chain, key: jax.Array) -> list[int]:
    """The action of each state that may go on, or pays the last reward."""
    mdp = built(builder, key)
    good = (~np.asarray(mdp.terminated) | (np.asarray(mdp.reward) == 1)).any(axis=2)
    assert (good.sum(axis=1) == 1).all()
    return good.argmax(axis=1).tolist()


def test_the_paper_s_chain_is_as_it_was_before_it_had_other_settings() -> None:
    """Its table, shapes and types, and the draws of a seed: a change would alter every run that was ever reported."""
    mdp = built(Chain(12), jax.random.key(7))
    arrays = (mdp.next_state, mdp.reward, mdp.terminated, mdp.probability, mdp.start_state, mdp.start_probability)
    assert [(leaf.shape, str(leaf.dtype)) for leaf in arrays[:4]] == [
        ((12, 2, 1), "int32"),
        ((12, 2, 1), "float32"),
        ((12, 2, 1), "bool"),
        ((12, 2, 1), "float32"),
    ]
    content = b"".join(np.asarray(leaf).tobytes() for leaf in arrays)
    assert hashlib.sha256(content).hexdigest()[:16] == "3d7825d1da0b065e"
    assert len(jax.tree.leaves(mdp)) == 6
    assert (Chain(12).success_return, Chain(12).floor_episodes) == (1.0, 7.0)


@pytest.mark.parametrize("slip", [0.2, 1.0])
def test_a_slip_ends_the_episode(slip: float) -> None:
    mdp = built(Chain(3, slip=slip), KEY)
    right = right_actions(Chain(3), KEY)
    assert right == [int(np.asarray(mdp.probability)[s, :, 1].argmax()) for s in range(3)]
    for state in range(3):
        for action in range(2):
            start = FiniteState(jnp.asarray(state, jnp.int32), jnp.zeros((), jnp.int32))
            keys = jax.random.split(KEY, DRAWS)
            _, now = jax.vmap(mdp.step, in_axes=(0, None, None))(keys, start, jnp.asarray(action, jnp.int32))
            ended, reward = np.asarray(now.terminated), np.asarray(now.reward)
            if action != right[state]:
                assert ended.all() and not reward.any()
            elif state < 2:
                assert scipy.stats.binomtest(int(ended.sum()), DRAWS, slip).pvalue > 1e-4
                assert not reward.any()
                assert (np.asarray(now.observation) == np.where(ended, state, state + 1)).all()
            else:
                assert ended.all()
                assert scipy.stats.binomtest(int(reward.sum()), DRAWS, 1 - slip).pvalue > 1e-4


def test_the_best_policy_of_a_slippery_chain_counts_as_solved() -> None:
    """Its mean return is exactly the return of a success, so a mean of nine tenths of it can be reached."""
    chain = Chain(10, slip=0.1)
    mdp = built(chain, KEY)
    returns = exact_returns(mdp, optimal_policy(mdp, 1.0), 1.0)
    best = max((returns[0, action] for action in range(2)), key=lambda z: z.mean)
    assert best.mean == pytest.approx(0.9**10, rel=1e-6) == pytest.approx(chain.success_return)
    assert 0 < Chain(10, slip=1.0).success_return < 1e-5
    assert Chain(100_000, slip=0.5).success_return > 0
    assert chain.floor_episodes is None


def test_every_reward_is_noisy() -> None:
    mdp, right = built(Chain(2, reward_std=0.5), KEY), right_actions(Chain(2), KEY)
    for state in range(2):
        for action in range(2):
            start = FiniteState(jnp.asarray(state, jnp.int32), jnp.zeros((), jnp.int32))
            _, now = jax.vmap(mdp.step, in_axes=(0, None, None))(
                jax.random.split(KEY, DRAWS), start, jnp.asarray(action, jnp.int32)
            )
            mean = float(state == 1 and action == right[1])
            assert scipy.stats.kstest(now.reward, scipy.stats.norm(mean, 0.5).cdf).pvalue > 1e-4
    assert Chain(2, reward_std=0.5).success_return == math.inf


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Chain(5, slip=-0.1), ["slip is -0.1", "[0, 1]"]),
        (lambda: Chain(5, slip=1.5), ["slip is 1.5", "[0, 1]"]),
        (lambda: Chain(5, slip=math.nan), ["slip is nan", "use a finite number"]),
        (lambda: Chain(5, reward_std=-1.0), ["reward_std is -1.0", "0 or more"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(
    build: Callable[[], EnvironmentBuilder], words: list[Any]
) -> None:
    with pytest.raises(InputError) as error:
        build()
    for word in words:
        assert word in str(error.value)
