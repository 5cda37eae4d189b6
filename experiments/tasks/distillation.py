"""Random network distillation as reward (Burda et al. 2018), on the network of the defaults."""

import dataclasses
import itertools
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.agent import Agent
from uppertail.encodings import Encoding
from uppertail.encodings.standardized import Moments, Standardized
from uppertail.evidence import Evidence, KernelCounts
from uppertail.learners import GradientDescent, Gradients, LearnerState, Metrics
from uppertail.learners.gradient_descent import GradientLearner
from uppertail.replay import Sample
from uppertail.types import PyTree, Transition

WIDTH, FEATURES = 128, 64
CLIP = 5.0  # standard deviations of a number, as published
ADAM = optax.adam(1e-4)  # as published

Weights = tuple[Float[Array, "_inputs _outputs"], ...]


def weights_of(key: PRNGKeyArray, inputs: int) -> Weights:
    """Two hidden layers and random features; orthogonal, as published. An input that is 1 stands for biases.

    Without these both networks would be lines along each ray from the mean, all of which is known where a part is.
    """
    shapes = list(itertools.pairwise((inputs + 1, WIDTH, WIDTH, FEATURES)))
    orthogonal = jax.nn.initializers.orthogonal(2**0.5)
    return tuple(orthogonal(each, shape) for each, shape in zip(jax.random.split(key, 3), shapes, strict=True))


def applied(weights: Weights, values: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
    """The features of places."""
    *hidden, last = weights
    values = jnp.concatenate([values, jnp.ones((*values.shape[:-1], 1))], axis=-1)
    for weight in hidden:
        values = jax.nn.relu(values @ weight)
    return values @ last


class Sums(NamedTuple):
    """The discounted sum of errors until now, over the whole run, and the squares of all such sums."""

    current: Float[Array, ""]
    squares: Float[Array, ""]
    steps: Float[Array, ""]

    def after(self, error: Float[Array, ""], discount: Float[Array, ""]) -> "Sums":
        """The sums with another error."""
        current = discount * self.current + error
        return Sums(current, self.squares + current**2, self.steps + 1.0)

    @property
    def size(self) -> Float[Array, ""]:
        """Their root mean square."""
        return jnp.sqrt(self.squares / jnp.maximum(self.steps, 1.0))


class Distilled(Evidence):
    """A random network and its predictor, which leave the return distributions as they are."""

    encoding: Standardized = eqx.field(static=True)
    num_actions: int = eqx.field(static=True)
    encoder: Moments
    random: Weights
    predictor: Weights
    optimizer: PyTree
    sums: Sums

    def share(self, observation: Array) -> Float[Array, " actions"]:
        return jnp.zeros(self.num_actions)

    def observe(self, fresh: Transition) -> Self:
        return dataclasses.replace(self, encoder=self.encoding.observe(self.encoder, fresh.observation))

    def errors(self, observations: Float[Array, "batch entries"]) -> Float[Array, " batch"]:
        """The mean squared error of the predictor at each place: its novelty."""
        return self._errors(self.predictor, observations)

    def _errors(self, predictor: Weights, observations: Float[Array, "batch entries"]) -> Float[Array, " batch"]:
        apart = (observations - self.encoder.mean[None]) * self.encoding.per_unit(self.encoder)[None]
        places = jnp.clip(apart, -CLIP, CLIP)
        return jnp.mean(jnp.square(applied(predictor, places) - applied(self.random, places)), axis=1)

    def trained(self, observations: Float[Array, "batch entries"]) -> Self:
        """After one step of the predictor on these places."""
        gradient = jax.grad(lambda predictor: jnp.mean(self._errors(predictor, observations)))(self.predictor)
        steps, optimizer = ADAM.update(gradient, self.optimizer)
        predictor: Any = optax.apply_updates(self.predictor, steps)
        return dataclasses.replace(self, predictor=predictor, optimizer=optimizer)


@dataclasses.dataclass(frozen=True)
class Distillation(KernelCounts):
    """A random network and its predictor in the place of kernel counts; all else is as beside these."""

    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, capacity: int) -> Any:
        if not isinstance(encoding, Standardized):
            raise TypeError(f"Distillation needs vectors of numbers, and observations enter as {encoding}.")
        random_key, predictor_key = jax.random.split(key)
        predictor = weights_of(predictor_key, encoding.num_features)
        random, zero = weights_of(random_key, encoding.num_features), jnp.zeros(())
        nothing = encoding.init(key), random, predictor, ADAM.init(predictor), Sums(zero, zero, zero)
        return Distilled(encoding, num_actions, *nothing)


@dataclasses.dataclass(frozen=True)
class DistillationBonus(GradientDescent):
    """Gradient descent on the reward and the error of the predictor where the step leads, before it learns from it.

    Errors are in units of the root mean square of their discounted sums so far. The published standard deviation is
    not defined at the first steps of one environment. The predictor makes one step for each update, on its minibatch.

    Args:
        bonus: what going on forever where all is as new as on average is worth, in ranges of returns; of 0.1, 0.3 and 1
            on pendulum-swingup, seed 100, all of which end alike, the one that is good first.
    """

    bonus: float = 0.3

    def build(self, agent: Agent, gradients: Gradients | None) -> "DistillationLearner":
        agent = dataclasses.replace(agent, bounds=None)  # the bonus may be worth more than any return
        return DistillationLearner(agent, super().build(agent, gradients).gradients, self.bonus)


@dataclasses.dataclass(frozen=True)
class DistillationLearner(GradientLearner):
    """Its transitions keep the bonus that they had when they were new."""

    bonus: float

    def learn(
        self, key: PRNGKeyArray, state: LearnerState, fresh: Transition, iteration: Int[Array, ""]
    ) -> tuple[LearnerState, Metrics]:
        distilled: Distilled = state.network.unknown

        def paid(sums: Sums, error: Float[Array, ""]) -> tuple[Sums, Float[Array, ""]]:
            sums = sums.after(error, jnp.asarray(self.agent.discount))
            return sums, error / jnp.maximum(sums.size, 1e-12)

        sums, novelty = jax.lax.scan(paid, distilled.sums, distilled.errors(fresh.next_observation))
        state = with_distilled(state, dataclasses.replace(distilled, sums=sums))
        fresh = fresh._replace(reward=fresh.reward + self.bonus * self.agent.family.unit * novelty)
        return super().learn(key, state, fresh, iteration)

    def update(self, state: LearnerState, key: PRNGKeyArray, batch: Sample) -> tuple[LearnerState, Metrics]:
        trained = state.network.unknown.trained(batch.transitions.next_observation)
        return super().update(with_distilled(state, trained), key, batch)


def with_distilled(state: LearnerState, distilled: Distilled) -> LearnerState:
    """The state with another random network and predictor."""
    return state._replace(network=dataclasses.replace(state.network, unknown=distilled))
