"""The same agent in environments that Python steps: acting and learning are compiled, the steps are not."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from uppertail.environments import EnvironmentFailedError, GymnasiumBuilder, HostEnvironments, Patience, begin_all
from uppertail.errors import InputError
from uppertail.learners import LearnerState, Metrics
from uppertail.masks import ActionMask
from uppertail.networks import Network
from uppertail.policies import ExplorationPolicy
from uppertail.records import arrays_below
from uppertail.training.driver import Driver, Played, Refit, State
from uppertail.training.loop import (
    Actor,
    Episode,
    Loop,
    RunState,
    SeedKeys,
    StepRecord,
    View,
    iteration_keys,
    start_keys,
)
from uppertail.training.programs import Groups, Programs
from uppertail.training.rollouts import (
    Ends,
    Rollouts,
    choose_all,
    environment_keys,
    masks_of,
    play_all,
    play_episodes,
    rehearse,
    require_alike,
)
from uppertail.types import PyTree, Transition

WAITING = "waiting/"  # begins the names of saved transitions that wait to be learned from
CHUNK_STEPS = 512  # environment steps of each seed between two calls of the callback


class HostDriver(Driver):
    """Runs of all seeds in environments that Python steps: programs of each group see and learn, and one chooses."""

    def __init__(
        self,
        builder: GymnasiumBuilder,
        keys: SeedKeys,
        programs: Programs,
        seeds: list[int],
        num_envs: int,
        plays_between: bool = False,
    ) -> None:
        """`plays_between`: whether episodes are played while training goes on, beside its environments."""
        self.builder, self.keys, self.programs, self.seeds = builder, keys, programs, seeds
        self.num_envs, self.plays_between = num_envs, plays_between
        self.observations, self.num_actions = builder.observations, builder.num_actions
        self.groups = Groups(len(seeds))
        self._keys = self.groups.split(keys.run)
        self.ends = [Ends() for _ in seeds]
        self.hosts: list[HostEnvironments] = []

    def begin(self) -> None:
        seeds = self.seeds
        rehearsed = None if self.plays_between else rehearse(self.builder, seeds[0], self.num_envs)
        for seed in seeds:
            self.hosts.append(self.builder.open(seed, self.num_envs))
        again, first = (begin_all([host.reset for host in self.hosts], seeds, "at its first reset") for _ in range(2))
        if rehearsed is None:
            rehearsed = rehearse(self.builder, seeds[0], self.num_envs)
        require_alike(seeds[0], rehearsed, first[0])
        self._begun, self.first = first, jnp.asarray(first[:, 0])
        self._begun_masks = masks_of(self.hosts)
        self.first_mask = None if self._begun_masks is None else jnp.asarray(self._begun_masks[:, 0])
        self.identity = {"first": np.where(first == again, first, 0)}  # where the same seed gives the same ones again

    @property
    def remark(self) -> str | None:
        found = [ends.longest for ends in self.ends if ends.look_like_a_limit]
        if not found or self.builder.ends_at_limit:
            return None
        limit, label = max(found), self.builder.label
        return (
            f"The longest episodes of {label} all terminated after {limit} steps, as at a time limit, but it was "
            "learned as an end that is worth 0. If it is a limit, let the environment say truncated in place of "
            "terminated, or truncate it a step earlier: --env.wrappers '[{class_path: gymnasium.wrappers.TimeLimit, "
            f"init_args: {{max_episode_steps: {limit - 1}}}}}]'."
        )

    def use(self, loop: Loop, refit: Refit | None) -> None:
        self._first_reward, self.iterations = refit, max(1, CHUNK_STEPS // loop.rollout_steps)
        self._use(loop)

    def _use(self, loop: Loop) -> None:
        """Takes a loop, whose programs are compiled at their first calls."""
        if loop.learner.whole_episodes and (envs := self.hosts[0].num_envs) > 1:
            raise InputError(
                f"There are {envs} environments for each seed, but this replay buffer needs whole episodes, one after "
                "another: use --num_envs 1, and no vector environment."
            )
        self.loop, compiled, actor = loop, self.programs.compiled_later, Actor(loop.agent, loop.agent.policy)
        init = functools.partial(_init, loop, self.num_actions)
        self.template = jax.eval_shape(jax.vmap(init), self.keys.run, self._begun, self._begun_masks)
        structure = jax.tree.structure(loop.learner.without_data(self.template.learned))
        self._begin_rollout = compiled(_begin_rollout, None)
        self._views = [compiled(_view, loop, static=(structure,)) for _ in self.groups]
        self._choose = compiled(choose_all, actor)
        self._learning: list[Callable[..., tuple[RunState, Metrics]]] = []

    def start(self) -> State:
        arguments = (self.keys.run, self._begun, self._begun_masks)
        state = self.programs.call(_init, self.loop, *arguments, static=(self.num_actions,))
        return self._go_on(state, state.episode)

    def gather(self, state: State, part: Callable[[RunState], PyTree] = lambda run: run) -> PyTree:
        episodes = _stack([rollouts.episode for rollouts in self.rollouts])
        episodes = episodes._replace(memory=jax.tree.map(np.asarray, self.memory))
        parts = zip(self.groups, state, strict=True)
        return self.groups.join([part(run._replace(episode=_rows(episodes, group.rows))) for group, run in parts])

    def advance(
        self, state: State, finished: Bool[np.ndarray, " seeds"] | None = None, iterations: int | None = None
    ) -> tuple[State, StepRecord, Metrics]:
        del finished  # environments of finished seeds go on with the others
        done: list[tuple[StepRecord, Metrics]] = []
        with self.programs.in_loop():
            try:
                for _ in range(iterations or self.iterations):
                    if self.stop.is_set():  # an environment may be slow, and the process killed soon
                        break
                    fresh, record = self._roll_out([run.learned for run in state])
                    state = self._refit_first(state, np.asarray(fresh.reward))
                    state, metrics = self._learn(state, fresh, record)
                    done.append((record, metrics))
                    self.iteration += 1
            except EnvironmentFailedError as error:
                self.failure = str(error)
        if not done:
            return state, *self._no_records()
        return state, *jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *done)

    def play(self, networks: Network, policy: ExplorationPolicy, episodes: int) -> Played:
        actor = Actor(self.loop.agent, policy)
        act = functools.partial(self.programs.compiled_later(play_all, actor), networks, self.keys.evaluation)

        def memory_of(first: np.ndarray) -> PyTree:
            blank = jax.vmap(jax.vmap(actor.blank, in_axes=(None, 0)))(networks, jnp.asarray(first))
            return jax.tree.map(np.asarray, blank)

        patience = Patience(self.say or (lambda line: None))

        def after_step(over: int) -> None:
            self.stop.require_time()
            asked = episodes * len(self.seeds)
            patience(lambda passed: f"{over:,} of {asked:,} episodes were played in {passed:.0f} s.")

        return play_episodes(self.builder, self.seeds, self._begun.shape[1], act, memory_of, episodes, after_step)

    def saved(self) -> dict[str, np.ndarray]:
        parts = {"": self.hosts, WAITING: self.rollouts}
        return {
            f"{part}{row}/{name}": array
            for part, of_rows in parts.items()
            for row, each in enumerate(of_rows)
            for name, array in each.saved().items()
        }

    def restore(self, arrays: dict[str, np.ndarray], state: RunState) -> tuple[State, str | None]:
        """Goes back to the episodes in progress; where that is not possible, new ones begin."""
        episode = jax.tree.map(np.asarray, state.episode)
        kept = [arrays_below(f"{row}/", arrays) for row in range(len(self.hosts))]
        going_back = [functools.partial(host.restore, saved) for host, saved in zip(self.hosts, kept, strict=True)]
        here = begin_all(going_back, self.seeds, "while the actions of its episode in progress were taken again")
        elsewhere = (here != episode.observation).reshape(len(self.hosts), -1).any(axis=1)
        lost = elsewhere | np.array([not saved for saved in kept])
        ended = np.asarray(state.episodes).tolist()
        first = [
            functools.partial(host.begin_another, ended[row]) if lost[row] else functools.partial(here.__getitem__, row)
            for row, host in enumerate(self.hosts)
        ]
        here = begin_all(first, self.seeds, "as another episode began in place of the one in progress")
        on = ~lost[:, None]
        so_far = {name: getattr(episode, name) * on for name in ("ret", "length", "earned")}
        action, masks = episode.action, masks_of(self.hosts)
        if masks is not None:  # one that was chosen elsewhere may not be allowed here
            still = np.take_along_axis(masks, action[..., None], axis=-1)[..., 0]
            action = np.where(still, action, masks.argmax(axis=-1)).astype(action.dtype)
        begun = episode._replace(observation=here, action=action, **so_far)
        which = ", ".join(str(self.seeds[row]) for row in np.flatnonzero(lost))
        line = f"The episode in progress cannot be restored (seed {which}): another one begins."
        going_on = self._go_on(state, begun)
        for row, rollouts in enumerate(self.rollouts):
            rollouts.restore(arrays_below(f"{WAITING}{row}/", arrays))
        return going_on, line if which else None

    def release(self) -> None:
        for host in self.hosts:
            host.close()

    def close(self) -> None:
        self.groups.close()
        self.release()

    def _go_on(self, state: RunState, episode: Episode) -> State:
        """The state to go on from, with these episodes in progress."""
        episode = jax.tree.map(np.asarray, episode)
        ended, self.iteration = np.asarray(state.episodes), int(np.asarray(state.iteration)[0])
        steps, discount = self.iteration * self.loop.rollout_steps, float(self.loop.agent.discount)
        self.memory: PyTree = episode.memory
        self.rollouts = [
            Rollouts(host, seed, _rows(episode, row), int(ended[row]), steps, self.builder.repeats, discount)
            for row, (host, seed) in enumerate(zip(self.hosts, self.seeds, strict=True))
        ]
        return self.groups.split(state._replace(episode=()))

    def _roll_out(self, learned: list[LearnerState]) -> tuple[Transition, StepRecord]:
        """Makes a rollout of all seeds by what each group has learned; its arrays have a leading axis of seeds."""
        count, without_data = self.loop.rollout_steps, self.loop.learner.without_data
        leaves = [jax.tree.leaves(without_data(each)) for each in learned]
        remembers = bool(jax.tree.leaves(self.memory))
        key, step = self._begin_rollout(self.keys.run, np.full(len(self.seeds), self.iteration, np.int32))
        while short := [rollouts for rollouts in self.rollouts if rollouts.waiting < count]:
            for rollouts in short:
                rollouts.step()
            where = np.stack([rollouts.where for rollouts in self.rollouts])
            begins = np.stack([rollouts.begins for rollouts in self.rollouts]) if remembers else ()
            view = self._seen(leaves, where)
            masks = masks_of(self.hosts)
            choice, memory, step = self._choose(key, step, view, where, self.memory, begins, masks)
            actions, exploratory = np.asarray(choice).swapaxes(0, 1)
            for row, rollouts in enumerate(self.rollouts):
                if rollouts.waiting < count:
                    rollouts.continue_with(actions[row], exploratory[row].astype(bool))
            if len(short) < len(self.rollouts):  # seeds that wait for others keep their memory
                waits = [row for row, rollouts in enumerate(self.rollouts) if rollouts not in short]
                memory = jax.tree.map(lambda new, old, rows=waits: _with_rows(new, old, rows), memory, self.memory)
            self.memory = memory
        taken = [rollouts.take(count) for rollouts in self.rollouts]
        for ends, made in zip(self.ends, taken, strict=True):
            ends.add(*made)
        return _stack(taken)

    def _seen(self, leaves: list[list[Array]], where: np.ndarray) -> PyTree:
        """What the policies of all seeds see. Each group looks by itself: networks may be too large to be joined."""
        if len(self._views) == 1:
            return self._views[0](*leaves, where)

        def of_group(view: Any, learned: list[Array], where: np.ndarray) -> PyTree:
            return jax.tree.map(np.asarray, view(learned, where))

        each = self.groups.map(of_group, self._views, leaves, [where[group.rows] for group in self.groups])
        return jax.tree.map(lambda *parts: np.concatenate(parts), *each)

    def _refit_first(self, state: State, rewards: np.ndarray) -> State:
        """Changes the scale of returns at the first reward that is not 0, if the scale was a guess until then."""
        if self._first_reward is None or not rewards.any():
            return state
        loop = self._first_reward(min(0.0, float(rewards.min())), max(0.0, float(rewards.max())))
        self._first_reward = None
        return self.refit(state, loop)

    def _learn(self, state: State, fresh: Transition, record: StepRecord) -> tuple[State, Metrics]:
        """Updates each group's state by learning from its rollouts."""
        rows_of = fresh, record.lasted(self.builder.repeats)
        fresh_of, lasted_of = ([_rows(each, group.rows) for group in self.groups] for each in rows_of)
        arguments = self._keys, state, fresh_of, lasted_of
        if not self._learning:
            compiled = functools.partial(self.programs.compiled, _learn, self.loop, donate=(1,))
            self._learning = [compiled(*of_group) for of_group in zip(*arguments, strict=True)]

        def learn_group(learn: Any, *of_group: Any) -> tuple[RunState, Metrics]:
            run, metrics = learn(*of_group)
            return run, jax.tree.map(np.asarray, metrics)

        done = self.groups.map(learn_group, self._learning, *arguments)
        return [run for run, _ in done], self.groups.join([metrics for _, metrics in done])

    def _no_records(self) -> tuple[StepRecord, Metrics]:
        counts = self.loop.rollout_steps, self.loop.learner.updates
        steps, updates = (jnp.zeros((len(self.seeds), 0, count)) for count in counts)
        no = steps.astype(bool)
        return StepRecord(no, steps, steps.astype(jnp.int32), steps, no, no), Metrics(
            updates, updates, updates, updates
        )


def _rows(tree: PyTree, rows: int | slice) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def _with_rows(new: Any, old: Any, rows: list[int]) -> np.ndarray:
    mixed = np.array(new)
    mixed[rows] = np.asarray(old)[rows]
    return mixed


def _stack(trees: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _init(loop: Loop, num_actions: int, run_key: PRNGKeyArray, observations: Array, masks: ActionMask) -> RunState:
    (network_key, _, action_key), actor = start_keys(run_key), Actor(loop.agent, loop.agent.policy)
    learned = loop.learner.init(network_key, observations, num_actions)
    first = jax.vmap(actor.first, in_axes=(0, None, 0, 0))
    choice = first(environment_keys(action_key, observations.shape[0]), learned.network, observations, masks)
    zeros = jnp.zeros(observations.shape[0])
    episode = Episode((), observations, choice.action, zeros, zeros.astype(jnp.int32), zeros, choice.memory)
    return loop.begin(learned, episode)


def _begin_rollout(_: None, run_key: PRNGKeyArray, iteration: Array) -> tuple[PRNGKeyArray, Array]:
    """The key of a rollout, and the number of its first step."""
    return iteration_keys(run_key, iteration)[0], jnp.zeros((), jnp.int32)


def _view(loop: Loop, structure: Any, leaves: list[Array], observations: Array) -> View:
    """What the policy sees in all environments of a seed.

    To take what was learned apart into its leaves at every step would be a quarter of its time.
    """
    network = loop.learner.acting(jax.tree.unflatten(structure, leaves))
    return jax.vmap(Actor(loop.agent, loop.agent.policy).view, in_axes=(None, 0))(network, observations)


def _learn(
    loop: Loop, run_key: PRNGKeyArray, run: RunState, fresh: Transition, lasted: Array
) -> tuple[RunState, Metrics]:
    return loop.learn(iteration_keys(run_key, run.iteration)[1], run, (), fresh, lasted)
