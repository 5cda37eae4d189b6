"""A run whose open settings are being chosen, and the learner that suits what is chosen so far."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from uppertail.distributions import ReturnDistribution
from uppertail.encodings import Encoding, Numbers, ObservationSpace
from uppertail.environments import EnvironmentBuilder, GymnasiumBuilder, VectorBuilder
from uppertail.evidence import EvidenceBuilder
from uppertail.learners import GradientDescent, LearnerBuilder, LeastSquares
from uppertail.networks import NetworkBuilder
from uppertail.policies import UCB, ExplorationPolicy

LARGEST = 2**24  # of integers that 32 bits tell apart as numbers


class Choice(NamedTuple):
    """What a rule chose.

    Args:
        value: of the setting.
        reason: why, without a period.
        is_measured: whether steps of a random policy decided.
        note: a sentence for the user; None: there is none.
    """

    value: Any
    reason: str
    is_measured: bool = False
    note: str | None = None


@dataclasses.dataclass(frozen=True)
class Draft:
    """A run whose open settings are being chosen.

    Args:
        builder: the environment's.
        space: of its observations.
        family: the return distributions.
        policy: explores.
        learner: None until it is chosen.
        of_gradients: parts and settings of gradient descent that are given.
        network: the network's builder, if it is given.
        evidence: the evidence beside it, if it is given.
        discount: per step, if it is given.
    """

    builder: EnvironmentBuilder
    space: ObservationSpace
    family: ReturnDistribution[Any]
    policy: ExplorationPolicy
    learner: LearnerBuilder | None = None
    of_gradients: tuple[str, ...] = ()
    network: NetworkBuilder | None = None
    evidence: EvidenceBuilder | None = None
    discount: float | None = None

    @property
    def encoding(self) -> Encoding:
        """How observations enter, by what is chosen so far."""
        return self.space.encoding(self.builder.preferences)

    @property
    def usual(self) -> Choice:
        """The learner if it is open, for observations as they enter by what is chosen so far."""
        return usual_learner(self.family, self.policy, self.encoding, self.of_gradients)

    @property
    def likely_learner(self) -> LearnerBuilder:
        """The learner, or the one that is chosen unless more is learned of the observations."""
        return self.learner or self.usual.value

    @property
    def vectors(self) -> VectorBuilder | None:
        """The builder, if its observations are numbers, and the learner tells near ones from far ones."""
        if not isinstance(self.builder, VectorBuilder) or not isinstance(self.space, Numbers):
            return None
        learner = self.likely_learner
        if learner.uses_gradients:
            evidence = self.evidence or learner.evidence(self.network, self.encoding)
            return self.builder if evidence.by_row else None
        return self.builder if self.builder.radius is None else None

    @functools.cached_property  # to ask opens the environment once more
    def of_hashes(self) -> Self | None:
        """The draft with a state for each different image; None: it has no images, or a table cannot learn from it."""
        builder, is_open = self.builder, self.learner is None or not self.learner.uses_gradients
        if not isinstance(builder, GymnasiumBuilder) or builder.compiles or not is_open:
            return None
        if builder.left_out is not None or builder.features != "auto" or builder.radius is not None:
            return None
        if self.encoding.image_shape is None or not builder.inspected.is_single:
            return None
        draft = self.with_value("env.encoding", "hashed")
        return None if draft.likely_learner.uses_gradients else draft

    @functools.cached_property
    def of_numbers(self) -> Self | None:
        """The draft with a number for each of several integers; None: there are none, or a network cannot use them."""
        builder, is_open = self.builder, self.learner is None or self.learner.uses_gradients
        if not isinstance(builder, GymnasiumBuilder) or builder.compiles or not is_open:
            return None
        if builder.left_out or builder.features != "auto" or self.policy.posterior is not None:
            return None
        parts = builder.interface.reading.parts
        sizes = [size for part in parts for size in part.sizes]
        is_told = len(sizes) > 1 and 2 < max(sizes) <= LARGEST and all(part.sizes for part in parts)
        if not is_told or builder.stack not in (None, 1):
            return None
        draft = self.with_value("env.encoding", "numbers")
        return draft if draft.averages_numbers else None

    @property
    def is_ordered(self) -> bool:
        """Whether each integer of an observation is a number."""
        return isinstance(self.builder, GymnasiumBuilder) and self.builder.encoding == "numbers"

    @property
    def learns_from_pixels(self) -> bool:
        """Whether a network learns from images, or names, of steps in Python, and nothing needs it to be alone."""
        learner, is_open = self.likely_learner, self.network is None or not self.network.members
        is_shown = self.encoding.pixel_shape is not None and not self.builder.compiles
        return is_shown and is_open and isinstance(learner, GradientDescent)

    @property
    def learns_from_names(self) -> bool:
        """Whether these pixels are names."""
        return self.learns_from_pixels and self.encoding.image_shape is None

    @property
    def averages_numbers(self) -> bool:
        """Whether the learner tells near numbers from far ones, and averages over near ones."""
        return self.vectors is not None and self.vectors.features in ("auto", "random")

    @property
    def left_out(self) -> tuple[int, ...]:
        """The numbers that count for nothing."""
        return self.builder.left_out or () if isinstance(self.builder, VectorBuilder) else ()

    @property
    def given(self) -> set[str]:
        """The settings with a rule that are not open."""
        given = {name for name in ("learner", "evidence", "discount") if getattr(self, name) is not None}
        if isinstance(self.learner, LeastSquares | GradientDescent) and self.learner.stochastic is not None:
            given.add("learner.stochastic")
        if type(self.policy) is not UCB or self.policy.power is not None:  # a user's own has a memory of its own
            given.add("policy.power")
        if isinstance(self.builder, VectorBuilder):
            usual = {
                "encoding": "one_hot", "left_out": None, "features": "auto", "action_repeat": None, "levels": None,
                "stack": None, "ends_at_limit": None, "origins": None, "constant_texts": None,
                "rounding": None,
            }  # fmt: skip
            given |= {f"env.{name}" for name, value in usual.items() if getattr(self.builder, name, None) != value}
        return given

    def with_value(self, setting: str, value: Any) -> Self:
        """The draft with a setting."""
        part, _, name = setting.partition(".")
        if not name:
            return dataclasses.replace(self, **{part: value})
        if part == "learner" and name not in vars(self.learner):
            return self  # of a plan whose learner was changed by hand
        if part in ("learner", "policy"):
            changed: Any = dataclasses.replace(getattr(self, part), **{name: value})
            return dataclasses.replace(self, **{part: changed})
        builder = self.builder
        if not isinstance(builder, VectorBuilder) or not hasattr(builder, name):
            return self  # of a plan of another environment, or nothing that was chosen
        if value == getattr(builder, name) or (name == "action_repeat" and value == builder.repeats):
            return self
        changed = builder.with_settings(**{name: value})
        space = changed.observations if name in ("encoding", "stack", "origins", "constant_texts") else self.space
        return dataclasses.replace(self, builder=changed, space=space)


def usual_learner(
    family: ReturnDistribution[Any], policy: ExplorationPolicy, encoding: Encoding, of_gradients: Sequence[str] = ()
) -> Choice:
    """Least squares for tables; a part or setting of gradient descent that is given asks for gradient descent."""
    by_gradients = GradientDescent()
    if of_gradients:
        return Choice(by_gradients, f"{of_gradients[0]} is given, which only gradient descent uses")
    if not family.is_linear:
        return Choice(by_gradients, f"the parameters of {type(family).__name__} cannot be averaged")
    if policy.needs_members:
        return Choice(by_gradients, f"{type(policy).__name__} needs a network with members")
    if not encoding.is_one_hot:
        return Choice(by_gradients, "observations are no states, so a network learns")
    return Choice(LeastSquares(), "it learns from states at once, without step sizes")
