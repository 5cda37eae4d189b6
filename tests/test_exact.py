"""Exact return distributions against closed forms, paths spelled out one by one, simulation and linear solves."""

import json

import gymnasium
import jax
import numpy as np
import pytest
import scipy.stats

from experiments.paper.calibration import cramer
from uppertail.cli import main
from uppertail.environments import Chain, FiniteMDP, FrozenLake, Toy
from uppertail.errors import InputError
from uppertail.exact import exact_returns, optimal_policy, uniform_policy
from uppertail.exact.discrete import ExactReturn, merge
from uppertail.exact.markov import MarkovReward
from worlds import table

KEY = jax.random.key(0)
DISCOUNT = 0.95
LAKE = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True).unwrapped.P  # pyright: ignore[reportAttributeAccessIssue]


def layered() -> FiniteMDP:
    """Four layers of two states, two outcomes per action, always on to the next layer: no state comes back."""
    draws = np.random.default_rng(1)
    layer = np.repeat(np.arange(4), 2)[:, None, None]
    next_state = np.minimum(2 * (layer + 1), 6) + draws.integers(0, 2, (8, 2, 2))
    share = draws.uniform(0.2, 0.8, (8, 2))
    probability = np.stack([share, 1 - share], axis=-1)
    reward, terminated = draws.normal(size=(8, 2, 2)), (layer == 3) | (draws.random((8, 2, 2)) < 0.1)
    order = draws.permutation(8)  # so that the order of the states does not help
    return table(np.argsort(order)[next_state[order]], reward[order], terminated[order], probability[order])


def random_policy(mdp: FiniteMDP) -> np.ndarray:
    weights = np.random.default_rng(2).uniform(0.1, 1.0, (mdp.num_states, mdp.num_actions))
    return weights / weights.sum(axis=1, keepdims=True)


def paths(mdp: FiniteMDP, policy: np.ndarray, state: int, action: int) -> list[tuple[float, float]]:
    """Every path from a state and action to the end of the episode: its return and its probability."""
    found = []
    for outcome, probability in enumerate(np.asarray(mdp.probability[state, action], np.float64).tolist()):
        reward = float(mdp.reward[state, action, outcome])
        if bool(mdp.terminated[state, action, outcome]):
            found.append((reward, probability))
        else:
            after = int(mdp.next_state[state, action, outcome])
            for next_action in range(mdp.num_actions):
                for value, chance in paths(mdp, policy, after, next_action):
                    found.append((reward + DISCOUNT * value, probability * policy[after, next_action] * chance))
    return found


def lake_moments(policy: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of Z(s, a) from E[Z] and E[Z^2], each one linear system over states and actions."""
    size = 16 * 4
    follow, first, square = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for state, actions in LAKE.items():
        for action, outcomes in actions.items():
            for probability, after, reward, terminated in outcomes:
                first[4 * state + action] += probability * reward
                square[4 * state + action] += probability * reward**2
                if not terminated:
                    follow[4 * state + action, 4 * after : 4 * after + 4] += probability * policy[after]
    mean = np.linalg.solve(np.eye(size) - discount * follow, first)
    for state, actions in LAKE.items():
        for action, outcomes in actions.items():
            for probability, after, reward, terminated in outcomes:
                if not terminated:
                    next_mean = policy[after] @ mean[4 * after : 4 * after + 4]
                    square[4 * state + action] += 2 * discount * probability * reward * next_mean
    return mean, np.sqrt(np.linalg.solve(np.eye(size) - discount**2 * follow, square) - mean**2)


def lake_samples(policy: np.ndarray, discount: float, state: int, action: int, count: int) -> np.ndarray:
    """Discounted returns of simulated episodes, from Gymnasium's table."""
    draws = np.random.default_rng(0)
    entries = [[(LAKE[s][a] + 2 * [(0.0, 0, 0.0, True)])[:3] for a in range(4)] for s in range(16)]
    chance, after, reward, end = np.moveaxis(np.array(entries), -1, 0)
    states, actions, running = np.full(count, state), np.full(count, action), np.arange(count)
    returns, factor = np.zeros(count), 1.0
    while running.size:
        drawn = draws.random((2, running.size, 1))
        outcome = (drawn[0] > np.cumsum(chance[states, actions], axis=1)[:, :-1]).sum(axis=1)
        returns[running] += factor * reward[states, actions, outcome]
        on = end[states, actions, outcome] == 0
        states = after[states, actions, outcome].astype(int)
        actions = (drawn[1] > np.cumsum(policy[states], axis=1)[:, :-1]).sum(axis=1)
        states, actions, running, factor = states[on], actions[on], running[on], factor * discount
    return returns


def test_toy_by_hand():
    mdp = Toy().build(KEY)
    returns = exact_returns(mdp, uniform_policy(mdp), 0.9)
    by_hand = {
        (0, 0): ([-1 + 0.9 * 1, -1 + 0.9 * 4], [0.5, 0.5]),
        (0, 1): ([1.0, 1 + 0.9 * 1], [0.5, 0.5]),
        (1, 0): ([4.0], [1.0]),
        (1, 1): ([1.0], [1.0]),
        (2, 0): ([1.0], [1.0]),
        (2, 1): ([0.0], [1.0]),
    }
    assert returns.keys() == by_hand.keys()
    for pair, (atoms, probabilities) in by_hand.items():
        np.testing.assert_allclose(returns[pair].atoms, atoms, atol=1e-12)
        np.testing.assert_allclose(returns[pair].probabilities, probabilities, atol=1e-12)
        assert returns[pair].error == 0
    assert (returns[0, 0].mean, returns[0, 0].std) == pytest.approx((1.25, 1.35))


@pytest.mark.parametrize("length", [1, 7, 40])
def test_chain_in_closed_form(length):
    mdp = Chain(length, ordered=True).build(KEY)
    returns = exact_returns(mdp, uniform_policy(mdp), 0.9)
    for state in range(length):
        left = length - 1 - state
        right = next(z for z in (returns[state, 0], returns[state, 1]) if z.mean > 0)
        wrong = next(z for z in (returns[state, 0], returns[state, 1]) if z.mean == 0)
        np.testing.assert_allclose(right.atoms, [0.0, 0.9**left] if left else [1.0], rtol=1e-12)
        np.testing.assert_allclose(right.probabilities, [1 - 0.5**left, 0.5**left] if left else [1.0], rtol=1e-12)
        np.testing.assert_array_equal(wrong.atoms, [0.0])
        assert right.error == wrong.error == 0


def test_enumeration_is_every_path():
    mdp = layered()
    policy = random_policy(mdp)
    for pair, z in exact_returns(mdp, policy, DISCOUNT).items():
        found = merge(*np.array(paths(mdp, policy, *pair)).T)
        np.testing.assert_allclose(z.atoms, found.atoms, rtol=1e-6)
        np.testing.assert_allclose(z.probabilities, found.probabilities, rtol=1e-6)
        assert z.error == 0


@pytest.mark.parametrize("max_atoms", [1, 5])
@pytest.mark.parametrize("tolerance", [0.3, 0.03, 0.003])
def test_grid_is_as_near_to_enumeration_as_it_says(tolerance, max_atoms):
    mdp = layered()
    policy = random_policy(mdp)
    truth = exact_returns(mdp, policy, DISCOUNT)
    grid = exact_returns(mdp, policy, DISCOUNT, tolerance, max_atoms)
    assert 0.2 * tolerance < max(z.error for z in grid.values()) <= tolerance
    for pair, z in grid.items():
        assert z.wasserstein(truth[pair].atoms, truth[pair].probabilities) <= z.error + 1e-12
        assert z.mean == pytest.approx(truth[pair].mean, abs=1e-9)


@pytest.mark.parametrize("discount", [0.99, 1.0])
@pytest.mark.parametrize("name", ["uniform", "optimal"])
def test_moments_solve_the_bellman_equation(name, discount):
    mdp = FrozenLake("4x4", is_slippery=True).build(KEY)
    policy = uniform_policy(mdp) if name == "uniform" else optimal_policy(mdp, discount)
    returns = exact_returns(mdp, policy, discount)
    mean, std = lake_moments(policy, discount)
    error = max(z.error for z in returns.values())
    assert 0 < error <= 1e-3
    assert max(z.atoms.size for z in returns.values()) <= 6 / error  # mixtures of grids are on one grid again
    np.testing.assert_allclose([z.mean for z in returns.values()], mean, atol=1e-8)
    np.testing.assert_allclose([z.std for z in returns.values()], std, atol=error)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_moments_of_states(discount):
    policy = random_policy(mdp := FrozenLake("4x4", is_slippery=True).build(KEY))
    mean, std = (moment.reshape(16, 4) for moment in lake_moments(policy, discount))
    state_mean, state_variance = MarkovReward.of(mdp, policy, discount).moments()
    np.testing.assert_allclose(state_mean, np.sum(policy * mean, axis=1), atol=1e-12)
    second = np.sum(policy * (std**2 + mean**2), axis=1)
    np.testing.assert_allclose(state_variance, second - state_mean**2, atol=1e-12)


def test_simulated_episodes_agree():
    mdp = FrozenLake("4x4", is_slippery=True).build(KEY)
    policy = optimal_policy(mdp, 0.97)
    returns = exact_returns(mdp, policy, 0.97)
    for state, action in [(0, 0), (1, 2), (14, 1)]:
        samples = lake_samples(policy, 0.97, state, action, 20_000)
        z = returns[state, action]
        sampling = 1.5 * np.sqrt(0.25 / samples.size)  # E|F_n - F| <= sqrt(1/4 / n) at each return in [0, 1]
        assert z.wasserstein(samples) <= z.error + sampling
        # the distance sees the difference between neighbouring actions
        assert returns[state, (action + 2) % 4].wasserstein(samples) > z.error + sampling


def coin_flips() -> FiniteMDP:
    """One state that never ends: +1 or -1, equally often."""
    return table(np.zeros((1, 1, 2)), [[[1.0, -1.0]]], np.zeros((1, 1, 2)), [[[0.5, 0.5]]])


@pytest.mark.parametrize("tolerance", [0.1, 0.01, None])
def test_endless_coin_flips_are_uniform(tolerance):
    """The sum of +-(1/2)^t is uniform on [-2, 2]."""
    (z,) = exact_returns(coin_flips(), np.ones((1, 1)), 0.5, tolerance).values()
    assert z.error <= (tolerance or 0.004)
    quantiles = np.linspace(-2, 2, 200_001)
    assert z.wasserstein(quantiles[:-1] + 1e-5) <= z.error + 1e-5
    assert z.std == pytest.approx(4 / np.sqrt(12), abs=z.error)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("stop", [0.5, 0.05])
def test_returns_without_bound(stop, sign):
    """A step pays until one of them ends the episode: with discount 1, the return is geometric."""
    mdp = table(np.zeros((1, 2, 1)), np.full((1, 2, 1), sign), [[[True], [False]]], np.ones((1, 2, 1)))
    returns = exact_returns(mdp, np.array([[stop, 1 - stop]]), 1.0)
    count = np.arange(1, 3000)
    chance = scipy.stats.geom.pmf(count, stop)
    np.testing.assert_array_equal(returns[0, 0].atoms, [sign])
    assert 0 < returns[0, 1].error <= 0.04 / stop
    assert returns[0, 1].wasserstein(sign * (1.0 + count), chance) <= returns[0, 1].error
    assert returns[0, 1].mean == pytest.approx(sign * (1 + 1 / stop), rel=1e-4)


@pytest.mark.parametrize("jackpot", [0.0, 10.0])
def test_what_a_grid_cuts_off_is_in_its_error(jackpot, monkeypatch):
    """A step pays 1 and goes on, or ends the episode, one time in ten with a jackpot: a geometric number, and it."""
    monkeypatch.setattr("uppertail.exact.grid.TAIL", 0.5)
    reward = [[[1.0], [0.0], [jackpot]]]
    mdp = table(np.zeros((1, 3, 1)), reward, [[[False], [True], [True]]], np.ones((1, 3, 1)))
    z = exact_returns(mdp, np.array([[0.5, 0.4, 0.1]]), 1.0)[0, 0]
    steps = np.arange(1, 100)
    chance = scipy.stats.geom.pmf(steps, 0.5)
    distance = z.wasserstein(np.concatenate([steps, steps + jackpot]), np.concatenate([0.8 * chance, 0.2 * chance]))
    assert 0.1 < distance <= z.error


def test_an_action_never_taken_may_come_back():
    mdp = table(np.zeros((1, 2, 1)), [[[1.0], [0.25]]], [[[True], [False]]], np.ones((1, 2, 1)))
    returns = exact_returns(mdp, np.array([[1.0, 0.0]]), 0.5)
    np.testing.assert_array_equal(returns[0, 1].atoms, [0.75])
    assert returns[0, 1].error == 0


def test_discount_zero_leaves_the_reward():
    returns = exact_returns(coin_flips(), np.ones((1, 1)), 0.0)
    np.testing.assert_array_equal(returns[0, 0].atoms, [-1.0, 1.0])
    assert returns[0, 0].error == 0


def test_a_coarser_grid_than_asked_says_so(monkeypatch):
    monkeypatch.setattr("uppertail.exact.grid.MAX_ENTRIES", 2000)
    (z,) = exact_returns(coin_flips(), np.ones((1, 1)), 0.5, 1e-5).values()
    assert 1e-5 < z.error < 0.05
    assert z.wasserstein(np.linspace(-2, 2, 20_001)) <= z.error + 1e-4


@pytest.mark.parametrize("mdp", [layered(), FrozenLake("4x4", is_slippery=True).build(KEY), coin_flips()])
def test_probabilities_sum_to_one_and_atoms_increase(mdp):
    for z in exact_returns(mdp, uniform_policy(mdp), 0.9, max_atoms=3).values():
        assert z.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.all(z.probabilities > 0) and np.all(np.diff(z.atoms) > 0)


def test_bounds_hold_every_return():
    mdp = layered()
    policy = random_policy(mdp)
    low, high = MarkovReward.of(mdp, policy, DISCOUNT).bounds()
    for state in range(mdp.num_states):
        values = [value for action in range(2) for value, _ in paths(mdp, policy, state, action)]
        assert (low[state], high[state]) == pytest.approx((min(values), max(values)))


def test_optimal_policy():
    toy = Toy().build(KEY)
    np.testing.assert_array_equal(optimal_policy(toy, 0.9), [[1, 0], [1, 0], [1, 0]])
    np.testing.assert_array_equal(optimal_policy(toy, 0.5), [[0, 1], [1, 0], [1, 0]])
    np.testing.assert_allclose(optimal_policy(toy, 2 / 3)[0], [0.5, 0.5])  # -1 + 4 discount = 1 + discount
    chain = Chain(60).build(KEY)
    goes_on = ~np.asarray(chain.terminated[..., 0]) | (np.asarray(chain.reward[..., 0]) > 0)
    np.testing.assert_array_equal(optimal_policy(chain, 0.5), goes_on)


def test_optimal_values_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("uppertail.exact.markov.SWEEPS", 100)
    endless = table(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.zeros((1, 1, 1)), np.ones((1, 1, 1)))
    with pytest.raises(InputError, match="do not converge"):
        optimal_policy(endless, 1.0)


def test_distances():
    z = ExactReturn(np.array([0.0, 1.0, 3.0]), np.array([0.2, 0.3, 0.5]))
    # F - G is 0.2 on [0, 1] and -0.5 on [1, 3] for a G that is all at 1
    assert z.wasserstein(np.array([1.0])) == pytest.approx(0.2 + 2 * 0.5)
    assert cramer(z, np.array([1.0, 1.0])) == pytest.approx(np.sqrt(0.2**2 + 2 * 0.5**2))


def test_coarser_keeps_the_mean_and_says_how_far():
    draws = np.random.default_rng(3)
    z = merge(draws.normal(size=5000), np.full(5000, 1 / 5000))
    for spacing in (0.5, 0.05):
        coarse = z.coarsened(spacing)
        assert coarse.atoms.size <= (z.atoms[-1] - z.atoms[0]) / spacing + 2
        assert coarse.mean == pytest.approx(z.mean, abs=1e-12)
        assert 0 < coarse.wasserstein(z.atoms, z.probabilities) <= coarse.error <= spacing / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": 1.5}, "discount is 1.5"),
        ({"discount": 1.0}, "never ends from state 0"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"policy": np.ones((2, 2))}, "needs \\[states, actions\\] = \\(1, 1\\)"),
        ({"policy": np.full((1, 1), 0.5)}, "row for state 0"),
        ({"policy": np.full((1, 1), np.nan)}, "row for state 0"),
    ],
)
def test_what_has_no_answer_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        exact_returns(**{"mdp": coin_flips(), "policy": np.ones((1, 1)), "discount": 0.5, **change})


def test_json_is_the_whole_answer(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["exact", "--env", "Chain", "--env.length", "7", "--seed", "3", "--discount", "0.9", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    mdp = Chain(7).build(jax.random.split(jax.random.key(3), 3)[0])
    returns = exact_returns(mdp, uniform_policy(mdp), 0.9)
    assert document["env"]["length"] == 7 and document["discount"] == 0.9
    assert [(entry["state"], entry["action"]) for entry in document["returns"]] == list(returns)
    for entry, z in zip(document["returns"], returns.values(), strict=True):
        assert entry["atoms"] == z.atoms.tolist() and entry["probabilities"] == z.probabilities.tolist()
        assert (entry["mean"], entry["std"], entry["error"]) == (z.mean, z.std, z.error)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_table_and_figure(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["exact", "--env", "FrozenLake", "--env.map_name", "4x4", "--env.is_slippery", "true"]
    assert main([*arguments, "--policy", "optimal", "--discount", "0.9", "--tolerance", "0.01"]) == 0
    printed = capsys.readouterr().out
    assert "First 24 of 64" in printed and "at most 0.00" in printed and "grid" in printed and "enumeration" in printed
    assert (tmp_path / "runs" / "exact-FrozenLake" / "exact.png").stat().st_size > 10_000


def test_a_policy_from_a_file(capsys, tmp_path):
    np.save(tmp_path / "first.npy", np.array([[1, 0], [1, 0], [0, 1]]))
    policy = str(tmp_path / "first.npy")
    assert main(["exact", "--env", "Toy", "--policy", policy, "--discount", "1", "--json"]) == 0
    returns = json.loads(capsys.readouterr().out)["returns"]
    assert [entry["atoms"] for entry in returns] == [[3.0], [1.0], [4.0], [1.0], [1.0], [0.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "unifrom"], "Unknown policy 'unifrom'"),
        (["--policy", "nowhere.npy"], "cannot be read"),
        (["--policy", "text.npy"], "cannot be read"),
        (["--policy", "wide.npy"], "needs [states, actions] = (3, 2)"),
        (["--policy", "sums.npy"], "row for state 1 is [0.6, 0.6]"),
        (["--discount", "1.1"], "discount is 1.1"),
        (["--tolerance", "-1"], "tolerance is -1.0"),
        (["--seed", "-1"], "seed is -1"),
        (["--polcy", "uniform"], "Did you mean --policy?"),
        (["--env.foo", "3"], "Toy has no setting 'foo'. `uppertail exact --env.help Toy`"),
        (["--env", "FrozenLake", "--policy", "left.npy", "--discount", "1"], "never ends from state 0"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("wide.npy", np.full((3, 3), 1 / 3))
    np.save("sums.npy", np.array([[0.5, 0.5], [0.6, 0.6], [1.0, 0.0]]))
    np.save("left.npy", np.tile([1.0, 0.0, 0.0, 0.0], (64, 1)))
    (tmp_path / "text.npy").write_text("no array")
    assert main(["exact", "--env", "Toy", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1
    assert not captured.out and not (tmp_path / "runs").exists()
