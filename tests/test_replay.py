"""Laws of every replay buffer, the ring buffer against a deque; and no copy of a buffer in a compiled run."""

import collections
import functools
import math
import re
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats
from hypothesis import given

from uppertail.agent import Agent
from uppertail.distributions import Gaussian, PointMass
from uppertail.encodings import OneHot, Vector
from uppertail.encodings.standardized import Standardized
from uppertail.environments import Chain
from uppertail.evidence import KernelCounts
from uppertail.learners import Gradients, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import PerAction, Twin
from uppertail.parts import PARTS
from uppertail.policies import UCB
from uppertail.replay import Prioritized, Replay, Sample, Uniform
from uppertail.targets import Online, RunningMean
from uppertail.training.compiled import CompiledRun
from uppertail.training.host import _init, _learn
from uppertail.training.loop import Loop, RunState, iteration_keys
from uppertail.training.programs import over_seeds
from uppertail.types import Transition

EVERY = [kind() for kind in PARTS["replay"].classes.values() if not kind.whole_episodes]  # those: test_imitation
CAPACITY = 7
DRAWS = 20_000
BATCHES = [[1], [3], [5, 1], [5, 2], [5, 5], [4, 4, 4, 4]]


@pytest.fixture(params=EVERY, ids=str)
def part(request: pytest.FixtureRequest) -> Replay:
    return request.param


@functools.partial(jax.jit, static_argnums=0)
def add(part: Replay, state: Any, batch: Transition) -> Any:
    return part.add(state, batch)


@functools.partial(jax.jit, static_argnums=(0, 3))
def sample(part: Replay, state: Any, key: jax.Array, count: int) -> Sample:
    return part.sample(state, key, count)


def transitions(first: int, count: int) -> Transition:
    """Transitions that can be told apart in every field; no (observation, action) pair comes twice."""
    number = jnp.arange(first, first + count, dtype=jnp.int32)
    return Transition(
        observation=number,
        action=number % 3,
        reward=number.astype(jnp.float32) / 2,
        terminated=number % 2 == 0,
        next_observation=number + 1,
        next_action=-number,
        extras={"mask": number[:, None] * 10 + jnp.arange(2, dtype=jnp.int32)[None]},
    )


def filled(part: Replay, batches: list[int]) -> Any:
    state = part.init(CAPACITY, jax.tree.map(lambda leaf: leaf[0], transitions(1, 1)))
    first = 1
    for count in batches:
        state = add(part, state, transitions(first, count))
        first += count
    return state


def held(part: Replay, total: int) -> range:
    """Which of so many transitions, no two of one pair, it holds."""
    del part
    return range(max(total - CAPACITY, 0) + 1, total + 1)


def test_an_empty_buffer_keeps_shapes_and_types(part: Replay) -> None:
    example = Transition(
        jnp.zeros((2, 3), jnp.uint8), jnp.array(1), jnp.array(1.0), jnp.array(True), jnp.zeros((2, 3)), jnp.array(1)
    )
    state = part.init(CAPACITY, example)
    full = add(part, state, jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), example))
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), full
    )
    drawn = sample(part, full, jax.random.key(0), 4)
    for stored, leaf in zip(drawn.transitions, example, strict=True):
        if leaf is not None and not isinstance(leaf, tuple):
            assert (stored.shape, stored.dtype) == ((4, *leaf.shape), leaf.dtype)
    assert drawn.indices.shape == drawn.weights.shape == (4,)
    assert drawn.indices.dtype == jnp.int32
    assert drawn.weights.dtype == jnp.float32


@pytest.mark.slow
@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_sampling_is_uniform_over_what_is_held(part: Replay, batches: list[int]) -> None:
    """Whole transitions, none that was never written or already overwritten, all of them equally often."""
    stored = held(part, sum(batches))
    drawn = sample(part, filled(part, batches), jax.random.key(0), DRAWS)
    observations = np.asarray(drawn.transitions.observation)
    assert set(observations.tolist()) == set(stored)
    rows = observations - stored[0]
    for leaf, expected in zip(
        jax.tree.leaves(drawn.transitions), jax.tree.leaves(transitions(stored[0], len(stored))), strict=True
    ):
        np.testing.assert_array_equal(leaf, np.asarray(expected)[rows])
    if len(stored) > 1:
        assert scipy.stats.chisquare(np.bincount(rows)).pvalue > 1e-4
    np.testing.assert_array_equal(drawn.weights, 1.0)


def test_an_index_stands_for_one_transition_within_the_capacity(part: Replay) -> None:
    drawn = sample(part, filled(part, [5, 5]), jax.random.key(1), 500)
    indices, numbers = np.asarray(drawn.indices), np.asarray(drawn.transitions.observation)
    assert indices.min() >= 0 and indices.max() < CAPACITY
    by_index = dict(zip(indices.tolist(), numbers.tolist(), strict=True))
    assert numbers.tolist() == [by_index[index] for index in indices.tolist()]
    assert len(set(by_index.values())) == len(by_index)


def test_draws_differ_by_key_and_count(part: Replay) -> None:
    state = filled(part, [5, 5])
    one, other = (np.asarray(sample(part, state, jax.random.key(k), 500).indices) for k in range(2))
    assert (one != other).any()
    np.testing.assert_array_equal(one, sample(part, state, jax.random.key(0), 500).indices)


def test_an_update_changes_neither_shapes_nor_what_is_held(part: Replay) -> None:
    state = filled(part, [5, 5])
    after = part.update(state, jnp.array([2, 0, 2]), jnp.array([0.5, 3.0, -1.0]))
    assert jax.tree.structure(after) == jax.tree.structure(state)
    for now, was in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        assert (now.shape, now.dtype) == (was.shape, was.dtype)
    drawn = sample(part, after, jax.random.key(0), DRAWS).transitions.observation
    assert set(np.asarray(drawn).tolist()) == set(held(part, 10))


def test_an_index_beyond_every_buffer_is_ignored(part: Replay) -> None:
    """Data that did not come from it, before replay starts: however large their losses are."""
    state = filled(part, [5])
    after = part.update(state, jnp.full(3, jnp.iinfo(jnp.int32).max), jnp.array([1e3, 1.0, 7.0]))
    jax.tree.map(np.testing.assert_array_equal, after, state)


@pytest.mark.slow
def test_batched_over_seeds_it_is_the_same(part: Replay) -> None:
    """Two seeds whose streams differ, each as it is alone."""
    firsts, example = (1, 40), jax.tree.map(lambda leaf: leaf[0], transitions(1, 1))
    empty = part.init(CAPACITY, example)

    def kept(key: jax.Array, batches: tuple[Transition, ...]) -> Any:
        state = empty
        for batch in batches:
            state = part.add(state, batch)
        drawn = part.sample(state, key, 9)
        return part.update(state, drawn.indices, drawn.transitions.reward), drawn

    keys = jax.random.split(jax.random.key(0), 2)
    streams = [(transitions(first, 5), transitions(first + 3, 5)) for first in firsts]
    together = jax.jit(jax.vmap(kept))(keys, jax.tree.map(lambda *leaves: jnp.stack(leaves), *streams))
    for row, stream in enumerate(streams):
        alone = jax.jit(kept)(keys[row], stream)
        for ours, expected in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(ours[row], expected, rtol=1e-6)


@pytest.mark.slow
def test_the_losses_that_come_back_are_those_of_the_drawn_transitions() -> None:
    """Nothing is learned, and next actions are kept: then a transition has one loss, whenever it is drawn."""
    agent = Agent(PointMass(), UCB(), OneHot(5), 0.9)
    part = Prioritized(alpha=1.0)
    gradients = Gradients(PerAction(4, 1), part, Online(), optax.sgd(0.0), 4, 2, 8, 40, on_policy="all")
    loop = Loop(GradientLearner(agent, gradients), rollout_steps=4)
    run, key, environment = CompiledRun(loop), jax.random.key(0), Chain(5).build(jax.random.key(0))
    state, iterate = run.init(key, environment), jax.jit(lambda state: run.iterate(key, environment, state)[0])
    for _ in range(10):
        state = iterate(state)
    network, buffer = state.learned.network, state.learned.memory.buffer
    of_rows = jax.jit(jax.vmap(agent.loss, in_axes=(None, None, None, 0)))
    losses = of_rows(network, network, jax.random.split(key), buffer.ring.transitions)[0][:, 0]
    priorities = np.asarray(buffer.priorities).reshape(-1)[:40]
    drawn = priorities != float(buffer.highest)
    assert drawn.sum() > 20
    np.testing.assert_allclose(priorities[drawn], np.asarray(losses)[drawn] + 1e-6, rtol=1e-4, atol=1e-8)


# The ring buffer


@given(batches=st.lists(st.integers(1, 5), max_size=12))
def test_the_ring_buffer_holds_the_last_transitions(batches: list[int]) -> None:
    buffer = filled(Uniform(), batches)
    model = collections.deque(range(1, sum(batches) + 1), maxlen=CAPACITY)
    assert buffer.added == sum(batches)
    size = len(model)
    stored = jax.tree.map(lambda leaf: np.asarray(leaf)[:size], buffer.transitions)
    order = np.argsort(stored.observation)
    assert stored.observation[order].tolist() == list(model)
    expected = transitions(model[0] if model else 1, size)
    jax.tree.map(lambda kept, whole: np.testing.assert_array_equal(kept[order], whole), stored, expected)


# No copy of a buffer


class SampleFirst(CompiledRun):
    """The trap: the old buffer is still read after the new one is made."""

    def iterate(self, run_key: Any, environment: Any, run: RunState) -> Any:
        learner: Any = self.loop.learner
        parts, buffer = learner.gradients, run.learned.memory.buffer
        act_key, learn_key = iteration_keys(run_key, run.iteration)
        episode, fresh, records = self.rollout(act_key, environment, run.learned.network, run.episode)

        def learn(state: LearnerState, key: Any) -> tuple[LearnerState, Metrics]:
            batch_key, update_key = jax.random.split(key)
            batch = learner.minibatch(batch_key, fresh, buffer, jnp.asarray(True))
            return learner.update(state, update_key, batch)

        added = parts.replay.add(buffer, fresh)
        begun = run.learned._replace(memory=run.learned.memory._replace(buffer=added))
        learned, metrics = jax.lax.scan(learn, begun, jax.random.split(learn_key, parts.updates_per_rollout))
        after = run._replace(learned=learned, episode=episode, iteration=run.iteration + 1)
        return after, records, metrics


class BranchingAdd(CompiledRun):
    """The other trap: under vmap, a branch becomes a selection between two whole buffers."""

    def iterate(self, run_key: Any, environment: Any, run: RunState) -> Any:
        after, records, metrics = super().iterate(run_key, environment, run)
        new, old = after.learned.memory, run.learned.memory.buffer
        buffer = jax.lax.cond(run.iteration > 0, lambda: new.buffer, lambda: old)
        return after._replace(learned=after.learned._replace(memory=new._replace(buffer=buffer))), records, metrics


def small_loop(part: Replay, capacity: int) -> Loop:
    agent = Agent(Gaussian(), UCB(), OneHot(5), 0.9)
    gradients = Gradients(PerAction(4, 1), part, Online(), optax.sgd(0.01), 2, 1, 4, capacity)
    return Loop(GradientLearner(agent, gradients), rollout_steps=2)


def program(run_type: type[CompiledRun], part: Replay, seeds: int, capacity: int) -> tuple[str, tuple[int, ...]]:
    """The optimized program of a chunk of a run, its buffers donated, and the lengths of its buffer's arrays."""
    run = run_type(small_loop(part, capacity))
    keys = jax.random.split(jax.random.key(0), seeds)
    environments = jax.vmap(Chain(5).build)(keys)
    runs = jax.eval_shape(jax.vmap(run.init), keys, environments)
    chunk = jax.jit(jax.vmap(functools.partial(run.chunk, 5, jnp.int32(5))), donate_argnums=2)
    text = chunk.lower(keys, environments, runs).compile().as_text()
    assert text is not None
    lengths = {
        leaf.shape[1]
        for leaf in jax.tree.leaves(runs.learned.memory.buffer)
        if leaf.ndim > 1 and leaf.shape[1] > capacity // 4
    }
    return text, (*sorted(lengths), *(seeds * length for length in sorted(lengths)))


def whole_writes(text: str, sizes: tuple[int, ...]) -> list[str]:
    """Instructions within a program's loops that write every entry of an array with an axis of one of these sizes.

    What hands an array on (parameter, tuple, while, ...) writes nothing; a scatter and a slice's update write a few
    entries in place; what a fusion or a call writes is judged by its own instructions.
    """
    computations = dict(re.findall(r"^(?:ENTRY )?%?([\w.-]+) \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    callee = re.compile(r"(?:calls|to_apply|body|condition|branch_computations)=(%?[\w.-]+|\{.*?\})")
    pending, loops = re.findall(r"body=%?([\w.-]+)", text), set()
    while pending:
        name = pending.pop()
        if name not in loops:
            loops.add(name)
            called = callee.findall(computations[name])
            pending += re.findall(r"[\w.-]+", " ".join(called))
    allowed = {"parameter", "get-tuple-element", "tuple", "bitcast", "while", "conditional", "fusion", "call"}
    allowed |= {"scatter", "dynamic-update-slice"}
    whole = re.compile(rf"[\[,](?:{'|'.join(map(str, sizes))})[,\]]")
    instructions = re.findall(r"= (\(.*?\)|\S+) ([a-z-]+)\(", "\n".join(computations[name] for name in sorted(loops)))
    assert any(whole.search(shape) for shape, _ in instructions), "no array of this size is in a loop"
    return [f"{opcode} {shape}" for shape, opcode in instructions if whole.search(shape) and opcode not in allowed]


SEEDS, LARGE = 3, 49_999


@pytest.mark.slow
def test_a_compiled_run_never_copies_its_buffer(part: Replay) -> None:
    """Prioritized reads its table of priorities whole; nobody writes a whole array."""
    assert whole_writes(*program(CompiledRun, part, SEEDS, LARGE)) == []


@pytest.mark.parametrize(("trap", "opcode"), [(SampleFirst, "copy"), (BranchingAdd, "select")])
def test_a_copy_of_the_buffer_would_be_seen(trap: type[CompiledRun], opcode: str) -> None:
    found = whole_writes(*program(trap, Uniform(), SEEDS, LARGE))
    assert any(line.startswith(opcode) for line in found), found


@pytest.mark.parametrize("seeds", [1, 2])
def test_learning_from_one_step_copies_neither_buffer_nor_evidence(seeds: int) -> None:
    """Beside kernel counts each action is learned from; XLA would write a single row into copies of the whole."""
    encoding, capacity = Standardized(Vector((-math.inf,) * 40, (math.inf,) * 40)), 50_000
    agent = Agent(Gaussian(), UCB(), encoding, 0.9)
    parts = Twin(8), Uniform(), RunningMean(0.99), optax.sgd(0.01)
    learner = GradientLearner(agent, Gradients(*parts, 1, 2, 4, capacity, evidence=KernelCounts()))
    loop, keys = Loop(learner, rollout_steps=1, steps=100), jax.random.split(jax.random.key(0), seeds)
    state = jax.eval_shape(jax.vmap(functools.partial(_init, loop, 2)), keys, jnp.zeros((seeds, 1, 40)), None)
    number, place = jnp.zeros((seeds, 1)), jnp.zeros((seeds, 1, 40))
    fresh = Transition(place, number.astype(int), number, number > 0, place, number.astype(int))
    learn = jax.jit(functools.partial(over_seeds, functools.partial(_learn, loop)), donate_argnums=1)
    compiled = learn.lower(keys, state, fresh, number.astype(int)).compile()
    needs: Any = compiled.memory_analysis()
    assert needs.temp_size_in_bytes < seeds * 4 * 40 * capacity / 2, "less than half of an array of numbers"
