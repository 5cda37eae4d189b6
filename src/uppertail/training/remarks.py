"""Sentences for the user at the end of a run: what went wrong, as far as it shows, and what to do."""

import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from uppertail.agent import Agent
from uppertail.defaults.regression import SIGNIFICANT
from uppertail.distributions.base import range_of
from uppertail.environments import EnvironmentBuilder, GymnasiumBuilder, RandomPlay, VectorBuilder
from uppertail.learners import GradientDescent
from uppertail.learners.coordinates import Coordinates
from uppertail.learners.table_state import TableReturns
from uppertail.masks import ActionMask, masked
from uppertail.networks import Network
from uppertail.training.driver import EVALUATION_STEPS, Played
from uppertail.training.results import TrainingResult
from uppertail.training.run import GREEDY_EPISODES, Run
from uppertail.types import ReturnRange

GIVEN_UP = 50  # later episodes, at least, in all of which a return that was seen before has to be missed
FAR = (
    "it may seek what no episode comes to in time: try a longer time limit (--env.max_episode_steps), or a smaller "
    "--discount"
)
UNSEEN = (
    "what observations do not show, such as an earlier one (--env.stack 2) or the time that is left (--env.wrappers "
    "'[TimeAwareObservation]')"
)
HIDDEN = f"If that does not help, rewards may depend on {UNSEEN}."
LATE = "what comes late may count too little, since greedy episodes end sooner: try a --discount nearer to 1, such as"
WORSE = 0.02  # how much less a mean has to be, in ranges of returns, to be known to be worse
MORE = 0.1  # how much more what was not tried has to promise, in ranges of returns, for a run to be unfinished


def remarks(run: Run, result: TrainingResult) -> list[str]:
    """All sentences that a result calls for."""
    record = result.record
    greedy = dict(zip(result.seeds, record.greedy_returns, strict=True))
    returns = dict(zip(result.seeds, (each.returns for each in record.episodes), strict=True))
    looks_past = past_the_limit(run, result.seeds)
    earned = run.random and run.random.returns
    played, keeps_best = run.greedy and run.greedy.returns, run.settings.evaluate_every is not None
    discount = run.settings.discount_per_step
    further = nearer_to_1(discount) if discount < 1 and run.looks_far is None else None
    found = (
        result.networks.remark(),
        run.driver.remark,
        None if run.builder.merged in run.notes else run.builder.merged,
        beyond_what_was_given(run),
        endless(run) or not_ended(run.builder, result.seeds, run.greedy),
        met_chance(run),
        None if looks_past else given_up(returns, greedy, run.has_chance, ends_sooner(run, result)),
        looks_past
        or less_than_random(greedy, earned, further)
        or less_than_trained(played, returns, run.returns, keeps_best)
        or no_more_than_random(run.greedy, result.seeds, earned, doubtful(run), returns)
        or nothing_earned(returns, greedy, any(each is not None for each in record.solved_episode)),
        None if run.driver.first_mask is not None else stands_still(run.greedy, result.seeds, run.random),
        unsettled(run, result.networks) or unfinished(run, result),
    )
    return [*filter(None, found)]


def beyond_what_was_given(run: Run) -> str | None:
    """A sentence if the range of returns that the user gave is far from what the environment paid, or was learned."""
    (low, high, _), (least, most) = run.returns, run.ledger.seen.tolist()
    looks_past = run.loop.learner.asks_cut_soon
    lowest, highest = run.ledger.going_on.tolist() if looks_past else (least, max(most, run.best_mean))
    if not run.builder.known_returns or (2 * low - high <= lowest and highest <= 2 * high - low):
        return None
    if most <= 2 * high - low and least >= 2 * low - high:
        what = f"A return of {highest:.4g} was learned"
        if looks_past:
            what = f"Without its time limit an episode would return from {lowest:.4g} to {highest:.4g}"
        return (
            f"{what}, far beyond the given {low:.4g} to {high:.4g}, since learning looks beyond the time limit: give "
            "the returns of an episode without a limit, with --env.returns, leave them out, or use "
            "--env.ends_at_limit true."
        )
    return (
        f"Returns from {least:.4g} to {most:.4g} were seen, far beyond the given {low:.4g} to {high:.4g}, in whose "
        "unit the run explores: give those that it has to tell apart, with --env.returns, or leave them out."
    )


def endless(run: Run) -> str | None:
    """A sentence if no episode ended."""
    builder, steps = run.builder, max(run.ledger.env_steps)
    if not steps or any(seed.returns.size for seed in run.ledger.episodes):
        return None
    may_go_on = isinstance(builder, GymnasiumBuilder) and (
        builder.may_go_on or (builder.inspected.own_limit or steps) < steps  # it is another kind of number
    )
    limit = ", or set a time limit: --env.max_episode_steps N, or gymnasium.wrappers.TimeLimit" * may_go_on
    return f"{builder.label}: no episode ended in {steps:,} steps: train longer{limit}."


def not_ended(builder: EnvironmentBuilder, seeds: Sequence[int], greedy: Played | None) -> str | None:
    """A sentence if greedy episodes had not ended when they were cut, before any time limit of their own."""
    limit = builder.time_limit if isinstance(builder, GymnasiumBuilder) else None  # in actions
    if greedy is None or (limit is not None and limit * builder.repeats <= EVALUATION_STEPS):
        return None
    cut = (builder.steps_of(greedy.lengths) >= EVALUATION_STEPS).sum(axis=1)
    if not cut.any():
        return None
    return (
        f"{cut.max()} of {greedy.lengths.shape[1]} greedy episodes of seed {seeds[cut.argmax()]} had not ended after "
        f"{EVALUATION_STEPS:,} steps and were cut there, so their returns are those until then: train longer, or set a "
        "time limit: --env.max_episode_steps N, or gymnasium.wrappers.TimeLimit."
    )


def met_chance(run: Run) -> str | None:
    """A sentence if equal states and actions led to different outcomes, which a random policy had not seen."""
    if not run.met_chance:
        return None
    return (
        "Equal states and actions led to different outcomes, which a random policy had not seen before the run: if "
        "that is chance, use --learner.stochastic true, with the least and the most that an episode can return as "
        "--env.returns."
    )


def past_the_limit(run: Run, seeds: Sequence[int]) -> str | None:
    """The sentence of `no_limit_seen`, where a time limit is known and learning looks beyond it."""
    builder, random = run.builder, run.random
    if not isinstance(builder, GymnasiumBuilder) or builder.ends_at_limit:
        return None
    limit = builder.inspected.time_limit
    if run.greedy is None or random is None or not len(random.returns) or limit is None:
        return None
    played = run.greedy._replace(lengths=builder.steps_of(run.greedy.lengths))
    return no_limit_seen(played, seeds, random, limit, run.settings.discount_per_step)


def no_limit_seen(played: Played, seeds: Sequence[int], random: RandomPlay, limit: int, discount: float) -> str | None:
    """A sentence if greedy episodes end too soon, or not at all, since to learning it has no end to go on.

    They end too soon if they earn less than what going on would, at the mean reward of a random policy, until the
    limit, and more than that would without a limit. They go on for too long if a random policy earns more in half the
    time, and they themselves would earn more than that without a limit.

    Args:
        played: greedy episodes; their lengths are steps.
        seeds: theirs.
        random: what a random policy earned.
        limit: of an episode, in steps.
        discount: per step.
    """
    if discount >= 1 or (1 - discount) * limit >= 1:  # it does not look beyond
        return None
    ahead, mean, going_on = 1 / (1 - discount), float(random.returns.mean()), random.going_on
    shorter = f"{1 - 1 / limit:.{max(3, len(str(limit)))}g}"
    surely = mean - SIGNIFICANT * float(random.returns.std()) / math.sqrt(len(random.returns))
    for seed, returns, lengths in zip(seeds, played.returns, played.lengths, strict=True):
        earned = float(returns.mean())
        least = earned + WORSE * abs(earned)
        if 2 * lengths.mean() < limit and going_on * ahead < earned and least < going_on * limit:
            does, far = f"ends at step {lengths.mean():.3g}", going_on * ahead
            better = f"going on until then, where it can, costs about {-going_on * limit:.4g}"
        elif lengths.min() >= limit >= 2 * random.mean_length and least < surely < earned * ahead / limit:
            does, far = "goes on until then", earned * ahead / limit
            better = f"a random one, which ends sooner, earned {mean:.4g}"
        else:
            continue
        return (
            f"Learning looks beyond the time limit of {limit:,} steps, where going on would come to {far:.4g}: the "
            f"greedy policy of seed {seed} {does} and returns {earned:.4g}, but {better}. Show the time that is left "
            f"(--env.wrappers '[TimeAwareObservation]'), or look less far (--discount {shorter})."
        )
    return None


def ends_sooner(run: Run, result: TrainingResult) -> dict[int, str]:
    """The seeds whose greedy episodes are shorter than the best one of training, and a discount that looks as far."""
    if run.greedy is None or (discount := run.settings.discount_per_step) >= 1:
        return {}
    lengths = run.builder.steps_of(run.greedy.lengths).mean(axis=1)
    return {
        seed: nearer_to_1(discount, best)
        for seed, each, greedy in zip(result.seeds, result.record.episodes, lengths, strict=True)
        if len(each.returns) and (best := float(each.lengths[each.returns.argmax()])) > greedy
    }


def nearer_to_1(discount: float, steps: float = 1.0) -> str:
    """A discount per step that looks at least twice as far as this one, and this many steps, as text."""
    return f"{1 - 1 / max(2 / (1 - discount), steps):.6f}".rstrip("0")


def given_up(
    returns: Mapping[int, Float[np.ndarray, " episodes"]],
    greedy: Mapping[int, float],
    has_chance: bool,
    sooner: Mapping[int, str] = types.MappingProxyType({}),
) -> str | None:
    """A sentence if a seed once earned what neither its later episodes nor its greedy policy came near to.

    Where there is chance, that may have been luck: it was, if later episodes return more in the mean. The remedy is
    another where greedy episodes end `sooner` than the one that earned it: the discount that is said there.
    """
    for seed, each in returns.items():
        early, later = each[: len(each) // 2], each[len(each) // 2 :]
        if len(later) < GIVEN_UP or (has_chance and later.mean() > early.mean()):
            continue
        if max(later.max(), greedy[seed]) < (each.max() + each.min()) / 2:
            return (
                f"Episode {each.argmax() + 1:,} of seed {seed} returned {each.max():.4g}, but none of its "
                f"last {len(later):,} came near, nor does its greedy policy ({greedy[seed]:.4g}). Unless that was "
                f"luck, {f'it may depend on {UNSEEN}, or ' * has_chance}"
                f"{f'{LATE} {sooner[seed]}' if seed in sooner else FAR}."
            )
    return None


def nothing_earned(
    returns: Mapping[int, Float[np.ndarray, " _"]], greedy: Mapping[int, float], solved: bool
) -> str | None:
    """A sentence if all of many episodes, and those of the greedy policy, returned the same, which is not above 0."""
    each = np.concatenate([*returns.values()])
    if solved or min(seed.size for seed in returns.values()) < GIVEN_UP or each[0] > 0:
        return None
    if (each != each[0]).any() or any(value != each[0] for value in greedy.values()):
        return None
    return (
        f"All {each.size:,} episodes returned {each[0]:.4g}, as the greedy policy does: nothing that pays more was "
        "found. Train longer, or let episodes be longer, if a goal is too far for one (--env.max_episode_steps)."
    )


def less_than_random(
    greedy: Mapping[int, float], random: Float[np.ndarray, " episodes"] | None, nearer: str | None = None
) -> str | None:
    """A sentence if the greedy policy of a seed earns less than a random policy did; `nearer`: a discount to try."""
    if random is None or len(random) < 2:
        return None
    mean, error = float(random.mean()), float(random.std(ddof=1)) * math.sqrt(1 / len(random) + 1 / GREEDY_EPISODES)
    least = mean - max(SIGNIFICANT * error, WORSE * abs(mean))
    longer = f", or, where a reward comes late, with a discount nearer to 1, such as {nearer}" if nearer else ""
    for seed, each in greedy.items():
        if each < least:
            now, then = apart(each, mean)
            return (
                f"The greedy policy of seed {seed} returns {now}, less than a random policy did before the run "
                f"({then}): train longer{longer}. {HIDDEN}"
            )
    return None


def doubtful(run: Run) -> list[str]:
    """What was chosen, by a look at the environment or by the user, and may be wrong there."""
    builder, plan = run.builder, run.plan
    left_out = isinstance(builder, VectorBuilder) and builder.left_out and plan.is_measured("env.left_out")
    lasting = builder.repeats > 1 and plan.is_measured("env.action_repeat")
    is_given = plan.entries["learner"].source == "given" and isinstance(run.method.learner, GradientDescent)
    of_states = is_given and run.loop.agent.encoding.is_one_hot
    return [
        *["a network for single states, whose values may grow in loops (leave --learner out)"] * of_states,
        *["what is left out (--env.left_out '[]' keeps it)"] * bool(left_out),
        *[f"that each action lasts {builder.repeats} steps (--env.action_repeat 1)"] * lasting,
    ]


def no_more_than_random(
    played: Played | None,
    seeds: Sequence[int],
    random: Float[np.ndarray, " episodes"] | None,
    doubts: Sequence[str] = (),
    trained: Mapping[int, Float[np.ndarray, " _"]] = types.MappingProxyType({}),
) -> str | None:
    """A sentence if the greedy policy of a seed earns no more than a random policy did; `doubts` are `doubtful`.

    Where all random episodes returned the same, a seed of which an episode of training, by `trained`, returned more.
    """
    if played is None or random is None or len(random) < 2:
        return None
    for seed, each in zip(seeds, played.returns, strict=True):
        earned = np.max(trained.get(seed, random), initial=-math.inf)
        if each.mean() > random.mean() or not (_differ(random) or earned > random.max()):
            continue
        doubt = f" Doubt first what was chosen: {', and '.join(doubts)}." if doubts else ""
        error = math.sqrt(random.var() / len(random) + each.var() / len(each))
        luck = (
            f", though {len(each)} episodes may be bad luck"
            if random.mean() - each.mean() < SIGNIFICANT * error
            else ""
        )
        return (
            f"The greedy policy of seed {seed} returns {each.mean():.4g}, no more than a random policy did before the "
            f"run ({random.mean():.4g}){luck}: train longer.{doubt} {HIDDEN}"
        )
    return None


def stands_still(played: Played | None, seeds: Sequence[int], random: RandomPlay | None) -> str | None:
    """A sentence if the greedy policy earns no more than a random one, and far more of its actions change nothing."""
    if played is None or played.idle is None or random is None or not _differ(random.returns):
        return None
    for seed, returns, idle in zip(seeds, played.returns, played.idle, strict=True):
        if returns.mean() <= random.returns.mean() and idle.mean() > (1 + random.idle) / 2:
            return (
                f"The greedy policy of seed {seed} takes actions that change nothing in what is observed "
                f"({idle.mean():.0%} of them, and {random.idle:.0%} of random ones): where an action neither does nor "
                'pays anything, let the environment say that it is not allowed (info["action_mask"], or a method '
                "action_masks)."
            )
    return None


def apart(*numbers: float) -> list[str]:
    """Numbers in as few digits as tell them apart, at least four."""
    texts = ([f"{number:.{digits}g}" for number in numbers] for digits in range(4, 17))
    return next((each for each in texts if len({*each}) == len({*numbers})), [f"{number:.4g}" for number in numbers])


def _differ(returns: Float[np.ndarray, " episodes"]) -> bool:
    """Whether there are several returns that are not all the same."""
    return len(returns) > 1 and bool(returns.std())


def less_than_trained(
    greedy: Float[np.ndarray, "seeds played"] | None,
    returns: Mapping[int, Float[np.ndarray, " _"]],
    span: ReturnRange,
    keeps_best: bool = False,
) -> str | None:
    """A sentence if the greedy policy of a seed earns less than its last episodes of training did, beyond luck."""
    if greedy is None:
        return None
    lost = dict[int, tuple[float, float, float]]()
    for (seed, each), played in zip(returns.items(), greedy, strict=True):
        if len(last := each[-GREEDY_EPISODES:]) < GREEDY_EPISODES:
            continue
        gap, error = last.mean() - played.mean(), math.sqrt((last.var() + played.var()) / GREEDY_EPISODES)
        if gap > max(SIGNIFICANT * error, WORSE * min(span.high - span.low, np.ptp(each) or math.inf)):
            lost[seed] = float(gap), float(last.mean()), float(played.mean())
    if not lost:
        return None
    seed, (_, trained, now) = max(lost.items(), key=lambda item: item[1][0])
    more = f", as {len(lost)} seeds do" if len(lost) > 1 else ""
    keep = "" if keeps_best else "--evaluate_every N keeps the best network in place of the last, or "
    earned, before = apart(now, trained)
    return (
        f"The greedy policy of seed {seed} returns {earned}, less than its last {GREEDY_EPISODES} episodes of "
        f"training ({before}){more}. It no longer learns, and may walk to and fro where actions are nearly as "
        f"good: {keep}try a smaller --discount."
    )


def unsettled(run: Run, networks: Network) -> str | None:
    """A sentence if a table without chance has nothing left to try, and still prefers what it knows to be worse."""
    policy = run.method.policy
    if not isinstance(networks, TableReturns) or not policy.explores_by_spread or run.has_chance:
        return None
    tried = np.asarray(networks.counts) > 0
    seen = np.any(tried, axis=2)
    all_tried = np.all(np.all(tried, axis=2) | ~seen, axis=1)
    if not all_tried.any():
        return None
    mean, std = map(np.asarray, run.programs.call(_moments_of_table, run.loop.agent.family, networks.values))
    chosen = np.argmax(mean + float(policy.optimism) * std, axis=2)
    lost = mean.max(axis=2) - np.take_along_axis(mean, chosen[..., None], axis=2)[..., 0]
    worse = (seen & (lost > WORSE * (run.returns.high - run.returns.low))).sum(axis=1) * all_tried
    if not worse.any():
        return None
    family = type(run.method.distribution).__name__
    bins = (
        f"where ways lead back, {family} keeps a spread of its own. Use --distribution Gaussian, or a smaller "
        "--discount, such as 0.95."
    )
    return (
        f"All actions were tried, but in {worse.max():,} states {type(policy).__name__} still prefers one that it "
        f"knows to be worse: {'train longer, or without --init.' if family == 'Gaussian' else bins}"
    )


def unfinished(run: Run, result: TrainingResult) -> str | None:
    """A sentence if a table without chance still hopes for far more than is known, where an unsolved run began."""
    networks, policy, agent = result.networks, run.method.policy, run.loop.agent
    if not isinstance(networks, TableReturns) or not policy.explores_by_spread or run.has_chance:
        return None
    tried = np.asarray(networks.counts) > 0
    untried = np.any(tried, axis=2, keepdims=True) & ~tried
    if networks.masks is not None:
        masks = np.asarray(networks.masks)
        untried &= masks | ~np.any(masks, axis=2, keepdims=True)
    is_left = np.any(untried, axis=(1, 2))
    if not any(agent.family.is_mean) or not is_left.any():  # what is known has no mean of its own, or is all
        return None
    arguments = (networks, run.driver.first, run.driver.first_mask)
    means, bounds = map(np.asarray, run.programs.call(_known_and_hoped_for, agent, *arguments))
    hopes = np.minimum(bounds, run.returns.high) if run.returns.known else bounds
    is_open = is_left & (hopes - means > MORE * range_of(run.returns))
    found = zip(result.seeds, result.record.solved_episode, is_open, means, hopes, strict=True)
    for seed, solved, hopes_for_more, mean, hope in found:
        if solved is None and hopes_for_more:
            most = f"up to {hope:.4g}" if run.returns.known else "more"
            return (
                f"Exploration was not finished: where seed {seed} begins, the best known way returns {mean:.4g}, "
                f"discounted, and what was not tried may return {most}: train longer."
            )
    return None


def _known_and_hoped_for(
    agent: Agent, network: Network, observation: Array, mask: ActionMask
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The highest mean, and the highest upper bound, of the allowed actions."""
    z = jax.tree.map(lambda leaf: leaf[0], agent.returns_by_member(network, observation))
    mean, std = (jax.vmap(each)(z) for each in (agent.family.mean, agent.family.std))
    return jnp.max(masked(mean, mask)), jnp.max(masked(mean + agent.policy.optimism * std, mask))


def _moments_of_table(family: Any, values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each state and action of a table."""
    z = jax.vmap(jax.vmap(Coordinates(family).distribution))(values)
    return jax.vmap(jax.vmap(family.mean))(z), jax.vmap(jax.vmap(family.std))(z)
