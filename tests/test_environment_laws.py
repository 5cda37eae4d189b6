"""Laws of every compiled environment: its spaces, what its keys decide, how its episodes begin and end."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uppertail as ut
from uppertail.environments import FiniteMDP
from uppertail.parts import PARTS

KEY, STEPS = jax.random.key(3), 300
PACKAGES = {"Gym", "Gymnax", "XMiniGrid", "Bsuite"}  # whose environments have tests of their own, beside the packages'
WORLDS: dict[str, Any] = {
    "Chain": ut.Chain(4, slip=0.2, time_limit=6),
    "Chain of one": ut.Chain(1),
    "DeepSea": ut.DeepSea(4),
    "DeepSea, stochastic": ut.DeepSea(4, stochastic=True),
    "RichChain": ut.RichChain(4, dim=5),
    "RichSea": ut.RichSea(3, bits=4),
    "RichLock": ut.RichLock(3),
    "Toy": ut.Toy(),
    "RiskyArm": ut.RiskyArm(),
    "RiverSwim": ut.RiverSwim(),
    "SixArms": ut.SixArms(),
    "FrozenLake": ut.FrozenLake(is_slippery=True),
}
worlds = pytest.mark.parametrize("builder", WORLDS.values(), ids=WORLDS)


def test_every_environment_of_ours_is_here() -> None:
    assert {type(builder).__name__ for builder in WORLDS.values()} == set(PARTS["env"].kinds) - PACKAGES


def walk(builder: Any, build: Any = KEY, play: Any = KEY) -> tuple[Any, Any, Any]:
    """The environment, its first time step, and those of random actions, with resets where an episode ends."""

    @jax.jit
    def walked(build: Any, play: Any) -> Any:
        world = builder.build(build)
        state, first = world.reset(play)

        def step(state: Any, key: Any) -> Any:
            act, move, again = jax.random.split(key, 3)
            action = jax.random.randint(act, (), 0, world.num_actions)
            after, now = world.step(move, state, action)
            start, _ = world.reset(again)
            ends = now.terminated | now.truncated
            return jax.tree.map(lambda new, old: jnp.where(ends, new, old), start, after), now

        return world, first, jax.lax.scan(step, state, jax.random.split(play, STEPS))[1]

    return walked(build, play)


@worlds
def test_a_run_has_episodes_of_its_spaces_that_end_in_one_way(builder: Any) -> None:
    world, first, steps = walk(builder)
    assert not first.terminated and not first.truncated and first.reward == 0
    assert steps.reward.dtype == jnp.float32 and np.isfinite(steps.reward).all()
    ends = np.asarray(steps.terminated | steps.truncated)
    limit = getattr(world, "time_limit", STEPS)
    assert ends.any() or limit > STEPS
    assert not np.asarray(steps.terminated & steps.truncated).any()
    space, shown = world.observations, np.asarray(steps.observation)
    assert shown.shape[1:] == first.observation.shape and shown.dtype == first.observation.dtype
    if isinstance(space, ut.States):
        assert shown.min() >= 0 and shown.max() < space.count
    else:
        assert (shown >= space.low).all() and (shown <= space.high).all()
    lengths = np.diff(np.flatnonzero(ends), prepend=-1)
    assert max(lengths, default=0) <= limit
    assert (np.asarray(steps.truncated)[ends] <= (lengths == limit)).all(), "only a time limit truncates"


@worlds
def test_keys_decide_all_that_is_random(builder: Any) -> None:
    found = [jax.tree.leaves(walk(builder, *keys)) for keys in ((KEY, KEY), (KEY, KEY), (KEY, jax.random.key(4)))]
    same = [all(np.array_equal(*pair) for pair in zip(found[0], each, strict=True)) for each in found[1:]]
    assert same == [True, False]


@worlds
def test_returns_lie_in_the_range_that_it_names(builder: Any) -> None:
    """Up to what it says of repeated mistakes, which are left out below."""
    world, _, steps = walk(builder)
    discount = 0.9
    low, high = map(float, world.return_range(discount))
    assert low <= 0 <= high and low < high
    if isinstance(world, FiniteMDP) and world.reward_std is None:
        total = 0.0
        for reward, ends in zip(steps.reward[::-1], (steps.terminated | steps.truncated)[::-1], strict=True):
            total = float(reward) + (0.0 if ends else discount * total)
            assert total <= high + 1e-5
    assert builder.success_return == float("inf") or builder.success_return <= high / discount**STEPS


@worlds
def test_its_floor_is_no_better_than_one_episode(builder: Any) -> None:
    assert builder.floor_episodes is None or builder.floor_episodes >= 1
