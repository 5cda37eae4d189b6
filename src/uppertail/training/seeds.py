"""The keys of a seed: all randomness of its run comes from them."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Int, Key, PRNGKeyArray


class SeedKeys(NamedTuple):
    """One key to build the environment, one for the run, one for its evaluation."""

    environment: PRNGKeyArray
    run: PRNGKeyArray
    evaluation: PRNGKeyArray


def seed_keys(seed: int | Int[Array, ""]) -> SeedKeys:
    """The keys of one seed."""
    environment, run, evaluation = jax.random.split(jax.random.key(seed), 3)
    return SeedKeys(environment, run, evaluation)


all_seed_keys = jax.jit(jax.vmap(seed_keys))
"""The keys of several seeds, every array with a leading axis of seeds."""


class StartKeys(NamedTuple):
    """Keys of a run's beginning: for its network, the first reset and the first action."""

    network: PRNGKeyArray
    reset: PRNGKeyArray
    action: PRNGKeyArray


class StepKeys(NamedTuple):
    """Keys of one step: for the environment, a reset if the episode ends there, and the next action."""

    step: PRNGKeyArray
    reset: PRNGKeyArray
    action: PRNGKeyArray


def start_keys(run_key: PRNGKeyArray) -> StartKeys:
    """The keys of a run's beginning."""
    return StartKeys(*jax.random.split(jax.random.fold_in(run_key, 0), 3))


def iteration_keys(run_key: PRNGKeyArray, iteration: Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The keys of the next rollout and of its updates, after this many iterations."""
    act_key, learn_key = jax.random.split(jax.random.fold_in(run_key, iteration + 1))
    return act_key, learn_key


def step_keys(rollout_key: PRNGKeyArray, step: int | Int[Array, ""]) -> StepKeys:
    """The keys of a step of a rollout."""
    return StepKeys(*jax.random.split(jax.random.fold_in(rollout_key, step), 3))


def play_keys(play_key: PRNGKeyArray, step: int | Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The keys of the action and of the environment at a step of an episode played with a compiled environment."""
    action_key, step_key = jax.random.split(jax.random.fold_in(play_key, step))
    return action_key, step_key


def environment_keys(key: PRNGKeyArray, count: int) -> Key[Array, " envs"]:
    """The key of each of a seed's environments; a single environment has the seed's own, as in compiled runs."""
    return key[None] if count == 1 else jax.random.split(key, count)
