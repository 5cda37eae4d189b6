"""Replay of the best episodes: those with the highest returns and the most new observations (after Zha et al. 2021)."""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from uppertail.errors import InputError
from uppertail.hashing import hash_of_numbers
from uppertail.replay.base import Replay, RingBuffer, Sample, Uniform
from uppertail.schema import settle, traced
from uppertail.types import POLICY_CHOICE, Transition

PLACES = 2**16
"""Places for an episode's observations in a hash table: of 600 different ones, about three meet another."""


class Progress(NamedTuple):
    """The episode in progress."""

    number: Int[Array, ""]  # episodes before it
    ret: Float[Array, ""]  # its return so far, without discount
    length: Float[Array, ""]  # its steps so far
    new: Float[Array, ""]  # how many of its observations it had not shown before
    seen: Int[Array, " places"]  # for each place, the number of the episode that showed an observation there last


class EpisodeBuffer(NamedTuple):
    """A ring buffer, and for each row the number and the score of its episode; NaN: none, or one in progress."""

    ring: RingBuffer
    episode: Int[Array, " rows"]
    score: Float[Array, " rows"]
    sums: Float[Array, " rows"]  # running sums of the weights with which rows are drawn
    progress: Progress


@dataclasses.dataclass(frozen=True)
class BestEpisodes(Replay):
    """Keeps the last transitions, and draws those of an episode the more often, the higher its score is.

    The score of an episode is its return, without discount, plus `novelty` times the share of its observations that it
    had not shown before (the extrinsic and the local score of Zha et al. 2021, arXiv 2101.08152, with their weight). An
    observation counts as a whole, also the numbers of it that the network leaves out. A transition is drawn in
    proportion to ((score - lowest) / (highest - lowest))^power, among those whose episode has ended.

    Args:
        novelty: what is added to the return of an episode whose observations all differ, 0 or more, in units of return.
        power: how much more often better episodes are drawn, 0 (not at all) or more.

    Examples:
        >>> from uppertail.types import Transition
        >>> rows = [[0, 1, 0, 0], [1, 1, 0, 0], [0.0, 0.0, 0.0, 1.0], [0] * 4, [1, 2, 0, 3], [1, -1, 0, -1]]
        >>> steps = Transition(*map(jnp.array, rows))  # two episodes, of which the second is paid
        >>> buffer = ut.BestEpisodes().init(8, jax.tree.map(lambda leaf: leaf[0], steps))
        >>> drawn = ut.BestEpisodes().sample(ut.BestEpisodes().add(buffer, steps), jax.random.key(0), 100).transitions
        >>> set(drawn.action.tolist())  # those of the second episode
        {0}
    """

    whole_episodes: ClassVar[bool] = True
    novelty: float = traced(0.1)
    power: float = traced(2.0)

    def __post_init__(self) -> None:
        settle(self)
        for name in ("novelty", "power"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}: use 0 or more.")

    def init(self, capacity: int, example: Transition) -> EpisodeBuffer:
        zero, none = jnp.zeros(()), jnp.zeros((), jnp.int32)
        progress = Progress(none, zero, zero, zero, jnp.full(PLACES, -1))
        numbers, scores = jnp.full(capacity, -1), jnp.full(capacity, jnp.nan)
        return EpisodeBuffer(Uniform().init(capacity, example), numbers, scores, jnp.zeros(capacity), progress)

    def add(self, state: EpisodeBuffer, transitions: Transition) -> EpisodeBuffer:
        rows = state.ring.following(count := transitions.action.shape[0])
        progress, (episode, scores) = jax.lax.scan(self._step, state.progress, transitions)
        numbers, first = state.episode.at[rows].set(episode), state.progress.number
        ended_at = jnp.where(jnp.isnan(scores), count, episode - first)
        of_ended = jnp.zeros(count).at[ended_at].set(scores, mode="drop")
        ended = (numbers >= first) & (numbers < progress.number)  # in this batch
        score = jnp.where(ended, of_ended[jnp.clip(numbers - first, 0, count - 1)], state.score.at[rows].set(jnp.nan))
        return EpisodeBuffer(Uniform().add(state.ring, transitions), numbers, score, self._sums(score), progress)

    def _step(self, before: Progress, transition: Transition) -> tuple[Progress, tuple[Array, Array]]:
        """The episode in progress after a transition, its number, and its score, or NaN if it goes on."""
        place = (hash_of_numbers(transition.observation) % PLACES).astype(jnp.int32)
        is_new, ended = before.seen[place] != before.number, transition.next_action == POLICY_CHOICE
        ret, length, new = before.ret + transition.reward, before.length + 1, before.new + is_new.astype(jnp.float32)
        score = jnp.where(ended, ret + self.novelty * new / length, jnp.nan)
        ret, length, new = (jnp.where(ended, 0.0, each) for each in (ret, length, new))
        number, seen = before.number + ended.astype(jnp.int32), before.seen.at[place].set(before.number)
        after = Progress(number, ret, length, new, seen)
        return after, (before.number, score)

    def _sums(self, score: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """Running sums of the weights of rows with these scores."""
        known = ~jnp.isnan(score)
        low = jnp.min(jnp.where(known, score, jnp.inf))
        span = jnp.max(jnp.where(known, score, -jnp.inf)) - low
        share = jnp.where(span > 0, (score - low) / jnp.where(span > 0, span, 1.0), 1.0)
        return jnp.cumsum(jnp.where(known, share**self.power, 0.0))

    def sample(self, state: EpisodeBuffer, key: PRNGKeyArray, count: int) -> Sample:
        """As the contract says; all weights are 0 until an episode has ended."""
        total = state.sums[-1]
        rows = jnp.searchsorted(state.sums, total * jax.random.uniform(key, (count,)), side="right")
        rows = jnp.minimum(rows, state.sums.shape[0] - 1).astype(jnp.int32)
        return state.ring.sample(rows, jnp.broadcast_to(total > 0, count).astype(jnp.float32))
