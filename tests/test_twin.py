"""The exact twin: by closed forms, by hand, and against value iteration."""

import dataclasses
import io
import json
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rich.console
import scipy.stats

from uppertail.cli import main
from uppertail.cli.twin import result_table
from uppertail.distributions import Categorical, Gaussian, GaussianMixture, PointMass, ReturnDistribution
from uppertail.distributions.categorical import CategoricalReturn
from uppertail.distributions.gaussian_losses import GaussianReturn
from uppertail.distributions.point_mass import PointMassReturn
from uppertail.environments import Chain, DeepSea, EnvironmentBuilder, FiniteMDP, FrozenLake, Gym, Toy
from uppertail.errors import InputError
from uppertail.policies import UCB, EpsilonGreedy, ExplorationPolicy, Greedy, Thompson
from uppertail.records import Episodes
from uppertail.training.drivers.compiled import CompiledWorld
from uppertail.training.seeds import seed_keys
from uppertail.twin import TwinResult, twin
from uppertail.twin.environments import of_seed, returns_of, tables_of
from uppertail.twin.mixture import mixed
from uppertail.twin.order import backward_order
from uppertail.twin.tables import Layers, TabularAgent
from uppertail.types import ReturnRange

CONSTANT = UCB(2.0, 2.0)


def table(builder: EnvironmentBuilder, seed: int) -> FiniteMDP:
    keys = jax.vmap(seed_keys)(jnp.array([seed])).environment
    return jax.tree.map(jnp.asarray, of_seed(tables_of(builder, keys), 0))


def layers_of(mdp: FiniteMDP) -> Layers:
    order = backward_order(mdp)
    return Layers(jnp.asarray(order.layers), jnp.asarray(order.layer_of))


def learned(mdp: FiniteMDP, agent: TabularAgent, seen: np.ndarray) -> Any:
    """The distributions of an agent that has seen each outcome so often, after the sweeps of one more episode."""
    layers = layers_of(mdp)
    tables = agent.init(mdp)._replace(seen=jnp.asarray(seen), deepest=jnp.asarray(layers.layers.shape[0] - 1))
    z = jax.jit(agent.learn)(jax.random.key(0), mdp, layers, tables)
    return jax.tree.map(np.asarray, z)


@pytest.mark.slow
def test_first_successes_on_a_chain_of_5_in_closed_form() -> None:
    """Optimism tries both actions of a state, in random order, before it passes it a third time.

    So it fails once in every state but those that it first sees in the episode in which it succeeds, and guesses right:
    t of them with probability 2^-(t + 1), all 5 with 2^-5. The first success is episode 6 - t.
    """
    first = twin(Chain(5), Gaussian(), CONSTANT, seeds=160, episodes=32).first_success_episode
    counts = np.bincount([episode or 0 for episode in first], minlength=7)
    expected = 160 * np.array([2.0**-5, 2.0**-5, 2.0**-4, 2.0**-3, 2.0**-2, 2.0**-1])
    assert counts[0] == 0 and counts.size == 7
    assert scipy.stats.chisquare(np.append(counts[1:4].sum(), counts[4:]), np.append(20, expected[3:])).pvalue > 1e-3


@pytest.mark.slow
def test_medians_of_the_trial() -> None:
    """Throw-away programs in NumPy gave 100.5 on the Chain and 19 on DeepSea, the medians of ten seeds."""
    first = twin(Chain(100), policy=CONSTANT, seeds=3, seed=1).first_success_episode
    assert all(101 - 9 <= (episode or 0) <= 101 for episode in first)  # nine lucky guesses once in 500
    assert 17 <= (twin(DeepSea(10), policy=CONSTANT, episodes=200).median or 0) <= 22


def test_backups_of_a_toy_by_hand() -> None:
    """State 1 is worth 4 and state 2 is worth 1, both certain; state 0 pays -1 or 1 on the way there."""
    mdp, agent = table(Toy(), 0), TabularAgent(Gaussian(scale=1.0), CONSTANT, 0.9, 1)
    z = learned(mdp, agent, np.ones((3, 2, 1), np.int32))
    np.testing.assert_allclose(z.mean, [[-1 + 0.9 * 4, 1 + 0.9 * 1], [4, 1], [1, 0]], rtol=1e-6)
    np.testing.assert_allclose(z.std, [[0.81e-4, 0.81e-4], [0.9e-4, 0.9e-4], [0.9e-4, 0.9e-4]], rtol=1e-5)


def test_what_was_never_tried_stays_as_wide_as_the_family_begins() -> None:
    """State 2's action 0 is unknown: N(0, softplus(1)), and its upper bound is what state 0 hopes for."""
    mdp, agent = table(Toy(), 0), TabularAgent(Gaussian(scale=1.0), CONSTANT, 0.9, 1)
    seen = np.ones((3, 2, 1), np.int32)
    seen[2, 0] = 0
    z, wide = learned(mdp, agent, seen), math.log1p(math.e)
    assert (z.mean[2, 0], z.std[2, 0]) == pytest.approx((0, wide))
    assert (z.mean[0, 1], z.std[0, 1]) == pytest.approx((1, 0.9 * wide))


def test_one_sweep_takes_a_reward_all_the_way_back() -> None:
    mdp, agent = table(Chain(30, ordered=True), 0), TabularAgent(Gaussian(scale=1.0), CONSTANT, 0.9, 1)
    z = learned(mdp, agent, np.ones((30, 2, 1), np.int32))
    np.testing.assert_allclose(z.mean[:, 1], 0.9 ** np.arange(29, -1, -1), rtol=1e-5)


@pytest.mark.parametrize("is_slippery", [False, True])
def test_sweeps_through_loops_end_in_the_optimal_values(is_slippery: bool) -> None:
    """Value iteration in float64, on a lake all of whose outcomes were seen as often as they should be."""
    mdp = table(FrozenLake("4x4", is_slippery=is_slippery), 0)
    sweeps = backward_order(mdp).sweeps
    agent = TabularAgent(PointMass(scale=1.0), Greedy(), 0.9, 400)
    counts = np.rint(3 * np.asarray(mdp.probability)).astype(np.int32)
    z = learned(mdp, agent, counts)
    next_state, ends = np.asarray(mdp.next_state), np.asarray(mdp.terminated)
    q = np.zeros((16, 4))
    for _ in range(1000):
        later = np.where(ends, 0.0, q.max(axis=1)[next_state])
        q = np.sum(np.asarray(mdp.probability, np.float64) * (np.asarray(mdp.reward) + 0.9 * later), axis=2)
    reached = backward_order(mdp).layer_of >= 0
    np.testing.assert_allclose(z.mean[reached], q[reached], atol=1e-5)
    assert sweeps == reached.sum() == 11


def test_layers_lead_onward() -> None:
    """Without loops every step leads to a later layer, and what no episode reaches is in none."""
    mdp = table(DeepSea(6), 0)
    order = backward_order(mdp)
    assert order.sweeps == 1 and order.layers.shape == (6, 6)
    for state in range(36):
        row, column = divmod(state, 6)
        assert order.layer_of[state] == (row if column <= row else -1)
    for index, layer in enumerate(order.layers):
        assert layer[layer < 36].tolist() == [6 * index + column for column in range(index + 1)]


def test_a_shortcut_does_not_put_a_state_before_what_leads_to_it() -> None:
    """0 leads to 2 and to 1, 1 to 2, 2 to the end: 2 is one step from the start, but comes last."""
    toy = table(Toy(), 0)
    mdp = FiniteMDP(
        next_state=jnp.array([[2, 1], [2, 2], [2, 2]])[..., None],
        reward=toy.reward,
        terminated=toy.terminated.at[1].set(False),
        probability=toy.probability,
        start_state=toy.start_state,
        start_probability=toy.start_probability,
        time_limit=9,
    )
    order = backward_order(mdp)
    assert (order.layer_of.tolist(), order.sweeps) == ([0, 1, 2], 1)


def test_mixtures_by_hand() -> None:
    weights = jnp.array([0.25, 0.75])
    z = mixed(GaussianReturn(jnp.array([0.0, 4.0]), jnp.array([1.0, 2.0])), weights)
    assert (float(z.mean), float(z.std)) == pytest.approx((3, math.sqrt(0.25 * (1 + 9) + 0.75 * (4 + 1))))
    logs = jnp.log(jnp.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]))
    np.testing.assert_allclose(np.exp(mixed(CategoricalReturn(logs), weights).log_probabilities), [0.25, 0.375, 0.375])
    np.testing.assert_allclose(np.exp(mixed(CategoricalReturn(logs), jnp.array([1.0, 0.0]))[0]), [1, 0, 0])
    assert float(mixed(PointMassReturn(jnp.array([1.0, 5.0])), weights).mean) == 4


def test_outcomes_count_as_often_as_they_were_seen() -> None:
    """The right action of the last state, which slipped once in four times."""
    mdp = table(Chain(1, ordered=True, slip=0.5), 0)
    z = learned(mdp, TabularAgent(Gaussian(scale=1.0), CONSTANT, 1.0, 1), np.array([[[0, 0], [3, 1]]], np.int32))
    assert (z.mean[0, 1], z.std[0, 1]) == pytest.approx((0.75, math.sqrt(0.25 * 0.75 + 1e-8)))
    assert z.std[0, 0] == pytest.approx(math.log1p(math.e))


def test_it_counts_what_happens() -> None:
    """Every action of every episode is counted once, as the outcome that it had."""
    mdp = table(Chain(3, slip=0.3), 0)
    agent = TabularAgent(Gaussian(scale=1.0), Greedy(), 0.99, 1)
    tables, returns, lengths = jax.jit(agent.episodes, static_argnums=4)(
        jax.random.key(0), mdp, layers_of(mdp), agent.init(mdp), 400
    )
    seen = np.asarray(tables.seen)
    right = np.asarray(mdp.probability)[:, :, 1].argmax(axis=1)
    assert seen.sum() == int(jnp.sum(lengths)) and int(tables.episodes) == 400
    assert seen[2, right[2], 0] == float(jnp.sum(returns)) > 50
    assert (seen[np.arange(3), 1 - right, 1] == 0).all()
    assert seen[0].sum() == 400 and seen[1].sum() == seen[0, right[0], 0] and seen[2].sum() == seen[1, right[1], 0]
    assert scipy.stats.binomtest(int(seen[0, right[0], 1]), int(seen[0, right[0]].sum()), 0.3).pvalue > 1e-4


def test_its_environments_are_those_of_training() -> None:
    keys = jax.jit(jax.vmap(seed_keys))(jnp.array([5, 6]))
    trained = CompiledWorld(Chain(8), keys, None).environments
    for run in range(2):
        ours = table(Chain(8), 5 + run)
        theirs = jax.tree.map(lambda leaf, row=run: leaf[row], trained)
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), ours, theirs))


@pytest.mark.parametrize(
    ("family", "policy"),
    [
        (Categorical(), UCB()),
        (GaussianMixture(), UCB()),
        (Gaussian(), Thompson()),
        (PointMass(), EpsilonGreedy(0.5)),
    ],
    ids=str,
)
def test_every_family_and_policy_ends_at_its_success(
    family: ReturnDistribution[Any], policy: ExplorationPolicy
) -> None:
    result = twin(Chain(4), family, policy, seeds=2, seed=3, episodes=400)
    assert result.seeds == [3, 4]
    for seed, first in zip(result.episodes, result.first_success_episode, strict=True):
        assert seed.returns.size == first and seed.returns[-1] == 1 and not seed.returns[:-1].any()
        assert seed.end_steps[-1] == seed.lengths.sum()


def test_a_run_goes_on_after_its_first_success_as_long_as_asked() -> None:
    longer = twin(Chain(6), policy=CONSTANT, seeds=3, seed=0, after=50)
    for seed, first, rate in zip(longer.episodes, longer.first_success_episode, longer.success_rate_after, strict=True):
        assert first is not None and seed.returns.size == first + 50
        assert rate == pytest.approx(seed.returns[first:].mean())
    limited = twin(Chain(6), policy=CONSTANT, seeds=2, seed=1, episodes=4)
    expected = [episode if (episode or 5) <= 4 else None for episode in longer.first_success_episode[1:]]
    assert limited.first_success_episode == expected and None in expected
    assert [seed.returns.size for seed in limited.episodes] == [episode or 4 for episode in expected]
    assert limited.success_rate_after == [None, None]


class Stepped(EnvironmentBuilder):
    """Builds what is no table."""

    success_return = floor_episodes = 1.0  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def build(self, key: jax.Array) -> Any:
        return jnp.zeros(())


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda: twin(Gym("CartPole-v1")),
            ["replays", "CartPole-v1 is stepped in Python", "DeepSea"],
        ),
        (lambda: twin(Stepped()), ["Stepped builds none", "such as Chain"]),
        (lambda: twin(DeepSea(4, stochastic=True)), ["rewards of DeepSea are noisy", "--env.noise 0"]),
        (lambda: twin(Gym("CliffWalking-v1")), ["does not say", "--env.success"]),
        (lambda: twin(Chain(4, slip=0.1), GaussianMixture()), ["distribution is GaussianMixture", "deterministic"]),
        (lambda: twin(Chain(4), seeds=0), ["seeds is 0", "1 or more"]),
        (lambda: twin(Chain(4), seed=-1), ["seed is -1", "0 or more"]),
        (lambda: twin(Chain(4), seed=2**31 - 1, seeds=2), ["seed is 2147483647", "2 seeds"]),
        (lambda: twin(Chain(4), episodes=0), ["episodes is 0", "1 or more"]),
        (lambda: twin(Chain(4), after=-1), ["after is -1", "0 or more"]),
        (lambda: twin(Chain(4), discount=1.5), ["discount is 1.5", "[0, 1]"]),
        (lambda: twin(Chain(4), discount=math.nan), ["discount is nan", "use a finite number"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(ask: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        ask()
    for word in words:
        assert word in str(error.value)


def test_returns_that_were_given_set_the_scale() -> None:
    builder = Gym("FrozenLake-v1", returns=(-1.0, 3.0), success=1.0)
    assert returns_of(builder, table(builder, 0), 0.9) == ReturnRange(-1.0, 3.0)


def test_what_a_result_says_of_its_episodes() -> None:
    """Two seeds of three and of four episodes, the first of which succeeds in its second."""
    returns = (np.array([0, 1, 0], np.float32), np.array([0, 0, 0, 0], np.float32))
    episodes = [Episodes(row, np.ones(row.size, np.int64), np.arange(1, row.size + 1)) for row in returns]
    parts = ({"name": "Chain"}, {"name": "Gaussian"}, {"name": "UCB"})
    result = TwinResult(*parts, 0.9, [3, 4], 1.0, 4.0, episodes, 1.0)
    assert (result.first_success_episode, result.success_rate_after) == ([2, None], [0.0, None])
    assert (result.median, result.median_over_floor) == (None, None)
    alone = dataclasses.replace(result, episodes=episodes[:1], seeds=[3])
    assert (alone.median, alone.median_over_floor, alone.document()["episodes"]) == (2, 0.5, [3])
    with io.StringIO() as out:
        rich.console.Console(file=out, width=80).print(result_table(result))
        text = out.getvalue()
    rows = [line.split() for line in text.splitlines()]
    assert ["3", "2", "0.5", "0.000"] in rows and ["4", "never", "never", "-"] in rows
    assert "The exact twin: Chain, Gaussian, UCB, discount 0.9" in " ".join(text.split())


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--env", "Chain", "--env.length", "5", "--seeds", "2", "--policy.low", "2", "--policy.high", "2"]
    assert main(["twin", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first = document["first_success_episode"]
    assert len(first) == 2 and all(1 <= episode <= 6 for episode in first)
    assert document["median_first_success"] == sum(first) / 2
    assert document["median_over_floor"] == pytest.approx(document["median_first_success"] / 3.5)
    assert (document["env"]["length"], document["policy"]["high"], document["seeds"]) == (5, 2, [0, 1])
    assert main(["twin", "--env", "Gym", "--env.id", "CartPole-v1"]) == 2
    assert "CartPole-v1 is stepped in Python" in capsys.readouterr().err
