"""The contracts of a network and of its builder."""

import abc
import dataclasses
import math
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.encodings import Encoding
from uppertail.errors import Explained, InputError
from uppertail.masks import ActionMask
from uppertail.types import PyTree, Rescaling, Transition


class Network(eqx.Module):
    """A network: its arrays, and how outputs follow from them. Only `outputs` must be written.

    Every array is a leaf, so `jax.vmap` runs over seeds; settings are static fields. An array that no gradient should
    reach (a prior function, bounds of what was observed) stays fixed if `outputs` puts it in `jax.lax.stop_gradient`.

    Examples:
        >>> class Table(ut.Network):
        ...     values: jnp.ndarray  # states, actions, outputs
        ...
        ...     def outputs(self, observation):
        ...         return self.values[observation]
        >>> Table(jnp.zeros((5, 3, 2))).outputs(jnp.array(4)).shape
        (3, 2)
    """

    @property
    def members(self) -> int | None:
        """The number of networks in an ensemble, or of draws of one network; None for a single network."""
        return None

    @abc.abstractmethod
    def outputs(self, observation: Array) -> Float[Array, "*members actions outputs"]:
        """The outputs for one observation; an ensemble puts a leading axis of its members before the actions."""

    def returns(self, family: Any, observation: Array) -> PyTree:
        """The return distributions, of a family, with leading axes [members, actions]; a single network is a member."""
        outputs = self.outputs(observation)
        return jax.vmap(jax.vmap(family.from_outputs))(outputs[None] if self.members is None else outputs)

    def doubted(self, family: Any, observation: Array, doubt: Float[Array, " actions"]) -> PyTree:
        """The returns where each action is doubted so much, from 0 to 1; of one prediction, the returns as they are."""
        del doubt
        return self.returns(family, observation)

    def predictions(self, family: Any, observation: Array) -> PyTree:
        """What each part of the network that has a loss of its own predicts, with leading axes [parts, actions]."""
        return self.returns(family, observation)

    def rescaled(self, rescaling: Rescaling) -> Self:
        """The network whose outputs are those before, rescaled; only where its builder `can_rescale`."""
        raise TypeError(f"{type(self).__name__} cannot be rescaled by {rescaling}.")

    def combining(self, sizes: tuple[int, ...]) -> Self:
        """The network whose outputs for an action are the mean of those for its numbers, with so many values each.

        Raises:
            InputError: its outputs are those of actions alone.
        """
        raise not_by_parts(sizes, f"{type(self).__name__} learns each by itself: leave the network out")

    def evidence(self, observation: Array) -> Float[Array, " actions"] | None:
        """The share of the wide start that is left for each action, from 1 (never seen) to 0; None: not known."""
        return None

    def allowed(self, observation: Array) -> ActionMask:
        """Which actions are allowed there, [actions], as far as the network keeps it; None: it does not."""
        del observation
        return None

    def drawn(self, observation: Array) -> Float[Array, "draws actions"] | None:
        """The value of each action in a few draws from the posterior; None: there are none."""
        del observation
        return None

    def observe(self, observations: Array) -> Self:
        """The network after it has seen a batch of observations (one leading axis), before it learns from them.

        A network that keeps something of them needs `with_observed`, too; `EncodedNetwork` has both.
        """
        return self

    def experience(self, fresh: Transition) -> Self:
        """The network after it has seen transitions (one leading axis), before it learns from them."""
        return self.observe(fresh.observation)

    def regressor(self) -> "Network":
        """The part of the network that gradients teach; all of it by default."""
        return self

    def with_regressor(self, regressor: Any) -> Any:
        """The network with another one in place of `regressor`."""
        return regressor

    def kept(self, rows: Int[Array, " count"]) -> PyTree:
        """What it keeps of where stored transitions lead, by their rows in the replay buffer; nothing by default."""
        return ()

    def there(self, kept: PyTree) -> Self:
        """The network to bootstrap from where one of these transitions leads; by default it is the same everywhere."""
        return self

    def with_observed(self, other: Any) -> Self:
        """This network with what another one of its kind keeps of its observations, in place of its own."""
        return self

    def resample_weights(self, key: PRNGKeyArray) -> Self:
        """The network with newly sampled weights, for one update; the network itself if its weights are fixed."""
        return self

    def transition_extras(self, key: PRNGKeyArray) -> PyTree:
        """Random arrays drawn once for a transition when it is stored, such as a bootstrap mask; nothing by default."""
        return ()

    def member_weights(self, extras: PyTree) -> Float[Array, " members"]:
        """How much each member learns from a transition with these `extras`; 1 each by default."""
        return jnp.ones(self.members or 1)

    def penalty(self) -> Float[Array, ""]:
        """What is added to the mean loss of a minibatch, such as a divergence from a prior; 0 by default."""
        return jnp.zeros(())

    def remark(self) -> str | None:
        """A note for the user at a run's end about what was observed, by the arrays of all seeds; None: nothing."""
        return None


def parts_of_actions(sizes: tuple[int, ...]) -> Float[np.ndarray, "actions parts"]:
    """Which values of its numbers each action is made of, 1 for one of each number; the last changes fastest.

    Examples:
        >>> parts_of_actions((2, 2)).astype(int).tolist()
        [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    """
    values = np.indices(sizes, np.int32).reshape(len(sizes), -1)
    return np.hstack([np.eye(size, dtype=np.float32)[each] for size, each in zip(sizes, values, strict=True)])


def mean_of_parts(sizes: tuple[int, ...]) -> Float[np.ndarray, "actions parts"]:
    """What the outputs of each part count in those of an action."""
    return parts_of_actions(sizes) / len(sizes)


def not_by_parts(sizes: tuple[int, ...], why: str) -> InputError:
    """The error of what cannot learn actions by their parts, with why, and a first remedy."""
    return InputError(
        f"An action is one of {math.prod(sizes):,} combinations of {len(sizes)} numbers, and {why}, or let the "
        "environment have at most 64 actions (a wrapper, or --env.levels 2 if they are a Box)."
    )


class EncodedNetwork(Network):
    """A network with an `encoding`, and with the encoding's own arrays in its field `encoder`.

    Examples:
        >>> from uppertail.encodings import Hashed
        >>> network = ut.PerAction().init(jax.random.key(0), Hashed(8), num_actions=3, num_outputs=2)
        >>> seen = network.observe(jax.numpy.array([70_000, 123_456, 70_000]))
        >>> int((seen.encoder != 0).any(axis=1).sum())  # the places of two different observations
        2
    """

    def observe(self: Any, observations: Array) -> Any:
        return dataclasses.replace(self, encoder=self.encoding.observe(self.encoder, observations))

    def with_observed(self: Any, other: Any) -> Any:
        return dataclasses.replace(self, encoder=self.encoding.with_observed(self.encoder, other.encoder))

    def seen_bounds(self: Any) -> tuple[Array, Array] | None:
        """The lowest and highest value of each number that was observed; None: the encoding does not keep them."""
        return self.encoding.seen_bounds(self.encoder)

    def remark(self: Any) -> str | None:
        return self.encoding.remark(self.encoder)


class NetworkBuilder(metaclass=Explained):
    """A frozen dataclass of settings, named with `--network`; it builds the network of each seed.

    Attributes:
        can_rescale: whether its networks have `rescaled`, so that they follow a range of returns that grows.

    Examples:
        >>> issubclass(ut.Ensemble, ut.NetworkBuilder), ut.Ensemble(members=4).members, ut.PerAction().members
        (True, 4, None)
    """

    can_rescale: ClassVar[bool] = False

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, encoding: Encoding, num_actions: int, num_outputs: int) -> Network:
        """A network that has learned nothing: `num_outputs` numbers for each action, its weights drawn from `key`.

        It keeps the `encoding`, which turns an observation into the input of its first layer.
        """

    def for_images(self) -> Self:
        """The same builder, with its open settings as images need them."""
        return self

    def with_torso(self) -> Self:
        """The same builder, with biases and layers that all actions share, where these are open."""
        return self

    @property
    def members(self) -> int | None:
        """How many members its networks have; None for single networks."""
        return None
