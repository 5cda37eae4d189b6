"""Sentences for the user before a run: what it will not learn well as it was asked for, and what to do."""

import numpy as np
from jaxtyping import Shaped

from uppertail.defaults import Facts
from uppertail.defaults.left_out import USUAL, tail_of
from uppertail.encodings import Encoding, Numbers, ObservationSpace, Pixels, States
from uppertail.encodings.standardized import Standardized
from uppertail.environments import Actions, EnvironmentBuilder, GymnasiumBuilder
from uppertail.training.programs import on_accelerator

FAR = 5  # time limits that a discount may look ahead where there is chance
ROUNDING = 1e-5  # of a number, beyond which it is outside of its space
IN_COMMON, IN_COMMON_OF_TABLES = 10, 1e5  # what rewards may have in common, in their range; 32 bits hold 7 digits


def beyond_the_limit(builder: EnvironmentBuilder, discount: float, has_chance: bool) -> str | None:
    """A sentence if the discount looks far beyond the time limit where there is chance: exploring is free there."""
    if not isinstance(builder, GymnasiumBuilder) or builder.ends_at_limit:
        return None
    limit = builder.time_limit
    if limit is None or discount >= 1 or not has_chance:
        return None
    ahead = 1 / (1 - discount**builder.repeats)
    if ahead <= FAR * limit:
        return None
    return (
        f"The discount {discount:g} looks {ahead:,.0f} actions ahead, but episodes end after {limit:,}: where "
        "there is chance, exploring then costs too little to end. If it does not, use a smaller one, such as "
        f"{1 - 1 / limit:.3g}."
    )


def small_steps(by_gradients: bool) -> str | None:
    """A sentence if an accelerator has to make the small steps of least squares, one after another."""
    if by_gradients or not on_accelerator():
        return None
    return (
        "Least squares takes many small steps, which a CPU makes faster than an accelerator (docs/performance.md): "
        "JAX_PLATFORMS=cpu uses the CPU."
    )


def too_many_pairs(facts: Facts, seen: ObservationSpace, actions: Actions, steps: int | None) -> str | None:
    """A sentence if a table learns more pairs than there are steps, and a network could share what goals share."""
    builder = facts.builder
    if not isinstance(builder, GymnasiumBuilder) or builder.compiles or not isinstance(seen, States):
        return None
    pairs = seen.count * actions.size
    if steps is None or pairs <= steps or len(facts.sizes) < 2 or not facts.has_contexts:
        return None
    return (
        "A part of the observation stays the same in each episode, as a goal does, and a table learns each of its "
        f"values alone: {pairs:,} pairs of state and action in {steps:,} steps. --env.features random: a network "
        "learns what they share."
    )


def much_in_common(facts: Facts, by_gradients: bool) -> str | None:
    """A sentence if rewards have so much in common that what differs is lost on the learner."""
    steps = facts.steps_so_far
    if steps is None or not (width := np.ptp(steps.reward)):
        return None
    rewards = np.asarray(steps.reward)
    low, high = float(rewards.min()), float(rewards.max())
    common = low if low > 0 else high if high < 0 else 0.0
    if abs(common) <= width * (IN_COMMON if by_gradients else IN_COMMON_OF_TABLES):
        return None
    return (
        f"Rewards of a random policy lie between {low:.7g} and {high:.7g}: what differs is small beside what they "
        f"have in common, and is learned late or not at all. If all episodes are equally long, subtract "
        f"{common:.7g} from each reward (--env.wrappers, gymnasium.wrappers.TransformReward)."
    )


def outside_of_space(facts: Facts, seen: ObservationSpace) -> str | None:
    """A sentence if numbers lie outside of the bounds that the environment declares, by more than 32 bits round."""
    steps = facts.steps_so_far
    if steps is None or not facts.observed or not isinstance(seen, Numbers):
        return None
    numbers, low, high = np.asarray(steps.observation), np.asarray(seen.low), np.asarray(seen.high)
    if numbers.shape[1:] != low.shape:  # more is shown in the run than there
        return None
    beyond = np.maximum(low - numbers, numbers - high)
    outside = beyond > ROUNDING * np.maximum(1.0, np.abs(numbers))
    if not outside.any():
        return None
    step, place = np.argwhere(outside)[0].tolist()
    return (
        f"{_number(facts, place)} was {numbers[step, place]:.7g}, but its space goes from "
        f"{low[place]:.7g} to {high[place]:.7g}: {outside.any(axis=1).sum():,} of {len(numbers):,} observations of a "
        "random policy are outside of observation_space. Let it say what is shown; numbers are learned as they are."
    )


def beyond_the_peak(first: Shaped[np.ndarray, "seeds ..."], seen: ObservationSpace) -> str | None:
    """A sentence if pixels of the first images are beyond the largest bound that the environment declares."""
    if not isinstance(seen, Pixels):
        return None
    largest = np.abs(first.astype(float)).max()
    if largest <= seen.peak * (1 + ROUNDING):
        return None
    return (
        f"A pixel of the first image was {largest:.7g} in size, but its space reaches {seen.peak:.7g}. Let "
        "observation_space say what is shown: pixels are learned as shares of its largest bound."
    )


def heavy_tails(facts: Facts, encoding: Encoding) -> str | None:
    """A sentence if a number is rarely so large that, in units of its scale, it hardly varies in all other steps."""
    steps = facts.steps_so_far
    if steps is None or not facts.observed or not isinstance(encoding, Standardized):
        return None
    numbers = np.asarray(steps.observation)
    places = np.setdiff1d(np.arange(numbers.shape[1]), encoding.vector.left_out).tolist()
    heavy = {place: tail for place in places if (tail := tail_of(numbers[:, place])).is_heavy}
    if not heavy:
        return None
    worst, tail = max(heavy.items(), key=lambda item: item[1].scale / item[1].usual)
    return (
        f"{_number(facts, worst)} is within {tail.usual:.3g} of its median in {USUAL:.0%} of "
        f"the steps of a random policy, but up to {tail.most:.3g} away from it in others, which set its scale, so that "
        "the network hardly sees what differs in most steps: shrink what is large (--env.wrappers, "
        "gymnasium.wrappers.TransformObservation, with np.arcsinh or np.clip)."
    )


def _number(facts: Facts, place: int) -> str:
    name = f" ({facts.names[place]})" if facts.names and facts.names[place] else ""
    return f"Number {place}{name} of observations, counted from 0,"
