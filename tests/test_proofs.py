"""What the seams are for: each idea in one section, with no edit of the library."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int, PRNGKeyArray

import uppertail as ut
from uppertail.encodings import Encoding, Preferences
from uppertail.environments import EnvironmentBuilder, FiniteMDP
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.networks import EncodedNetwork, Network, NetworkBuilder, PerActionNetwork
from uppertail.policies import Decision, ExplorationPolicy
from uppertail.replay import Replay, Sample, Uniform
from uppertail.training.compiled import CompiledRun
from uppertail.training.loop import Actor
from uppertail.training.method import Method
from uppertail.training.run import Run
from uppertail.types import PyTree, Transition

TINY = ut.Settings(seeds=1, episodes=40, steps=512, rollout_steps=8, replay_size=64, batch_size=32, learning_rate=0.01)


# (a) A bootstrapped ensemble with randomized prior functions (Osband et al. 2016, 2018)


MEMBERS = 8


class PriorEnsemble(Network):
    """Members that each add a fixed random function of their own to what they learn."""

    learned: PerActionNetwork
    prior: PerActionNetwork
    scale: float = eqx.field(static=True)
    shared: float = eqx.field(static=True)

    @property
    def members(self) -> int:
        return MEMBERS

    def outputs(self, observation: Array) -> Float[Array, "members actions outputs"]:
        def of_member(learned: PerActionNetwork, prior: PerActionNetwork) -> Array:
            return learned.outputs(observation) + self.scale * jax.lax.stop_gradient(prior.outputs(observation))

        return jax.vmap(of_member)(self.learned, self.prior)

    def transition_extras(self, key: PRNGKeyArray) -> Array:
        """Which members learn from a transition, drawn once as it is stored."""
        return jax.random.bernoulli(key, self.shared, (MEMBERS,))

    def member_weights(self, extras: Array) -> Float[Array, " members"]:
        return extras.astype(jnp.float32)


@dataclasses.dataclass(frozen=True)
class PriorEnsembles(NetworkBuilder):
    width: int = 8
    scale: float = 3.0
    shared: float = 0.5

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> PriorEnsemble:
        def member(key: PRNGKeyArray) -> PerActionNetwork:
            sizes = (encoding.num_features, self.width, num_outputs)
            return PerActionNetwork.init(key, encoding, sizes, num_actions, False)

        learned, prior = (jax.vmap(member)(jax.random.split(each, MEMBERS)) for each in jax.random.split(key))
        return PriorEnsemble(learned, prior, self.scale, self.shared)

    @property
    def members(self) -> int:
        return MEMBERS


@dataclasses.dataclass(frozen=True)
class OneMember(ExplorationPolicy):
    """The greedy policy of one member, drawn as an episode begins."""

    needs_members: ClassVar[bool] = True

    def begin(self, key: PRNGKeyArray, decision: Decision) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, decision.num_members)

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        return decision.mean[decision.memory]


@pytest.mark.slow
def test_an_ensemble_with_priors_solves_a_chain() -> None:
    settings = dataclasses.replace(TINY, seeds=3, episodes=300, steps=1024, updates_per_rollout=4, discount=0.9)
    result = ut.train(ut.Chain(4), ut.PointMass(), OneMember(), settings, network=PriorEnsembles())
    assert result.agent.returns(result.network(0), 0).mean.shape == (MEMBERS, 2)
    assert all(seed.returns[-20:].mean() > 0.8 for seed in result.record.episodes)
    assert result.record.greedy_returns == [1.0, 1.0, 1.0]
    assert result.record.asked["network"] == {"name": "PriorEnsembles", "width": 8, "scale": 3.0, "shared": 0.5}


def ensemble_run(shared: float = 0.5) -> tuple[CompiledRun, Any, Any, Any]:
    """A run of an ensemble before its first step, and a function that makes a rollout and its updates."""
    method = Method(ut.PointMass(), OneMember(), network=PriorEnsembles(shared=shared), replay=Uniform())
    run = Run(ut.Chain(4), method, TINY)
    environment = jax.tree.map(lambda leaf: leaf[0], run.driver.environments)
    compiled, key = CompiledRun(run.loop), run.keys.run[0]
    run.close()
    return (
        compiled,
        compiled.init(key, environment),
        jax.jit(lambda state: compiled.iterate(key, environment, state)),
        key,
    )


@pytest.mark.slow
def test_priors_stay_bit_for_bit_and_what_is_learned_moves() -> None:
    _, start, iterate, _ = ensemble_run()
    state = start
    for _ in range(5):
        state, *_ = iterate(state)
    before, after = start.learned.network, state.learned.network
    jax.tree.map(np.testing.assert_array_equal, after.prior, before.prior)
    assert all(
        (now != was).any(axis=(1, 2, 3)).all()
        for now, was in zip(after.learned.weights, before.learned.weights, strict=True)
    )


@pytest.mark.slow
def test_a_mask_is_drawn_once_and_stored_with_its_transition() -> None:
    """As often 1 as asked; a row of the buffer keeps its mask until it is overwritten."""
    _, state, iterate, _ = ensemble_run(shared=0.25)
    masks = []
    for _ in range(8):  # as many transitions as the buffer holds
        state, *_ = iterate(state)
        masks.append(np.asarray(state.learned.memory.buffer.transitions.extras))
    assert masks[-1].shape == (64, MEMBERS)
    np.testing.assert_array_equal(masks[0][:8], masks[-1][:8])
    assert 0.12 < masks[-1].mean() < 0.4
    assert len(np.unique(masks[-1], axis=0)) > MEMBERS


@pytest.mark.slow
def test_a_member_learns_from_its_own_transitions_alone() -> None:
    """Of a batch that is masked for the others, only one member's arrays have a gradient, and its own bootstrap."""
    compiled, state, _, key = ensemble_run()
    learner, number = compiled.loop.learner, jnp.zeros(4, jnp.int32)
    assert isinstance(learner, GradientLearner)
    agent = learner.agent
    mask = jnp.zeros((4, MEMBERS), bool).at[:, 1].set(True)
    batch = Transition(number, number, jnp.ones(4), number < 0, number + 1, number + 1, mask)
    sample = Sample(batch, number[learner.fresh_count :], jnp.ones(4))
    after, metrics = jax.jit(learner.update)(state.learned, key, sample)
    changed = [
        (now != was).any(axis=(1, 2, 3))
        for now, was in zip(after.network.learned.weights, state.learned.network.learned.weights, strict=True)
    ]
    np.testing.assert_array_equal(changed, [[member == 1 for member in range(MEMBERS)]] * 2)
    value = np.asarray(jax.vmap(lambda s: agent.returns(state.learned.network, s).mean)(jnp.arange(2)), np.float64)
    expected = 0.5 * (1.0 + agent.discount * value[1, 1, 1] - value[0, 1, 0]) ** 2
    np.testing.assert_allclose(metrics.loss, expected, rtol=1e-4)


def test_a_policy_that_needs_members_says_so() -> None:
    sentence = "The policy OneMember needs a network with members, and this run has none: use --network Ensemble"
    with pytest.raises(ut.InputError, match=sentence):
        ut.train(ut.Chain(4), ut.PointMass(), OneMember(), TINY)
    run = Run(ut.Chain(4), Method(), TINY)
    try:
        networks = run.driver.gather(run.driver.start(), lambda each: each.learned.network)
        with pytest.raises(ut.InputError, match=sentence):
            run.driver.play(networks, OneMember(), 2)
    finally:
        run.close()


# (b) A bonus for what was seldom done: visits counted over the whole run, and the evidence of least squares


@dataclasses.dataclass(frozen=True)
class VisitBonus(ExplorationPolicy):
    states: int = 4
    weight: float = 0.5

    def init(self, decision: Decision) -> Float[Array, "states actions"]:
        return jnp.zeros((self.states, decision.num_actions))

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        mean = jnp.mean(decision.mean, axis=0)
        if decision.observation is None:
            return mean
        return mean + self.weight / jnp.sqrt(1 + decision.memory[decision.observation])

    def advance(self, key: PRNGKeyArray, decision: Decision, action: Int[Array, ""]) -> Float[Array, "states actions"]:
        return decision.memory.at[decision.observation, action].add(1.0)


@dataclasses.dataclass(frozen=True)
class EvidenceBonus(ExplorationPolicy):
    needs_evidence: ClassVar[bool] = True

    def scores(self, key: PRNGKeyArray, decision: Decision) -> Float[Array, " actions"]:
        mean = jnp.mean(decision.mean, axis=0)
        return mean if decision.evidence is None else mean + decision.evidence


LAKE = ut.Gym("FrozenLake-v1", kwargs={"map_name": "4x4", "is_slippery": False}, returns=(0.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("compiles", ["auto", "never"])
@pytest.mark.parametrize("learner", [ut.LeastSquares(), ut.GradientDescent()], ids=["squares", "gradient"])
def test_visits_are_counted_over_the_whole_run(compiles: Any, learner: Any) -> None:
    """Each decision is one visit: the first of the run, and one after each step; wherever it is decided."""
    settings = ut.Settings(seeds=2, episodes=10**6, steps=512)
    run = Run(dataclasses.replace(LAKE, compile=compiles), Method(ut.PointMass(), VisitBonus(16), learner), settings)
    run.driver.iterations = 8
    try:
        state, records, _ = run.driver.advance(run.driver.start())
        counts = np.asarray(run.driver.gather(state, lambda each: each.episode).memory).reshape(2, 16, 4)
        networks = run.driver.gather(state, lambda each: each.learned.network)
        played = run.driver.play(networks, VisitBonus(16), 3)
    finally:
        run.close()
    np.testing.assert_array_equal(counts.sum(axis=(1, 2)), 1 + 8 * run.loop.rollout_steps)
    assert (counts[:, 0].sum(axis=1) >= records.ended.sum(axis=(1, 2)) + 1).all()  # each episode begins there
    assert played.lengths.shape == (2, 3)


@pytest.mark.slow
def test_a_policy_with_a_bonus_trains() -> None:
    for policy in (VisitBonus(), EvidenceBonus()):
        result = ut.train(ut.Chain(4), ut.PointMass(), policy, ut.Settings(seeds=2, episodes=100, discount=0.9))
        assert result.record.greedy_returns == [1.0, 1.0]


@pytest.mark.slow
def test_evidence_reaches_the_policy_that_asks_for_it() -> None:
    """The share of the start that is left in a table: 1 before the first step, lambda / (lambda + n) after n visits."""
    result = ut.train(ut.Chain(4), ut.PointMass(), EvidenceBonus(), ut.Settings(seeds=1, episodes=50))
    actor, network = Actor(result.agent, EvidenceBonus()), result.network(0)
    np.testing.assert_array_equal(actor.view(network, jnp.asarray(1)).evidence, network.evidence(jnp.asarray(1)))
    assert (np.asarray(actor.view(network, jnp.asarray(0)).evidence) < 0.5).all()
    assert Actor(result.agent, VisitBonus()).view(network, jnp.asarray(1)).evidence is None


def test_a_policy_that_needs_evidence_refuses_a_learner_without() -> None:
    words = "The policy EvidenceBonus needs the evidence for each action, which this learner does not give: use"
    with pytest.raises(ut.InputError, match=words):
        ut.train(
            ut.Chain(3), ut.Gaussian(), EvidenceBonus(), TINY, learner=ut.GradientDescent(), evidence=ut.NoEvidence()
        )


# (c) A prioritized replay


class Ranked(NamedTuple):
    ring: PyTree
    loss: Float[Array, " capacity"]


@dataclasses.dataclass(frozen=True)
class Surprising(Replay):
    """The transitions in proportion to their last loss; new ones count `fresh`."""

    fresh: float = 1.0

    def init(self, capacity: int, example: Transition) -> Ranked:
        return Ranked(Uniform().init(capacity, example), jnp.zeros(capacity))

    def add(self, state: Ranked, transitions: Transition) -> Ranked:
        rows = (state.ring.added + jnp.arange(transitions.action.shape[0])) % state.loss.shape[0]
        return Ranked(Uniform().add(state.ring, transitions), state.loss.at[rows].set(self.fresh))

    def sample(self, state: Ranked, key: PRNGKeyArray, count: int) -> Sample:
        rows = jax.random.categorical(key, jnp.log(state.loss), shape=(count,)).astype(jnp.int32)
        drawn = jax.tree.map(lambda leaf: leaf[rows], state.ring.transitions)
        return Sample(drawn, rows, jnp.ones(count))

    def update(self, state: Ranked, indices: Int[Array, " count"], losses: Float[Array, " count"]) -> Ranked:
        return state._replace(loss=state.loss.at[indices].set(jnp.abs(losses) + 0.01, mode="drop"))


@pytest.mark.slow
def test_a_replay_of_ones_own_trains_and_gets_its_losses_back() -> None:
    settings = TINY
    result = ut.train(ut.Chain(3), ut.Gaussian(), ut.UCB(), settings, replay=Surprising(7.0))
    assert result.record.asked["replay"] == {"name": "Surprising", "fresh": 7.0}
    assert result.record.episodes[0].returns.max() == 1.0
    run = Run(ut.Chain(3), Method(replay=Surprising(7.0)), settings)
    try:
        state, *_ = run.driver.advance(run.driver.start())
        losses = np.asarray(run.driver.gather(state, lambda each: each.learned.memory.buffer.loss))[0]
    finally:
        run.close()
    assert (losses > 0).all()
    assert 0 < (losses != 7.0).sum() <= 64


# (d) A network with layer normalization


class Normalized(EncodedNetwork):
    """One torso for all actions, with learned layer normalization before its activation, and a head for each."""

    first: Float[Array, "features units"]
    norm: eqx.nn.LayerNorm
    heads: Float[Array, "actions units outputs"]
    encoder: PyTree
    encoding: Encoding = eqx.field(static=True)

    def outputs(self, observation: Array) -> Float[Array, "actions outputs"]:
        hidden = jax.nn.relu(self.norm(self.encoding.project(self.encoder, self.first, observation)))
        return jnp.einsum("u,auo->ao", hidden, self.heads)


@dataclasses.dataclass(frozen=True)
class NormalizedBuilder(NetworkBuilder):
    units: int = 8

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> Normalized:
        first_key, head_key, encoder_key = jax.random.split(key, 3)
        first = jax.random.normal(first_key, (encoding.num_features, self.units))
        heads = 0.1 * jax.random.normal(head_key, (num_actions, self.units, num_outputs))
        norm = eqx.nn.LayerNorm(self.units)
        return Normalized(first, norm, heads, encoding.init(encoder_key), encoding)


@pytest.mark.slow
def test_a_network_with_layer_normalization_trains() -> None:
    result = ut.train(ut.Chain(3), ut.Gaussian(), ut.UCB(), TINY, network=NormalizedBuilder(), evidence=ut.NoEvidence())
    assert result.record.asked["network"] == {"name": "NormalizedBuilder", "units": 8}
    assert result.record.episodes[0].returns.max() == 1.0
    network: Any = result.network(0)
    assert (network.norm.weight != 1.0).any()
    assert np.isfinite(result.record.greedy_returns).all()


# (e) A new environment


@dataclasses.dataclass(frozen=True)
class SmallSea(EnvironmentBuilder):
    """A grid that sinks by a row each step; moving right costs a little, and only always right pays (Osband 2019)."""

    size: int = 3

    @property
    def success_return(self) -> float:
        return 0.99

    @property
    def floor_episodes(self) -> None:
        return None

    @property
    def preferences(self) -> Preferences:
        return Preferences(states="thermometer")

    def build(self, key: PRNGKeyArray) -> FiniteMDP:
        row, column = jnp.divmod(jnp.arange(self.size**2), self.size)
        moved = jnp.stack([jnp.maximum(column - 1, 0), jnp.minimum(column + 1, self.size - 1)], axis=1)
        last = row == self.size - 1
        treasure = jnp.stack([jnp.zeros_like(last), last & (column == self.size - 1)], axis=1)
        cost = jnp.array([[0.0, 0.01 / self.size]])
        return FiniteMDP(
            next_state=jnp.where(last[:, None], 0, (row[:, None] + 1) * self.size + moved)[..., None],
            reward=(treasure.astype(jnp.float32) - cost)[..., None],
            terminated=jnp.stack([last, last], axis=1)[..., None],
            probability=jnp.ones((self.size**2, 2, 1)),
            time_limit=self.size,
        )


@pytest.mark.slow
def test_a_new_environment_trains() -> None:
    settings = dataclasses.replace(TINY, seeds=2, episodes=300, steps=1024, batch_size=16)
    result = ut.train(SmallSea(), ut.Gaussian(), ut.UCB(1.7, 2.3), dataclasses.replace(settings, adam_epsilon=1e-4))
    assert result.record.asked["environment"] == {"name": "SmallSea", "size": 3}
    assert all((seed.lengths == 3).all() for seed in result.record.episodes)
    assert all(seed.returns.max() == pytest.approx(0.99) for seed in result.record.episodes)
    network: Any = result.network(0)
    assert network.encoding.num_features == 9
    assert type(network.encoding).__name__ == "Thermometer"
