"""The ring buffer, against a deque; and no copy of it in a compiled run."""

import collections
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
from uppertail.training.compiled import CompiledRun

from uppertail import replay
from uppertail.agent import Agent, AgentState, Metrics
from uppertail.distributions import Gaussian
from uppertail.encodings import OneHot
from uppertail.environments import Chain
from uppertail.policies import UCB
from uppertail.training.loop import Loop, RunState
from uppertail.types import Transition

CAPACITY = 7
DRAWS = 20_000

add = jax.jit(replay.add)
sample = jax.jit(replay.sample, static_argnums=2)


def transitions(first: int, count: int) -> Transition:
    """Transitions that can be told apart in every field."""
    number = jnp.arange(first, first + count, dtype=jnp.int32)
    return Transition(
        observation=number,
        action=number % 3,
        reward=number.astype(jnp.float32) / 2,
        terminated=number % 2 == 0,
        next_observation=number + 1,
        next_action=-number,
    )


def filled(batches: list[int]) -> replay.Replay:
    buffer = replay.init(CAPACITY, jax.tree.map(lambda leaf: leaf[0], transitions(1, 1)))
    first = 1
    for count in batches:
        buffer = add(buffer, transitions(first, count))
        first += count
    return buffer


def test_an_empty_buffer_keeps_shapes_and_types() -> None:
    example = Transition(
        jnp.zeros((2, 3), jnp.uint8), jnp.array(1), jnp.array(1.0), jnp.array(True), jnp.zeros((2, 3)), jnp.array(1)
    )
    buffer = replay.init(CAPACITY, example)
    assert buffer.added == 0
    for stored, leaf in zip(buffer.transitions, example, strict=True):
        assert (stored.shape, stored.dtype) == ((CAPACITY, *leaf.shape), leaf.dtype)


@given(batches=st.lists(st.integers(1, 5), max_size=12))
def test_the_buffer_holds_the_last_transitions(batches: list[int]) -> None:
    buffer = filled(batches)
    model = collections.deque(range(1, sum(batches) + 1), maxlen=CAPACITY)
    assert buffer.added == sum(batches)
    size = len(model)
    stored = jax.tree.map(lambda leaf: np.asarray(leaf)[:size], buffer.transitions)
    order = np.argsort(stored.observation)
    assert stored.observation[order].tolist() == list(model)
    for kept, expected in zip(stored, transitions(model[0] if model else 1, size), strict=True):
        np.testing.assert_array_equal(kept[order], expected)


@pytest.mark.parametrize("batches", [[1], [3], [5, 1], [5, 2], [5, 5], [4, 4, 4, 4]], ids=str)
def test_sampling_is_uniform_over_what_is_stored(batches: list[int]) -> None:
    """Whole transitions, none that was never written or already overwritten, all of them equally often."""
    total = sum(batches)
    stored = range(max(total - CAPACITY, 0) + 1, total + 1)
    drawn = sample(filled(batches), jax.random.key(0), DRAWS)
    observations = np.asarray(drawn.observation)
    assert set(observations.tolist()) == set(stored)
    rows = observations - stored[0]
    for leaf, expected in zip(drawn, transitions(stored[0], len(stored)), strict=True):
        np.testing.assert_array_equal(leaf, np.asarray(expected)[rows])
    if len(stored) > 1:
        assert scipy.stats.chisquare(np.bincount(rows)).pvalue > 1e-4


class SampleFirst(CompiledRun):
    """The trap: the old buffer is still read after the new one is made."""

    def iterate(self, run_key: Any, environment: Any, run: RunState) -> Any:
        loop = self.loop
        act_key, learn_key = loop.keys(run_key, run.iteration)
        episode, fresh, records = self.rollout(act_key, environment, run.agent.network, run.episode)

        def learn(state: AgentState, key: Any) -> tuple[AgentState, Metrics]:
            batch_key, update_key = jax.random.split(key)
            return loop.agent.update(state, update_key, loop.minibatch(batch_key, fresh, run.replay))

        buffer = replay.add(run.replay, fresh)
        agent_state, metrics = jax.lax.scan(learn, run.agent, jax.random.split(learn_key, loop.updates_per_rollout))
        after = run._replace(agent=agent_state, replay=buffer, episode=episode, iteration=run.iteration + 1)
        return after, records, metrics


class BranchingAdd(CompiledRun):
    """The other trap: under vmap, a branch becomes a selection between two whole buffers."""

    def iterate(self, run_key: Any, environment: Any, run: RunState) -> Any:
        after, records, metrics = super().iterate(run_key, environment, run)
        buffer = jax.lax.cond(run.iteration > 0, lambda: after.replay, lambda: run.replay)
        return after._replace(replay=buffer), records, metrics


def small_loop(capacity: int) -> Loop:
    agent = Agent(Gaussian(), UCB(), OneHot(5), 0.9, optax.sgd(0.01), (4,), False)
    return Loop(agent, rollout_steps=2, updates_per_rollout=1, batch_size=4, replay_size=capacity)


def program(run_type: type[CompiledRun], seeds: int, capacity: int) -> str:
    """The optimized program of a chunk of a run, its buffers donated."""
    run = run_type(small_loop(capacity))
    keys = jax.random.split(jax.random.key(0), seeds)
    environments = jax.vmap(Chain(5).build)(keys)
    runs = jax.eval_shape(jax.vmap(run.init), keys, environments)
    chunk = jax.jit(jax.vmap(run.chunk, in_axes=(0, 0, 0, None)), static_argnums=3, donate_argnums=2)
    text = chunk.lower(keys, environments, runs, 5).compile().as_text()
    assert text is not None
    return text


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


def test_a_compiled_run_never_copies_its_buffer() -> None:
    assert whole_writes(program(CompiledRun, SEEDS, LARGE), (LARGE, SEEDS * LARGE)) == []


@pytest.mark.parametrize(("trap", "opcode"), [(SampleFirst, "copy"), (BranchingAdd, "select")])
def test_a_copy_of_the_buffer_would_be_seen(trap: type[CompiledRun], opcode: str) -> None:
    found = whole_writes(program(trap, SEEDS, LARGE), (LARGE, SEEDS * LARGE))
    assert any(line.startswith(opcode) for line in found), found
