"""The parts that a run is made of, and their built-in kinds: a new one is one file and one name here; and presets.

Modules load lazily, so that `--help` and `import uppertail` are fast.
"""

import importlib
import inspect
import pydoc
import re
from typing import Any, NamedTuple

from uppertail.errors import InputError, join_names, message_of, nearest, printable, short_text


class Part(NamedTuple):
    """One part of a run.

    Args:
        contract: import path of the class that all of its kinds implement.
        meaning: what it is, for help.
        default: the kind that is used by default.
        kinds: the module of each built-in kind.
        optional: whether a run may be without it; then it is left out unless it, or one of its settings, is named.
    """

    contract: str
    meaning: str
    default: str
    kinds: dict[str, str]
    optional: bool = False

    @property
    def choices(self) -> str:
        """The built-in kinds, for a sentence."""
        return join_names([*self.kinds])

    @property
    def classes(self) -> dict[str, Any]:
        """The class of each built-in kind, by its name."""
        return {name: getattr(importlib.import_module(module), name) for name, module in self.kinds.items()}

    def load(self) -> Any:
        """The contract's class."""
        module, _, name = self.contract.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _in(module: str, names: str) -> dict[str, str]:
    """The module of each of these kinds."""
    return dict.fromkeys(names.split(), module)


PARTS = {
    "env": Part(
        "uppertail.environments.EnvironmentBuilder",
        "the environment, by its id in Gymnasium (CartPole-v1), or one of these",
        "Chain",
        _in(
            "uppertail.environments",
            "Chain DeepSea RichChain RichSea RichLock Toy RiskyArm RiverSwim SixArms "
            "FrozenLake Gym Gymnax XMiniGrid Bsuite",
        ),
    ),
    "distribution": Part(
        "uppertail.distributions.ReturnDistribution",
        "the family of return distributions that is learned",
        "Gaussian",
        _in("uppertail.distributions", "Gaussian Categorical GaussianMixture PointMass Quantile"),
    ),
    "policy": Part(
        "uppertail.policies.ExplorationPolicy",
        "how actions are chosen",
        "UCB",
        _in(
            "uppertail.policies",
            "UCB PosteriorSampling Thompson MemberThompson DoubleUCB EpsilonGreedy Softmax",
        ),
    ),
    "learner": Part(
        "uppertail.learners.LearnerBuilder",
        "how return distributions are learned (null: LeastSquares where it can, else GradientDescent)",
        "LeastSquares",
        _in("uppertail.learners", "LeastSquares GradientDescent Imitation"),
        optional=True,
    ),
    "network": Part(
        "uppertail.networks.NetworkBuilder",
        "the network of GradientDescent or Imitation",
        "PerAction",
        _in("uppertail.networks", "PerAction Ensemble Twin") | _in("uppertail.contrib", "Dropout Variational"),
        optional=True,
    ),
    "replay": Part(
        "uppertail.replay.Replay",
        "the replay buffer of GradientDescent or Imitation",
        "Uniform",
        _in("uppertail.replay", "Uniform Prioritized BestEpisodes"),
        optional=True,
    ),
    "target": Part(
        "uppertail.targets.Target",
        "the network that GradientDescent bootstraps from",
        "Online",
        _in("uppertail.targets", "Online RunningMean Periodic"),
        optional=True,
    ),
    "evidence": Part(
        "uppertail.evidence.EvidenceBuilder",
        "what share of the wide start is left beside the network of GradientDescent",
        "Counts",
        _in("uppertail.evidence", "Counts KernelCounts NoEvidence PixelCounts"),
        optional=True,
    ),
}
"""Each part by the name of its option."""

PARTS_OF_GRADIENTS = ("network", "replay", "target", "evidence")
"""The parts of gradient descent, which `LearnerBuilder.usual` fills in where they are open."""

REMOVED = {
    "NearestNeighbors": "leave --learner out (a network learns from numbers)",
    "EpisodicUCB": "use UCB with --policy.low C --policy.high C --policy.power 1",
}
"""What to do in place of kinds that earlier versions had."""

SETTLED: dict[str, dict[str, Any]] = {
    "LeastSquares": {
        **dict.fromkeys(("spread_prior_count", "mean_prior_count", "sweeps", "tolerance")),
        **dict.fromkeys(("start_width", "greedy_mean", "spread_power")),
        "transitions": 16_384,
    }
}
"""Values of settings, by kind, that files of earlier versions have and that ask for nothing that differs now."""


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "learner": "GradientDescent",
        "evidence": "NoEvidence",
        "network": "PerAction",
        "on_policy": "fresh",
        "learning_rate": 5e-4,
        "learning_rate_decay": 0,
        "adam_betas": [0.9, 0.999],
        "adam_epsilon": 1e-8,
        "batch_size": 32,
        "rollout_steps": 16,
        "updates_per_rollout": 2,
        "network.width": 256,
        "network.hidden_layers": 2,
        "network.bias": True,
        "Gaussian.distance": "cross_entropy",
        "Gaussian.beta": 0.0,
        "GaussianMixture.distance": "l2",
        "UCB.low": 1.7,
        "UCB.high": 2.3,
    },
    "minigrid": {
        "env": "Gym",
        "discount": 0.95,
        "steps": 60_000,
        "Gym.wrappers": [
            "minigrid.wrappers.FullyObsWrapper",
            {"class_path": "ClipReward", "init_args": {"max_reward": 0.1}},
        ],
        "Gym.encoding": "hashed",
        "Gym.reset_seed": "run",
        "Gym.returns": [0, 0.1],
        "Gym.success": 0.1,
        "UCB.low": 0.45,
        "UCB.high": 0.45,
    },
    "minigrid_layouts": {
        "env": "Gym",
        "learner": "LeastSquares",
        "discount": 0.95,
        "steps": 120_000,
        "rollout_steps": 16,
        "Gym.wrappers": [{"class_path": "ClipReward", "init_args": {"max_reward": 0.1}}],
        "Gym.encoding": "hashed",
        "Gym.background": [[0, 0, 0], [1, 0, 0], [2, 5, 0]],
        "Gym.returns": [0, 0.1],
        "Gym.success": 0.1,
        "UCB.low": 0.45,
        "UCB.high": 0.45,
        "UCB.power": 1,
        "LeastSquares.sweeps": 2,
    },
    "minigrid_imitation": {
        "env": "Gym",
        "distribution": "PointMass",
        "policy": "Softmax",
        "learner": "Imitation",
        "steps": 1_000_000,
        "Gym.features": "one_hot",
        "Gym.values": 11,
        "Gym.returns": [0, 1],
    },
}
"""Named sets of options for `uppertail train --preset NAME`.

A setting of a class counts where the run has this class, one of a part where its class has such a setting.

`paper`: deeper networks with biases, c drawn for each decision, the paper's losses, plain Adam and replay.
`minigrid`: the whole grid in view, each of its states told apart, one layout for each seed, the goal paid the same at
any time, and c for ways of about 11 steps (docs/minigrid.md).
`minigrid_layouts`: a new layout in each episode, the partial view, whose objects tell states apart, and visits of the
episode.
`minigrid_imitation`: a new layout in each episode, the partial view, and a network that imitates the best episodes.
"""

_SYNONYMS = {
    "seeds": "n_seeds num_seeds",
    "seed": "random_seed",
    "episodes": "num_episodes n_episodes max_episodes total_episodes",
    "steps": "total_timesteps timesteps num_timesteps n_timesteps total_steps num_steps max_steps train_steps",
    "num_envs": "n_envs num_workers num_env_runners",
    "discount": "gamma discount_factor",
    "learning_rate": "lr step_size alpha",
    "gradient_clip": "max_grad_norm",
    "batch_size": "minibatch_size",
    "replay_size": "buffer_size memory_size",
    "replay_start": "learning_starts",
    "rollout_steps": "n_steps train_freq train_frequency",
    "updates_per_rollout": "gradient_steps",
    "learner": "algo algorithm",
    "policy EpsilonGreedy": "epsilon eps exploration_fraction exploration_initial_eps exploration_final_eps "
    "start_e end_e",
    "target RunningMean": "tau polyak",
    "target Periodic": "target_update_interval target_network_frequency",
    "network.width": "net_arch hidden_size",
    "env": "env_id",
    "env.kwargs": "env_kwargs env_config env_args",
    "init": "load load_model pretrained restore",
    "quiet": "verbose silent",
    "out": "save name exp_name run_name output output_dir save_dir save_path log_dir",
    "logger wandb": "track wandb use_wandb wandb_project wandb_project_name wandb_entity",
    "logger tensorboard": "tensorboard tensorboard_log",
    "checkpoint_every": "checkpoint_freq checkpoint_interval save_freq save_interval",
    "evaluate_every": "eval_freq eval_every eval_interval eval_frequency",
}
ID = re.compile(r"[\w./-]*(:|-v)[\w./:-]*")  # of an environment of Gymnasium: its version, or its module first
ELSEWHERE = {name: option for option, names in _SYNONYMS.items() for name in names.split()}
"""The option for each name that other libraries give it."""

_ANSWERS = {
    "device devices cuda gpu use_cuda no_cuda": "JAX uses a GPU where it finds one: set the environment variable "
    "JAX_PLATFORMS=cpu to use the CPU.",
    "render render_mode render_modes capture_video record_video video": "`uppertail watch DIR` needs no option "
    "to show a run in a window, and --gif FILE to show it in a file.",
    "deterministic": "Evaluation is greedy, unless --policy trained is given.",
    "framework torch torch_deterministic": "All is computed by JAX, and the same command on the same machine gives the "
    "same numbers.",
}
ABSENT = {name: f" {answer}" for names, answer in _ANSWERS.items() for name in names.split()}
"""What does the work of options that only other libraries have."""

_KINDS = {
    "Categorical": "C51 Distributional",
    "Quantile": "QRDQN QR-DQN",
    "GradientDescent": "DQN DDQN SGD Adam",
    "PerAction": "MLP MlpPolicy CNN CnnPolicy",
    "Ensemble": "BootstrappedDQN Bootstrapped",
    "RunningMean": "Polyak Soft EMA",
    "Periodic": "Hard",
    "Prioritized": "PER",
    "EpsilonGreedy": "Epsilon eps_greedy",
    "Softmax": "Boltzmann",
}
KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""The built-in kind for each name that other libraries give it."""


def part_of(part: str, given: Any) -> Any:
    """A part as it is given to a program: itself, or of the name of its class, one with that class's defaults."""
    if inspect.isclass(given):
        name = given.__name__
        raise InputError(f"{part} is the class {name}: give an object of it, {name}(), or its name as a text.")
    if not isinstance(given, str):
        return given
    try:
        return class_named(part, given)()
    except TypeError as error:
        raise InputError(f"{part} is {given}, which needs settings ({message_of(error)}): give an object.") from error


def class_named(part: str, name: Any) -> type:
    """The class of a part that is built in, or at an import path; InputError if there is none of its kind."""
    known = PARTS[part]
    use = f"use {known.choices}, or the import path of your own class."
    if not isinstance(name, str):
        raise InputError(f"{part} is {'null' if name is None else short_text(name)}: {use}")
    shown = printable(name[:200])
    require_kept(part, name)
    if name not in known.kinds and "." not in name:
        there = {each: kind for each, kind in KIND_OF.items() if kind in known.kinds}
        names = [*known.kinds, *there, *(_newest_ids() if part == "env" else ())]
        is_env = part != "env" and re.fullmatch(r"[\w./:-]+-v\d+", name)
        hint = " It looks like an environment: ut.train takes that first, and a command as --env." if is_env else ""
        raise InputError(f"Unknown {part} {shown!r}: {use}{hint or nearest(name, names, 1, shown=there)}")
    why = ""
    try:
        kind = pydoc.locate(f"{known.kinds[name]}.{name}" if name in known.kinds else name)
    except (pydoc.ErrorDuringImport, ValueError) as error:
        cause = getattr(error, "value", error)
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        kind, why = None, f" ({message_of(cause)})"
    if not inspect.isclass(kind):
        raise InputError(f"The class {shown} given for --{part} cannot be imported{why}: {use}")
    if not issubclass(kind, contract := known.load()):
        if part == "env":
            raise InputError(
                f"{shown} is not an environment builder: register the function that makes it "
                f"(gymnasium.register('My-v0', entry_point=...)), and use --env MODULE:My-v0; or {use}"
            )
        raise InputError(f"The class {shown} given for --{part} is no subclass of {contract.__name__}: {use}")
    return kind


def is_id(name: Any) -> bool:
    """Whether it looks like the id of an environment of Gymnasium, which may name a module before a colon."""
    return isinstance(name, str) and bool(ID.fullmatch(name))


def newest(name: Any) -> Any:
    """A name as it is, or the id of the newest version, where Gymnasium has it with one and no builder here has it."""
    is_open = isinstance(name, str) and name not in PARTS["env"].kinds and "." not in name and not is_id(name)
    return _newest_ids().get(name, name) if is_open else name


def _newest_ids() -> dict[str, str]:
    return importlib.import_module("uppertail.environments.gymnasium.gym").newest_ids()  # where Gymnasium is known


def require_kept(part: str, name: Any) -> None:
    """Refuses a kind that earlier versions had."""
    if name in REMOVED:
        raise InputError(
            f"The {part} {name} was removed: {REMOVED[name]}; a run of it needs the version of uppertail that made it."
        )


def name_of(part: str, kind: type) -> str:
    """The name by which `class_named` finds a class."""
    built_in = kind.__module__.startswith(PARTS[part].kinds.get(kind.__qualname__, "?"))
    return kind.__qualname__ if built_in else f"{kind.__module__}.{kind.__qualname__}"
