"""Replay of the best episodes: those with the highest returns and the most new observations (Zha et al. 2021)."""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from uppertail.errors import InputError
from uppertail.hashing import hash_of_numbers
from uppertail.replay.base import Replay, Sample
from uppertail.schema import settle, traced
from uppertail.types import POLICY_CHOICE, Transition


class EpisodeBuffer(NamedTuple):
    """Transitions, and what is known of the episode that each of them belongs to."""

    transitions: Transition
    hashes: UInt32[Array, " rows"]  # of the observations
    is_new: Bool[Array, " rows"]  # whether the episode showed this observation for the first time
    episode: Int[Array, " rows"]  # the number of the episode
    score: Float[Array, " rows"]  # of the episode; -inf: nothing is there, inf: the episode is in progress
    order: Int[Array, " rows"]  # the rows by their score, the worst first
    current: Int[Array, ""]  # the number of the episode in progress

    @property
    def in_progress(self) -> Bool[Array, " rows"]:
        return self.score == jnp.inf


@dataclasses.dataclass(frozen=True)
class BestEpisodes(Replay):
    """Keeps the transitions of the best episodes, and draws from the best half of its rows.

    An episode's score is its return, without discount, plus `novelty` times the share of its observations that it had
    not shown before (the extrinsic and the local score of Zha et al. 2021, arXiv 2101.08152, with their weight). The
    other half is room for the episode in progress; an episode that is longer loses some of its transitions.

    Args:
        novelty: what is added to the return of an episode whose observations all differ, 0 or more, in units of return.

    Examples:
        >>> from uppertail.types import Transition
        >>> steps = Transition(
        ...     *jnp.array([[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1], [0] * 4, [1, 2, 0, 3], [1, -1, 0, -1]])
        ... )
        >>> buffer = ut.BestEpisodes().init(4, jax.tree.map(lambda leaf: leaf[0], steps))  # draws from two rows
        >>> drawn = ut.BestEpisodes().sample(ut.BestEpisodes().add(buffer, steps), jax.random.key(0), 10).transitions
        >>> int(drawn.action.max())  # those of the second episode
        0
    """

    whole_episodes: ClassVar[bool] = True
    novelty: float = traced(0.1)

    def __post_init__(self) -> None:
        settle(self)
        if self.novelty < 0:
            raise InputError(f"novelty is {self.novelty}: use 0 or more, for example 0.1.")

    def init(self, capacity: int, example: Transition) -> EpisodeBuffer:
        rows = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example)
        no, zeros = jnp.zeros(capacity, bool), jnp.zeros(capacity, jnp.int32)
        score, order = jnp.full(capacity, -jnp.inf), jnp.arange(capacity)
        return EpisodeBuffer(rows, zeros.astype(jnp.uint32), no, zeros, score, order, jnp.zeros((), jnp.int32))

    def add(self, state: EpisodeBuffer, transitions: Transition) -> EpisodeBuffer:
        ends = (transitions.next_action == POLICY_CHOICE).astype(jnp.int32)
        hashes, places = jax.vmap(hash_of_numbers)(transitions.observation), jnp.arange(count := ends.shape[0])
        episode = state.current + jnp.cumsum(ends) - ends

        def is_first(place: Array, hashed: Array, number: Array) -> Bool[Array, ""]:
            before = state.in_progress & (state.hashes == hashed) & (state.episode == number)
            earlier = (places < place) & (hashes == hashed) & (episode == number)
            return ~(before.any() | earlier.any())

        is_new = jax.vmap(is_first)(places, hashes, episode)
        new = {"transitions": transitions, "hashes": hashes, "is_new": is_new, "episode": episode}
        new["score"], rows = jnp.full(count, jnp.inf), state.order[:count]
        old = {name: getattr(state, name) for name in new}
        stored = jax.tree.map(lambda before, now: before.at[rows].set(now), old, new)
        return self._scored(state._replace(**stored), jnp.sum(ends))

    def _scored(self, state: EpisodeBuffer, ended: Int[Array, ""]) -> EpisodeBuffer:
        """The buffer after so many episodes ended, with their scores."""
        count = state.score.shape[0]  # more than the episodes that can end at once
        place = jnp.where(state.in_progress, state.episode - state.current, count)

        def total(numbers: Array) -> Float[Array, " episodes"]:
            return jax.ops.segment_sum(numbers.astype(jnp.float32), place, num_segments=count)

        share = total(state.is_new) / jnp.maximum(total(state.in_progress), 1.0)
        scores = total(state.transitions.reward) + self.novelty * share
        score = jnp.where(place < ended, scores[jnp.minimum(place, count - 1)], state.score)
        return state._replace(score=score, order=jnp.argsort(score), current=state.current + ended)

    def sample(self, state: EpisodeBuffer, key: PRNGKeyArray, count: int) -> Sample:
        """As the contract says; all weights are 0 until an episode has ended."""
        empty, ended = jnp.sum(state.score == -jnp.inf), jnp.sum(~state.in_progress)
        drawable = jnp.minimum(ended - empty, state.score.shape[0] // 2)
        place = jax.random.randint(key, (count,), 0, jnp.maximum(drawable, 1))
        rows = state.order[ended - 1 - place]
        drawn = jax.tree.map(lambda leaf: leaf[rows], state.transitions)
        return Sample(drawn, rows, jnp.broadcast_to(drawable > 0, count).astype(jnp.float32))
