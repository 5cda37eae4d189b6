"""Targets over the graph of what was tried, against backups in a dictionary; and what stays with the network."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from uppertail.replay.fingerprints import fingerprints
from uppertail.targets.pair_table import DIFFERS, PairTable, empty, enter, find

from uppertail.agent import Agent, AgentState
from uppertail.distributions import Gaussian
from uppertail.distributions.gaussian_losses import GaussianReturn
from uppertail.encodings import OneHot
from uppertail.errors import InputError
from uppertail.networks import PerAction
from uppertail.policies import UCB
from uppertail.targets import Graph
from uppertail.types import POLICY_CHOICE, PyTree, Transition

STATES, ACTIONS, DISCOUNT, C = 6, 2, 0.9, 2.0
AGENT = Agent(
    Gaussian(scale=1.0, distance="wasserstein"),
    UCB(C, C),
    PerAction(width=4, hidden_layers=1),
    Graph(pairs=16),
    OneHot(STATES),
    DISCOUNT,
    optax.sgd(0.1),
)


def steps_of(*rows: tuple[int, int, float, bool, int], next_action: int = POLICY_CHOICE) -> Transition:
    """Transitions (s, a, r, terminated, s')."""
    s, a, r, ends, after = zip(*rows, strict=True)
    integers = functools.partial(jnp.asarray, dtype=jnp.int32)
    reward = jnp.asarray(r, jnp.float32)
    return Transition(
        integers(s), integers(a), reward, jnp.asarray(ends), integers(after), jnp.full(len(s), next_action, jnp.int32)
    )


def row_of(transitions: Transition, row: int) -> Transition:
    return jax.tree.map(lambda leaf: leaf[row], transitions)


@functools.cache
def fresh_agent() -> AgentState:
    return jax.jit(functools.partial(AGENT.init, num_actions=ACTIONS))(jax.random.key(0))


@jax.jit
def swept(state: AgentState, steps: Transition) -> AgentState:
    return AGENT.sweep(state, jax.random.key(1), steps)


@jax.jit
def values(state: AgentState) -> tuple[PyTree, PyTree]:
    """Mean and standard deviation of every pair by the network, and with what is remembered: [states, actions]."""

    def both(observation: jax.Array) -> tuple[PyTree, PyTree]:
        said = AGENT.returns_by_member(state.network, observation)
        recalled = AGENT.target.recall(state.target, observation, said)
        return tuple(jax.tree.map(lambda leaf: leaf[0], z) for z in (said, recalled))

    return jax.vmap(both)(jnp.arange(STATES))


def backed_up_by_hand(said: GaussianReturn, rows: list[tuple[int, int, float, bool, int]]) -> dict[Any, Any]:
    """What a backward pass over these rows leaves, in float64."""
    mean, std = np.asarray(said.mean, np.float64), np.asarray(said.std, np.float64)
    known: dict[tuple[int, int], tuple[float, float]] = {}
    for s, a, r, ends, after in reversed(rows):
        options = [known.get((after, b), (mean[after, b], std[after, b])) for b in range(ACTIONS)]
        best = (0.0, 1e-4) if ends else max(options, key=lambda z: z[0] + C * z[1])
        known[s, a] = (r + DISCOUNT * best[0], DISCOUNT * best[1])
    return known


EPISODE = [(0, 1, 0.1, False, 1), (1, 0, -0.2, False, 2), (2, 1, 0.3, False, 3), (3, 0, 5.0, True, 0)]


def test_a_sweep_backs_up_from_the_end_and_asks_the_network_for_what_was_never_tried() -> None:
    state = swept(fresh_agent(), steps_of(*EPISODE))
    said, recalled = values(state)
    known = backed_up_by_hand(said, EPISODE)
    assert known[0, 1][0] > 3  # the reward of the last step has come back to the first
    for s in range(STATES):
        for a in range(ACTIONS):
            expected = known.get((s, a), (said.mean[s, a], said.std[s, a]))
            np.testing.assert_allclose((recalled.mean[s, a], recalled.std[s, a]), expected, rtol=1e-5)


def test_the_sweep_chooses_next_actions_anew() -> None:
    """That the next action taken was a bad one does not count."""
    taken = steps_of(*EPISODE, next_action=1)
    anew, as_taken = (values(swept(fresh_agent(), steps))[1] for steps in (steps_of(*EPISODE), taken))
    np.testing.assert_array_equal(anew.mean, as_taken.mean)


@pytest.mark.parametrize("other", [(2, 1, 0.3, False, 4), (2, 1, 0.4, False, 3), (2, 1, 0.3, True, 3)], ids=str)
def test_a_pair_that_led_elsewhere_is_the_networks_for_good(other: tuple[int, int, float, bool, int]) -> None:
    state = swept(fresh_agent(), steps_of(*EPISODE))
    said, recalled = values(state)
    assert recalled.mean[2, 1] != said.mean[2, 1]
    state = swept(state, steps_of(other))
    for _ in range(2):  # the second time it leads where it led the last time
        state = swept(state, steps_of(*EPISODE))
    said, recalled = values(state)
    assert recalled.mean[2, 1] == said.mean[2, 1]
    assert recalled.mean[3, 0] != said.mean[3, 0]


def test_only_listed_pairs_whose_next_action_the_policy_chose_are_kept() -> None:
    state = swept(fresh_agent(), steps_of(*EPISODE))
    batch = steps_of((0, 1, 0.0, False, 1), (5, 0, 0.0, False, 1), (2, 1, 0.0, False, 1))
    batch = batch._replace(next_action=jnp.array([POLICY_CHOICE, POLICY_CHOICE, 0], jnp.int32))
    targets = GaussianReturn(jnp.full((3, 1), 7.0), jnp.full((3, 1), 0.5))
    before = values(state)[1]
    after = values(state._replace(target=AGENT.target.after_backups(state.target, batch, targets)))[1]
    changed = np.argwhere(np.asarray(before.mean != after.mean))
    assert changed.tolist() == [[0, 1]]
    assert (after.mean[0, 1], after.std[0, 1]) == (7.0, 0.5)


def test_an_update_backs_up_from_what_is_remembered_and_remembers_it() -> None:
    """Two updates carry a reward two steps back, whatever the network has learned of it."""
    state = fresh_agent()
    for row in EPISODE:  # one at a time: each is backed up before what follows it is known
        state = swept(state, steps_of(row))
    update = jax.jit(lambda state, batch: AGENT.update(state, jax.random.key(2), batch, jnp.ones(1))[0])
    for row in (EPISODE[2], EPISODE[1]):
        state = update(state, steps_of(row))
    recalled = values(state)[1]
    np.testing.assert_allclose(recalled.mean[1, 0], -0.2 + DISCOUNT * (0.3 + DISCOUNT * 5.0), rtol=1e-5)
    assert abs(recalled.mean[0, 1]) < 3  # not backed up again


@pytest.mark.slow
def test_a_table_with_too_many_pairs_forgets_and_never_mistakes_one_for_another() -> None:
    count = 300

    @jax.jit
    def filled(steps: Transition) -> PairTable:
        def step(table: PairTable, rows: Transition) -> tuple[PairTable, None]:
            return enter(table, rows, GaussianReturn(rows.reward[:, None], rows.reward[:, None]))[0], None

        batches = jax.tree.map(lambda leaf: leaf.reshape(-1, 5), steps)
        return jax.lax.scan(step, empty(8, 1, AGENT.family.terminal()), batches._replace(extra=()))[0]

    steps = steps_of(*((s, s % 2, float(s), False, s + 1) for s in range(count)))
    table = filled(steps)
    places, stands = find(table, steps.observation, steps.action)
    assert 0 < int(jnp.sum(stands)) <= table.status.shape[0] < count
    np.testing.assert_array_equal(table.z.mean[places, 0][stands], steps.reward[stands])
    assert not jnp.any(table.status == DIFFERS)
    assert not jnp.any(find(table, steps.observation, 1 - steps.action)[1])


def test_of_two_new_pairs_that_want_one_place_one_gets_it() -> None:
    steps = steps_of(*((s, 0, 0.0, False, s + 1) for s in range(12)))
    z = GaussianReturn(jnp.zeros((12, 1)), jnp.ones((12, 1)))
    before = empty(1, 1, AGENT.family.terminal())
    table, places = jax.jit(enter)(before, steps, z)
    beyond = table.status.shape[0]
    assert beyond < 12  # so that some must want the same
    has = places < beyond
    assert 0 < int(jnp.sum(has)) == np.unique(places[has]).size
    expected = fingerprints(steps.observation, steps.action)[has]
    np.testing.assert_array_equal(table.known[places[has]], expected)


@pytest.mark.parametrize("pairs", [0, -1, True, 2**28])
def test_the_number_of_pairs_is_checked(pairs: Any) -> None:
    with pytest.raises(InputError, match=f"pairs is {pairs}"):
        Graph(pairs=pairs)
