"""Rules: one for each setting that a user may leave open. docs/defaults.md is made from the table at the end."""

import dataclasses
from collections.abc import Callable

import numpy as np

from uppertail.defaults import left_out, pace
from uppertail.defaults.draft import Choice, Draft
from uppertail.defaults.facts import Facts
from uppertail.defaults.left_out import IDLE_EPISODES, TAIL, USUAL
from uppertail.defaults.limits import BY_CHANCE, LEAST_CUT, STANDS_STILL
from uppertail.defaults.pace import LONGEST, MOVED, STAYS, STOPPED, UNDONE
from uppertail.defaults.past import CLEAR, LONGEST_STACK, NEARLY, SAME, SHUFFLES, TOLD, UNSEEN
from uppertail.defaults.regression import FEW, MOST_JUDGED, PIECES, SIGNIFICANT
from uppertail.defaults.repeats import APART, EXACT, LEAST_MORE, LEAST_PAID, MOST_INPUTS, REPEATED, SOON, SURE
from uppertail.environments import LEVELS, GymnasiumBuilder, PackageBuilder, VectorBuilder
from uppertail.environments.gymnasium.observed import TRIED_EPISODES, TRIED_STEPS
from uppertail.environments.spaces import IMAGE_SIDE, LARGE
from uppertail.evidence import PixelCounts
from uppertail.evidence.pixel_counts import OF_NAMES, SHADE, SIDE, SMALL, UPDATES
from uppertail.learners import GradientDescent, LeastSquares
from uppertail.learners.novelty import WEIGHT
from uppertail.learners.table import CHANCE_COUNT, FIRST_NOISE, MEASURED_STD

IMAGES_REPEATED = 0.7  # the same of images, which a network can learn from
FEW_VALUES = 64  # of a number that counts, or tells a cell
SHOWN = 8  # numbers that a note names
DISCOUNT = 0.995  # per step
NAMES_DISCOUNT, NAMES_EVIDENCE = 0.95, PixelCounts(prior_count=0.3)  # where a network learns from names
MOST_NAMES = 4096  # numbers: of more, inputs for each value would take most of the time

HASHED = (
    "Images come again exactly ({:.0%} of the distinct ones), so each is a state (--learner GradientDescent: a network "
    "learns from their pixels)."
)
SOUGHT = (
    "The network learns from images beside counts of pixels, which seek what was not seen, with many updates a step "
    "(--evidence NoEvidence: the network alone, which is faster)."
)
RECALLED = (
    "Where observations and actions were equal, {shown} of an episode told {share:.0%} of what varied in rewards, so "
    "observations are shown with them: `act` takes {act} (--env.stack 1: the last observation alone)."
)
MOVED_BY = (
    "The last observation leaves {:.0%} of a number's change open, and the one before tells it, as where a speed is "
    "not shown, so two are shown: `act` takes both, and the action between them (--env.stack 1: the last one alone)."
)
FLAT = (
    "{} {} read as plain numbers, each pixel by itself, since only an image of at least {} pixels a side that stands "
    "alone is learned as one: show it alone (--env.wrappers), or places in it as numbers. Codes, such as kinds of "
    "tiles, need --env.features one_hot: an input for each value, of --env.values."
)
SINGLE = (
    "Each move can be undone by another action, so each step is a decision: several would pass places by. If goals are "
    "wide, --env.action_repeat {} learns sooner."
)
HIDDEN = (
    " Nothing shows the time that is left: if what is best depends on it, show it, as gymnasium.wrappers."
    "TimeAwareObservation does."
)
LIMITED = (
    "{}, so a time limit is part of the task, and its end is the end of an episode (--env.ends_at_limit false: "
    "learning looks beyond it)."
)
COUNTED = (
    "Observations count the steps of an episode, so one that is cut short ends as if it terminated "
    "(--env.ends_at_limit false: learning looks beyond a time limit)."
)
NEAR = (
    "Observations come again, but outcomes are left to chance, and near observations tell more of what is paid soon "
    "than equal ones, so a network learns from their numbers (--env.features hashed: each is a state)."
)
ORDERED = (
    "Outcomes are left to chance, and near integers tell more of what is paid soon than equal ones, so each integer is "
    "a number, and a network learns (--env.features hashed: each observation is a state)."
)
NAMES = (
    "{} {} read as names, such as kinds of tiles: whole numbers below {} in a grid, with an input for each value; "
    "larger ones count as the largest (--env.values N: more values; --env.features scaled: plain numbers)."
)
STAY_NUMBERS = "so they stay numbers"  # since they do not repeat
KEPT_ONE = "Number {} of observations, counted from 0, is left out: it {} ({}--env.left_out '{}' keeps it)."
KEPT = "The numbers {} of observations, counted from 0, are left out: they {} ({}--env.left_out '{}' keeps them)."


def _stack(facts: Facts, draft: Draft) -> Choice | None:
    builder = draft.builder
    if not isinstance(builder, GymnasiumBuilder) or not facts.observed or builder.compiles:
        return None
    if draft.encoding.image_shape is not None or not builder.inspected.is_single:
        return None
    if builder.left_out or builder.radius is not None or builder.background is not None:
        return None  # they are said of the last observation alone
    told = facts.told_by
    if told is None and facts.repeating() < REPEATED and (share := facts.told_by_step_before):
        reason = f"the last step of a random policy hid {share:.0%} of a change, and the step before told it"
        return Choice(2, reason, True, MOVED_BY.format(share))
    if told is None:
        return Choice(None, "earlier observations told nothing of the rewards of a random policy", True)
    shown, act = (
        ("the first observation", "(first, last)")
        if told.stack == "first"
        else (f"the last {told.stack} observations", "so many, and the actions between them")
    )
    reason = f"{shown} of an episode told {told.share:.0%} of what the last one did not tell of rewards"
    return Choice(told.stack, reason, True, RECALLED.format(shown=shown, share=told.share, act=act))


def _encoding(facts: Facts, draft: Draft) -> Choice | None:
    if (ordered := draft.of_numbers) is not None:
        if facts.chance().different and facts.of(ordered.builder).numbers_tell_more():
            return Choice("numbers", "outcomes are left to chance, and near integers tell more than equal ones", True)
        return Choice("one_hot", "near integers tell no more than equal ones", True)
    if draft.of_hashes is None:
        return None
    share = facts.repeating()
    seen = f"{share:.1%} of the distinct images came again"
    if share < IMAGES_REPEATED:
        return Choice("one_hot", f"{seen}, so they stay images", True)
    return Choice("hashed", f"{seen}, so each is a state", True, HASHED.format(share))


def _origins(facts: Facts, draft: Draft) -> Choice | None:
    if not isinstance(builder := draft.builder, GymnasiumBuilder) or builder.compiles:
        return None
    large, far = builder.interface.reading.origins, ()
    if draft.averages_numbers and facts.observed and not draft.is_ordered and facts.repeating() < REPEATED:
        far = () if _are_names(facts, draft) else facts.far_from_0
    if not far and not builder.inspected.observed.is_wide:
        return None
    reasons = ["large numbers keep their digits"] * bool(large) + ["0 is far from numbers"] * bool(far)
    origins = tuple(sorted({**dict(far), **dict(large)}.items()))
    return Choice(origins, ", and ".join(reasons) or "32 bits hold what was seen", True)


def _constant_texts(facts: Facts, draft: Draft) -> Choice | None:
    if not isinstance(builder := draft.builder, GymnasiumBuilder) or not builder.inspected.observed.has_texts:
        return None
    constant = builder.inspected.observed.left_out
    return Choice(constant, "they never changed in random episodes" if constant else "each text changed", True)


def _irrelevant(facts: Facts, draft: Draft) -> Choice | None:
    if not draft.vectors:
        return None
    if _are_names(facts, draft):
        return Choice(None, "numbers are names", True)
    told = "told nothing of what came next in steps of a random policy"
    alone = (
        "changed nothing else in steps of a random policy, neither reward nor end; keep what is a goal whose reward "
        "the random policy did not see"
    )
    noise = tuple(facts.irrelevant.tolist())
    kept = [*facts.time, *(facts.clocks() if facts.is_paid_at_the_limit else ())]
    idle = () if facts.repeating(noise) >= REPEATED else tuple(np.setdiff1d(facts.idle, kept).tolist())
    groups = [(numbers, why, rest) for numbers, why, rest in ((noise, told, ()), (idle, alone, noise)) if numbers]
    if not groups:
        return Choice(None, "each number that varies tells something of what comes next", True)
    numbered = "--env.encoding numbers " if draft.is_ordered else ""  # else places are those of one-hots
    notes = " ".join(
        (KEPT if len(numbers) > 1 else KEPT_ONE).format(_listed(numbers, facts.names), why, numbered, list(rest))
        for numbers, why, rest in groups
    )
    reason = ", or ".join(["they " + why.partition(";")[0] for _, why, _ in groups])
    return Choice(tuple(sorted(noise + idle)), reason, True, notes)


def _features(facts: Facts, draft: Draft) -> Choice | None:
    if not draft.vectors:
        return None
    share = facts.repeating(draft.left_out)
    seen = f"{share:.0%} of the distinct observations came again"
    images = draft.builder.inspected.observed.flat_images if isinstance(draft.builder, GymnasiumBuilder) else ()
    shown, is_are = ", ".join(map(repr, images)), "is" if len(images) == 1 else "are"
    if _are_names(facts, draft):
        led = ", where equal actions led elsewhere" if share >= REPEATED else ""
        reason = f"{seen}{led}, and whole numbers below {draft.vectors.values} in a grid are names"
        return Choice("one_hot", reason, True, NAMES.format(shown, is_are, draft.vectors.values))
    is_open = draft.policy.posterior is None and (draft.learner is None or draft.learner.uses_gradients)
    is_asked = is_open and (share >= REPEATED or draft.is_ordered)
    tell_more = is_asked and facts.numbers_tell_more(draft.left_out)
    if share >= REPEATED and tell_more:
        reason = f"{seen}, but outcomes are left to chance, and near ones tell more of what is paid than equal ones"
        return Choice("auto", reason, True, ORDERED if draft.is_ordered else NEAR)
    if share >= REPEATED:
        return Choice("hashed", f"{seen}, so each is a state", True)
    if tell_more:
        return Choice("auto", f"{seen}, {STAY_NUMBERS}", True, ORDERED)
    note = FLAT.format(shown, is_are, IMAGE_SIDE) if images else None
    return Choice("auto", f"{seen}, {STAY_NUMBERS}", True, note)


def _rounding(facts: Facts, draft: Draft) -> Choice | None:
    if draft.vectors is None or draft.vectors.features != "hashed":
        return None
    if not any(facts.rounding):
        return Choice(None, "no values of a number differ by rounding alone", True)
    return Choice(facts.rounding, "values of a number that differ by rounding alone are one", True)


def _are_names(facts: Facts, draft: Draft) -> bool:
    """Whether numbers of a grid are names, and a network may learn from them, which tells more than a table."""
    vectors, is_open = draft.vectors, draft.evidence is None or isinstance(draft.evidence, PixelCounts)
    if vectors is None or vectors.features != "auto" or not is_open:
        return False
    is_network = isinstance(draft.likely_learner, GradientDescent)
    if not is_network or vectors.left_out or not facts.shows_names(vectors.values):
        return False
    if np.shape(facts.steps.observation)[1] > MOST_NAMES:
        return False
    noise = () if vectors.left_out is not None else tuple(facts.irrelevant.tolist())
    return facts.repeating(noise) < REPEATED or facts.layouts_differ(noise) or facts.names_tell_more(noise)


def _ends_at_limit(facts: Facts, draft: Draft) -> Choice | None:
    builder = draft.builder
    if not isinstance(builder, GymnasiumBuilder) or builder.compiles:
        return None
    if not facts.observed and facts.known(DISCOUNT) is not None:
        return None
    is_shown = facts.observed and facts.shows_the_limit(draft.left_out)
    if facts.is_paid_at_the_limit:
        why = "a random policy was paid more in steps in which time ran out than in all others"
        hidden = HIDDEN if facts.observed and not is_shown else ""
    elif is_shown:
        why, hidden = "observations show when time runs out", ""
    elif draft.averages_numbers and facts.counts_steps(draft.left_out):
        return Choice(True, "observations count the steps of an episode", True, COUNTED)
    else:
        shown = ", and no observation showed it" if facts.observed else "; what is shown was not judged"
        return Choice(None, f"steps in which time ran out were paid no more than others{shown}", True)
    return Choice(True, why, True, LIMITED.format(why[0].upper() + why[1:]) + hidden)


def _learner(facts: Facts, draft: Draft) -> Choice:
    return draft.usual


def _discount(facts: Facts, draft: Draft) -> Choice:
    if draft.learns_from_names:
        return Choice(
            NAMES_DISCOUNT, "a network learns from names: views differ in each layout, so the near counts most"
        )
    lasting = _lasting(facts, draft) if draft.averages_numbers else Choice(1, "")
    steps, can_be_undone = lasting.value * draft.builder.repeats, lasting.note is not None
    if steps >= LONGEST or (steps == 1 and not can_be_undone):
        return Choice(DISCOUNT, "")
    made = (
        "a step is a decision, though several make a difference" if steps == 1 else f"{steps} steps make a difference"
    )
    reason = f"{made}, so what an action delays counts as {LONGEST} steps of {DISCOUNT} each"
    return Choice(round(DISCOUNT ** (LONGEST / steps), 4), reason, True)


def _action_repeat(facts: Facts, draft: Draft) -> Choice | None:
    if not isinstance(draft.builder, VectorBuilder):
        return None
    if not draft.averages_numbers:
        return Choice(1, "observations are no numbers that are averaged over, so each step is a decision")
    if not draft.builder.can_repeat:
        return Choice(1, "a vector environment is used as it is")
    return _lasting(facts, draft)


def _lasting(facts: Facts, draft: Draft) -> Choice:
    """How many steps an action should last, where numbers are averaged over."""
    if facts.repeating(draft.left_out) >= REPEATED:
        return Choice(1, "observations come again, so each step leads from one to another", True)
    if facts.most_values(draft.left_out) <= FEW_VALUES:
        return Choice(1, f"no number has more than {FEW_VALUES} values, so each step leads from one to another", True)
    if facts.has_switch(draft.left_out):
        return Choice(1, "an action undoes what it did when it is taken again, as a switch does", True)
    if facts.decides_anew(draft.left_out):
        return Choice(1, "numbers that are drawn anew in each step decide what an action does", True)
    usual, steps = facts.pace(draft.left_out)
    if steps > 1 and facts.turns(draft.left_out):
        return Choice(1, f"what an action pays turns around within {LONGEST} steps", True)
    if steps == 1 < usual:
        why = "each move can be undone by another action, and several steps would pass places by"
        return Choice(steps, why, True, SINGLE.format(usual))
    return Choice(steps, f"so many steps move what actions control by {MOVED} of its standard deviation", True)


def _stochastic(facts: Facts, draft: Draft) -> Choice | None:
    is_table = isinstance(draft.learner, LeastSquares) and draft.encoding.is_one_hot
    if not is_table and not (isinstance(draft.learner, GradientDescent) and draft.averages_numbers):
        return None
    if isinstance(draft.builder, VectorBuilder) and draft.builder.radius is not None:
        return Choice(False, "observations of one cell differ anyway")
    repeated, different = facts.chance(draft.left_out)
    if not repeated:
        return Choice(False, "no pair of observation and action came again", True)
    reason = f"{different:,} of {repeated:,} pairs of observation and action that came again led to different outcomes"
    return Choice(different > 0, reason, True)


def _evidence(facts: Facts, draft: Draft) -> Choice | None:
    if draft.learns_from_names:
        return Choice(NAMES_EVIDENCE, "a network learns from names, in steps that are not compiled")
    if not draft.learns_from_pixels:
        return None
    return Choice(PixelCounts(), "a network learns from images, in steps that are not compiled", note=SOUGHT)


def _power(facts: Facts, draft: Draft) -> Choice | None:
    if not draft.learns_from_names:
        return None
    return Choice(1.0, "a network learns from names, so what was tried in an episode counts less until it ends")


def _levels(facts: Facts, draft: Draft) -> Choice | None:
    note = draft.builder.actions.note if isinstance(draft.builder, PackageBuilder) else None
    reason = "actions are numbers, which have to become a list: both ends and the middle"
    return None if note is None else Choice(LEVELS, reason, note=note)


def known_or_measured(facts: Facts, discount: float, grows: bool = False) -> Choice:
    """The range of returns: given by the user, named by the environment, or else measured.

    Args:
        facts: of the environment.
        discount: per step.
        grows: whether the range follows what is seen during the run, so that it need not be wider than that now.
    """
    found = facts.range(discount, 0.0) if grows else facts.range(discount)
    if found.known:
        asked = getattr(facts.builder, "returns", None)
        widened = ", with 0 among them" * (asked not in (None, (found.low, found.high)))
        return Choice(found, f"given{widened}" if facts.builder.known_returns else "named by the environment")
    if found.low == found.high:
        return Choice(found, "set by the first reward, since a random policy saw none", True)
    return Choice(found, "estimated from a random policy's", True)


def _listed(places: tuple[int, ...], names: tuple[str, ...]) -> str:
    named = [f"{place} ({names[place]})" if names and names[place] else f"{place}" for place in places[:SHOWN]]
    return ", ".join(named) + ", ..." * (len(places) > SHOWN)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a setting is chosen where it is open, and what docs/defaults.md says of it.

    Args:
        setting: as `uppertail train` names it.
        decide: chooses it; None: it stays as it is.
        looks_at: all that the rule looks at.
        chooses: what follows from it.
        constants: its numbers.
        chosen_on: where these were chosen.
        tested_on: what else they were tried on.
    """

    setting: str
    decide: Callable[[Facts, Draft], Choice | None]
    looks_at: str
    chooses: str
    constants: str = "-"
    chosen_on: str = "-"
    tested_on: str = "-"


RULES = (
    Rule(
        "env.stack",
        _stack,
        "if an environment of Gymnasium is single and shows no images, and a table or a network of numbers learns: "
        "rewards of steps with equal observations and actions; the share of their squared deviations from the mean "
        "that the first observation of the episode tells, or the last observations and actions, up to "
        f"{LONGEST_STACK}, beyond what they tell of shuffled rewards",
        f"what tells most, if that is at least {TOLD:.0%} and {CLEAR:g} standard deviations more than by chance; else "
        "`null`, the last observation alone. Of shares that are as good, the first in this order: `first`, 2, 3, 4. Of "
        f"numbers that do not repeat: 2, where regression on the last observation leaves {UNSEEN:.0%} of a number's "
        f"change or more, with waves of the numbers beside squares and products, too, and the one before tells "
        f"{NEARLY:.0%} of that, as where a speed is not shown",
        f"{TOLD:g}; {CLEAR:g} of {SHUFFLES} shuffles; as good: {SAME:g}; {LONGEST_STACK} observations; {UNSEEN:g}, "
        f"{NEARLY:g}",
        "corridors with a cue, seeds 0 and 1; a cart whose speed is hidden, and control without speeds: "
        "[decision 43](decisions/0043-what-the-past-tells.md)",
        "memory_len and memory_size of [bsuite](bsuite.md); the ten environments of [sparse rewards](sparse.md), "
        "FrozenLake, Taxi, Blackjack, slippery CliffWalking, CartPole and MountainCar keep the last one alone",
    ),
    Rule(
        "env.encoding",
        _encoding,
        "if observations of a single environment of Gymnasium are images, and a table can learn by what is given: of "
        "the distinct images of the first half, the share that comes again in the second. If they are several integers "
        "in Python, not stacked, and a network may learn: the same as `env.features`, below, without the share that "
        "comes again",
        f"`hashed`, each different image a state, from {IMAGES_REPEATED:.0%} on; else they stay images, and a network "
        "learns. `--learner GradientDescent` keeps images (`one_hot`, the default, says nothing of images). `numbers`, "
        "each integer a number, where outcomes are left to chance and near integers tell more than equal ones; else "
        "`one_hot`: they are one state or, of many values, each is a one-hot. `--env.features hashed` keeps states",
        f"{IMAGES_REPEATED:g}; those of `env.features`",
        "MinAtar with its original rules (Breakout 0.58 and 0.61, Freeway 0.54, others below 0.13: they stay images); "
        "random walks in pictures of rooms of 6 to 40 cells a side, with a key, slips or another start (0.72 to 1, but "
        "0.4 where each episode starts anywhere in 450 cells): "
        "[decision 41](decisions/0041-images-that-repeat-are-states.md); integers in order: a queue and stocks of "
        "three goods, [decision 56](decisions/0056-integers-in-order.md)",
        "Gymnasium's own pictures: FrozenLake, CliffWalking (1); CartPole (0.28), MountainCar (0.57), Acrobot (0), "
        "Blackjack (0.62)",
    ),
    Rule(
        "env.origins",
        _origins,
        "if numbers of a single environment of Gymnasium have more than 32 bits and are no image: how many values of "
        "each large number stay apart in 32 bits, in steps of random episodes. If numbers do not repeat and stay "
        "numbers: the values that a random policy saw of each",
        "of each large number the value in the first observation, 0, or the median of its large values: what keeps "
        "most values apart is subtracted, the first of those that keep as many. Of a number that is farther from 0 "
        "than its values are from each other, the median, to one digit of the width between them. Later commands "
        "subtract the same",
        f"large: {LARGE['f']:g}, integers {LARGE['i']:g}; {TRIED_STEPS} steps",
        "set once: [decision 50](decisions/0050-what-is-read-once-is-kept.md)",
        "ids of products, a sentinel in the first observation, positions in meters on a map, times in seconds; "
        "[CartPole and MountainCar, shifted](invariance.md)",
    ),
    Rule(
        "env.constant_texts",
        _constant_texts,
        "if an environment of Gymnasium shows texts: whether they change in random episodes",
        "the names of texts that never change, which are left out; later commands leave out the same",
        f"{TRIED_EPISODES} episodes of at most {TRIED_STEPS} steps",
        "set once",
        "MiniGrid's missions",
    ),
    Rule(
        "env.left_out",
        _irrelevant,
        "the weights of a regression of what follows (next numbers, reward, end) on the numbers, for each action; if "
        "numbers stay numbers, what each moves: the reward, the end, and the change of others",
        "numbers whose weights are no larger than chance makes them; constants of an episode and slow noise, which "
        "nothing moves and which move nothing else. These stay where reward and end vary in too few episodes to tell, "
        "since a goal would look the same; a clock stays, too, where the time limit is paid or TimeAwareObservation "
        "shows it, a number that is rarely far beyond its usual size, and one whose value, square or product with "
        "another number tells more than with the number's values of other episodes. All that only predict themselves "
        "stay where the others leave open what is paid: the nearest steps of other episodes tell too little of it",
        f"{SIGNIFICANT:g} standard deviations; {IDLE_EPISODES} episodes; at most {MOST_JUDGED} numbers or, of more, "
        f"those without which observations repeat; usual: within {USUAL:g} of the steps, far: a root mean square of "
        f"{TAIL:g} times as much; more: {left_out.CLEAR:g} standard deviations of {left_out.SHUFFLES} orders of "
        f"episodes, or of {PIECES} pieces of fewer than {FEW} episodes; {left_out.WORK:g} "
        f"multiplications have to be enough to tell, else all stay; the {left_out.NEAREST} nearest steps tell "
        f"{left_out.LEAST_TOLD:g} of the variance",
        "decisions [22](decisions/0022-numbers-that-tell-nothing.md) and "
        "[51](decisions/0051-numbers-that-tell-together.md)",
        "numbers whose structure is known, goals among them; bsuite's umbrellas; RichSea; "
        "[CartPole, changed](invariance.md)",
    ),
    Rule(
        "env.features",
        _features,
        "of the distinct observations of the first half, without what is left out, the share that comes again in the "
        "second; what followed the same action in equal observations, within an episode and between them; rewards of "
        "the next few steps",
        f"`hashed`, each different vector a state, from {REPEATED:.0%} on. Instead `one_hot`, each number the name of "
        "something, where numbers are names, and observations come again less often, or layouts differ, or names tell "
        "more. Numbers are names where some stand in a grid of integers, all that are seen are whole, from 0 on, and "
        "below `env.values`, others are declared to be, nothing is stacked or left out by hand, and a network alone, "
        "or beside `PixelCounts`, may learn from steps in Python. Layouts differ where episodes begin differently, and "
        "equal actions in equal observations lead elsewhere more often in another episode than in the same one, by "
        f"{SURE:g} standard deviations. Names tell more where outcomes are left to chance within an episode, and "
        "regression on names tells more of what an action is paid next than the mean in equal observations, by "
        f"{LEAST_PAID:.0%} of the variance. Else `auto`: they stay numbers. They also "
        "stay numbers, unless a table or its draws are asked for, where the same action led from equal "
        "observations to different outcomes, if regression on the numbers, their squares and products tells more of "
        "what a random policy is paid soon than the mean of equal "
        f"observations, by {LEAST_MORE:.0%} of it, and at least {LEAST_PAID:.0%} of it, each in half of the episodes "
        "from the other half",
        f"{REPEATED:g}; soon: a discount of {SOON:g}; {LEAST_PAID:g}; {LEAST_MORE:g}; at most {MOST_JUDGED} numbers, "
        f"one of them of three values or more; at most {MOST_NAMES:,} names; {SURE:g}; "
        f"at most {MOST_INPUTS:,} values of all names",
        "bsuite (`deep_sea/20`: 0.78; `catch`, `memory_size`: 0.99), RichSea 50 (0.86), random walks in rooms with a "
        "key; where outcomes are left to chance, a shop, a crossing and a queue: "
        "[decision 55](decisions/0055-near-ones-or-equal-ones.md); names: "
        "[decision 60](decisions/0060-names-beside-counts.md), [61](decisions/0061-names-where-layouts-differ.md)",
        "CartPole, MountainCar, Acrobot, RichChain, RichLock (0); a fixed first observation before new ones (0)",
    ),
    Rule(
        "env.rounding",
        _rounding,
        "if each different vector is a state: the values of each number that a random policy saw",
        f"a power of ten, of which a number is rounded to multiples, where values differ by up to {EXACT:.1g} of the "
        f"size that {left_out.USUAL:.0%} of them have at most, and no two by more, but by less than {APART:g} times as "
        "much; else 0. Rules above and below see numbers that are rounded so, whatever is learned",
        f"{EXACT:.1g}: 16 times what tells numbers of 32 bits apart; {APART:g}",
        "set once: sums of steps of 0.1 in 64 and 32 bits",
    ),
    Rule(
        "env.ends_at_limit",
        _ends_at_limit,
        "if Python steps the environment: rewards of the steps that a time limit cut short, and of all others; each "
        "number after these steps, or integer that makes up a state, without what is left out",
        "`true`, a truncated episode is learned as one that terminated, where these were paid "
        "beyond all others by more than the others differ, or where a number has one value after each of them, and "
        "nowhere else but in a few steps before, or where states after them come twice in the mean, and nowhere else, "
        "or where TimeAwareObservation shows the time, or a number that stays a number counts the steps of an episode; "
        "else `null`: learning looks beyond the limit",
        f"paid there by chance: {BY_CHANCE:g}; at least {LEAST_CUT} episodes that were cut short; a rounded clock "
        f"stands still in {STANDS_STILL:g} of the steps",
        "set once: [decision 45](decisions/0045-a-limit-that-is-shown-or-paid.md)",
        "the ten environments of [sparse rewards](sparse.md), classic control, toy texts and three tasks of "
        "dm_control: none shows or pays its limit",
    ),
    Rule(
        "learner",
        _learner,
        "the distribution, the policy, whether observations are states by then, and whether anything of gradient "
        "descent is given",
        "`LeastSquares` if the distribution's parameters can be averaged, observations are states, the policy needs no "
        "members, and nothing of gradient descent is given; else `GradientDescent`, beside `KernelCounts` if numbers "
        "stay numbers",
        chosen_on="decisions [15](decisions/0015-solve-do-not-step.md), [36](decisions/0036-landmarks-go.md); "
        "dm_control's `pendulum-swingup` and `cartpole-swingup_sparse`, `LunarLander-v3`, `CartPole-v1`: "
        "[decision 32](decisions/0032-a-network-for-vectors.md)",
    ),
    Rule(
        "learner.stochastic",
        _stochastic,
        "pairs of observation and action that came again (for a table, in 2,000 steps in NumPy)",
        "for tables of states and of vectors that repeat: whether any of them led elsewhere, paid otherwise or ended "
        "otherwise; where they did, means are backed up with the greedy action, and "
        "what was never seen starts as wide as the range of returns, in its middle: its upper bound is 8% of the range "
        "above it, and 25% if the range was measured, which then grows with the means that are learned; where none "
        "did, one outcome is taken for all, until all was tried and nothing earned. For networks "
        "beside kernel counts: whether any did, too; where they did, of two critics the lower one counts with "
        "1 / sqrt(1 + N) after N visits, and their mean with the rest",
        f"the prior of a pair's noise counts as {CHANCE_COUNT:g} transition and is {FIRST_NOISE:g} variances of the "
        f"start until noise was seen; at least the chance that a pair with as many visits leads where nothing is "
        f"known, whose prior counts as {WEIGHT:g} transitions, and, where a pair only led back to its state, the "
        f"chance that such pairs leave it, by the same prior; the start of a measured range has a standard deviation "
        f"of {MEASURED_STD:g}; a network: the 1 beside N",
        "seeds 100 to 109 of the tables of [docs/chance.md](chance.md), a queue, a shop and corridors: decisions "
        "[39](decisions/0039-tables-with-chance-start-in-the-middle.md) and "
        "[40](decisions/0040-novelty-in-place-of-a-least-noise.md); waits, an inventory: "
        "[decision 64](decisions/0064-waits-tell-how-often-they-end.md); for networks a queue, a crossing and three "
        "servers: [decision 58](decisions/0058-doubt-by-evidence.md); doubt where nothing was earned: "
        "[decision 62](decisions/0062-doubt-where-nothing-was-earned.md)",
        "Chain and FrozenLake with and without slips or noise; seeds 0 to 9 of the tables; for networks a hotel, a dam "
        "and rented bikes: no better and no worse",
    ),
    Rule(
        "discount",
        _discount,
        "whether a network learns from names (`env.features one_hot`) in steps in Python; else the same as "
        "`env.action_repeat`",
        f"{NAMES_DISCOUNT:g} where it does. Of numbers, "
        f"where an action should last {LONGEST} steps, or a single one: {DISCOUNT:g} a step, as for all else. Where 2 "
        f"or 3: {DISCOUNT ** (LONGEST / 2):.3g} and {DISCOUNT ** (LONGEST / 3):.4f}, and where a step is a decision, "
        f"although several make a difference, {DISCOUNT**LONGEST:.2g}: so an action costs as much delay as one of the "
        "longest. A network does not tell apart what differs less",
        f"{NAMES_DISCOUNT:g}; {DISCOUNT:g}; {LONGEST}",
        "names: [decision 60](decisions/0060-names-beside-counts.md); numbers: "
        "`LunarLander-v3`, seed 102, with a look at CartPole and Acrobot: "
        "[decision 46](decisions/0046-what-delay-costs.md)",
        "the thermostat of [sparse rewards](sparse.md); an arm, a paddle and a room with a wall (decision 46, *later*)",
    ),
    Rule(
        "env.action_repeat",
        _action_repeat,
        "if numbers stay numbers: the change per step in what actions control, in standard deviations. Numbers are "
        "whitened, and a regression for each action tells how effects of actions differ, and what follows from it "
        "within an episode; the last step of an episode does not count",
        f"as many steps as change it by {MOVED:g} standard deviations, at most {LONGEST}; 1 for states and images, "
        f"without kernel counts, where observations come again, or no number has more than {FEW_VALUES} values, and "
        "where actions make no difference to be seen, or undo what they did when they are taken again; also where "
        "another action undoes each that moves anything, so that nothing is carried on (what no action moves, such as "
        "cars that pass by, does not count), if so "
        f"many steps would change it by more than {STOPPED:g}; and where numbers that are drawn anew in each step "
        "decide what an action pays, ends or changes, "
        "or where what an action pays, or ends, turns around in fewer "
        f"than {LONGEST} steps",
        f"{MOVED:g}; {STOPPED:g}; {LONGEST}; {FEW_VALUES} values; {UNDONE:g}, the share of a change that may be left "
        f"where it is undone; drawn anew: the step before tells {STAYS:g} of the variance at most; decide, or turn "
        f"around: {pace.CLEAR:g} standard errors",
        "decisions [27](decisions/0027-actions-that-last.md), [32](decisions/0032-a-network-for-vectors.md), "
        "[48](decisions/0048-what-stops-at-once.md); "
        "CartPole 3, MountainCar 4, Acrobot 2, LunarLander 2, "
        f"Pendulum by five torques 4; {FEW_VALUES} values: stocks of three goods, "
        "[decision 56](decisions/0056-integers-in-order.md)",
        "these four and MountainCarContinuous (4) with six constants of an episode, two fresh and two slow noises, a "
        "clock, rotated, 1,000 times as large, and with all of it: the same number each time; a tenth: eight tasks of "
        "control, where the step before tells 0.17 or more of each number",
    ),
    Rule(
        "evidence",
        _evidence,
        "whether a network learns from images, or names, of an environment that is not compiled",
        "`PixelCounts`, so that what was not seen is sought. Other observations have the evidence of their learner, "
        "below, and images of compiled environments have none, since their steps cost less than updates",
        f"{PixelCounts().subsets} subsets, each pixel in one of them with chance {PixelCounts().chance:g}; of images "
        f"of more than {SIDE} pixels a side, shades of at most as many blocks a side; lambda "
        f"{PixelCounts().prior_count:g}, shades {SHADE:g} of the brightest pixel apart; {UPDATES} updates for each "
        f"action, fewer for images of more than {SMALL} pixels; for names lambda {NAMES_EVIDENCE.prior_count:g}, and "
        f"{OF_NAMES['updates_per_rollout']} update for each action of a network without normalization",
        "pictures of rooms, seeds 100 to 102: [decision 42](decisions/0042-counts-of-pixels.md); names: "
        "[decision 61](decisions/0061-names-where-layouts-differ.md)",
        "the same kinds of rooms, seeds 9200 to 9202: [evidence](evidence.md#in-pictures)",
    ),
    Rule(
        "policy.power",
        _power,
        "whether a network learns from names of an environment that is not compiled, and the policy is `UCB`",
        "1: the spread of an action is divided by 1 + how often it was taken in this observation within the episode; "
        "else `null`: it counts in full",
        "1",
        "[decision 60](decisions/0060-names-beside-counts.md)",
    ),
    Rule(
        "env.levels",
        _levels,
        "whether actions are a Box",
        f"{LEVELS} levels of each of its numbers, both ends among them, and all combinations of these as actions",
        f"{LEVELS}; at most 64 actions, or 1,024 whose parts are learned",
    ),
)
"""The rules in the order in which they are asked."""
