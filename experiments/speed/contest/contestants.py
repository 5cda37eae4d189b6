"""What is timed: this project's training loop, in this process, and a peer's, in a process of its own."""

import abc
import contextlib
import dataclasses
import functools
import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import jax

from experiments.speed.contest import chain
from experiments.speed.contest.load import Load
from uppertail.distributions import ReturnDistribution
from uppertail.environments import Chain, FromGymnasium
from uppertail.errors import InputError
from uppertail.networks import Ensemble, PerAction
from uppertail.policies import UCB
from uppertail.records import describe
from uppertail.training.method import Method
from uppertail.training.run import Run
from uppertail.training.settings import Settings


class Contestant(abc.ABC):
    """Something whose environment steps per second are measured, again and again."""

    label: str
    hidden_layers: int

    @abc.abstractmethod
    def prepare(self, load: Load) -> None:
        """Compiles and warms up: the work that is not timed.

        Raises:
            InputError: it cannot run.
        """

    @abc.abstractmethod
    def rate(self, seconds: float) -> float:
        """Environment steps per second of all seeds together, measured over about this many seconds."""

    @abc.abstractmethod
    def facts(self, load: Load) -> dict[str, Any]:
        """Other facts about it, once it is prepared."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees its resources."""


@dataclasses.dataclass
class Ours(Contestant):
    """This project's loop.

    Args:
        label: its name.
        distribution: the family.
        seeds: how many seeds train at once.
        hidden_layers: of each network.
        host: whether Python makes the steps, as it does for an environment that cannot be compiled.
        members: members of an ensemble; 1: a single network.
        width: units in each hidden layer; None: the load's.
    """

    label: str
    distribution: ReturnDistribution[Any]
    seeds: int
    hidden_layers: int
    host: bool = False
    members: int = 1
    width: int | None = None

    def prepare(self, load: Load) -> None:
        compiled, stepped = (
            Chain(load.length),
            FromGymnasium(functools.partial(chain.Chain, load.length, 0), returns=(0.0, 1.0)),
        )
        settings = Settings(
            seeds=self.seeds,
            episodes=10**9,
            batch_size=load.batch_size,
            rollout_steps=load.rollout_steps,
            updates_per_rollout=load.updates_per_rollout,
            replay_size=load.replay_size,
        )
        size: dict[str, Any] = {"width": self.width or load.width, "hidden_layers": self.hidden_layers}
        network = PerAction(**size) if self.members == 1 else Ensemble(members=self.members, **size)
        method = Method(self.distribution, UCB(), network=network)
        self.run = Run(stepped if self.host else compiled, method, settings)
        self.state = self.run.driver.start()
        self.state, _, _ = self.run.driver.advance(self.state)
        self.compile_seconds = self.run.ledger.programs.compile

    def rate(self, seconds: float) -> float:
        steps, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds or not steps:
            self.state, records, _ = self.run.driver.advance(self.state)
            steps += math.prod(records.ended.shape)
        return steps / elapsed

    def facts(self, load: Load) -> dict[str, Any]:
        alone = dataclasses.replace(load, width=self.width or load.width)
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(self.run.driver.gather(self.state)))
        return {
            "distribution": describe(self.distribution)["name"],
            "seeds": self.seeds,
            "host": self.host,
            "flops_per_step": self.members
            * alone.flops_per_step(self.hidden_layers, self.run.method.distribution.num_outputs),
            "compile_seconds": round(self.compile_seconds, 2),
            "state_megabytes": round(size / 1e6, 1),
        }

    def close(self) -> None:
        self.run.close()
        del self.run, self.state


@dataclasses.dataclass
class Peer(Contestant):
    """A peer's loop, on one thread, in an interpreter of its own.

    Args:
        label: its name.
        python: the interpreter.
        algorithm: DQN or QRDQN.
        hidden_layers: hidden layers of its network.
        steps: environment steps of each repetition.
    """

    label: str
    python: str
    algorithm: str
    hidden_layers: int
    steps: int

    def prepare(self, load: Load) -> None:
        options = {"algorithm": self.algorithm, "hidden_layers": self.hidden_layers, "steps": self.steps}
        words = [f"--{name}={value}" for name, value in {**options, **dataclasses.asdict(load)}.items()]
        script = str(Path(__file__).with_name("peer.py"))
        try:
            self.process = subprocess.Popen(
                [self.python, script, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise InputError(f"The peers' interpreter {self.python} cannot be run ({error.strerror}).") from error
        self.versions = self._answer()["versions"]

    def rate(self, seconds: float) -> float:
        del seconds  # a peer always makes the same number of steps
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            self.process.stdin.write("again\n")
            self.process.stdin.flush()
        return self._answer()["steps_per_second"]

    def facts(self, load: Load) -> dict[str, Any]:
        del load
        return {"algorithm": self.algorithm, "seeds": 1, "versions": self.versions}

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            return json.loads(line)
        except json.JSONDecodeError as error:
            self.process.kill()
            raise InputError(
                f"{self.label} printed no result ({line.strip() or 'it stopped'}): make its environment from "
                "experiments/peers/requirements.txt, as `make bench` does."
            ) from error
