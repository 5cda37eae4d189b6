"""The small training runs of same_bytes.py. Every default is said, so that a run stays what it is when one changes."""

SETTINGS = (
    "seeds=2 seed=0 episodes=100000 steps=2000 num_envs=1 discount=0.995 learning_rate=5e-4 learning_rate_end=null "
    "gradient_clip=1 width=32 hidden_layers=2 bias=false batch_size=32 replay_size=2000 rollout_steps=16 "
    "updates_per_rollout=2 on_policy=fresh replay_start=0 loss_samples=0 checkpoint_every=null"
)
"""Of every run, but for what its case says."""

GYM = (
    "env.kwargs=null env.max_episode_steps=null env.compile=auto env.encoding=one_hot env.scaling=auto "
    "env.features=auto env.num_features=64 env.length_scale=0.2 env.feature_norm=1 env.returns=null env.success=null "
    "env.vectorization=sync"
)
PARTS = {
    "Chain": "env.length=10 env.ordered=false env.encoding=one_hot env.time_limit=null",
    "Toy": "env.encoding=one_hot",
    "FrozenLake": "env.map_name=4x4 env.is_slippery=false env.encoding=one_hot env.time_limit=200",
    "Gym": GYM,
    "Gaussian": (
        "distribution.std_bias=1 distribution.terminal_std=1e-4 distribution.beta=0.5 "
        "distribution.distance=cross_entropy distribution.scale=null"
    ),
    "Categorical": (
        "distribution.bins=7 distribution.low=null distribution.high=null distribution.printed_std=false "
        "distribution.printed_projection=false"
    ),
    "GaussianMixture": (
        "distribution.components=3 distribution.spread=2 distribution.std_bias=1 distribution.terminal_std=1e-4 "
        "distribution.released_std=false distribution.printed_loss=false distribution.scale=null"
    ),
    "PointMass": "distribution.scale=null",
    "UCB": "policy.low=1.7 policy.high=2.3",
    "Thompson": "policy.draws=1",
    "EpsilonGreedy": "policy.epsilon=0.05",
}
"""Of every run with this environment, distribution or policy, likewise."""

CLIFF = "Gym env.id=CliffWalking-v1 env.max_episode_steps=100"
CARTPOLE = "Gym env.id=CartPole-v1"
LAKE = 'Gym env.id=FrozenLake-v1 env.kwargs={"is_slippery":false} env.compile=never'
EDGES = "distribution.low=-0.5 distribution.high=1.5"
CASES = {
    "chain": "Chain Gaussian UCB seeds=3",
    "chain-one-seed": "Chain Gaussian UCB seeds=1 seed=7 env.ordered=true hidden_layers=1 env.time_limit=50",
    "chain-episodes": "Chain Gaussian UCB seeds=5 episodes=150 steps=null env.length=5 hidden_layers=3",
    "chain-scalar": "Chain Gaussian Thompson env.encoding=scalar bias=true policy.draws=3",
    "chain-thermometer": "Chain Gaussian EpsilonGreedy env.encoding=thermometer gradient_clip=0.01",
    "chain-wide": "Chain Gaussian UCB seeds=1 width=256 batch_size=128",
    "chain-odd-sizes": "Chain Gaussian UCB batch_size=15 replay_size=100 rollout_steps=10 updates_per_rollout=3",
    "chain-on-policy": "Chain Gaussian UCB on_policy=all distribution.beta=0 distribution.scale=2",
    "chain-off-policy": "Chain Gaussian UCB on_policy=none distribution.distance=kl distribution.std_bias=0",
    "chain-bhattacharyya": "Chain Gaussian Thompson distribution.distance=bhattacharyya replay_start=500",
    "chain-hellinger": "Chain Gaussian UCB distribution.distance=hellinger distribution.terminal_std=0.01",
    "chain-samples": "Chain Gaussian UCB loss_samples=2 learning_rate_end=1e-4",
    "categorical": "Chain Categorical UCB policy.low=1 policy.high=1",
    "categorical-printed": (
        "Chain Categorical Thompson env.encoding=thermometer distribution.printed_std=true "
        "distribution.printed_projection=true"
    ),
    "categorical-samples": "Chain Categorical UCB seeds=1 loss_samples=2 replay_start=200 distribution.bins=31",
    "toy": "Toy Gaussian UCB seeds=1",
    "toy-categorical": "Toy Categorical EpsilonGreedy env.encoding=scalar bias=true hidden_layers=1",
    "mixture": "Chain GaussianMixture UCB",
    "mixture-released": (
        "Toy GaussianMixture Thompson distribution.released_std=true distribution.printed_loss=true on_policy=all"
    ),
    "mixture-samples": "FrozenLake GaussianMixture EpsilonGreedy env.encoding=thermometer loss_samples=2",
    "point": "Chain PointMass EpsilonGreedy policy.epsilon=0.2",
    "point-scalar": "FrozenLake PointMass UCB env.encoding=scalar bias=true hidden_layers=1",
    "lake": "FrozenLake Gaussian UCB hidden_layers=3",
    "lake-slippery": "FrozenLake Categorical Thompson env.is_slippery=true env.time_limit=30",
    "taxi": "Gym Gaussian UCB env.id=Taxi-v4 distribution.distance=wasserstein discount=0.95 learning_rate_end=0",
    "cliff": f"{CLIFF} Categorical UCB env.encoding=thermometer discount=0.9",
    "cartpole": f"{CARTPOLE} Gaussian UCB",
    "cartpole-scaled": (
        f"{CARTPOLE} Categorical UCB env.features=scaled env.scaling=running env.returns=[0,99] bias=true seeds=3"
    ),
    "cartpole-four": f"{CARTPOLE} PointMass EpsilonGreedy num_envs=4 seeds=1 env.feature_norm=10",
    "cartpole-processes": f"{CARTPOLE} GaussianMixture Thompson num_envs=2 env.vectorization=async replay_start=300",
    "host-lake": f"{LAKE} Gaussian UCB seeds=3 loss_samples=2",
    "host-lake-two": f"{LAKE} Categorical Thompson num_envs=2 env.encoding=scalar on_policy=none {EDGES}",
    "dict": "Gym Gaussian UCB env.id=corridors:CorridorDict-v0 seeds=1",
    "tuple": f"Gym Categorical Thompson env.id=corridors:CorridorTuple-v0 num_envs=2 bias=true on_policy=all {EDGES}",
    "image": "Gym Gaussian UCB env.id=corridors:CorridorImage-v0 seeds=1 steps=1000",
    "multi-discrete": "Gym PointMass EpsilonGreedy env.id=corridors:CorridorMultiDiscrete-v0 learning_rate_end=1e-5",
    "checkpoints": "Chain Gaussian UCB steps=40000 checkpoint_every=2048",
    "resumed": "Chain Gaussian UCB steps=40000 checkpoint_every=2048",
    "host-checkpoints": f"{CARTPOLE} Gaussian UCB num_envs=2 steps=6000 checkpoint_every=1024",
    "host-resumed": f"{CARTPOLE} Gaussian UCB num_envs=2 steps=6000 checkpoint_every=1024",
}
"""Environment, distribution, policy, and what differs from the tables above."""

RESUMED = ("resumed", "host-resumed")
"""Killed once there is a checkpoint, then resumed; they end like the cases before them."""


def command(case: str) -> list[str]:
    """The words of a case after `uppertail`, but for its folder."""
    words = CASES[case].split()
    parts = dict(zip(("env", "distribution", "policy"), (word for word in words if "=" not in word), strict=True))
    said = [pair for text in (SETTINGS, *map(PARTS.__getitem__, parts.values())) for pair in text.split()]
    changed = [word for word in words if "=" in word]
    return ["train", *(f"--{name}={value}" for name, value in {**parts, **_values(said), **_values(changed)}.items())]


def _values(pairs: list[str]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in pairs)
