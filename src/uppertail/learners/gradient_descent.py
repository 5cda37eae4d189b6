"""Networks that learn by gradient steps on fresh and replayed data: the paper's learner (Section 4, appendix)."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.encodings import Encoding, RandomFeatures, Vector
from uppertail.errors import InputError
from uppertail.evidence import Counts, EvidenceBuilder, KernelCounts, MixedNetwork, NoEvidence
from uppertail.learners.base import Gradients, Learner, LearnerBuilder, LearnerState, Metrics
from uppertail.networks import Network, NetworkBuilder, PerAction
from uppertail.replay import Sample, Uniform
from uppertail.schema import settle
from uppertail.targets import Online, Periodic
from uppertail.types import POLICY_CHOICE, PyTree, Transition

STEPS = {
    "updates_per_rollout": 4,
    "batch_size": 32,
    "replay_size": 50_000,
    "learning_rate": 1e-3,
    "adam_betas": (0.0, 0.9),
    "adam_epsilon": 1e-4,
}
"""The settings of gradient descent that are open until a run begins, with their defaults."""

ONE_HOT_STEPS = {
    **STEPS,
    "updates_per_rollout": 2,
    "batch_size": 64,
    "learning_rate": 5e-3,
    "learning_rate_decay": 300,
    "adam_betas": (0.0, 0.99),
    "adam_epsilon": 1e-6,
}
"""The same for one-hot states, each of which is learned within a few updates, one rollout of 4 steps after another
(docs/decisions/0029)."""

IMAGE_STEPS = {
    **STEPS,
    "updates_per_rollout": 1,
    "learning_rate": 3e-4,
    "adam_betas": (0.9, 0.999),
    "adam_epsilon": 1e-8,
}
"""The same for images (docs/decisions/0025), which are learned worse from values that follow themselves at once, so
that their target is a copy (docs/decisions/0023)."""


@dataclasses.dataclass(frozen=True)
class GradientDescent(LearnerBuilder):
    """A network that learns by gradient steps; its parts are --network, --replay and --target.

    Args:
        stochastic: whether equal observations and actions may lead to different outcomes, so that of two critics
            beside evidence (`Twin`, not one alone) the lower counts only as far as an action is new; null: whether
            they did in steps of a random policy, for numbers, and false for all else.

    Examples:
        >>> small = ut.Settings(seeds=2, episodes=256)
        >>> result = ut.train(ut.Toy(), settings=small, learner=ut.GradientDescent())
        >>> result.record.summary()["learner"]["name"]
        'GradientDescent'
    """

    uses_gradients: ClassVar[bool] = True
    stochastic: bool | None = None

    def __post_init__(self) -> None:
        settle(self)

    def rollout_steps(self, encoding: Encoding) -> int:
        return 4 if encoding.image_shape or encoding.is_one_hot else 16

    def usual(self, encoding: Encoding) -> dict[str, Any]:
        parts = {"network": PerAction(), "replay": Uniform()}
        if encoding.image_shape:
            return {**parts, "target": Periodic(every=250), **IMAGE_STEPS}
        return {**parts, "target": Online(), **(ONE_HOT_STEPS if encoding.is_one_hot else STEPS)}

    def evidence(self, network: NetworkBuilder | None, encoding: Encoding) -> EvidenceBuilder:
        if network and network.members:
            return NoEvidence()
        if encoding.is_one_hot:
            return Counts()
        return KernelCounts() if isinstance(encoding, Vector | RandomFeatures) else NoEvidence()

    def build(self, agent: Agent, gradients: Gradients | None) -> "GradientLearner":
        if gradients is None:
            raise InputError("GradientDescent needs a network, a replay buffer and a target: give them.")
        if gradients.evidence.by_row and gradients.replay_start:
            name = type(gradients.evidence).__name__
            raise InputError(f"replay_start is {gradients.replay_start}, but {name} is kept by replay: leave it out.")
        return GradientLearner(agent, dataclasses.replace(gradients, stochastic=bool(self.stochastic)))


class GradientMemory(NamedTuple):
    """The state of the optimizer, of the target and of the replay buffer."""

    optimizer: optax.OptState
    target: PyTree
    buffer: PyTree


@dataclasses.dataclass(frozen=True)
class GradientLearner(Learner):
    """Half fresh, half replayed data, and a gradient step for each minibatch of them."""

    agent: Agent
    gradients: Gradients

    @property
    def updates(self) -> int:
        return self.gradients.updates_per_rollout

    @property
    def whole_episodes(self) -> bool:
        return self.gradients.replay.whole_episodes

    @property
    def fresh_count(self) -> int:
        """How many transitions of a minibatch are fresh once replay has started."""
        parts = self.gradients
        return 0 if parts.evidence.by_row else min(parts.rollout_steps, parts.batch_size // 2)

    @property
    def asks_cut_soon(self) -> bool:
        return self.gradients.evidence.asks_cut_soon and self.agent.family.has_spread

    @property
    def can_refit(self) -> bool:
        parts, family = self.gradients, self.agent.family
        return parts.evidence.by_row and parts.network.can_rescale and family.rescaling(family) is not None

    def refitted(self, before: Learner, state: LearnerState) -> LearnerState:
        if not self.can_refit:
            return state
        rescaling: Any = self.agent.family.rescaling(before.agent.family)
        network, target = state.network, state.memory.target
        network = network.with_regressor(network.regressor().rescaled(rescaling))
        target = jax.tree.map(
            lambda part: part.rescaled(rescaling) if isinstance(part, Network) else part,
            target,
            is_leaf=lambda part: isinstance(part, Network),
        )
        return LearnerState(network, state.memory._replace(target=target))

    def acting(self, state: LearnerState) -> Network:
        learned = state.network.regressor()
        return state.network.with_regressor(self.gradients.target.acting(state.memory.target, learned))

    def played(self, state: LearnerState) -> Network:
        learned = state.network.regressor()
        return state.network.with_regressor(self.gradients.target.played(state.memory.target, learned))

    def without_data(self, state: LearnerState) -> LearnerState:
        return state._replace(memory=state.memory._replace(optimizer=(), buffer=()))

    def loss(
        self, network: Network, bootstrapping: Network, keys: Key[Array, "2"], transition: Transition
    ) -> tuple[Float[Array, " members"], Bool[Array, " members"]]:
        """The loss of a transition by each member, and whether its target is beyond what the family represents."""
        return self.agent.loss(network, bootstrapping, keys, transition)

    def init(self, key: PRNGKeyArray, observations: Array, num_actions: int) -> LearnerState:
        parts, agent = self.gradients, self.agent
        learned = sum(parts.sizes) if parts.sizes else num_actions
        network: Any = parts.network.init(key, agent.encoding, learned, agent.family.num_outputs)
        network = network.observe(observations)
        unknown = parts.evidence.init(jax.random.fold_in(key, learned), agent.encoding, learned, parts.replay_size)
        if parts.sizes:
            network, unknown = network.combining(parts.sizes), unknown and unknown.combining(parts.sizes)
        network = network if unknown is None else MixedNetwork(network, unknown, parts.stochastic)
        no, zero, observation = jnp.zeros((), bool), jnp.zeros((), jnp.int32), observations[0]
        extras = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(network.transition_extras, jax.random.key(0))
        )
        mask = jnp.ones(num_actions, bool) if agent.has_masks else None
        late = no if self.asks_cut_soon else None
        example = Transition(observation, zero, jnp.zeros(()), no, observation, zero, extras, mask, late)
        buffer = parts.replay.init(parts.replay_size, example)
        learned = network.regressor()
        memory = GradientMemory(parts.optimizer.init(learned), parts.target.init(learned), buffer)
        return LearnerState(network, memory)

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        parts, memory = self.gradients, state.memory
        if self.asks_cut_soon and fresh.cut_soon is None:
            fresh = fresh._replace(cut_soon=jnp.zeros(fresh.terminated.shape, bool))
        extras_keys = jax.random.split(jax.random.fold_in(key, parts.updates_per_rollout), parts.rollout_steps)
        fresh = fresh._replace(extras=jax.vmap(state.network.regressor().transition_extras)(extras_keys))
        memory = memory._replace(buffer=parts.replay.add(memory.buffer, fresh))
        network = state.network.experience(fresh)
        replayable = (iteration + 1) * parts.rollout_steps >= parts.replay_start

        def update(state: LearnerState, key: PRNGKeyArray) -> tuple[LearnerState, Metrics]:
            batch_key, update_key = jax.random.split(key)
            batch = self.minibatch(batch_key, fresh, state.memory.buffer, replayable)
            return self.update(state, update_key, batch)

        keys = jax.random.split(key, parts.updates_per_rollout)
        state, metrics = jax.lax.scan(update, LearnerState(network, memory), keys)
        target = parts.target.after_rollout(state.memory.target, state.network.regressor())
        return state._replace(memory=state.memory._replace(target=target)), metrics

    def update(self, state: LearnerState, key: PRNGKeyArray, batch: Sample) -> tuple[LearnerState, Metrics]:
        """One gradient step on a minibatch with fixed targets."""
        parts, (optimizer, target, buffer), size = self.gradients, state.memory, batch.weights.shape[0]
        weights_key = jax.random.fold_in(key, size)
        learned = state.network.regressor()
        learning = learned.resample_weights(weights_key)
        bootstrapping = state.network.with_regressor(
            parts.target.network(target, learned).resample_weights(weights_key)
        )
        keys = jax.random.split(key, (size, 2))

        def mean_loss(network: Any) -> tuple[Array, tuple[Array, Array]]:
            def of_one(keys: Key[Array, "2"], transition: Transition, kept: PyTree) -> tuple[Array, Array]:
                return self.loss(network, bootstrapping.there(kept), keys, transition)

            by_member, beyond = jax.vmap(of_one)(keys, batch.transitions, bootstrapping.kept(batch.indices))
            weights = jax.vmap(network.member_weights, axis_size=size)(batch.transitions.extras)
            losses = jnp.sum(weights * by_member, axis=1)
            return jnp.mean(batch.weights * losses) + network.penalty(), (losses, beyond)

        (loss, (losses, beyond)), gradient = jax.value_and_grad(mean_loss, has_aux=True)(learning)
        steps, optimizer = parts.optimizer.update(gradient, optimizer, learned)
        learned: Any = optax.apply_updates(learned, steps)
        buffer = parts.replay.update(buffer, batch.indices, losses[self.fresh_count :])
        memory = GradientMemory(optimizer, parts.target.after_update(target, learned), buffer)
        metrics = Metrics(
            loss, optax.tree.norm(gradient), jnp.mean(beyond, dtype=jnp.float32), jnp.full_like(loss, jnp.nan)
        )
        return LearnerState(state.network.with_regressor(learned), memory), metrics

    def minibatch(self, key: PRNGKeyArray, fresh: Transition, buffer: PyTree, replayable: Array) -> Sample:
        """Fresh data on-policy and an equal amount of replay off-policy (Implementation Details).

        Until replay starts, its half is fresh data, too: it goes on through the same permutation, then around again.
        Indices are those of the replayed half alone.
        """
        parts, count = self.gradients, self.fresh_count
        fresh_key, replay_key = jax.random.split(key)
        order = jax.random.permutation(fresh_key, parts.rollout_steps)
        chosen = order[jnp.arange(parts.batch_size) % parts.rollout_steps]
        new = _with_next_action(jax.tree.map(lambda leaf: leaf[chosen], fresh), parts.on_policy != "none")
        drawn = parts.replay.sample(buffer, replay_key, parts.batch_size - count)
        old = _with_next_action(drawn.transitions, parts.on_policy == "all")
        second_half = jax.tree.map(lambda n, o: jnp.where(replayable, o, n[count:]), new, old)
        transitions = jax.tree.map(lambda n, second: jnp.concatenate([n[:count], second]), new, second_half)
        weights = jnp.concatenate([jnp.ones(count), jnp.where(replayable, drawn.weights, 1.0)])
        indices = jnp.where(replayable, drawn.indices, jnp.iinfo(jnp.int32).max)  # beyond every buffer: no update
        return Sample(transitions, indices, weights)


def _with_next_action(transitions: Transition, is_kept: bool) -> Transition:
    """The transitions with the next action that was taken, or with the policy's choice in its place."""
    chosen = jnp.full_like(transitions.next_action, POLICY_CHOICE)
    return transitions if is_kept else transitions._replace(next_action=chosen)
